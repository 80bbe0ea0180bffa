/**
 * Follows logs that grow, also past being moved aside (L4): whole lines only, each once. A log is moved aside by copying it and cutting it to
 * nothing in place, so what was not read yet is in the newest copy. Upstream: tail -F, and kubectl logs -f for how it is used.
 */
import fs from 'node:fs/promises'
import type { Clock } from '#base/clock'

export interface LogFiles {
  readonly source: string
  /** The newest first: the one that grows. */
  readonly files: readonly string[]
}

const lookEveryMs = 250
const newline = 10

/** The read position in one log. */
export class LogTail {
  #position = 0

  /** The lines added since the last read; an unfinished line is left for the next one. */
  async lines([file, newestCopy]: readonly string[]): Promise<string[]> {
    if (file === undefined) return []
    const size = await sizeOf(file)
    let missed: string[] = []
    if (size < this.#position) {
      missed = newestCopy === undefined ? [] : (await readFrom(newestCopy, this.#position)).lines
      this.#position = 0
    }
    const { lines, bytes } = await readFrom(file, this.#position)
    this.#position += bytes
    return [...missed, ...lines]
  }
}

async function sizeOf(file: string): Promise<number> {
  return (await fs.stat(file).catch(absent))?.size ?? 0
}

async function readFrom(file: string, position: number): Promise<{ readonly lines: string[]; readonly bytes: number }> {
  const handle = await fs.open(file).catch(absent)
  if (!handle) return { lines: [], bytes: 0 }
  try {
    const room = Math.max(0, (await handle.stat()).size - position)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(room), 0, room, position)
    const bytes = buffer.subarray(0, bytesRead).lastIndexOf(newline) + 1
    return { lines: bytes === 0 ? [] : buffer.toString('utf8', 0, bytes - 1).split('\n'), bytes }
  } finally {
    await handle.close()
  }
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

export interface FollowOptions {
  readonly clock: Clock
  /** How many of the existing lines are printed first. */
  readonly tail: number
  /** Undefined: there is nothing to follow any more. */
  logs(): Promise<readonly LogFiles[] | undefined>
  write(source: string, line: string): void
}

/** Reports new lines, also of logs that appear later. Resolves when no process writes a log any more. */
export async function followLogs({ clock, tail, logs, write }: FollowOptions): Promise<void> {
  const tails = new Map<string, LogTail>()
  for (let most = tail; ; most = Number.POSITIVE_INFINITY) {
    const there = await logs()
    if (!there) return
    for (const { source, files } of there) {
      const known = tails.get(source) ?? new LogTail()
      tails.set(source, known)
      const lines = await known.lines(files)
      for (const line of lines.slice(Math.max(0, lines.length - most))) write(source, line)
    }
    await clock.sleep(lookEveryMs)
  }
}
