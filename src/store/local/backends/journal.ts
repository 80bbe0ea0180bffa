/**
 * A journal on disk (L2): two segments of one preallocated file, written in turn, each write on the disk when it is done. What is read back is what
 * was written after a given number, in order, up to the first entry that is not whole: the write that a crash cut off, which was never acknowledged.
 * Layout of an entry, little endian: u32 CRC-32 of all that follows, begun with the store's identity, u32 length of the payload, f64 number, payload.
 * Numbers go up by one.
 */
import { closeSync, constants, fchmodSync, fstatSync, fsyncSync, openSync, readSync, write, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { crc32 } from 'node:zlib'
import type { Clock } from '#base/clock'

const head = 16
const segments = 2
/** While the disk answers within this time, waiting for it is shorter than handing the write to another thread. */
const shortMs = 0.4
/** Weight of the newest write in the moving average of the write time. */
const weight = 1 / 16

export interface JournalOptions {
  readonly path: string
  /** A number below 2^32 that no other store has. */
  readonly identity: number
  readonly segmentBytes: number
  readonly clock: Clock
  /** Called after each write with its time, in seconds. */
  readonly onWritten?: ((seconds: number) => void) | undefined
}

export interface JournalEntry {
  readonly number: number
  readonly payload: Buffer
}

const writeAsync = promisify(write)

export class Journal {
  readonly #file: number
  readonly #identity: number
  readonly #segmentBytes: number
  readonly #clock: Clock
  readonly #onWritten: JournalOptions['onWritten']
  #segment = 0
  #used = 0
  #next = 1
  #usualMs = 0

  /** Creates the file where it is missing or of another size. Entries of a store with another identity are ignored. @throws Error of the file system */
  constructor({ path, identity, segmentBytes, clock, onWritten }: JournalOptions) {
    this.#file = openFile(path, segmentBytes * segments)
    this.#identity = identity
    this.#segmentBytes = segmentBytes
    this.#clock = clock
    this.#onWritten = onWritten
  }

  /** Bytes of the longest payload that a segment has room for. */
  get longest(): number {
    return this.#segmentBytes - head
  }

  /** Whether the current segment has room for it. */
  fits(payload: Buffer): boolean {
    return this.#used + head + payload.length <= this.#segmentBytes
  }

  /** Entries with numbers above `number`, in order. */
  after(number: number): JournalEntry[] {
    const all = new Map<number, JournalEntry>()
    for (let segment = 0; segment < segments; segment++) for (const entry of this.#read(segment)) all.set(entry.number, entry)
    const found: JournalEntry[] = []
    for (let entry = all.get(number + 1); entry; entry = all.get(entry.number + 1)) found.push(entry)
    return found
  }

  /** Continues with the number after this one, at the start of a segment. The backend must already have everything before. */
  startAfter(number: number): void {
    this.#next = number + 1
    this.#used = 0
  }

  /** Switches to the other segment. The backend must already have its entries. */
  turn(): void {
    this.#segment = (this.#segment + 1) % segments
    this.#used = 0
  }

  /** Resolves with the entry's number once it is on the disk. Call it for one entry at a time, and only for one that fits. */
  async append(payload: Buffer): Promise<number> {
    const entry = encodeEntry(this.#identity, this.#next, payload)
    const position = this.#segment * this.#segmentBytes + this.#used
    const startedMs = this.#clock.monotonicMs()
    if (this.#usualMs < shortMs) writeWhole(this.#file, entry, position)
    else await writeWholeAsync(this.#file, entry, position)
    const tookMs = this.#clock.monotonicMs() - startedMs
    this.#usualMs += (tookMs - this.#usualMs) * weight
    this.#onWritten?.(tookMs / 1000)
    this.#used += entry.length
    return this.#next++
  }

  close(): void {
    closeSync(this.#file)
  }

  *#read(segment: number): Generator<JournalEntry> {
    const bytes = Buffer.allocUnsafe(this.#segmentBytes)
    const length = readSync(this.#file, bytes, 0, bytes.length, segment * this.#segmentBytes)
    for (let at = 0; at + head <= length; ) {
      const end = at + head + bytes.readUInt32LE(at + 4)
      if (end > length || end === at + head || bytes.readUInt32LE(at) !== crc32(bytes.subarray(at + 4, end), this.#identity)) return
      yield { number: bytes.readDoubleLE(at + 8), payload: bytes.subarray(at + head, end) }
      at = end
    }
  }
}

function encodeEntry(identity: number, number: number, payload: Buffer): Buffer {
  const entry = Buffer.allocUnsafe(head + payload.length)
  entry.writeUInt32LE(payload.length, 4)
  entry.writeDoubleLE(number, 8)
  payload.copy(entry, head)
  entry.writeUInt32LE(crc32(entry.subarray(4), identity), 0)
  return entry
}

/** Preallocated with zeros that are on the disk: a write then changes no metadata, which would have to be synced too. */
function openFile(path: string, size: number): number {
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_DSYNC, 0o600)
  try {
    if ((fstatSync(file).mode & 0o777) !== 0o600) fchmodSync(file, 0o600)
    if (fstatSync(file).size !== size) {
      const plain = openSync(path, 'w', 0o600)
      try {
        writeWhole(plain, Buffer.alloc(size), 0)
        fsyncSync(plain)
      } finally {
        closeSync(plain)
      }
      syncFolder(dirname(path))
    }
    return file
  } catch (error) {
    closeSync(file)
    throw error
  }
}

/** Syncs the folder, so that the file's name is on the disk too. */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

function writeWhole(file: number, bytes: Buffer, position: number): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done, bytes.length - done, position + done)
}

async function writeWholeAsync(file: number, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) done += (await writeAsync(file, bytes, done, bytes.length - done, position + done)).bytesWritten
}
