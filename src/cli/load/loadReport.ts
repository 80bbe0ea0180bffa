/** What a load measured (L4, pure), and its text. */
import { bareMap } from '#base/bareMap'
import { printable } from '#base/printable'
import { table } from '../commands/status.ts'
import type { Percentiles } from './samples.ts'

export interface Phase {
  readonly durationMs: number
  /** How many operations of each kind began. */
  readonly operations: Readonly<Record<string, number>>
  /** Operations that began more than a second late, because the earlier ones had no answer yet. */
  readonly late: number
  /** Changes of a Deployment that the next change met before all pods were ready. */
  readonly overtaken: number
  /** When the phase ended. */
  readonly pods: number
  readonly ready: number
  readonly unscheduled: number
  /** Deployments that were not as they should be when the time was over. */
  readonly unsettled: number
  readonly times: readonly Percentiles[]
}

export interface LoadReport {
  readonly name: string
  readonly namespaces: number
  readonly deployments: number
  readonly fill: Phase
  readonly churn: Phase | undefined
  /** Undefined: the namespaces were kept. */
  readonly removalMs: number | undefined
  readonly requests: readonly Percentiles[]
  readonly failures: readonly { readonly what: string; readonly message: string; readonly count: number }[]
}

export function describeLoad(report: LoadReport): string {
  const { deployments, namespaces, fill, churn, removalMs } = report
  const rate = fill.ready / (fill.durationMs / 1_000)
  return [
    `Filled: ${number(deployments)} Deployments in ${number(namespaces)} namespaces, ${podsOf(fill)}, in ${seconds(fill.durationMs)} (${number(rate)} pods/s)\n`,
    ...problemsOf(fill),
    rows(fill.times),
    ...(churn ? [`\nChurn: ${operationsOf(churn)} in ${seconds(churn.durationMs)}, then ${podsOf(churn)}\n`, ...problemsOf(churn), rows(churn.times)] : []),
    '\nRequests:\n',
    rows(report.requests),
    ...(removalMs === undefined ? [] : [`\nRemoved in ${seconds(removalMs)}\n`]),
    ...(report.failures.length === 0 ? [] : ['\nFailed requests:\n', ...report.failures.map(failureOf)]),
  ].join('')
}

const podsOf = ({ pods, ready }: Phase) => `${number(ready)} of ${number(pods)} pods ready`
const failureOf = ({ what, message, count }: LoadReport['failures'][number]) => `  ${what}, ${count} times: ${printable(message)}\n`

const operationNames: Readonly<Record<string, string>> = bareMap({
  scale: 'scalings',
  rollOut: 'rollouts',
  deletePod: 'deleted pods',
  nodeFlap: 'failed nodes',
})

function operationsOf({ operations }: Phase): string {
  return Object.entries(operations)
    .map(([operation, count]) => `${number(count)} ${operationNames[operation] ?? operation}`)
    .join(', ')
}

function problemsOf({ unscheduled, unsettled, late, overtaken }: Phase): string[] {
  return [
    unsettled > 0 ? `  Deployments that were not ready when the time was over: ${number(unsettled)}\n` : '',
    unscheduled > 0 ? `  pods without a node: ${number(unscheduled)}\n` : '',
    late > 0 ? `  operations that began more than a second late, since the server was slower than the rate: ${number(late)}\n` : '',
    overtaken > 0 ? `  changes that another one followed before all pods were ready, and that are not measured: ${number(overtaken)}\n` : '',
  ].filter(Boolean)
}

function rows(all: readonly Percentiles[]): string {
  const cells = all.map(({ what, count, ...ms }) => [what, number(count), ...[ms.p50, ms.p90, ms.p99, ms.max].map((value) => value.toFixed(1))])
  return table([['MS', 'COUNT', 'P50', 'P90', 'P99', 'MAX'], ...cells])
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`
const number = (value: number) => Math.round(value).toLocaleString('en-US')
