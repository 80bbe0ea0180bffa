/** Logs as the page shows them (L4, pure): lines in a ring, without a terminal's escape sequences, and the search in them. */
import type { LabelSelector } from '#api/gen/types/meta.v1'
import { selectorOf } from '#api/machinery/labelSelector'
import { printable } from '#base/printable'
import { listPath } from './places.ts'

export const podsResource = { group: '', version: 'v1', resource: 'pods' }

/** The list of the pods that a workload selects; undefined when it has no selector and selects none. */
export function podsPathOf(namespace: string, selector: LabelSelector | undefined): string | undefined {
  if (!selector) return undefined
  return `${listPath(podsResource, namespace)}?${new URLSearchParams({ labelSelector: `${selectorOf(selector)}` })}`
}

interface LoggingPod {
  readonly metadata: { readonly uid?: string }
  readonly status?: Partial<Record<'containerStatuses' | 'initContainerStatuses', readonly LoggingContainer[]>>
}

interface LoggingContainer {
  readonly name: string
  readonly restartCount?: number
  readonly state?: object
  readonly lastState?: object
}

/** Changes when a container has a log that it had not before: when it starts, and when it starts again. */
export function logKeyOf({ metadata, status }: LoggingPod, container: string): string {
  const found = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].find(({ name }) => name === container)
  const hasStarted = [found?.state, found?.lastState].some((state) => state && ('running' in state || 'terminated' in state))
  return hasStarted ? `${metadata.uid} ${found?.restartCount ?? 0}` : waitingLogKeyOf({ metadata })
}

/** Whether a key is of a container that has started once. */
export const isOfFirstRun = (key: string): boolean => key.endsWith(' 0')

/** The key while the container has not started. */
export const waitingLogKeyOf = ({ metadata }: Pick<LoggingPod, 'metadata'>): string => `${metadata.uid} waiting`

/** Sequences that colour and move: CSI, OSC up to its end, and two-character ones. */
const sequence = '\\u001b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\\u0007\\u001b]*(?:\\u0007|\\u001b\\\\)?|[@-Z\\\\-_])'
const escapes = new RegExp(sequence, 'g')

const plain = /^[ -~]*$/

/** A line without escape sequences, and other control characters written out. Most lines have none. */
export const logLine = (text: string): string => (plain.test(text) ? text : printable(text.replace(escapes, '').replaceAll('\t', '    ')))

const mostLineLength = 16_384

/** The last lines of one or more logs, however long they are. */
export class LogLines {
  readonly #most: number
  #lines: string[] = []
  /** How many lines came before the first that is kept. */
  dropped = 0

  constructor(most: number) {
    this.#most = most
  }

  /** Takes the text of one log as it comes; its lines begin with the prefix. */
  from(prefix: string): (text: string) => void {
    let rest = ''
    return (text) => {
      const lines = (rest + text).split('\n')
      rest = (lines.pop() ?? '').slice(0, mostLineLength)
      for (const line of lines) this.#lines.push(prefix + logLine(line.replace(/\r$/, '').slice(0, mostLineLength)))
      const excess = this.#lines.length - this.#most
      // Dropping a part at a time keeps the cost of a line constant.
      if (excess > this.#most / 4) this.#drop(excess)
    }
  }

  #drop(count: number): void {
    this.#lines = this.#lines.slice(count)
    this.dropped += count
  }

  /** Whole lines; somewhat more than the bound may be kept for a while. */
  get lines(): readonly string[] {
    return this.#lines.slice()
  }
}

export interface Piece {
  readonly text: string
  readonly isFound: boolean
}

/** A line cut at what is searched, whose letters match in both cases. */
export function piecesOf(line: string, search: string): Piece[] {
  if (search === '') return [{ text: line, isFound: false }]
  const [low, wanted] = [line.toLowerCase(), search.toLowerCase()]
  const pieces: Piece[] = []
  let from = 0
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, from)) {
    if (at > from) pieces.push({ text: line.slice(from, at), isFound: false })
    from = at + wanted.length
    pieces.push({ text: line.slice(at, from), isFound: true })
  }
  return from < line.length ? [...pieces, { text: line.slice(from), isFound: false }] : pieces
}
