/** A trace as text (L4): a line for each hop, and the culprit in the last one. */
import { table } from '../../commands/status.ts'
import type { Hop, Trace } from './facts.ts'

const marks: Readonly<Record<Hop['state'], string>> = { ok: 'ok', fault: 'FAULT', unknown: '?' }

export function describeTrace({ pod, target, hops, passes, culprit }: Trace): string {
  const rows = hops.map(({ hop, state, text }) => [marks[state], hop, text])
  return `${pod} -> ${target}\n\n${table(rows)}\n${lastLine(passes, culprit)}\n`
}

function lastLine(passes: Trace['passes'], culprit: Trace['culprit']): string {
  if (passes === true) return 'It gets through.'
  if (culprit) return `It does not get through: ${culprit.text}`
  return passes === undefined
    ? 'Nothing that was read stands in the way; no packet was sent.'
    : 'It does not get through, and nothing that was read explains it.'
}
