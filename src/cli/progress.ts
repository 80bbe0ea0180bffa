/** Long work, shown (L4): ticked steps with their times on a terminal, plain lines elsewhere, nothing with --quiet. */
import type { Clock } from '#base/clock'
import { printable, printableLines } from '#base/printable'

export interface Progress {
  /** Runs a step under a title and prints a tick or cross when it ends. `report` shows how far it is, such as `120 of 2000`. */
  step<T>(title: string, work: (report: (state: string) => void) => Promise<T>): Promise<T>
  /** A line between the steps. */
  note(text: string): void
}

export interface ProgressOptions {
  readonly write: (text: string) => void
  readonly terminal: boolean
  readonly color: boolean
  /** Width of the terminal. */
  readonly columns?: number | undefined
  readonly quiet: boolean
  readonly clock: Pick<Clock, 'monotonicMs'>
}

export function createProgress(options: ProgressOptions): Progress {
  const { write, terminal, quiet, clock } = options
  const paint = (code: number, text: string) => (options.color ? `\u001b[${code}m${text}\u001b[0m` : text)
  return {
    note: (text) => {
      if (!quiet) write(`${printableLines(text)}\n`)
    },
    step: async (given, work) => {
      const title = printable(given)
      const started = clock.monotonicMs()
      const running = (state = '') => ` ${paint(36, '•')} ${cut(`${title}${state}`, options.columns)} …`
      if (terminal && !quiet) write(running())
      let reportedMs = started
      const report = (text: string) => {
        const state = `: ${printable(text)}`
        const nowMs = clock.monotonicMs()
        if (quiet || nowMs - reportedMs < (terminal ? redrawMs : lineMs)) return
        reportedMs = nowMs
        write(terminal ? `\r\u001b[K${running(state)}` : ` … ${title}${state}\n`)
      }
      const end = (mark: string) => {
        const took = `(${formatSeconds(clock.monotonicMs() - started)})`
        if (!quiet) write(`${terminal ? '\r\u001b[K' : ''} ${mark} ${title} ${paint(2, took)}\n`)
      }
      try {
        const result = await work(report)
        end(paint(32, '✓'))
        return result
      } catch (error) {
        end(paint(31, '✗'))
        throw error
      }
    },
  }
}

/** How often the state of a step is shown: on a terminal, and as a line. */
const redrawMs = 200
const lineMs = 10_000

/** The line that is overwritten later must not wrap: only its last part would be. */
function cut(title: string, columns: number | undefined): string {
  const room = (columns || Number.POSITIVE_INFINITY) - aroundTitle
  return title.length <= room ? title : title.slice(0, Math.max(0, room))
}

/** The mark, the dots, the blanks between, and the cursor. */
const aroundTitle = ' •  … '.length

/** 0.3s, 12.0s, 2m3s. */
export function formatSeconds(ms: number): string {
  const seconds = ms / 1000
  return seconds < 60 ? `${seconds.toFixed(1)}s` : `${Math.floor(seconds / 60)}m${Math.round(seconds % 60)}s`
}
