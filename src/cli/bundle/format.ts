/**
 * The format of a bundle (L4, pure): a head, an index, and the parts that the index names, each compressed by gzip, one after another. The index stands first
 * and says of each part where it ends, how long it is, and its SHA-256, so that nothing is read or unpacked that it did not announce.
 */
import { CommandError } from '../exitCodes.ts'

/** 16 bytes; the format's version is the number in it. */
export const magic = Buffer.from('SKIFF BUNDLE 1\n\0', 'latin1')
/** The magic, the length of the index as 32 bits (big end first), and its SHA-256. */
export const headBytes = magic.length + 4 + 32

export interface BundlePart {
  /** Words with slashes between them. It is a key of the index, and never a path of the file system. */
  readonly name: string
  /** Unpacked. */
  readonly bytes: number
  readonly packedBytes: number
  /** Digest of the packed bytes, in hexadecimal. */
  readonly sha256: string
}

/** Something that a bundle lacks. */
export interface MissingPart {
  readonly what: string
  readonly reason: string
}

export interface BundleFacts {
  /** The name of the cluster, or of its server. */
  readonly cluster: string
  /** When it was taken, in milliseconds since the epoch. */
  readonly takenMs: number
  /** The state of the objects. */
  readonly revision: number
  /** Since this revision, replaced versions can be read. */
  readonly oldestRevision: number
  /** Whether secrets were replaced. */
  readonly isRedacted: boolean
  readonly skiffVersion: string
  /** The version that the server reports. */
  readonly serverVersion: string
  /** At its newest revision. */
  readonly objects: number
  readonly changes: number
  readonly missing: readonly MissingPart[]
}

export interface BundleIndex extends BundleFacts {
  /** In the order in which they stand in the file. */
  readonly parts: readonly BundlePart[]
}

/** The objects and their history, as etcd's snapshot. */
export const storePart = 'store.db'
export const tracesPart = 'traces.json'
export const timesPart = 'times.json'
export const metricsPart = 'metrics/apiserver.txt'
export const logPart = (namespace: string, pod: string, container: string, isPrevious: boolean): string =>
  `logs/pods/${namespace}/${pod}/${container}${isPrevious ? '.previous' : ''}.log`

export const mostIndexBytes = 32 * 2 ** 20
export const mostParts = 50_000
const mostStoreBytes = 2 * 2 ** 30
const mostPartBytes = 64 * 2 ** 20
const mostAllBytes = 4 * 2 ** 30
/** What gzip makes of repeated text; a longer part is made to fill memory. */
const mostRatio = 200
const freeBytes = 2 ** 20

export const mostBytesOf = (name: string): number => (name === storePart ? mostStoreBytes : mostPartBytes)

/** Whether a part is longer than its packed bytes may become. */
export const growsTooMuch = (bytes: number, packedBytes: number): boolean => bytes > freeBytes + packedBytes * mostRatio
/** The last time that a Date holds. */
const lastMs = 8.64e15
const mostMissing = 10_000

export class DamagedBundle extends CommandError {
  constructor(reason: string) {
    super('usage', `this is no bundle, or a damaged one: ${reason}`, { hint: 'copy the file again from where it was written, or take another one' })
  }
}

/** The length of the index and its checksum. @throws DamagedBundle; CommandError unmetPrerequisite for a newer format */
export function readHead(head: Buffer): { readonly indexBytes: number; readonly sha256: Buffer } {
  const known = magic.subarray(0, magic.indexOf('1'))
  if (head.length >= magic.length && head.subarray(0, known.length).equals(known) && !head.subarray(0, magic.length).equals(magic)) {
    const [, version = 'unknown'] = /^(\d{1,9})\n/.exec(head.toString('latin1', known.length, magic.length)) ?? []
    throw new CommandError('unmetPrerequisite', `the bundle has version ${version} of the format, and this version of Skiff reads version 1`, {
      hint: 'open it with the version of Skiff that wrote it',
    })
  }
  if (head.length < headBytes || !head.subarray(0, magic.length).equals(magic)) throw new DamagedBundle('it does not begin as one')
  const indexBytes = head.readUInt32BE(magic.length)
  if (indexBytes > mostIndexBytes) throw new DamagedBundle(`its index has ${indexBytes} bytes, at most ${mostIndexBytes} are read`)
  return { indexBytes, sha256: head.subarray(magic.length + 4, headBytes) }
}

export function headOf(index: Buffer, sha256: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(index.length)
  return Buffer.concat([magic, length, sha256])
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
const plainName = /^[\w.:@%+~-]+(\/[\w.:@%+~-]+)*$/

/** Checks every member that is read later. @param partsBytes what follows the index in the file. @throws DamagedBundle */
export function checkIndex(value: unknown, partsBytes: number): BundleIndex {
  const index = value as Partial<BundleIndex> | null
  if (typeof index !== 'object' || index === null) throw new DamagedBundle('its index is no object')
  for (const name of ['cluster', 'skiffVersion', 'serverVersion'] as const) if (!isText(index[name])) throw new DamagedBundle(`its index has no ${name}`)
  for (const name of ['takenMs', 'revision', 'oldestRevision', 'objects', 'changes'] as const)
    if (!isCount(index[name])) throw new DamagedBundle(`its index has no ${name}`)
  if ((index.takenMs as number) > lastMs) throw new DamagedBundle('its time is no time')
  if (typeof index.isRedacted !== 'boolean') throw new DamagedBundle('its index does not say whether secrets were replaced')
  checkMissing(index.missing)
  checkParts(index.parts, partsBytes)
  return index as BundleIndex
}

function checkMissing(missing: unknown): void {
  const isListed = Array.isArray(missing) && missing.length <= mostMissing && missing.every((one) => isText(one?.what) && isText(one?.reason))
  if (!isListed) throw new DamagedBundle('its index does not list what is missing')
}

function checkParts(parts: unknown, partsBytes: number): void {
  if (!Array.isArray(parts)) throw new DamagedBundle('its index lists no parts')
  if (parts.length > mostParts) throw new DamagedBundle(`its index lists ${parts.length} parts, at most ${mostParts} are read`)
  const names = new Set<string>()
  let [packed, all] = [0, 0]
  for (const part of parts as Partial<BundlePart>[]) {
    const { name, bytes, packedBytes, sha256 } = part ?? {}
    if (!isText(name) || name.length > 1_000 || !plainName.test(name) || name.split('/').some((word) => /^\.+$/.test(word)))
      throw new DamagedBundle('the name of a part is not valid')
    if (names.has(name)) throw new DamagedBundle(`the part ${name} is listed twice`)
    if (!isCount(bytes) || !isCount(packedBytes) || !isText(sha256) || !/^[0-9a-f]{64}$/.test(sha256))
      throw new DamagedBundle(`the part ${name} is not described`)
    const most = mostBytesOf(name)
    if (bytes > most) throw new DamagedBundle(`the part ${name} has ${bytes} bytes, at most ${most} are read`)
    if (growsTooMuch(bytes, packedBytes)) throw new DamagedBundle(`the part ${name} would grow to ${bytes} bytes from ${packedBytes}`)
    names.add(name)
    packed += packedBytes
    all += bytes
  }
  if (all > mostAllBytes) throw new DamagedBundle(`its parts have ${all} bytes, at most ${mostAllBytes} are read`)
  if (packed !== partsBytes) throw new DamagedBundle(`its parts take ${partsBytes} bytes, and should take ${packed}`)
}
