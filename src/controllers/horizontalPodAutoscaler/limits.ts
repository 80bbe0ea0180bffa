/**
 * Limits the replicas that metrics ask for (L3, pure): minimum and maximum, stabilisation over recent recommendations, and the rates of
 * spec.behavior. Upstream: pkg/controller/podautoscaler/horizontal.go (v1.36).
 */
import type { HorizontalPodAutoscalerBehavior, HPAScalingRules } from '#api/gen/types/autoscaling.v2'
import { greatest, least } from '#base/extremes'
import type { DeepReadonly } from '#base/frozen'
import { maxInt32 } from './replicaCalculator.ts'

export interface Recommendation {
  readonly replicas: number
  readonly atMs: number
}

/** A change that was made; always positive. */
export interface ScaleEvent {
  readonly change: number
  readonly atMs: number
}

/** What an autoscaler remembers between two looks. */
export interface ScaleHistory {
  /** As the metrics asked for, before any limit. */
  readonly recommendations: readonly Recommendation[]
  readonly ups: readonly ScaleEvent[]
  readonly downs: readonly ScaleEvent[]
}

export interface LimitQuestion {
  readonly currentReplicas: number
  /** What the metrics ask for. */
  readonly desiredReplicas: number
  readonly minReplicas: number
  readonly maxReplicas: number
  readonly history: ScaleHistory
  readonly downscaleWindowMs: number
  readonly nowMs: number
}

export interface Verdict {
  readonly reason: string
  readonly message: string
}

export interface Limited {
  readonly replicas: number
  readonly stabilized: number
  readonly ableToScale: Verdict
  readonly scalingLimited: Verdict & { readonly isLimited: boolean }
}

type Rules = DeepReadonly<HPAScalingRules> | undefined

const ready = { reason: 'ReadyForNewScale', message: 'recommended size matches current size' }
const heldHigh = {
  reason: 'ScaleDownStabilized',
  message: 'recent recommendations were higher than current one, applying the highest recent recommendation',
}
const heldLow = { reason: 'ScaleUpStabilized', message: 'recent recommendations were lower than current one, applying the lowest recent recommendation' }
const withinRange = { reason: 'DesiredWithinRange', message: 'the desired count is within the acceptable range' }
const tooMany = { reason: 'TooManyReplicas', message: 'the desired replica count is more than the maximum replica count' }
const tooFew = { reason: 'TooFewReplicas', message: 'the desired replica count is less than the minimum replica count' }
const tooFastUp = { reason: 'ScaleUpLimit', message: 'the desired replica count is increasing faster than the maximum scale rate' }
const tooFastDown = { reason: 'ScaleDownLimit', message: 'the desired replica count is decreasing faster than the maximum scale rate' }

/** @param behavior with its defaults */
export function limitReplicas(question: LimitQuestion, behavior: DeepReadonly<HorizontalPodAutoscalerBehavior> | undefined): Limited {
  const { desiredReplicas, currentReplicas } = question
  const stabilized = behavior ? stabilizedBoth(question, behavior) : stabilizedDown(question)
  const held = behavior && desiredReplicas >= currentReplicas ? heldLow : heldHigh
  const [replicas, verdict] = behavior ? withinRates(question, stabilized, behavior) : withinDefaults(question, stabilized)
  return {
    replicas,
    stabilized,
    ableToScale: stabilized === desiredReplicas ? ready : held,
    scalingLimited: { ...verdict, isLimited: replicas !== stabilized },
  }
}

/** The highest recommendation of the window. */
function stabilizedDown({ desiredReplicas, history, downscaleWindowMs, nowMs }: LimitQuestion): number {
  const recent = history.recommendations.filter(({ atMs }) => atMs >= nowMs - downscaleWindowMs)
  return greatest([desiredReplicas, ...recent.map(({ replicas }) => replicas)])
}

function stabilizedBoth(question: LimitQuestion, behavior: DeepReadonly<HorizontalPodAutoscalerBehavior>): number {
  const { desiredReplicas, currentReplicas, history, nowMs } = question
  const since = (windowMs: number) => history.recommendations.filter(({ atMs }) => atMs > nowMs - windowMs).map(({ replicas }) => replicas)
  const lowest = least([desiredReplicas, ...since(windowMs(behavior.scaleUp, 0))])
  const highest = greatest([desiredReplicas, ...since(windowMs(behavior.scaleDown, question.downscaleWindowMs))])
  return Math.min(Math.max(currentReplicas, lowest), highest)
}

const windowMs = (rules: Rules, otherwiseMs: number) =>
  rules?.stabilizationWindowSeconds === undefined ? otherwiseMs : rules.stabilizationWindowSeconds * 1000

/** Twice as many at once, or four. */
function withinDefaults({ currentReplicas, minReplicas, maxReplicas }: LimitQuestion, desired: number): [number, Verdict] {
  const limit = Math.min(maxInt32, Math.max(2 * currentReplicas, 4))
  if (desired < minReplicas) return [minReplicas, tooFew]
  if (desired > Math.min(maxReplicas, limit)) return maxReplicas > limit ? [limit, tooFastUp] : [maxReplicas, tooMany]
  return [desired, withinRange]
}

function withinRates(question: LimitQuestion, desired: number, behavior: DeepReadonly<HorizontalPodAutoscalerBehavior>): [number, Verdict] {
  const { currentReplicas, minReplicas, maxReplicas } = question
  if (desired > currentReplicas) {
    const limit = Math.max(currentReplicas, upLimit(question, behavior.scaleUp))
    if (desired > Math.min(maxReplicas, limit)) return maxReplicas > limit ? [limit, tooFastUp] : [maxReplicas, tooMany]
  } else if (desired < currentReplicas) {
    const limit = Math.min(currentReplicas, downLimit(question, behavior.scaleDown))
    if (desired < Math.max(minReplicas, limit)) return minReplicas < limit ? [limit, tooFastDown] : [minReplicas, tooFew]
  }
  return [desired, withinRange]
}

function upLimit(question: LimitQuestion, rules: Rules): number {
  if (rules?.selectPolicy === 'Disabled') return question.currentReplicas
  const proposals = (rules?.policies ?? []).map(({ type, value, periodSeconds }) => {
    const atStart = replicasAtStart(question, periodSeconds)
    // Rounded up, or a small percentage would never add a pod.
    return type === 'Pods' ? atStart + value : Math.ceil(atStart * (1 + value / 100))
  })
  return Math.min(maxInt32, rules?.selectPolicy === 'Min' ? least([maxInt32, ...proposals]) : greatest([-maxInt32, ...proposals]))
}

function downLimit(question: LimitQuestion, rules: Rules): number {
  if (rules?.selectPolicy === 'Disabled') return question.currentReplicas
  const proposals = (rules?.policies ?? []).map(({ type, value, periodSeconds }) => {
    const atStart = replicasAtStart(question, periodSeconds)
    return type === 'Pods' ? atStart - value : Math.trunc(atStart * (1 - value / 100)) + 0
  })
  return rules?.selectPolicy === 'Min' ? greatest([-maxInt32, ...proposals]) : least([maxInt32, ...proposals])
}

/** At the start of a policy's period. */
function replicasAtStart({ currentReplicas, history, nowMs }: LimitQuestion, periodSeconds: number): number {
  const changed = (events: readonly ScaleEvent[]) =>
    events.filter(({ atMs }) => atMs > nowMs - periodSeconds * 1000).reduce((sum, { change }) => sum + change, 0)
  return currentReplicas - changed(history.ups) + changed(history.downs)
}

/** How long recommendations and events can matter at most: what validation lets a window and a period be. */
const longestMs = 3_600_000

/** The history with a recommendation, without what is too old to matter. */
export function withRecommendation(history: ScaleHistory, replicas: number, nowMs: number, downscaleWindowMs: number): ScaleHistory {
  const keptMs = Math.max(longestMs, downscaleWindowMs)
  const kept = history.recommendations.filter(({ atMs }) => atMs >= nowMs - keptMs)
  return { ...history, recommendations: [...kept, { replicas, atMs: nowMs }] }
}

/** The history with a change that was made. */
export function withScaleEvent(history: ScaleHistory, from: number, to: number, nowMs: number): ScaleHistory {
  const add = (events: readonly ScaleEvent[]) => [...events.filter(({ atMs }) => atMs > nowMs - longestMs), { change: Math.abs(to - from), atMs: nowMs }]
  return to > from ? { ...history, ups: add(history.ups) } : { ...history, downs: add(history.downs) }
}
