/** Reads a bundle (L4): the head and the index at once, parts by name. Each part is compared with its checksum before it is unpacked, and unpacked to its announced length alone. */
import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { isMissing } from '#host/files'
import { CommandError } from '../exitCodes.ts'
import { asCommandError } from '../systemErrors.ts'
import { type BundleIndex, type BundlePart, checkIndex, DamagedBundle, headBytes, readHead } from './format.ts'

export interface OpenBundle {
  readonly index: BundleIndex
  has(name: string): boolean
  /** @throws DamagedBundle; CommandError notFound when there is no such part */
  read(name: string): Promise<Buffer>
  close(): Promise<void>
}

/** @throws CommandError when the file is missing, is no bundle, or is damaged */
export async function openBundle(file: string): Promise<OpenBundle> {
  const handle = await open(file, 'r').catch((error: unknown) => {
    throw isMissing(error) ? new CommandError('notFound', `${file} does not exist`) : asCommandError(error, 'name a file that this user may read')
  })
  try {
    return await opened(handle, file)
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** What the decompressor takes. */
const leastChunkBytes = 64

interface PlacedPart extends BundlePart {
  readonly start: number
}

async function opened(handle: FileHandle, file: string): Promise<OpenBundle> {
  const stats = await handle.stat()
  if (!stats.isFile()) throw new CommandError('usage', `${file} is no file`)
  const { indexBytes, sha256 } = readHead(await bytesAt(handle, 0, Math.min(headBytes, stats.size)))
  const start = headBytes + indexBytes
  if (stats.size < start) throw new DamagedBundle('it ends within its index')
  const text = await bytesAt(handle, headBytes, indexBytes)
  if (!createHash('sha256').update(text).digest().equals(sha256)) throw new DamagedBundle('its index is not the one that was written')
  const index = checkIndex(parsed(text), stats.size - start)
  const placed = new Map<string, PlacedPart>()
  let at = start
  for (const part of index.parts) {
    placed.set(part.name, { ...part, start: at })
    at += part.packedBytes
  }
  return {
    index,
    has: (name) => placed.has(name),
    read: async (name) => {
      const part = placed.get(name)
      if (!part) throw new CommandError('notFound', `the bundle has no part ${name}`)
      return unpacked(part, await bytesAt(handle, part.start, part.packedBytes))
    },
    close: () => handle.close(),
  }
}

function parsed(text: Buffer): unknown {
  try {
    return JSON.parse(text.toString())
  } catch {
    throw new DamagedBundle('its index is no JSON')
  }
}

async function bytesAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(length)
  for (let done = 0; done < length; ) {
    const { bytesRead } = await handle.read(bytes, done, length - done, position + done)
    if (bytesRead === 0) throw new DamagedBundle('it became shorter while it was read')
    done += bytesRead
  }
  return bytes
}

async function unpacked({ name, bytes, sha256 }: PlacedPart, packed: Buffer): Promise<Buffer> {
  if (createHash('sha256').update(packed).digest('hex') !== sha256) throw new DamagedBundle(`the part ${name} has another checksum than was written`)
  // One byte of room: a longer part fails in the decompressor, before it takes memory. A part of the announced length is unpacked in one step, without a copy.
  const found = await promisify(gunzip)(packed, { maxOutputLength: bytes + 1, chunkSize: Math.max(bytes + 1, leastChunkBytes) }).catch(() => {
    throw new DamagedBundle(`the part ${name} cannot be unpacked to its ${bytes} bytes`)
  })
  if (found.length !== bytes) throw new DamagedBundle(`the part ${name} has ${found.length} bytes instead of ${bytes}`)
  return found
}
