/**
 * Standard error of a long-running process (L5). A line that cannot be written, as on a full disk, is dropped and counted: a log must not end what it
 * reports on. The next line that can be written is preceded by the number of dropped ones.
 */
import fs from 'node:fs'
import type { Counter, Metrics } from '#base/metrics'

export interface ErrorOutput {
  write(line: string): void
}

/** Where lines go. @throws Error when the line cannot be written */
export type LineSink = (line: string) => void

const standardError = 2

export function createErrorOutput(dropped: Counter, sink: LineSink = sinkOf(standardError)): ErrorOutput {
  let missing = 0
  const tried = (line: string) => {
    try {
      sink(line)
      return true
    } catch {
      return false
    }
  }
  return {
    write: (line) => {
      if (missing > 0 && tried(`${missing} lines before this one could not be written\n`)) missing = 0
      if (missing === 0 && tried(line)) return
      missing++
      dropped.inc()
    },
  }
}

export function droppedLines(metrics: Metrics): Counter {
  return metrics.counter({ name: 'skiff_log_lines_dropped_total', help: 'Lines of the log that could not be written, as on a full disk.' })
}

/** A file is written to directly: Node's stream of it writes nothing more after its first error. */
function sinkOf(descriptor: number): LineSink {
  if (isFile(descriptor)) return fileSink(descriptor)
  // The reader of a pipe has ended.
  process.stderr.on('error', () => {})
  return (line) => void process.stderr.write(line)
}

function isFile(descriptor: number): boolean {
  try {
    return fs.fstatSync(descriptor).isFile()
  } catch {
    return false
  }
}

/** A disk that is nearly full takes a part of a line, and refuses the rest: the next line then starts on a new one. */
function fileSink(descriptor: number): LineSink {
  let isCut = false
  return (line) => {
    const bytes = Buffer.from(isCut ? `\n${line}` : line)
    for (let at = 0; at < bytes.length; ) {
      at += fs.writeSync(descriptor, bytes, at)
      isCut = at < bytes.length
    }
  }
}
