/**
 * The encodings of an OpenAPI document (L3): JSON of both versions, and version 2 as protobuf. A form encodes one entry at a time and concatenates
 * encoded entries, so that encoded entries are reused and no request waits for a whole document.
 */
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { type DocumentEntry, type EntryMember, entryMembers, openApiV3Components } from '#api/openapi/document'
import { encodeGnostic, gnosticEntry, gnosticMediaType, gnosticMember } from '#api/openapi/gnostic'
import type { JsonSchema } from '#api/openapi/schemas'

export interface DocumentForm {
  readonly mediaType: string
  entry(entry: DocumentEntry): Uint8Array
  /** The document, in pieces to be concatenated. `head` has its members other than the entries. */
  whole(head: JsonSchema, entries: (member: EntryMember) => readonly Uint8Array[]): Uint8Array[]
}

type Entries = (member: EntryMember) => readonly Uint8Array[]

const comma = Buffer.from(',')

/** `prefix` and the entries as a JSON object's members. */
function jsonObject(prefix: string, entries: readonly Uint8Array[], rest = ''): Uint8Array[] {
  return [Buffer.from(`${prefix}{`), ...entries.flatMap((entry, index) => (index === 0 ? [entry] : [comma, entry])), Buffer.from(`}${rest}`)]
}

const jsonEntry = ({ name, value }: DocumentEntry): Uint8Array => Buffer.from(`${JSON.stringify(name)}:${stringifyExactly(value)}`)

/** Without its closing brace. */
const openObject = (value: JsonSchema): string => JSON.stringify(value).slice(0, -1)

export const jsonV2: DocumentForm = {
  mediaType: 'application/json',
  entry: jsonEntry,
  whole: (head, entries) => [
    Buffer.from(openObject(head)),
    ...entryMembers.flatMap((member) => jsonObject(`,${JSON.stringify(member)}:`, entries(member))),
    Buffer.from('}'),
  ],
}

export const jsonV3: DocumentForm = {
  mediaType: 'application/json',
  entry: jsonEntry,
  whole: (head: JsonSchema, entries: Entries) => [
    ...jsonObject(`${openObject(head)},"paths":`, entries('paths')),
    ...jsonObject(`,"components":${openObject(openApiV3Components)},"schemas":`, entries('definitions'), '}}'),
  ],
}

export const protobufV2: DocumentForm = {
  mediaType: gnosticMediaType,
  entry: gnosticEntry,
  whole: (head, entries) => [encodeGnostic(head), ...entryMembers.flatMap((member) => gnosticMember(member, entries(member)))],
}
