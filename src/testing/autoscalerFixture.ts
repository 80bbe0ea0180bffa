/** One sync of an autoscaler over fakes (L3), for tests: a target, its pods, answers of the metrics APIs, and what may fail. */
import type { Scale } from '#api/gen/types/autoscaling.v1'
import type { HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition, MetricSpec } from '#api/gen/types/autoscaling.v2'
import type { Pod } from '#api/gen/types/core.v1'
import { parseLabelSelector } from '#api/machinery/labelSelector'
import { conflict, notFound } from '#api/machinery/status'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { formatTime } from '#base/time'
import { VirtualClock } from '#base/virtualClock'
import type { ApiRequest } from '#client/transport'
import { createMetricsClient } from '#controllers/horizontalPodAutoscaler/metricsClient'
import { createPodClaims } from '#controllers/horizontalPodAutoscaler/podClaims'
import { type SyncDeps, SyncFailure, syncAutoscaler } from '#controllers/horizontalPodAutoscaler/sync'

export interface SyncSetting {
  readonly min?: number
  readonly max?: number
  /** The target's replicas. */
  readonly replicas: number
  /** CPU of each pod, in thousandths; every pod requests one core. Default: no pods are measured. */
  readonly usage?: readonly number[]
  /** The values of custom and external metrics. */
  readonly values?: readonly string[]
  readonly metrics: readonly MetricSpec[]
  readonly selector?: string
  readonly behavior?: HorizontalPodAutoscaler['spec']['behavior']
  readonly conditions?: readonly HorizontalPodAutoscalerCondition[]
  readonly isNew?: boolean
  readonly scalesToZero?: boolean
  /** A selector of another autoscaler. */
  readonly other?: string
  readonly fails?: 'metrics' | 'get' | 'update' | 'conflict'
}

export interface SyncOutcome {
  readonly desired: number | undefined
  readonly conditions: readonly string[]
  readonly events: readonly string[]
  readonly computed: readonly string[]
  readonly fault?: string
}

const labels = { app: 'web' }
const broken = () => {
  throw new Error('something went wrong')
}

function answers({ usage = [], values = [], fails }: SyncSetting, nowMs: number) {
  const timestamp = formatTime(nowMs)
  const named = (index: number) => ({ name: `p${index}`, namespace: 'n' })
  return async ({ path }: ApiRequest) => {
    if (path === '/apis/custom.metrics.k8s.io') return { status: 200, warnings: [], body: { versions: [{ groupVersion: 'custom.metrics.k8s.io/v1beta2' }] } }
    if (fails === 'metrics') broken()
    const ofUsage = usage.map((milli, index) => ({
      metadata: named(index),
      timestamp,
      window: '15s',
      containers: [{ name: 'a', usage: { cpu: `${milli}m` } }],
    }))
    const ofValues = values.map((amount, index) => ({ describedObject: named(index), timestamp, value: amount }))
    return { status: 200, warnings: [], body: { items: path.startsWith('/apis/metrics.k8s.io') ? ofUsage : ofValues } }
  }
}

function podOf(index: number, nowMs: number): Pod {
  const longAgo = formatTime(nowMs - 3_600_000)
  const status = { phase: 'Running', startTime: longAgo, conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: longAgo }] }
  const spec = { containers: [{ name: 'a', resources: { requests: { cpu: '1' } } }] }
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: `p${index}`, namespace: 'n', labels }, spec, status } as Pod
}

export async function syncOnce(setting: SyncSetting): Promise<SyncOutcome & { readonly scaledTo: readonly number[] }> {
  const { min = 1, max = 100, replicas, metrics, selector = 'app=web', behavior, conditions, fails } = setting
  const clock = new VirtualClock()
  const autoscaler = {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: 'h', namespace: 'n' },
    spec: { minReplicas: min, maxReplicas: max, metrics, behavior, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' } },
    status: { currentReplicas: replicas, desiredReplicas: replicas, ...(conditions ? { conditions } : {}) },
  } as unknown as HorizontalPodAutoscaler
  const events: string[] = []
  const computed: string[] = []
  const scaledTo: number[] = []
  let status = autoscaler.status
  const resource = { group: 'apps', version: 'v1', resource: 'deployments', kind: 'Deployment', namespaced: true }
  const mapper = { resourcesOf: async () => [resource as never] }
  const transport = { request: answers(setting, clock.now()), watch: broken }
  const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'd' }, spec: { replicas }, status: { replicas, selector } }
  const claims = createPodClaims()
  claims.add('n/h')
  if (setting.other !== undefined) {
    claims.add('n/other')
    claims.set('n/other', parseLabelSelector(setting.other))
  }
  let version = '1'
  const read = async () => ({ ...scale, metadata: { ...scale.metadata, resourceVersion: version } })
  const write = async (_resource: unknown, _ref: unknown, written: Scale) => {
    if (fails === 'update') broken()
    scaledTo.push(written.spec?.replicas ?? 0)
    // Another client is faster, once.
    if (fails === 'conflict') version = '2'
    if (written.metadata?.resourceVersion !== version) throw conflict(resource, 'd', 'it changed')
    return scale
  }
  const updateStatus = async (object: HorizontalPodAutoscaler) => {
    status = object.status
  }
  const client = { of: () => ({ updateStatus }) }
  const event = (_: unknown, type: string, reason: string, message: string) => void events.push(`${type} ${reason} ${message}`)
  const pods = Array.from({ length: Math.max(replicas, setting.usage?.length ?? 0) }, (_, index) => podOf(index, clock.now()))
  const history = { recommendations: [], ups: [], downs: [] }
  const deps = {
    context: { client, clock, random: seededRandom(1), log: noLog, metrics: noMetrics },
    events: { event },
    mapper,
    scales: { get: fails === 'get' ? async () => Promise.reject(notFound(resource, 'd')) : read, update: write },
    metricsClient: createMetricsClient({ transport: transport as never, mapper, clock, syncPeriodMs: 15_000 }),
    monitor: { computed: (action: string, error: string, type: string) => void computed.push(`${type} ${action} ${error}`), desired: () => {} },
    claims,
    pods: { list: ({ matches }: { readonly matches: (pod: Pod) => boolean }) => pods.filter(matches) },
    histories: new Map(setting.isNew ? [] : [['n/h', history]]),
    settings: {
      downscaleStabilizationMs: 300_000,
      tolerance: 0.1,
      periods: { cpuInitializationMs: 300_000, initialReadinessDelayMs: 30_000 },
      scalesToZero: setting.scalesToZero ?? false,
      hasOwnTolerance: true,
    },
  } as unknown as SyncDeps
  let fault: string | undefined
  let running = true
  const syncing = syncAutoscaler(deps, autoscaler, new AbortController().signal, () => {})
    .catch((error: unknown) => {
      if (!(error instanceof SyncFailure)) throw error
      fault = `${error.fault}: ${error.message}`
    })
    .finally(() => {
      running = false
    })
  // A conflict is tried again after a while.
  while (running) await clock.advance(10)
  await syncing
  const seen = (status?.conditions ?? []).map((condition) => `${condition.type} ${condition.status} ${condition.reason}`)
  return { scaledTo, desired: status?.desiredReplicas, conditions: seen, events, computed, ...(fault === undefined ? {} : { fault }) }
}
