/**
 * `skiff why`: why a pod is where it is, or nowhere, and what would have to change; where one would run that is not there; why a namespace does not end;
 * why a user may or may not do something (L4). Namespaces and rights are in cli/why.
 */
import { readFile } from 'node:fs/promises'
import type { NodeExplanation, SchedulingExplanation } from '#api/debug/scheduling'
import { messageOf } from '#base/messageOf'
import { printableData } from '#base/printable'
import { type CliCommand, type CommandContext, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { printFound } from '../output.ts'
import { describeAccess, explainAccess } from '../why/access.ts'
import { explainManifest } from '../why/manifest.ts'
import { describeNamespace, explainNamespace } from '../why/namespace.ts'
import { type Ask, askFor } from '../why/questions.ts'
import { table } from './status.ts'

interface Flags {
  readonly namespace?: string
  readonly filename?: string
  readonly asGroup?: readonly string[]
  readonly cluster?: string
  readonly output?: string
}

export const why: CliCommand = {
  name: 'why',
  register: (program, context) => {
    program
      .command('why [what...]')
      .description(
        'explain why a pod runs where it runs, or why it does not (pod/NAME or NAMESPACE/NAME), where it would (-f FILE), why a namespace stays in Terminating (ns/NAME), or why a user may do something (can USER VERB RESOURCE [NAME])',
      )
      .option('-f, --filename <file>', 'a manifest of a pod or a workload; - is standard input; nothing is created')
      .option('-n, --namespace <namespace>', 'of the pod or resource (default: default)')
      .option('--as-group <group...>', 'for can: groups of the user')
      .option('--cluster <name>', 'the cluster, where there are several')
      .option('-o, --output <format>', 'json')
      .action(async (what: string[], flags: Flags) => {
        if (flags.output !== undefined && flags.output !== 'json') throw new CommandError('usage', `-o ${flags.output}: expected json`)
        const question = questionOf(what, flags)
        const cluster = await resolveCluster(context, flags.cluster)
        const print = await question((path, body) => context.clusters.ask(cluster, path, body))
        print(context, flags.output === 'json' ? 'json' : 'text')
      })
  },
}

type Print = (context: CommandContext, format: 'json' | 'text') => void
type Question = (ask: Ask) => Promise<Print>

function answer<T>(found: T, describeFound: (found: T) => string): Print {
  return (context, format) => printFound(context, format, found, describeFound)
}

function questionOf(what: readonly string[], { namespace, filename, asGroup = [] }: Flags): Question {
  const [first, ...rest] = what
  if (filename !== undefined) {
    if (first !== undefined) throw new CommandError('usage', `why -f ${filename} ${first}: expected a file or a name, not both`)
    return async (ask) => {
      return answer(await explainManifest(ask, await textOf(filename), filename, namespace), describe)
    }
  }
  if (first === undefined) throw new CommandError('usage', 'why: expected pod/NAME, ns/NAME, can USER VERB RESOURCE, or -f FILE')
  if (first === 'can') return accessQuestion(rest, namespace ?? 'default', asGroup)
  if (rest.length > 0) throw new CommandError('usage', `why ${what.join(' ')}: expected one name`)
  const ended = /^(?:ns|namespaces?)\/([^/]+)$/.exec(first)?.[1]
  if (ended !== undefined)
    return async (ask) => {
      return answer(await explainNamespace(ask, ended), describeNamespace)
    }
  const pod = podOf(first, namespace ?? 'default')
  return async (ask) => {
    const found = await askFor<SchedulingExplanation>(ask, `/debug/scheduling?pod=${encodeURIComponent(pod)}`).catch((error: unknown) => {
      throw withHint(error, pod)
    })
    return answer(found, describe)
  }
}

function accessQuestion([user, verb, resource, name, ...more]: readonly string[], namespace: string, groups: readonly string[]): Question {
  if (!user || !verb || !resource || more.length > 0)
    throw new CommandError('usage', 'why can: expected USER VERB RESOURCE [NAME], for instance: why can jane get pods')
  const asked = { user, verb, resource, name, namespace, groups }
  return async (ask) => {
    return answer(await explainAccess(ask, asked), (found) => describeAccess(printableData(asked), found))
  }
}

async function textOf(file: string): Promise<string> {
  return readFile(file === '-' ? '/dev/stdin' : file, 'utf8').catch((error: unknown) => {
    throw new CommandError('usage', `cannot read ${file}: ${messageOf(error)}`)
  })
}

const workloads = /^(deploy|deployments?|rs|replicasets?|sts|statefulsets?|ds|daemonsets?|jobs?|cj|cronjobs?)(\.\S+)?\//

function podOf(text: string, namespace: string): string {
  const found = /^(?:(pods?|po)\/)?([^/]+)$/.exec(text) ?? undefined
  if (found?.[2]) return `${namespace}/${found[2]}`
  if (workloads.test(text))
    throw new CommandError('usage', `"${text}" is no pod: only pods are scheduled`, { hint: 'name one of its pods, or give its manifest with -f' })
  if (/^[^/]+\/[^/]+$/.test(text)) return text
  throw new CommandError('usage', `"${text}" is no pod: expected pod/NAME or NAMESPACE/NAME`)
}

function withHint(error: unknown, pod: string): unknown {
  if (!(error instanceof CommandError) || error.exit !== 'notFound') return error
  return new CommandError('notFound', error.message, { hint: `look with: kubectl get pod -A --field-selector metadata.name=${pod.split('/')[1]}` })
}

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

export function describe(found: SchedulingExplanation): string {
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
