/**
 * Evaluates one metric of an autoscaler (L3): asks for its values, computes the replicas it asks for, its entry in the status, and its name in
 * events. Upstream: computeReplicasForMetric and the functions it calls in pkg/controller/podautoscaler/horizontal.go (v1.36).
 */
import type { MetricIdentifier, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus } from '#api/gen/types/autoscaling.v2'
import type { Pod } from '#api/gen/types/core.v1'
import { goLabelSelectorPointer } from '#api/helpers/goLabelSelector'
import type { Frozen } from '#api/machinery/meta'
import { formatQuantity, milliQuantity, quantityMilliValue } from '#api/machinery/quantity'
import { ownValue } from '#base/bareMap'
import { mutableCopy } from '#base/frozen'
import { messageOf } from '#base/messageOf'
import type { MetricQueries } from './metricsClient.ts'
import type { PodMetrics, ReadinessPeriods } from './podGroups.ts'
import {
  type PodsQuestion,
  type Proposal,
  replicasByAverage,
  replicasByPodUsage,
  replicasByTotal,
  replicasByUtilization,
  type Tolerances,
} from './replicaCalculator.ts'

export interface MetricContext {
  readonly namespace: string
  readonly specReplicas: number
  readonly statusReplicas: number
  /** The pods that the target's selector matches. */
  readonly pods: readonly Frozen<Pod>[]
  readonly tolerances: Tolerances
  readonly periods: ReadinessPeriods
  readonly queries: MetricQueries
  now(): number
}

export interface Evaluated {
  readonly proposal: Proposal
  readonly status: MetricStatus
  /** In the event and the condition, such as `cpu resource utilization (percentage of request)`. */
  readonly name: string
}

/** A metric that gives no number. The message is that of the condition and of the metric's own event. */
export class MetricFailure extends Error {
  /** The same in the condition and in the event. */
  readonly reason: string
  /** In the event about all metrics together. */
  readonly summary: string
  readonly isSpec: boolean

  constructor(message: string, { reason, summary, isSpec = false }: { readonly reason: string; readonly summary: string; readonly isSpec?: boolean }) {
    super(message)
    this.reason = reason
    this.summary = summary
    this.isSpec = isSpec
  }
}

/** @throws MetricFailure */
export async function evaluateMetric(spec: Frozen<MetricSpec>, context: MetricContext): Promise<Evaluated> {
  const evaluate = ownValue(evaluators, spec.type)
  if (evaluate) return evaluate(spec, context)
  const message = `unknown metric source type ${JSON.stringify(spec.type)}`
  throw new MetricFailure(message, { reason: 'InvalidMetricSourceType', summary: message, isSpec: true })
}

type Evaluator = (spec: Frozen<MetricSpec>, context: MetricContext) => Promise<Evaluated>

const evaluators: Readonly<Record<string, Evaluator>> = {
  Resource: async ({ resource }, context) => {
    const { name = '', target } = resource ?? {}
    return failing('FailedGetResourceMetric', `failed to get ${name} resource metric value: `, async () => {
      const { proposal, current, suffix } = await ofResource({ name, target, container: '' }, context)
      return { proposal, status: { type: 'Resource', resource: { name, current } }, name: `${name} resource${suffix}` }
    })
  },
  ContainerResource: async ({ containerResource }, context) => {
    const { name = '', container = '', target } = containerResource ?? {}
    return failing('FailedGetContainerResourceMetric', `failed to get ${container} container metric value: `, async () => {
      const { proposal, current, suffix } = await ofResource({ name, target, container }, context)
      const status = { type: 'ContainerResource', containerResource: { name, container, current } }
      return { proposal, status, name: suffix === '' ? `${name} resource` : `${name} container resource${suffix}` }
    })
  },
  Pods: async ({ pods }, context) => {
    const { metric = nameless, target } = pods ?? {}
    return failing('FailedGetPodsMetric', 'failed to get pods metric value: ', async () => {
      const metrics = await prefixed(`unable to get metric ${metric.name}: `, () => context.queries.ofPods(metric))
      const proposal = replicasByPodUsage(questionOf(context, metrics, undefined), targetOf(target?.averageValue))
      const status = { type: 'Pods', pods: { metric: identifierOf(metric), current: { averageValue: decimal(proposal.usage) } } }
      return { proposal, status, name: `pods metric ${metric.name}` }
    })
  },
  Object: async ({ object }, context) => {
    const { metric = nameless, target, describedObject = { kind: '', name: '' } } = object ?? {}
    const isTotal = target?.type === 'Value' && target.value !== undefined
    const isAverage = target?.type === 'AverageValue' && target.averageValue !== undefined
    const summary = `failed to get object metric value: ${isAverage ? `failed to get ${metric.name} object metric: ` : ''}`
    return failing('FailedGetObjectMetric', summary, async () => {
      if (!isTotal && !isAverage) throw new Error('invalid object metric source: neither a value target nor an average value target was set')
      const usage = await ofObject(metric, describedObject, context)
      const { proposal, current } = ofOneValue(usage, target, context)
      const status = { type: 'Object', object: { describedObject: mutableCopy(describedObject), metric: identifierOf(metric), current } }
      return { proposal, status, name: isTotal ? `${describedObject.kind} metric ${metric.name}` : externalName(metric) }
    })
  },
  External: async ({ external }, context) => {
    const { metric = nameless, target } = external ?? {}
    const isAverage = target?.averageValue !== undefined
    const isTotal = !isAverage && target?.value !== undefined
    const detail = isAverage ? `failed to get ${metric.name} external metric: ` : isTotal ? `failed to get external metric ${metric.name}: ` : ''
    return failing('FailedGetExternalMetric', `failed to get ${metric.name} external metric value: ${detail}`, async () => {
      if (!isTotal && !isAverage) throw new Error('invalid external metric source: neither a value target nor an average value target was set')
      const where = `${context.namespace}/${metric.name}/${goLabelSelectorPointer(metric.selector)}`
      const usage = await prefixed(`unable to get external metric ${where}: `, () => context.queries.ofExternal(metric))
      const { proposal, current } = ofOneValue(usage, target, context)
      return { proposal, status: { type: 'External', external: { metric: identifierOf(metric), current } }, name: externalName(metric) }
    })
  },
}

const nameless: Frozen<MetricIdentifier> = { name: '' }

interface ResourceTarget {
  readonly name: string
  readonly container: string
  readonly target: Frozen<MetricTarget> | undefined
}

async function ofResource({ name, container, target }: ResourceTarget, context: MetricContext) {
  const ask = async () => {
    const metrics = await prefixed(`unable to get metrics for resource ${name}: `, () => context.queries.ofResource(name, container))
    return questionOf(context, metrics, name)
  }
  const format = name === 'memory' ? 'BinarySI' : 'DecimalSI'
  const { averageValue, averageUtilization } = target ?? {}
  if (averageValue !== undefined)
    return prefixed(`failed to get ${name} usage: `, async () => {
      const proposal = replicasByPodUsage(await ask(), targetOf(averageValue))
      return { proposal, current: { averageValue: formatQuantity(milliQuantity(proposal.usage, format)) }, suffix: '' }
    })
  if (averageUtilization === undefined)
    throw new Error('invalid resource metric source: neither an average utilization target nor an average value (usage) target was set')
  return prefixed(`failed to get ${name} utilization: `, async () => {
    const proposal = replicasByUtilization(await ask(), averageUtilization, container)
    const current = { averageUtilization: proposal.utilization, averageValue: formatQuantity(milliQuantity(proposal.usage, format)) }
    return { proposal, current, suffix: ' utilization (percentage of request)' }
  })
}

function questionOf(context: MetricContext, metrics: PodMetrics, resource: string | undefined): PodsQuestion {
  const { specReplicas: currentReplicas, tolerances, pods, periods } = context
  return { currentReplicas, tolerances, pods, periods, metrics, resource, nowMs: context.now() }
}

async function ofObject(metric: Frozen<MetricIdentifier>, object: NonNullable<Frozen<MetricSpec>['object']>['describedObject'], context: MetricContext) {
  try {
    return await context.queries.ofObject(metric, object)
  } catch (error) {
    throw new Error(`unable to get metric ${metric.name}: ${messageOf(error)} on ${object.kind} ${context.namespace}/${object.name}`)
  }
}

/** A total value is compared as it is, and set against the ready pods; an average is first divided among the replicas. */
function ofOneValue(usage: number, target: Frozen<MetricTarget>, context: MetricContext): { readonly proposal: Proposal; readonly current: MetricValueStatus } {
  const { tolerances, specReplicas, statusReplicas, pods } = context
  if (target.averageValue !== undefined) {
    const proposal = replicasByAverage(statusReplicas, tolerances, usage, targetOf(target.averageValue))
    return { proposal, current: { averageValue: decimal(proposal.usage) } }
  }
  const proposal = replicasByTotal({ currentReplicas: specReplicas, tolerances, pods }, usage, targetOf(target.value))
  return { proposal, current: { value: decimal(proposal.usage) } }
}

const targetOf = (quantity: string | undefined) => quantityMilliValue(quantity ?? '0')
const decimal = (milli: number) => formatQuantity(milliQuantity(milli))
const identifierOf = (metric: Frozen<MetricIdentifier>): MetricIdentifier => mutableCopy(metric)
const externalName = ({ name, selector }: Frozen<MetricIdentifier>) => `external metric ${name}(${goLabelSelectorPointer(selector)})`

async function prefixed<T>(prefix: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw new Error(`${prefix}${messageOf(error)}`)
  }
}

async function failing(reason: string, summary: string, work: () => Promise<Evaluated>): Promise<Evaluated> {
  try {
    return await work()
  } catch (error) {
    throw new MetricFailure(messageOf(error), { reason, summary: `${summary}${messageOf(error)}` })
  }
}
