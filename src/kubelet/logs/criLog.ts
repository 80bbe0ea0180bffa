/**
 * Reads container logs in CRI's format (L3): `<RFC 3339 with nanoseconds> stdout|stderr F|P[:…] <text>`; a P line continues in the next line.
 * followedLog.ts finds the file to read, logFiles.ts sorts rotated ones. logRotation.ts and logLinks.ts are independent of reading.
 * Upstream: cri-client/pkg/logs (v1.36).
 */
import type { FileHandle } from 'node:fs/promises'
import type { Clock } from '#base/clock'
import { parseTime } from '#base/time'
import type { LogOptions } from '../core/runtimeService.ts'
import { openFollowed } from './followedLog.ts'

export interface LogLine {
  readonly timestamp: string
  readonly stream: string
  readonly partial: boolean
  readonly content: Buffer
}

const space = 0x20
const newline = 0x0a

/** One line without its newline; undefined when it is no CRI log line. */
export function parseCriLine(line: Buffer): LogLine | undefined {
  const first = line.indexOf(space)
  const second = line.indexOf(space, first + 1)
  const third = line.indexOf(space, second + 1)
  if (first < 0 || second < 0) return undefined
  const end = third < 0 ? line.length : third
  const tag = line.subarray(second + 1, end).toString()
  return {
    timestamp: line.subarray(0, first).toString(),
    stream: line.subarray(first + 1, second).toString(),
    partial: tag.split(':')[0] === 'P',
    content: line.subarray(third < 0 ? line.length : third + 1),
  }
}

/** Turns log lines into what `kubectl logs` prints, applying since, stream, timestamps and the byte limit. */
export class LogWriter {
  readonly #options: LogOptions
  #left: number
  #midLine = false

  constructor(options: LogOptions) {
    this.#options = options
    this.#left = options.limitBytes ?? Number.POSITIVE_INFINITY
  }

  /** True when the byte limit is reached. */
  get full(): boolean {
    return this.#left <= 0
  }

  write(line: LogLine): Buffer | undefined {
    const { stream = 'All', sinceMs, timestamps } = this.#options
    if (stream !== 'All' && line.stream !== stream.toLowerCase()) return undefined
    if (sinceMs !== undefined && (parseTime(line.timestamp) ?? 0) < sinceMs) return undefined
    const prefix = timestamps && !this.#midLine ? Buffer.from(`${line.timestamp} `) : Buffer.alloc(0)
    this.#midLine = line.partial
    const whole = Buffer.concat([prefix, line.content, line.partial ? Buffer.alloc(0) : Buffer.from('\n')])
    const cut = whole.subarray(0, Math.min(whole.length, this.#left))
    this.#left -= cut.length
    return cut.length > 0 ? cut : undefined
  }
}

const chunkBytes = 64 * 1024

/** Where the last `lines` lines of the file begin. */
async function tailOffset(file: FileHandle, lines: number): Promise<number> {
  const { size } = await file.stat()
  if (lines <= 0) return size
  let found = 0
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - chunkBytes)
    const { buffer } = await file.read(Buffer.alloc(end - start), 0, end - start, start)
    for (let index = buffer.length - 1; index >= 0; index--) {
      // The newline that ends the file ends its last line; it does not begin another.
      if (buffer[index] !== newline || start + index === size - 1) continue
      if (++found === lines) return start + index + 1
    }
    end = start
  }
  return 0
}

export interface FollowContext {
  readonly clock: Clock
  /** False once the container has stopped: then the end of the file is the end of the log. */
  isRunning(): Promise<boolean>
}

const pollMs = 200

/**
 * The log as bytes to print. With follow it continues until the container has stopped or the signal aborts, through every file to which the log is
 * renamed meanwhile, even for a slow reader.
 */
export async function* readLog(path: string, options: LogOptions, context: FollowContext, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const writer = new LogWriter(options)
  const log = await openFollowed(path)
  try {
    let position = options.tailLines === undefined ? 0 : await tailOffset(log.file, options.tailLines)
    let rest: Buffer = Buffer.alloc(0)
    let stopped = false
    const buffer = Buffer.alloc(chunkBytes)
    /** What the next bytes print as. */
    const print = (bytes: Buffer): Buffer[] => {
      const { lines, remainder } = splitLines(Buffer.concat([rest, bytes]))
      rest = remainder
      return lines.flatMap((line) => {
        const parsed = parseCriLine(line)
        const text = parsed && writer.write(parsed)
        return text ? [text] : []
      })
    }
    for (;;) {
      const { bytesRead } = await log.file.read(buffer, 0, buffer.length, position)
      position += bytesRead
      if (bytesRead > 0) {
        const output = print(buffer.subarray(0, bytesRead))
        if (output.length > 0) yield Buffer.concat(output)
        if (writer.full) return
        continue
      }
      if (!options.follow || signal.aborted || stopped) return
      const left = await log.next()
      if (left === 'moved') {
        position = 0
        continue
      }
      if (typeof left === 'object') {
        for await (const bytes of left) {
          const output = print(bytes)
          if (output.length > 0) yield Buffer.concat(output)
          if (writer.full) return
        }
        continue
      }
      // Reads once more after the container has stopped, for its last lines.
      stopped = left === 'same' && !(await context.isRunning())
      if (!stopped) await context.clock.sleep(pollMs, signal).catch(() => {})
    }
  } finally {
    await log.file.close()
  }
}

function splitLines(data: Buffer): { lines: Buffer[]; remainder: Buffer } {
  const lines: Buffer[] = []
  let start = 0
  for (let end = data.indexOf(newline); end >= 0; end = data.indexOf(newline, start)) {
    lines.push(data.subarray(start, end))
    start = end + 1
  }
  return { lines, remainder: Buffer.from(data.subarray(start)) }
}
