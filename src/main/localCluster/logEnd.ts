/** Reads the end of a log (L5), however long the log is, and picks the line that explains a failure. */
import fs from 'node:fs/promises'
import { isMissing } from '#host/files'

const mostBytes = 64 * 1024

/** The last lines, of the last 64 KiB. None when there is no such file. @param since the size that the log had before what is asked about */
export async function lastLinesOf(file: string, count: number, since = 0): Promise<string[]> {
  try {
    const handle = await fs.open(file)
    try {
      const { size } = await handle.stat()
      // A log that is smaller than before was moved aside meanwhile.
      const from = Math.max(size < since ? 0 : since, size - mostBytes)
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.max(0, size - from)), 0, size - from, from)
      const text = buffer.toString('utf8', 0, bytesRead).trimEnd()
      return text === '' ? [] : text.split('\n').slice(-count)
    } finally {
      await handle.close()
    }
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

/** What a program of ours prints before it gives up, or Node for an exception that nothing caught; then errors and warnings in klog's form. */
const telling = [/^(skiff: |\w*Error( \[\w+\])?: )/, /^E\d{4} /, /^W\d{4} /]

/** The last line of the worst kind; undefined when nothing looks like a failure. */
export function tellingLine(lines: readonly string[]): string | undefined {
  for (const kind of telling) {
    const found = lines.findLast((line) => kind.test(line))
    if (found !== undefined) return found
  }
  return undefined
}
