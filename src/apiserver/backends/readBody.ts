/** Reads the answer of a backend, up to a limit (L3): a backend decides what it sends, this server how much it keeps. */

/** @throws Error for a longer answer */
export async function readBody(body: AsyncIterable<unknown>, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body) {
    length += (chunk as Buffer).length
    if (length > limitBytes) throw new Error(`the answer is larger than ${limitBytes} bytes`)
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}
