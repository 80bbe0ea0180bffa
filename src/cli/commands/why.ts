/** `skiff why pod/NAME`: why a pod is where it is, or nowhere, and what would have to change (L4). */
import type { NodeExplanation, SchedulingExplanation } from '#api/debug/scheduling'
import type { Status } from '#api/gen/types/meta.v1'
import { type CliCommand, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { table } from './status.ts'

interface Flags {
  readonly namespace: string
  readonly cluster?: string
  readonly output?: string
}

export const why: CliCommand = {
  name: 'why',
  register: (program, context) => {
    program
      .command('why <pod>')
      .description('explain why a pod runs where it runs, or why it does not: pod/NAME or NAMESPACE/NAME')
      .option('-n, --namespace <namespace>', 'of the pod', 'default')
      .option('--cluster <name>', 'the cluster, where there are several')
      .option('-o, --output <format>', 'json')
      .action(async (text: string, { namespace, cluster, output }: Flags) => {
        if (output !== undefined && output !== 'json') throw new CommandError('usage', `-o ${output}: expected json`)
        const pod = podOf(text, namespace)
        const answer = await context.clusters.ask(await resolveCluster(context, cluster), `/debug/scheduling?pod=${encodeURIComponent(pod)}`)
        if (!answer) throw new CommandError('unmetPrerequisite', 'the cluster does not answer', { hint: 'start it with: skiff start' })
        if (answer.status !== 200) throw refused(answer.status, answer.body, pod)
        const found = JSON.parse(answer.body) as SchedulingExplanation
        context.stdout.write(output === 'json' ? `${JSON.stringify(found, null, 2)}\n` : describe(found))
      })
  },
}

function podOf(text: string, namespace: string): string {
  const found = /^(?:(pods?|po)\/)?([^/]+)$/.exec(text) ?? undefined
  if (found?.[2]) return `${namespace}/${found[2]}`
  if (/^[^/]+\/[^/]+$/.test(text)) return text
  throw new CommandError('usage', `"${text}" is no pod: expected pod/NAME or NAMESPACE/NAME`)
}

function refused(status: number, body: string, pod: string): CommandError {
  const message = messageIn(body) ?? `the cluster answered ${status}`
  if (status === 404)
    return new CommandError('notFound', message, { hint: `look with: kubectl get pod -A --field-selector metadata.name=${pod.split('/')[1]}` })
  return new CommandError(status === 503 ? 'unmetPrerequisite' : 'internal', message)
}

function messageIn(body: string): string | undefined {
  try {
    return (JSON.parse(body) as Status).message
  } catch {
    return undefined
  }
}

const states: Readonly<Record<SchedulingExplanation['state'], string>> = {
  Scheduled: 'scheduled',
  Binding: 'chosen, and being bound',
  Active: 'next in the queue',
  BackOff: 'waits until its back-off is over',
  Unschedulable: 'waits for a change of the cluster',
  Gated: 'kept out of the queue',
  InFlight: 'being tried at this moment',
}

/** How many nodes the sections on nodes show. */
const shown = 20

export function describe(found: SchedulingExplanation): string {
  const { pod, node, placement, lastRefusal } = found
  const facts: (readonly [string, string | undefined])[] = [
    ['pod:', `${pod.namespace}/${pod.name}`],
    ['state:', node === undefined ? states[found.state] : `${states[found.state]} on ${node}`],
    ['gates:', found.schedulingGates.join(', ') || undefined],
    ['gated by:', found.gatedBy],
    ['attempts:', String(found.attempts)],
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
