/**
 * One sync of an autoscaler (L3): reads the scale of its target, decides how many replicas it shall have, sets them, and reports.
 * Upstream: reconcileAutoscaler of pkg/controller/podautoscaler/horizontal.go (v1.36).
 */
import type { Scale } from '#api/gen/types/autoscaling.v1'
import type { HorizontalPodAutoscaler, MetricStatus } from '#api/gen/types/autoscaling.v2'
import type { Pod } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { parseLabelSelector, type Selector } from '#api/machinery/labelSelector'
import { type Frozen, keyOf, parseGroupVersion } from '#api/machinery/meta'
import { quantityAsNumber } from '#api/machinery/quantity'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { horizontalPodAutoscalers } from '#client/builtIn'
import type { Lister } from '#client/cache/lister'
import type { DiscoveredResource } from '#client/discovery/discovery'
import type { EventRecorder } from '#client/eventRecorder'
import { retryOnConflict } from '#client/retryOnConflict'
import type { ScaleClient } from '#client/scaleClient'
import type { ControllerContext } from '../framework/controller.ts'
import type { Action, AutoscalerMetrics, Fault } from './autoscalerMetrics.ts'
import type { KindMapper } from './kindMapper.ts'
import { limitReplicas, type ScaleHistory, withRecommendation, withScaleEvent } from './limits.ts'
import type { MetricsClient } from './metricsClient.ts'
import { decideByMetrics, type MetricsDecision } from './metricsDecision.ts'
import { MetricFailure } from './metricTargets.ts'
import { mostClaimants, type PodClaims } from './podClaims.ts'
import type { ReadinessPeriods } from './podGroups.ts'
import type { Tolerances } from './replicaCalculator.ts'
import { StatusDraft } from './statusDraft.ts'

type Autoscaler = Frozen<HorizontalPodAutoscaler>

export interface AutoscalerSettings {
  readonly downscaleStabilizationMs: number
  readonly tolerance: number
  readonly periods: ReadinessPeriods
  readonly scalesToZero: boolean
  readonly hasOwnTolerance: boolean
}

export interface SyncDeps {
  readonly context: ControllerContext
  readonly events: EventRecorder
  readonly mapper: KindMapper
  readonly scales: ScaleClient
  readonly metricsClient: MetricsClient
  readonly monitor: AutoscalerMetrics
  readonly claims: PodClaims
  readonly pods: Lister<Pod>
  /** By key of the autoscaler. */
  readonly histories: Map<string, ScaleHistory>
  readonly settings: AutoscalerSettings
}

/** A sync that could not be finished; the status says why. */
export class SyncFailure extends Error {
  readonly fault: Fault

  constructor(message: string, fault: Fault = 'internal') {
    super(message)
    this.fault = fault
  }
}

interface Sync {
  readonly deps: SyncDeps
  readonly autoscaler: Autoscaler
  readonly key: string
  readonly namespace: string
  readonly draft: StatusDraft
  readonly signal: AbortSignal
}

interface Target {
  readonly resource: DiscoveredResource
  readonly scale: Frozen<Scale>
}

interface Decision {
  readonly replicas: number
  /** In the event; empty: the replicas stay. */
  readonly reason: string
  readonly currentMetrics: readonly MetricStatus[] | null
  /** Metrics failed that did not keep the others from deciding. */
  readonly failure?: string | undefined
}

/** @throws SyncFailure, also after a decision that some metrics had no part in; `onAction` is called before */
export async function syncAutoscaler(deps: SyncDeps, autoscaler: Autoscaler, signal: AbortSignal, onAction: (action: Action) => void): Promise<void> {
  const { namespace = '' } = autoscaler.metadata
  const key = keyOf(autoscaler)
  const sync: Sync = { deps, autoscaler, key, namespace, signal, draft: new StatusDraft(autoscaler, () => deps.context.clock.now()) }
  const target = await findTarget(sync)
  sync.draft.set('AbleToScale', true, { reason: 'SucceededGetScale', message: "the HPA controller was able to get the target's current scale" })
  const currentReplicas = target.scale.spec?.replicas ?? 0
  if (!deps.histories.has(key)) keep(sync, withRecommendation(noHistory, currentReplicas, deps.context.clock.now(), 0))
  const { replicas, reason, currentMetrics, failure } = await decide(sync, target.scale, currentReplicas)
  const isScaled = replicas !== currentReplicas
  if (isScaled) {
    await rescale(sync, target, { from: currentReplicas, to: replicas, reason, currentMetrics })
    onAction(replicas > currentReplicas ? 'scale_up' : 'scale_down')
  }
  sync.draft.finish({ currentReplicas, desiredReplicas: replicas, currentMetrics, isScaled })
  deps.monitor.desired(key, replicas)
  await writeStatus(sync)
  if (failure !== undefined) throw new SyncFailure(failure)
}

const noHistory: ScaleHistory = { recommendations: [], ups: [], downs: [] }
const keep = ({ deps, key }: Sync, history: ScaleHistory) => void deps.histories.set(key, history)
const referenceOf = ({ autoscaler: { spec }, namespace }: Sync) => `${spec.scaleTargetRef.kind}/${namespace}/${spec.scaleTargetRef.name}`

function warn({ deps, autoscaler }: Sync, reason: string, message: string): void {
  deps.events.event(autoscaler, 'Warning', reason, message)
}

/** The kind may have several resources: the first that has such an object counts. */
async function findTarget(sync: Sync): Promise<Target> {
  const { autoscaler, namespace, deps, draft, signal } = sync
  const { apiVersion = '', kind, name } = autoscaler.spec.scaleTargetRef
  let failing: SyncFailure | undefined
  try {
    if (apiVersion.split('/').length > 2) {
      const message = `unexpected GroupVersion string: ${apiVersion}`
      failing = new SyncFailure(`invalid API version in scale target reference: ${message}`, 'spec')
      throw new Error(message)
    }
    const resources = await deps.mapper.resourcesOf(parseGroupVersion(apiVersion).group, kind, signal)
    return await firstScale(sync, resources, { namespace, name })
  } catch (error) {
    signal.throwIfAborted()
    const message = messageOf(error)
    warn(sync, 'FailedGetScale', message)
    draft.set('AbleToScale', false, { reason: 'FailedGetScale', message: `the HPA controller was unable to get the target's current scale: ${message}` })
    await writeStatus(sync)
    throw failing ?? new SyncFailure(`failed to query scale subresource for ${referenceOf(sync)}: ${message}`)
  }
}

async function firstScale({ deps, signal }: Sync, resources: readonly DiscoveredResource[], ref: { namespace: string; name: string }): Promise<Target> {
  let first: unknown
  for (const resource of resources)
    try {
      return { resource, scale: await deps.scales.get(resource, ref, { signal }) }
    } catch (error) {
      first ??= error
    }
  throw first
}

async function decide(sync: Sync, scale: Frozen<Scale>, currentReplicas: number): Promise<Decision> {
  const { autoscaler, draft, deps } = sync
  const { minReplicas = 1, maxReplicas } = autoscaler.spec
  const wasScaledToZero = deps.settings.scalesToZero && draft.isTrue('ScaledToZero')
  const unmetered = { currentMetrics: null }
  if (currentReplicas === 0 && !(wasScaledToZero && (minReplicas !== 0 || hasMetricsWithoutPods(autoscaler)))) {
    draft.set('ScalingActive', false, { reason: 'ScalingDisabled', message: 'scaling is disabled since the replica count of the target is zero' })
    if (!deps.settings.scalesToZero) draft.remove('ScaledToZero')
    return { ...unmetered, replicas: 0, reason: '' }
  }
  if (currentReplicas > maxReplicas) return { ...unmetered, replicas: maxReplicas, reason: 'Current number of replicas above Spec.MaxReplicas' }
  if (currentReplicas !== 0 && currentReplicas < minReplicas) return { ...unmetered, replicas: minReplicas, reason: belowMinimum }
  const { chosen, statuses, failure } = await evaluate(sync, scale, currentReplicas)
  const desired = Math.max(0, chosen.proposal.replicas)
  const reason = desired > currentReplicas ? `${chosen.name} above target` : desired < currentReplicas ? 'All metrics below target' : ''
  const replicas = limited(sync, { currentReplicas, desired, minReplicas })
  const decision = { currentMetrics: statuses, failure: failure?.message }
  if (currentReplicas === 0 && replicas < minReplicas) return { ...decision, replicas: minReplicas, reason: reason || belowMinimum }
  return { ...decision, replicas, reason }
}

const belowMinimum = 'Current number of replicas below Spec.MinReplicas'

/** Such metrics have values while no pod runs. */
const hasMetricsWithoutPods = ({ spec }: Autoscaler) => spec.metrics?.some(({ type }) => type === 'Object' || type === 'External') ?? false

type Evaluation = MetricsDecision & { readonly chosen: NonNullable<MetricsDecision['chosen']> }

async function evaluate(sync: Sync, scale: Frozen<Scale>, currentReplicas: number): Promise<Evaluation> {
  const { autoscaler, deps, draft, signal, namespace } = sync
  const { clock } = deps.context
  const fail = async (message: string, currentMetrics: readonly MetricStatus[] | null): Promise<never> => {
    draft.finish({ currentReplicas, desiredReplicas: autoscaler.status?.desiredReplicas ?? 0, currentMetrics, isScaled: false })
    await writeStatus(sync)
    warn(sync, 'FailedComputeMetricsReplicas', message)
    throw new SyncFailure(`failed to compute desired number of replicas based on listed metrics for ${referenceOf(sync)}: ${message}`)
  }
  const selected = select(sync, scale.status?.selector ?? '')
  if (typeof selected === 'string') return fail(selected, null)
  let startedMs = clock.monotonicMs()
  const decision = await decideByMetrics(
    autoscaler.spec.metrics ?? [],
    {
      namespace,
      specReplicas: currentReplicas,
      statusReplicas: scale.status?.replicas ?? 0,
      pods: selected.pods,
      tolerances: tolerancesOf(sync),
      periods: deps.settings.periods,
      queries: deps.metricsClient.queries(namespace, selected.selector, signal),
      now: () => clock.now(),
    },
    (type, result) => {
      signal.throwIfAborted()
      const seconds = (clock.monotonicMs() - startedMs) / 1000
      startedMs = clock.monotonicMs()
      const isFailure = result instanceof MetricFailure
      if (isFailure) warn(sync, result.reason, result.message)
      const action = isFailure ? 'none' : actionOf(autoscaler.status?.currentReplicas ?? 0, result.replicas)
      deps.monitor.computed(action, isFailure ? (result.isSpec ? 'spec' : 'internal') : 'none', type, seconds)
    },
  )
  const { chosen, failure } = decision
  if (!chosen) {
    const { reason = '', message = '' } = failure?.first ?? {}
    draft.set('ScalingActive', false, { reason, message: `the HPA was unable to compute the replica count: ${message}` })
    return fail(failure?.message ?? '', decision.statuses)
  }
  const message = `the HPA was able to successfully calculate a replica count from ${chosen.name}`
  draft.set('ScalingActive', true, { reason: 'ValidMetricFound', message })
  deps.context.log.v(4).info('Proposing desired replicas', { autoscaler: sync.key, metric: chosen.name, ...chosen.proposal })
  return { ...decision, chosen }
}

function actionOf(from: number, to: number): Action {
  return to > from ? 'scale_up' : to < from ? 'scale_down' : 'none'
}

/** @returns the pods that the target's selector matches, or what is wrong with the selector */
function select(sync: Sync, text: string): { readonly selector: Selector; readonly pods: readonly Frozen<Pod>[] } | string {
  const { deps, draft, namespace, key } = sync
  const refuse = (event: string, message: string, condition: { readonly reason: string; readonly message: string }) => {
    warn(sync, event, message)
    draft.set('ScalingActive', false, condition)
    return message
  }
  if (text === '')
    return refuse('SelectorRequired', 'selector is required', { reason: 'InvalidSelector', message: "the HPA target's scale is missing a selector" })
  let selector: Selector
  try {
    selector = parseLabelSelector(text)
  } catch (error) {
    const message = `couldn't convert selector into a corresponding internal selector object: ${messageOf(error)}`
    return refuse('InvalidSelector', message, { reason: 'InvalidSelector', message })
  }
  deps.claims.set(key, selector)
  const pods = deps.pods.list({ namespace, matches: ({ metadata }) => selector.matches(metadata.labels ?? {}) })
  const claimants = deps.claims.claimants(namespace, pods)
  if (claimants.length <= 1) return { selector, pods }
  const more = claimants.length === mostClaimants ? ' ...' : ''
  const message = `pods by selector ${text} are controlled by multiple HPAs: [${claimants.join(' ')}${more}]`
  return refuse('AmbiguousSelector', message, { reason: 'AmbiguousSelector', message })
}

function tolerancesOf({ autoscaler: { spec }, deps: { settings } }: Sync): Tolerances {
  const of = (direction: 'scaleUp' | 'scaleDown') => {
    const own = settings.hasOwnTolerance ? spec.behavior?.[direction]?.tolerance : undefined
    return own === undefined ? settings.tolerance : quantityAsNumber(own)
  }
  return { scaleUp: of('scaleUp'), scaleDown: of('scaleDown') }
}

interface Wish {
  readonly currentReplicas: number
  readonly desired: number
  readonly minReplicas: number
}

function limited(sync: Sync, { currentReplicas, desired, minReplicas }: Wish): number {
  const { autoscaler, deps, draft, key } = sync
  const { maxReplicas, behavior } = autoscaler.spec
  const history = deps.histories.get(key) ?? noHistory
  const nowMs = deps.context.clock.now()
  const { downscaleStabilizationMs: downscaleWindowMs } = deps.settings
  const question = { currentReplicas, desiredReplicas: desired, minReplicas, maxReplicas, history, downscaleWindowMs, nowMs }
  const { replicas, ableToScale, scalingLimited } = limitReplicas(question, behavior)
  keep(sync, withRecommendation(history, desired, nowMs, downscaleWindowMs))
  draft.set('AbleToScale', true, ableToScale)
  draft.set('ScalingLimited', scalingLimited.isLimited, scalingLimited)
  return replicas
}

interface Change {
  readonly from: number
  readonly to: number
  readonly reason: string
  readonly currentMetrics: readonly MetricStatus[] | null
}

async function rescale(sync: Sync, target: Target, { from, to, reason, currentMetrics }: Change): Promise<void> {
  const { autoscaler, deps, draft, namespace, signal, key } = sync
  const { context, histories, settings } = deps
  const ref = { namespace, name: autoscaler.spec.scaleTargetRef.name }
  let { scale } = target
  const write = async () => {
    try {
      await deps.scales.update(target.resource, ref, { ...scale, spec: { ...scale.spec, replicas: to } }, { signal })
    } catch (error) {
      if (isStatus(error, 'Conflict')) scale = await deps.scales.get(target.resource, ref, { signal })
      throw error
    }
  }
  try {
    await retryOnConflict(context, write, { signal })
  } catch (error) {
    signal.throwIfAborted()
    const message = messageOf(error)
    warn(sync, 'FailedRescale', `New size: ${to}; reason: ${reason}; error: ${message}`)
    draft.set('AbleToScale', false, { reason: 'FailedUpdateScale', message: `the HPA controller was unable to update the target scale: ${message}` })
    draft.finish({ currentReplicas: from, desiredReplicas: autoscaler.status?.desiredReplicas ?? 0, currentMetrics, isScaled: false })
    await writeStatus(sync)
    throw new SyncFailure(`failed to rescale ${referenceOf(sync)}: ${message}`)
  }
  draft.set('AbleToScale', true, { reason: 'SucceededRescale', message: `the HPA controller was able to update the target scale to ${to}` })
  deps.events.event(autoscaler, 'Normal', 'SuccessfulRescale', `New size: ${to}; reason: ${reason}`)
  if (autoscaler.spec.behavior) keep(sync, withScaleEvent(histories.get(key) ?? noHistory, from, to, context.clock.now()))
  if (!settings.scalesToZero) draft.remove('ScaledToZero')
  else if (to === 0 && hasMetricsWithoutPods(autoscaler))
    draft.set('ScaledToZero', true, { reason: 'ScaledToZero', message: 'the HPA controller scaled the workload to zero' })
  else draft.set('ScaledToZero', false, { reason: 'NotScaledToZero', message: 'the HPA controller did not scale the workload to zero' })
}

async function writeStatus({ autoscaler, draft, deps, signal, ...sync }: Sync): Promise<void> {
  if (semanticEqual(draft.status, autoscaler.status)) return
  try {
    await deps.context.client.of(horizontalPodAutoscalers).updateStatus({ ...autoscaler, status: draft.status } as Autoscaler, { signal })
  } catch (error) {
    signal.throwIfAborted()
    warn({ autoscaler, draft, deps, signal, ...sync }, 'FailedUpdateStatus', messageOf(error))
    throw error
  }
}
