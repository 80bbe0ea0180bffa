/** Bytes to send through streams, and those that come back (tests only). */
import type { Readable } from 'node:stream'

/** Numbers one after another: a piece that is lost, doubled or moved shows. */
export function numbered(bytes: number): Buffer {
  const body = Buffer.alloc(bytes)
  for (let at = 0; at < bytes; at += 4) body.writeUInt32LE(at, at)
  return body
}

/** As many bytes as were asked for, or fewer when the stream ends before. */
export async function take(readable: Readable, bytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of readable.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk as Buffer)
    length += (chunk as Buffer).length
    if (length >= bytes) break
  }
  return Buffer.concat(chunks)
}
