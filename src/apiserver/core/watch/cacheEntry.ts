/**
 * One version of one object in the watch cache (L3): the stored JSON with the resourceVersion spliced in, and the parsed, frozen object.
 * Each is made on first use and kept, so a write encodes at most once and a read never.
 * Upstream keeps decoded objects only and encodes per response (with a per-event cache for watches).
 */

import { hasLongInteger, stringifyExactly } from '#api/machinery/exactIntegers'
import { parseExactly } from '#api/machinery/json'
import { type Frozen, type KubeObject, parseGroupVersion } from '#api/machinery/meta'
import { decodeProtobuf, isProtobuf } from '#api/protobuf/envelope'
import { schemaFor } from '#api/schema/builtIn'
import { settleLongIntegers } from '#api/schema/longIntegers'
import { withNils, withoutNils, withRequiredLists } from '#api/schema/nils'
import type { Schema } from '#api/schema/schema'
import { deepFreeze } from '#base/frozen'
import { ownUtf8 } from '#base/ownMemory'
import type { Cancellation } from '../cancellation.ts'
import { isLargeObject, turn } from '../fairLoop.ts'
import type { CachedObject } from '../request.ts'
import { UnreadableValue } from './unreadableValue.ts'

/** Another served version of the same stored object. */
export interface VersionView {
  /** The apiVersion that the view shows, e.g. `autoscaling/v1`. */
  readonly apiVersion: string
  /** Returns the same object if the versions do not differ. */
  convert(object: Frozen<KubeObject>): KubeObject | Frozen<KubeObject>
  /** Set for conversion webhooks: all entries that are needed are converted first, see {@link prepareViews}. */
  convertAll?(objects: readonly Frozen<KubeObject>[], cancellation?: Cancellation): Promise<readonly KubeObject[]>
}

/** Resolves when `view` may be called for all of the entries; undefined if it may be called now. */
export function prepareViews(entries: Iterable<CacheEntry>, version: VersionView | undefined, cancellation?: Cancellation): Promise<void> | undefined {
  if (!version?.convertAll) return undefined
  const missing: CacheEntry[] = []
  for (const entry of entries) if (!entry.hasView(version)) missing.push(entry)
  return missing.length === 0 ? undefined : convertMissing(missing, version, cancellation)
}

async function convertMissing(entries: readonly CacheEntry[], version: VersionView, cancellation: Cancellation | undefined): Promise<void> {
  const objects = await version.convertAll?.(
    entries.map((entry) => entry.object),
    cancellation,
  )
  objects?.forEach((object, at) => void entries[at]?.keepView(version, object))
}

const metadataStart = Buffer.from('"metadata":{')
const closingBrace = 0x7d

export class CacheEntry implements CachedObject {
  /** 'namespace/name' or 'name'. */
  readonly key: string
  readonly resourceVersion: number
  readonly createRevision: number
  /** Length of the stored value. */
  readonly storedBytes: number
  /** Whether the watch cache holds it as the object's current version. Further references to it then cost no memory. */
  isCurrent = false
  protobuf: Uint8Array | undefined = undefined
  untypedTail: Uint8Array | undefined = undefined
  #stored: Uint8Array | undefined
  #wasRead = false
  /** False: the value is checked when it is first read. */
  #isChecked = true
  #bytes: Uint8Array | undefined
  #object: Frozen<KubeObject> | undefined
  #views: Map<VersionView, CachedObject> | undefined

  private constructor(
    key: string,
    resourceVersion: number,
    createRevision: number,
    stored: Uint8Array | undefined,
    object: Frozen<KubeObject> | undefined,
    storedBytes = stored?.byteLength ?? 0,
  ) {
    this.key = key
    this.storedBytes = storedBytes
    this.resourceVersion = resourceVersion
    this.createRevision = createRevision
    this.#stored = stored
    this.#object = object
  }

  /** From the store's value; `parsed` is the writer's object, if it has it: it is completed and frozen here. */
  static stored(key: string, value: Uint8Array, revision: number, createRevision: number, parsed?: KubeObject): CacheEntry {
    if (parsed) parsed.metadata.resourceVersion = String(revision)
    return new CacheEntry(key, revision, createRevision, value, parsed && (deepFreeze(parsed) as Frozen<KubeObject>))
  }

  /**
   * From a value that this process may not have written.
   * @param keeps which parsed objects are kept: `all` where they are read again at once, `none` where most are never read
   */
  static read(
    key: string,
    value: Uint8Array,
    revision: number,
    createRevision: number,
    keeps: 'all' | 'small' | 'none' = 'small',
  ): CacheEntry | UnreadableValue {
    const parsed = keeps === 'none' ? checkedShape(value) : checkedObject(value)
    if (parsed instanceof UnreadableValue) return parsed
    const isKept = keeps === 'all' || (keeps === 'small' && !isLargeObject(value.byteLength))
    return CacheEntry.stored(key, value, revision, createRevision, isKept ? parsed : undefined)
  }

  /** As `read`, but the value is looked at when it is first used: its `object` and its `bytes` then throw where it is no object. */
  static late(key: string, value: Uint8Array, revision: number, createRevision: number): CacheEntry {
    const entry = CacheEntry.stored(key, value, revision, createRevision)
    entry.#isChecked = false
    return entry
  }

  /** What a dry run would have stored, without a new resourceVersion. Takes ownership of the object. */
  static transient(key: string, object: KubeObject, like?: CacheEntry): CacheEntry {
    if (like) object.metadata.resourceVersion = String(like.resourceVersion)
    return new CacheEntry(key, like?.resourceVersion ?? 0, like?.createRevision ?? 0, undefined, deepFreeze(object) as Frozen<KubeObject>)
  }

  /** The same content under another resourceVersion: what watchers see of a deleted object. */
  at(revision: number): CacheEntry {
    const value = this.#stored ?? this.#bytes
    const object = this.#object && Object.freeze({ ...this.#object, metadata: Object.freeze({ ...this.#object.metadata, resourceVersion: String(revision) }) })
    const entry = new CacheEntry(this.key, revision, this.createRevision, value, object, this.storedBytes)
    entry.#isChecked = this.#isChecked
    return entry
  }

  /** @throws StatusError InternalError where `parsed` says that the value is no object */
  #checked<T>(parsed: T | UnreadableValue): T {
    if (parsed instanceof UnreadableValue) throw parsed.failureOf(this.key)
    this.#isChecked = true
    return parsed
  }

  /** Drops all but the bytes: the rest is made again on the next read. */
  dropDecoded(): void {
    if (this.#stored === undefined) void this.bytes
    this.#object = undefined
    this.#views = undefined
    this.protobuf = undefined
    this.untypedTail = undefined
  }

  /** Kept from the second read on: most versions are read once, for the answer to their writer. */
  get bytes(): Uint8Array {
    if (this.#bytes !== undefined) return this.#bytes
    if (!this.#isChecked) this.#checked(checkedShape(this.#stored as Uint8Array))
    const isKept = this.#wasRead || this.#stored === undefined
    const spliced = this.#stored && spliceResourceVersion(this.#stored, this.resourceVersion, isKept ? Buffer.allocUnsafeSlow : Buffer.allocUnsafe)
    this.#wasRead = true
    if (spliced && !isKept) return spliced
    this.#bytes = spliced ?? jsonOf(this.object)
    this.#stored = undefined
    return this.#bytes
  }

  get object(): Frozen<KubeObject> {
    if (this.#object === undefined) {
      const value = (this.#stored ?? this.#bytes)!
      const parsed = this.#isChecked ? parseStored(value) : this.#checked(checkedObject(value))
      parsed.metadata.resourceVersion = String(this.resourceVersion)
      this.#object = deepFreeze(parsed) as Frozen<KubeObject>
    }
    return this.#object
  }

  /** The object as another version shows it; made once. */
  view(version: VersionView | undefined): CachedObject {
    if (!version) return this
    return this.#views?.get(version) ?? this.keepView(version, version.convert(this.object))
  }

  hasView(version: VersionView): boolean {
    return this.#views?.has(version) ?? false
  }

  /** Caches the object in another version. */
  keepView(version: VersionView, converted: KubeObject | Frozen<KubeObject>): CachedObject {
    const object = deepFreeze(converted) as Frozen<KubeObject>
    const view = object === this.object ? this : new View(object, this.resourceVersion)
    this.#views ??= new Map()
    this.#views.set(version, view)
    return view
  }

  /** Drops cached views after the versions have changed. */
  forgetViews(): void {
    this.#views = undefined
  }
}

/** The entry that a dry run would have stored: the object as it is after it was encoded and parsed. Others have a turn between the passes over a large one. */
export async function transientEntry(key: string, object: KubeObject, like?: CacheEntry): Promise<CacheEntry> {
  const head = encodedHead(object)
  if (isLargeObject(head.length)) await turn()
  const value = encodeStored(object, head)
  const isLarge = isLargeObject(value.length)
  if (isLarge) await turn()
  const parsed = parseStored(value)
  if (isLarge) await turn()
  const entry = CacheEntry.transient(key, parsed, like)
  if (isLarge) await turn()
  return entry
}

/** Its bytes are made on first use: the client that wrote the object often does not need them. */
class View implements CachedObject {
  readonly object: Frozen<KubeObject>
  readonly resourceVersion: number
  protobuf: Uint8Array | undefined
  untypedTail: Uint8Array | undefined
  #bytes: Uint8Array | undefined

  constructor(object: Frozen<KubeObject>, resourceVersion: number) {
    this.object = object
    this.resourceVersion = resourceVersion
  }

  get bytes(): Uint8Array {
    this.#bytes ??= jsonOf(this.object)
    return this.#bytes
  }
}

/** This server writes JSON; upstream's API server may have written protobuf into a shared etcd. */
function parseStored(value: Uint8Array): KubeObject {
  const buffer = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  if (!isProtobuf(buffer)) {
    const object = parseExactly(buffer, settle)
    return (isRecord(object) ? withoutNils(object) : object) as KubeObject
  }
  const object = decodeProtobuf(buffer, schemaOf) as unknown as KubeObject
  object.metadata ??= {}
  return withRequiredLists(object)
}

/** The object of a value that another process may have written. */
function checkedObject(value: Uint8Array): KubeObject | UnreadableValue {
  return readable(() => {
    const object = parseStored(value)
    checkShape(object)
    return object
  })
}

/** Undefined where the value is an object. */
function checkedShape(value: Uint8Array): UnreadableValue | undefined {
  return readable(() => checkShape(shapeOf(value)) as undefined)
}

function readable<T>(read: () => T): T | UnreadableValue {
  try {
    return read()
  } catch (error) {
    // The engine quotes what it cannot parse: that may be a Secret, and the message goes to the log.
    return new UnreadableValue(error instanceof SyntaxError ? new Error('the value is no JSON') : (error as Error), true)
  }
}

/** What {@link checkShape} looks at, for less than the price of an object; what a parse into an object would refuse is refused here, too. */
function shapeOf(value: Uint8Array): unknown {
  const buffer = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  return isProtobuf(buffer) || hasLongInteger(buffer) ? parseStored(value) : JSON.parse(buffer.toString())
}

function schemaOf(apiVersion: string, kind: string): Schema | undefined {
  const { group, version } = parseGroupVersion(apiVersion)
  return schemaFor(group, version, kind)
}

/** @throws DecodeError */
function settle(object: unknown): void {
  const schema = isRecord(object) ? schemaOf(String(object.apiVersion), String(object.kind)) : undefined
  if (schema) settleLongIntegers(object, schema)
}

/** Checks the shape that all readers of objects rely on. @throws Error */
function checkShape(object: unknown): void {
  if (!isRecord(object)) throw new Error('the value is no object')
  for (const field of ['apiVersion', 'kind']) if (typeof object[field] !== 'string') throw new Error(`Object '${field}' is missing`)
  const { metadata } = object
  if (!isRecord(metadata)) throw new Error("Object 'metadata' is missing")
  if (typeof metadata.name !== 'string' || metadata.name === '') throw new Error('metadata.name is missing')
  if (!isAbsent(metadata.namespace) && typeof metadata.namespace !== 'string') throw new Error('metadata.namespace is no string')
  for (const field of ['labels', 'annotations']) {
    const map = metadata[field]
    if (!isAbsent(map) && !(isRecord(map) && Object.values(map).every((value) => typeof value === 'string')))
      throw new Error(`metadata.${field} is no map of strings`)
  }
  for (const field of ['finalizers', 'ownerReferences', 'managedFields']) {
    if (!isAbsent(metadata[field]) && !Array.isArray(metadata[field])) throw new Error(`metadata.${field} is no list`)
  }
}

const isAbsent = (value: unknown) => value === undefined || value === null
const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null && !Array.isArray(value)

function jsonOf(object: Frozen<KubeObject>): Buffer {
  return ownUtf8(stringifyExactly(withNils(object)))
}

/** Sets `"resourceVersion":"N"` as metadata's first field, where {@link CacheEntry.bytes} put it; undefined where the value is not in our canonical form. */
function spliceResourceVersion(value: Uint8Array, revision: number, allocate: (bytes: number) => Buffer): Uint8Array | undefined {
  const buffer = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  // Canonical values begin with apiVersion, kind, metadata, so the first match near the start is the object's own metadata.
  const at = buffer.subarray(0, 300).indexOf(metadataStart)
  if (at < 0 || buffer[0] !== 0x7b || !isCanonicalHead(buffer, at)) return undefined
  const start = at + metadataStart.length
  const end = start + (leadingResourceVersion.exec(buffer.toString('latin1', start, start + 45))?.[0].length ?? 0)
  const text = `"resourceVersion":"${revision}"${buffer[end] === closingBrace ? '' : ','}`
  const spliced = allocate(buffer.length - (end - start) + text.length)
  buffer.copy(spliced, 0, 0, start)
  spliced.write(text, start, 'latin1')
  buffer.copy(spliced, start + text.length, end)
  return spliced
}

const leadingResourceVersion = /^"resourceVersion":"\d+",?/
const canonicalHead = /^\{"apiVersion":"[^"\\]*","kind":"[^"\\]*",$/

function isCanonicalHead(buffer: Buffer, metadataAt: number): boolean {
  return canonicalHead.test(buffer.toString('latin1', 0, metadataAt))
}

/**
 * The canonical JSON that is stored and answered: apiVersion, kind, metadata first, no resourceVersion inside, null where Go has nil. Written piece
 * by piece, since copies cost more.
 * @param head the object's {@link encodedHead}: others may have a turn between the two parts of a large object
 */
export function encodeStored(object: KubeObject, head = encodedHead(object)): Buffer {
  const members = withNils(object) as unknown as Readonly<Record<string, unknown>>
  let text = head
  for (const field in members) {
    if (field === 'apiVersion' || field === 'kind' || field === 'metadata') continue
    const value = stringifyExactly(members[field])
    if (value !== undefined) text += `,${JSON.stringify(field)}:${value}`
  }
  return ownUtf8(`${text}}`)
}

/** The canonical JSON's first members. Copies cost more, so the resourceVersion is taken out of the registry's `object` and put back. */
export function encodedHead(object: KubeObject): string {
  const { apiVersion, kind, metadata } = object as { apiVersion: string; kind: string; metadata: { resourceVersion?: string | undefined } }
  const { resourceVersion } = metadata
  if (resourceVersion !== undefined) metadata.resourceVersion = undefined
  const text = `{"apiVersion":${JSON.stringify(apiVersion)},"kind":${JSON.stringify(kind)},"metadata":${JSON.stringify(metadata)}`
  if (resourceVersion !== undefined) metadata.resourceVersion = resourceVersion
  return text
}
