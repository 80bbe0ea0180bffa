/**
 * Builds OpenAPI documents from encoded entries (L3). /openapi/v2 has a piece for built-in kinds, one per custom resource definition and one per
 * extension server, each made once per revision of its source, so that a new definition costs only its own entries. Making and encoding entries
 * yields to the event loop. Upstream: apiextensions-apiserver/pkg/controller/openapi, which keeps one specification per definition
 * and merges them.
 */
import { type DocumentEntry, type EntryMember, entryMembers, type OpenApiInput, openApiV2Entries, openApiV2Head } from '#api/openapi/document'
import type { JsonSchema } from '#api/openapi/schemas'
import { Turns } from '../core/fairLoop.ts'
import type { Catalog, CatalogSource } from '../registry/catalog.ts'
import type { DocumentForm } from './openapiForms.ts'

/** By member of the document: each of its keys, encoded. */
type Piece = Readonly<Record<EntryMember, ReadonlyMap<string, Uint8Array>>>

/** Bytes of entries between two turns of the event loop: some milliseconds of work. */
const bytesPerTurn = 16 * 1024

/** Encodes a document of these entries. */
export async function encodeDocument(form: DocumentForm, head: JsonSchema, entries: Iterable<DocumentEntry>): Promise<Uint8Array> {
  return joined(form, head, [await encoded(form, entries)])
}

/** /openapi/v2 in one form. */
export class OpenApiPieces {
  readonly #form: DocumentForm
  /** The piece of built-in kinds: it never changes, and is most of the document. */
  #builtIn: Promise<Piece> | undefined
  /** Pieces by revision of their source. */
  #pieces = new Map<string, Piece>()

  constructor(form: DocumentForm) {
    this.#form = form
  }

  /** Returns the document. If two pieces define the same entry, the first wins. */
  async document(input: OpenApiInput, catalog: Catalog): Promise<Uint8Array> {
    const sources = catalog.sources()
    this.#builtIn ??= encoded(this.#form, openApiV2Entries({ ...input, resources: input.resources.filter((facts) => !facts.custom), extras: [] }))
    const pieces = [await this.#builtIn]
    const kept = new Map<string, Piece>()
    for (const source of sources) {
      const { revision, definitions, foreign, openApi } = source
      const entries = openApi?.v2 ? () => entriesOf(openApi.v2 as JsonSchema) : definitions && !foreign ? () => ownEntries(source, input) : undefined
      if (!entries) continue
      const form = openApi?.v2 ? forgiving(this.#form) : this.#form
      const piece = this.#pieces.get(revision) ?? (await encoded(form, entries()))
      kept.set(revision, piece)
      pieces.push(piece)
    }
    this.#pieces = kept
    return joined(this.#form, openApiV2Head(input), pieces)
  }
}

/** Leaves out what cannot be encoded: otherwise one foreign server could make the document fail for every client. */
function forgiving({ entry }: EntryForm): EntryForm {
  return {
    entry(one) {
      try {
        return entry(one)
      } catch {
        return undefined
      }
    },
  }
}

function ownEntries({ entries, definitions = [] }: CatalogSource, input: OpenApiInput): Iterable<DocumentEntry> {
  return openApiV2Entries({ ...input, resources: entries.map(({ discovered, facts }) => discovered ?? facts), extras: definitions })
}

/** The entries of another server's document. */
function* entriesOf(document: JsonSchema): Generator<DocumentEntry> {
  for (const member of entryMembers)
    for (const [name, value] of Object.entries((document[member] ?? {}) as Record<string, JsonSchema>)) yield { member, name, value }
}

interface EntryForm {
  entry(one: DocumentEntry): Uint8Array | undefined
}

async function encoded(form: EntryForm, entries: Iterable<DocumentEntry>): Promise<Piece> {
  const turns = new Turns(bytesPerTurn)
  const piece = { paths: new Map<string, Uint8Array>(), definitions: new Map<string, Uint8Array>(), parameters: new Map<string, Uint8Array>() }
  for (const entry of entries) {
    const bytes = form.entry(entry)
    if (!bytes) continue
    piece[entry.member].set(entry.name, bytes)
    await turns.after(bytes.length)
  }
  return piece
}

function joined(form: DocumentForm, head: JsonSchema, pieces: readonly Piece[]): Uint8Array {
  const sorted = (member: EntryMember) => {
    const all = new Map<string, Uint8Array>()
    for (const piece of pieces) for (const [name, bytes] of piece[member]) if (!all.has(name)) all.set(name, bytes)
    return [...all].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, bytes]) => bytes)
  }
  return Buffer.concat(form.whole(head, sorted))
}
