/** Reads the body of a request, or of an answer, up to a bound (L4). */
import type { Readable } from 'node:stream'
import { StatusError } from '#api/machinery/status'

/** @throws StatusError RequestEntityTooLarge */
export async function readBody(request: Readable, mostBytes: number): Promise<Buffer> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request) {
    bytes += (part as Buffer).length
    if (bytes > mostBytes) throw new StatusError('RequestEntityTooLarge', `a request has at most ${mostBytes} bytes`)
    parts.push(part as Buffer)
  }
  return Buffer.concat(parts)
}
