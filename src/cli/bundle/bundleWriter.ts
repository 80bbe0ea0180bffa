/** Writes a bundle (L4): the parts are packed into files of a private directory, and joined behind the index when all are known. Memory holds no part. */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import fs from 'node:fs/promises'
import path from 'node:path'
import { Readable, Transform, type TransformCallback } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { CommandError } from '../exitCodes.ts'
import { type BundleFacts, type BundlePart, growsTooMuch, headOf, mostBytesOf } from './format.ts'

/** Level 6 takes three times as long, and saves a tenth. */
const gzipLevel = 3

export class BundleWriter {
  readonly #directory: string
  readonly #parts: (BundlePart & { readonly file: string })[] = []

  /** @param directory of this user alone */
  constructor(directory: string) {
    this.#directory = directory
  }

  get parts(): readonly BundlePart[] {
    return this.#parts
  }

  /** @throws CommandError when it is too long for a bundle */
  async add(name: string, content: string | Uint8Array | Readable): Promise<void> {
    const source = content instanceof Readable ? content : Readable.from([Buffer.from(content as Uint8Array)])
    const file = path.join(this.#directory, `part-${this.#parts.length}`)
    let packed = await pack(source, file, gzipLevel)
    const { bytes } = packed
    if (bytes > mostBytesOf(name)) {
      const hint = 'take less of the history: --history 10m'
      throw new CommandError('unmetPrerequisite', `${name} has ${bytes} bytes, and a bundle holds ${mostBytesOf(name)}`, { hint })
    }
    if (growsTooMuch(bytes, packed.packedBytes)) {
      const unpacked = createReadStream(file).pipe(createGunzip())
      packed = await pack(unpacked, `${file}-stored`, 0)
      await fs.rename(`${file}-stored`, file)
    }
    this.#parts.push({ name, ...packed, file })
  }

  addFile(name: string, file: string): Promise<void> {
    return this.add(name, createReadStream(file, { highWaterMark: 1 << 20 }))
  }

  /** Writes head, index and parts. @returns the length of the bundle */
  async finish(output: FileHandle, facts: BundleFacts): Promise<number> {
    const parts = this.#parts.map(({ file: _, ...part }) => part)
    const index = Buffer.from(JSON.stringify({ ...facts, parts }))
    let bytes = 0
    const write = async (chunk: Uint8Array) => {
      bytes += chunk.length
      await output.appendFile(chunk)
    }
    await write(headOf(index, createHash('sha256').update(index).digest()))
    await write(index)
    for (const { file } of this.#parts) {
      for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) await write(chunk as Buffer)
      await fs.rm(file)
    }
    return bytes
  }
}

type Packed = Pick<BundlePart, 'bytes' | 'packedBytes' | 'sha256'>

async function pack(source: Readable, file: string, level: number): Promise<Packed> {
  const hash = createHash('sha256')
  const [unpacked, packed] = [new Counter(), new Counter((chunk) => hash.update(chunk))]
  await pipeline(source, unpacked, createGzip({ level }), packed, createWriteStream(file, { mode: 0o600 }))
  return { bytes: unpacked.bytes, packedBytes: packed.bytes, sha256: hash.digest('hex') }
}

/** Passes chunks on and counts their bytes. */
class Counter extends Transform {
  bytes = 0
  readonly #seen: (chunk: Buffer) => void

  constructor(seen: (chunk: Buffer) => void = () => {}) {
    super({ highWaterMark: 1 << 20 })
    this.#seen = seen
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.bytes += chunk.length
    this.#seen(chunk)
    done(null, chunk)
  }
}
