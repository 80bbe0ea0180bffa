/**
 * How many replicas a metric asks for (L3, pure): usage against target, with the pods that are not ready and those without a measurement.
 * Values are in thousandths. A result beyond 32 bits is the largest number of 32 bits, where upstream's conversion is undefined.
 * Upstream: pkg/controller/podautoscaler/replica_calculator.go, metrics/utilization.go (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import { isPodReady } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'
import { groupPods, type PodMetrics, type ReadinessPeriods } from './podGroups.ts'
import { requestsOf } from './podRequests.ts'

/** How far usage may be off its target without a change, as parts of one. */
export interface Tolerances {
  readonly scaleDown: number
  readonly scaleUp: number
}

interface Question {
  readonly currentReplicas: number
  readonly tolerances: Tolerances
  /** The pods that the target's selector matches. */
  readonly pods: readonly Frozen<Pod>[]
}

export interface PodsQuestion extends Question {
  readonly metrics: PodMetrics
  /** Undefined for a custom metric, for which pods that are not ready count, too. */
  readonly resource?: string | undefined
  readonly periods: ReadinessPeriods
  readonly nowMs: number
}

export interface Proposal {
  readonly replicas: number
  /** Usage as a part of the target; 1 is on target. */
  readonly ratio: number
  /** For the status: average or sum, in thousandths. */
  readonly usage: number
}

export interface PodsProposal extends Proposal {
  /** How many pods the usage was multiplied by. */
  readonly counted: number
  readonly unready: number
  readonly missing: number
}

export interface UtilizationProposal extends PodsProposal {
  /** Percent of the requests. */
  readonly utilization: number
}

export const maxInt32 = 2 ** 31 - 1
const maxInt64 = 2 ** 63

const isWithin = ({ scaleDown, scaleUp }: Tolerances, ratio: number) => 1 - scaleDown <= ratio && ratio <= 1 + scaleUp

const inInt32 = (value: number) => Math.max(-maxInt32, Math.min(maxInt32, value)) + 0

/** Rounds up to a number of replicas; NaN is none. */
const whole = (replicas: number) => (Number.isNaN(replicas) ? 0 : inInt32(Math.ceil(replicas)))

function sum(values: Iterable<number>): number {
  let total = 0
  for (const value of values) total += value
  return Math.min(total, maxInt64)
}

/** Percent of the requests. @throws Error with upstream's text when the pods do not tell */
export function replicasByUtilization(question: PodsQuestion, targetUtilization: number, container = ''): UtilizationProposal {
  return replicasByPods(question, () => {
    const requests = requestsOf(question.pods, question.resource ?? '', container)
    return {
      usageOf: (metrics) => utilizationOf(metrics, requests, targetUtilization),
      fallback: (pod) => Math.trunc(((requests.get(pod) ?? 0) * Math.max(100, targetUtilization)) / 100),
    }
  })
}

/** An average per pod. @throws Error with upstream's text when the pods do not tell */
export function replicasByPodUsage(question: PodsQuestion, targetUsage: number): PodsProposal {
  return replicasByPods(question, () => ({ usageOf: (metrics) => averageOf(metrics, targetUsage), fallback: () => targetUsage }))
}

interface Usage {
  /** Usage as a part of the target. */
  readonly ratio: number
  readonly usage: number
}

function utilizationOf(metrics: PodMetrics, requests: ReadonlyMap<string, number>, target: number): Usage & { readonly utilization: number } {
  const known = [...metrics].filter(([pod]) => requests.has(pod))
  const requested = sum(known.map(([pod]) => requests.get(pod) ?? 0))
  if (requested === 0) throw new Error('no metrics returned matched known pods')
  const used = sum(known.map(([, { value }]) => value))
  const utilization = inInt32(Math.trunc((used * 100) / requested))
  return { ratio: utilization / target, utilization, usage: Math.trunc(used / known.length) }
}

function averageOf(metrics: PodMetrics, target: number): Usage {
  const usage = Math.trunc(sum([...metrics.values()].map(({ value }) => value)) / metrics.size) + 0
  return { ratio: usage / target, usage }
}

interface Measure<T> {
  usageOf(metrics: PodMetrics): T
  /** The usage of a pod without a measurement while the others ask for fewer replicas. */
  fallback(pod: string): number
}

/** @param measure called once there are measurements, because it may throw */
function replicasByPods<T extends Usage>(question: PodsQuestion, measure: () => Measure<T>): T & PodsProposal {
  const { currentReplicas, tolerances, pods } = question
  if (pods.length === 0) throw new Error('no pods returned by selector while calculating replica count')
  const { ready, unready, missing, measured } = groupPods(question)
  if (measured.size === 0) throw new Error('did not receive metrics for targeted pods (pods might be unready)')
  const { usageOf, fallback } = measure()
  const usage = usageOf(measured)
  const proposal = (replicas: number, counted: number) => ({ ...usage, replicas, counted, unready: unready.size, missing: missing.size })
  const unchanged = proposal(currentReplicas, ready)
  const countsUnready = unready.size > 0 && usage.ratio > 1
  if (!countsUnready && missing.size === 0) return isWithin(tolerances, usage.ratio) ? unchanged : proposal(whole(usage.ratio * ready), ready)

  const cautious = new Map(measured)
  const assume = (names: Iterable<string>, valueFor: (pod: string) => number) => {
    for (const pod of names) cautious.set(pod, { value: valueFor(pod), atMs: 0, windowMs: 0 })
  }
  if (usage.ratio < 1) assume(missing, fallback)
  if (usage.ratio > 1) assume(missing, () => 0)
  if (countsUnready) assume(unready, () => 0)
  const { ratio } = usageOf(cautious)
  const turns = (usage.ratio < 1 && ratio > 1) || (usage.ratio > 1 && ratio < 1)
  if (isWithin(tolerances, ratio) || turns) return unchanged
  const replicas = whole(ratio * cautious.size)
  const contradicts = (ratio < 1 && replicas > currentReplicas) || (ratio > 1 && replicas < currentReplicas)
  return contradicts ? unchanged : proposal(replicas, cautious.size)
}

/** One value for all pods together: an object's, or the sum of an external metric. @throws Error when there are no pods */
export function replicasByTotal({ currentReplicas, tolerances, pods }: Question, usage: number, target: number): Proposal {
  const ratio = usage / target
  // Without pods, neither tolerance nor readiness applies.
  if (currentReplicas === 0) return { replicas: whole(ratio), usage, ratio }
  if (isWithin(tolerances, ratio)) return { replicas: currentReplicas, usage, ratio }
  if (pods.length === 0) throw new Error('unable to calculate ready pods: no pods returned by selector while calculating replica count')
  const ready = pods.filter((pod) => pod.status?.phase === 'Running' && isPodReady(pod)).length
  return { replicas: whole(ratio * ready), usage, ratio }
}

/**
 * One value, divided among the replicas that the target reports. Without replicas the status shows the whole value, where upstream shows the
 * result of a division by zero.
 */
export function replicasByAverage(statusReplicas: number, tolerances: Tolerances, usage: number, targetPerPod: number): Proposal {
  const ratio = usage / (targetPerPod * statusReplicas)
  const replicas = isWithin(tolerances, ratio) ? statusReplicas : whole(usage / targetPerPod)
  return { replicas, ratio, usage: usage >= maxInt64 ? maxInt64 : Math.ceil(usage / Math.max(1, statusReplicas)) + 0 }
}

/** All values of an external metric together. */
export const totalOf = sum
