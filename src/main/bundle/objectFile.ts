/**
 * Writes the objects of a bundle as etcd's snapshot (L5). Objects come kind by kind, and a snapshot is in the order of revisions: values wait in a file, and
 * memory holds where each one is.
 */
import { type FileHandle, open, rm } from 'node:fs/promises'
import path from 'node:path'
import { builtInResources, storagePrefix } from '#api/discovery/resources'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import type { ObjectFile } from '#cli/bundles'
import type { Kind, PastObject } from '#cli/past/objects'
import { digestOf, writeAll, writeDatabase } from '#store/snapshot/snapshotFile'
import type { StoredChange, StoreSnapshot } from '#store/store'

interface Place extends Pick<StoredChange, 'key' | 'modRevision' | 'createRevision' | 'version'> {
  readonly at: number
  readonly length: number
}

/** Bytes of values that are written, or read, at a time. */
const pieceBytes = 1 << 20
const mostOfPiece = 500
/** The key of a bundle's newest revision, when that changed no object. */
const markKey = '/skiff/bundle'
const valuesFile = 'values'

export async function createObjectFile(directory: string): Promise<ObjectFile> {
  return new SortedObjects(directory, await open(path.join(directory, valuesFile), 'wx+', 0o600))
}

class SortedObjects implements ObjectFile {
  readonly #directory: string
  readonly #values: FileHandle
  readonly #places: Place[] = []
  /** By key: the version that was added last. */
  readonly #versions = new Map<string, Pick<Place, 'createRevision' | 'version'>>()
  readonly #prefixes = new Map<string, string>()
  #waiting: Buffer[] = []
  #waitingBytes = 0
  #bytes = 0

  constructor(directory: string, values: FileHandle) {
    this.#directory = directory
    this.#values = values
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#values.close()
  }

  get count(): number {
    return this.#versions.size
  }

  remove(kind: Kind, object: PastObject): void {
    const key = this.#keyOf(kind, object)
    this.#versions.delete(key)
    this.#places.push({ key, modRevision: revisionOf(object), createRevision: 0, version: 0, at: this.#bytes, length: 0 })
  }

  async add(kind: Kind, object: PastObject): Promise<void> {
    const key = this.#keyOf(kind, object)
    const modRevision = revisionOf(object)
    const { resourceVersion: _, ...metadata } = object.metadata
    const before = this.#versions.get(key)
    const own = { createRevision: before?.createRevision ?? modRevision, version: (before?.version ?? 0) + 1 }
    this.#versions.set(key, own)
    const { apiVersion, kind: name, metadata: __, ...rest } = object
    const value = Buffer.from(stringifyExactly({ apiVersion, kind: name, metadata, ...rest }))
    this.#places.push({ key, modRevision, ...own, at: this.#bytes, length: value.length })
    await this.#keep(value)
  }

  /** As upstream names it: /registry/pods/default/web. */
  #keyOf(kind: Kind, { metadata: { namespace = '', name = '' } }: PastObject): string {
    const id = `${kind.group}/${kind.resource}`
    const prefix = this.#prefixes.get(id) ?? prefixOf(kind)
    this.#prefixes.set(id, prefix)
    return Buffer.from(kind.namespaced ? `${prefix}/${namespace}/${name}` : `${prefix}/${name}`).toString('latin1')
  }

  async #keep(value: Buffer): Promise<void> {
    this.#waiting.push(value)
    this.#waitingBytes += value.length
    this.#bytes += value.length
    if (this.#waitingBytes >= pieceBytes) await this.#flush()
  }

  async #flush(): Promise<void> {
    const piece = Buffer.concat(this.#waiting)
    const position = this.#bytes - piece.length
    this.#waiting = []
    this.#waitingBytes = 0
    await writeAll(this.#values, piece, position)
  }

  async end({ revision, oldestRevision }: Parameters<ObjectFile['end']>[0]): Promise<string> {
    await this.#flush()
    const changes = ordered(this.#places, revision)
    const snapshot: StoreSnapshot = {
      revision,
      compactRevision: oldestRevision > 1 ? oldestRevision : 0,
      leases: [],
      auth: [],
      changes: () => this.#changes(changes),
      isLiveAt: () => true,
      close: () => {},
    }
    const file = path.join(this.#directory, 'store.db')
    const handle = await open(file, 'wx+', 0o600)
    try {
      const length = await writeDatabase(handle, snapshot, { alarms: [] })
      await writeAll(handle, await digestOf(handle, length), length)
    } finally {
      await handle.close()
    }
    await this.#values.close()
    await rm(path.join(this.#directory, valuesFile))
    return file
  }

  async *#changes(places: readonly (Place & { readonly sub: number })[]): AsyncGenerator<readonly StoredChange[]> {
    for (let first = 0; first < places.length; ) {
      let [last, bytes] = [first, 0]
      while (last < places.length && last - first < mostOfPiece && bytes < pieceBytes) bytes += (places[last++] as Place).length
      const some = places.slice(first, last)
      const values = await this.#valuesOf(some)
      yield some.map(({ at: _, length: __, ...change }, index) => ({ ...change, lease: 0, value: values[index] as Uint8Array }))
      first = last
    }
  }

  /** Values that were written one after another are read at once. */
  async #valuesOf(places: readonly Place[]): Promise<readonly Uint8Array[]> {
    const values: Uint8Array[] = []
    for (let first = 0; first < places.length; ) {
      const { at } = places[first] as Place
      let [last, end] = [first, at]
      for (; last < places.length && (places[last] as Place).at === end; last++) end += (places[last] as Place).length
      const piece = Buffer.allocUnsafeSlow(end - at)
      await this.#values.read(piece, 0, piece.length, at)
      for (const { at: start, length } of places.slice(first, last)) values.push(piece.subarray(start - at, start - at + length))
      first = last
    }
    return values
  }
}

/** By revision, each change with its position in it. One revision may change several objects. The newest one is there, whatever it changed. */
function ordered(places: readonly Place[], newest: number): (Place & { readonly sub: number })[] {
  const sorted = places.toSorted((one, other) => one.modRevision - other.modRevision)
  const last = sorted.at(-1)
  if (!last || last.modRevision < newest) sorted.push({ key: markKey, modRevision: newest, createRevision: newest, version: 1, at: 0, length: 0 })
  let [revision, sub] = [0, 0]
  return sorted.map((place) => {
    sub = place.modRevision === revision ? sub + 1 : 0
    revision = place.modRevision
    return { ...place, sub }
  })
}

function revisionOf({ kind, metadata: { name, resourceVersion } }: PastObject): number {
  const revision = Number(resourceVersion)
  if (!Number.isSafeInteger(revision) || revision < 1) throw new Error(`${kind} ${name} has no revision`)
  return revision
}

function prefixOf({ group, resource }: Kind): string {
  const { storage } = builtInResources().find((one) => one.group === group && one.resource === resource) ?? {}
  return storage ? storagePrefix(storage) : `/registry/${group}/${resource}`
}
