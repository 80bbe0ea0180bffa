/** The text of the scheduler's view of a pod (L4, pure): its place in the queue, what each filter says of each node, and what would have to change. */
import type { NodeExplanation, SchedulingExplanation } from '#api/debug/scheduling'
import { table } from '../commands/status.ts'

const states: Readonly<Record<SchedulingExplanation['state'], string>> = {
  Scheduled: 'scheduled',
  Binding: 'chosen, and being bound',
  Active: 'next in the queue',
  BackOff: 'waits until its back-off is over',
  Unschedulable: 'waits for a change of the cluster',
  Gated: 'kept out of the queue',
  InFlight: 'being tried at this moment',
  Absent: 'asked about, and not created',
}

/** How many nodes the sections on nodes show. */
const shown = 20

export function describeScheduling(found: SchedulingExplanation): string {
  const { pod, node, placement, lastRefusal } = found
  const facts: (readonly [string, string | undefined])[] = [
    ['pod:', `${pod.namespace}/${pod.name}`],
    ['state:', node === undefined ? states[found.state] : `${states[found.state]} on ${node}`],
    ['gates:', found.schedulingGates.join(', ') || undefined],
    ['gated by:', found.gatedBy],
    ['attempts:', found.state === 'Absent' ? undefined : String(found.attempts)],
    ['nominated:', found.nominatedNode],
    ['waits for:', found.waitsFor.join(', ') || undefined],
    [placement ? 'before that:' : 'last answer:', lastRefusal && `${lastRefusal.message} (${lastRefusal.at})`],
    ['placed:', placement && `${placement.at}; ${placement.evaluatedNodes} of ${found.nodeCount} nodes looked at, ${placement.feasibleNodes} fitted`],
  ]
  const sections = [table(facts.flatMap(([name, text]) => (text === undefined ? [] : [[name, text]])))]
  if (placement) sections.push(scoresOf(placement.scores))
  if (found.beforehand.length > 0)
    sections.push(`Refused before any node was looked at:\n${found.beforehand.map(({ plugin, reasons }) => `  ${plugin}: ${reasons.join(', ')}\n`).join('')}`)
  if (found.nodes.length > 0) sections.push(matrixOf(found))
  if (node === undefined) sections.push(changesOf(found))
  return sections.filter((section) => section !== '').join('\n')
}

function scoresOf(scores: NonNullable<SchedulingExplanation['placement']>['scores']): string {
  if (scores.length === 0) return 'No scores: no other node fitted.\n'
  const rows = scores.map(({ plugin, weight, score }) => [plugin, String(weight ? Math.round(score / weight) : score), `x${weight}`, String(score)])
  const total = scores.reduce((sum, { score }) => sum + score, 0)
  return table([['SCORE OF THE NODE', 'POINTS', 'WEIGHT', 'TOGETHER'], ...rows, ['', '', '', String(total)]])
}

function matrixOf({ nodes, filters, nodeCount, beforehand }: SchedulingExplanation): string {
  const refusing = filters.filter((filter) => nodes.some(({ refusals }) => refusals.some(({ plugin }) => plugin === filter)))
  const some = nodes.slice(0, shown)
  const cell = ({ refusals }: NodeExplanation, filter: string) => (refusals.some(({ plugin }) => plugin === filter) ? 'no' : 'yes')
  const fits = ({ fits, refusals }: NodeExplanation) => (fits ? 'yes' : beforehand.length > 0 && refusals.length === 0 ? '-' : 'no')
  const rows = some.map((node) => [
    node.node,
    fits(node),
    ...refusing.map((filter) => cell(node, filter)),
    node.refusals.flatMap(({ reasons }) => reasons).join(', ') || '-',
  ])
  const content = filters.filter((filter) => !refusing.includes(filter))
  const rest = nodeCount > some.length ? `... and ${nodeCount - some.length} more nodes\n` : ''
  const quiet = content.length > 0 ? `Every node passes: ${content.join(', ')}\n` : ''
  return `${table([['NODE', 'FITS', ...refusing, 'REASONS NOW'], ...rows])}${rest}${quiet}`
}

function changesOf({ nodes, beforehand, state }: SchedulingExplanation): string {
  const fit = nodes.filter(({ fits }) => fits)
  if (fit.length > 0)
    return state === 'Gated'
      ? ''
      : `It would fit now on: ${fit
          .slice(0, shown)
          .map(({ node }) => node)
          .join(', ')}\n`
  if (beforehand.length > 0) return ''
  const ways = nodes.filter(({ changes }) => changes)
  if (ways.length === 0) return 'No small change of the pod or of one node is known that would make it fit.\n'
  const text = ways.slice(0, 3).map(({ node, changes = [] }) => `  on ${node}:\n${changes.map((change) => `    - ${change.text}\n`).join('')}`)
  return `It would fit after these changes, the smallest first:\n${text.join('')}`
}
