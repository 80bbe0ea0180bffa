/**
 * `skiff why hpa/NAME`: the sum behind the replicas that a HorizontalPodAutoscaler set last (L4): usage against target for each metric, what the limits
 * made of it, and the pods that count differently. Reads the status of the autoscaler, and the pods as they are now.
 */
import type { Scale } from '#api/gen/types/autoscaling.v1'
import type { HorizontalPodAutoscaler, MetricIdentifier, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus } from '#api/gen/types/autoscaling.v2'
import type { Pod } from '#api/gen/types/core.v1'
import type { APIResourceList } from '#api/gen/types/meta.v1'
import { isPodReady } from '#api/helpers/pods'
import type { KubeList } from '#api/machinery/meta'
import { quantityAsNumber } from '#api/machinery/quantity'
import { table } from '../commands/status.ts'
import { type Ask, askFor } from './questions.ts'

export interface AutoscalerExplanation {
  readonly autoscaler: string
  /** `Deployment/web`. */
  readonly target: string
  readonly minReplicas: number
  readonly maxReplicas: number
  /** What the target had when the sum was done. */
  readonly currentReplicas: number
  readonly desiredReplicas: number
  readonly lastScaleTime?: string | undefined
  readonly metrics: readonly MetricSum[]
  /** Between these ratios nothing changes, unless a flag of the controller says otherwise. */
  readonly unchanged: { readonly from: number; readonly to: number }
  readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string; readonly message: string }[]
  /** Undefined: the target's scale cannot be read. */
  readonly pods?: { readonly count: number; readonly ready: number } | undefined
}

export interface MetricSum {
  readonly metric: string
  readonly target: string
  /** Undefined: there was no value. */
  readonly current?: string | undefined
  readonly ratio?: number | undefined
  /** The current replicas times the ratio, rounded up. */
  readonly replicas?: number | undefined
}

export async function explainAutoscaler(ask: Ask, namespace: string, name: string): Promise<AutoscalerExplanation> {
  const path = `/apis/autoscaling/v2/namespaces/${encodeURIComponent(namespace)}/horizontalpodautoscalers/${encodeURIComponent(name)}`
  const { spec, status } = await askFor<HorizontalPodAutoscaler>(ask, path)
  const { currentReplicas = 0, desiredReplicas = 0, lastScaleTime, currentMetrics, conditions = [] } = status ?? {}
  const tolerance = (direction: 'scaleUp' | 'scaleDown') => quantityAsNumber(spec.behavior?.[direction]?.tolerance ?? '100m')
  return {
    autoscaler: `${namespace}/${name}`,
    target: `${spec.scaleTargetRef.kind}/${spec.scaleTargetRef.name}`,
    minReplicas: spec.minReplicas ?? 1,
    maxReplicas: spec.maxReplicas,
    currentReplicas,
    desiredReplicas,
    lastScaleTime,
    metrics: (spec.metrics ?? []).map((metric, index) => sumOf(metric, currentMetrics?.[index], currentReplicas)),
    unchanged: { from: 1 - tolerance('scaleDown'), to: 1 + tolerance('scaleUp') },
    conditions: conditions.map(({ type, status, reason = '', message = '' }) => ({ type, status, reason, message })),
    pods: await podsOf(ask, namespace, spec.scaleTargetRef).catch(() => undefined),
  }
}

async function podsOf(ask: Ask, namespace: string, { apiVersion = '', kind, name }: HorizontalPodAutoscaler['spec']['scaleTargetRef']) {
  const served = apiVersion.includes('/') ? `/apis/${apiVersion}` : '/api/v1'
  const { resources } = await askFor<APIResourceList>(ask, served)
  const resource = resources.find((one) => one.kind === kind && !one.name.includes('/'))?.name ?? ''
  const within = `namespaces/${encodeURIComponent(namespace)}`
  const scale = await askFor<Scale>(ask, `${served}/${within}/${resource}/${encodeURIComponent(name)}/scale`)
  const { items } = await askFor<KubeList<Pod>>(ask, `/api/v1/${within}/pods?labelSelector=${encodeURIComponent(scale.status?.selector ?? '')}`)
  const counted = items.filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.phase !== 'Failed')
  return { count: counted.length, ready: counted.filter(isPodReady).length }
}

interface Source {
  readonly target: MetricTarget
  readonly metric?: MetricIdentifier
  readonly name?: string
  readonly container?: string
  readonly describedObject?: { readonly kind: string; readonly name: string }
}

const fields = { Resource: 'resource', ContainerResource: 'containerResource', Pods: 'pods', Object: 'object', External: 'external' } as const

function sumOf(spec: MetricSpec, status: MetricStatus | undefined, replicas: number): MetricSum {
  const field = fields[spec.type as keyof typeof fields]
  const source: Source | undefined = spec[field]
  if (!source) return { metric: spec.type, target: '' }
  const [target = '', current] = textsOf(source.target, status?.[field]?.current)
  const ratio = current === undefined ? undefined : numberOf(current) / numberOf(target)
  const known = ratio !== undefined && Number.isFinite(ratio)
  return { metric: nameOf(source, spec.type), target, current, ...(known ? { ratio, replicas: Math.ceil(replicas * ratio) } : {}) }
}

function nameOf({ name, container, metric, describedObject }: Source, type: string): string {
  if (describedObject) return `${metric?.name} of ${describedObject.kind}/${describedObject.name}`
  if (container !== undefined) return `${name} of container ${container}`
  return name ?? `${metric?.name} (${type.toLowerCase()})`
}

/** Target and current value in the same unit. */
function textsOf({ averageUtilization, averageValue, value }: MetricTarget, current: MetricValueStatus | undefined): (string | undefined)[] {
  const percent = (part: number | undefined) => (part === undefined ? undefined : `${part}%`)
  if (averageValue !== undefined) return [averageValue, current?.averageValue]
  return averageUtilization === undefined ? [value, current?.value] : [percent(averageUtilization), percent(current?.averageUtilization)]
}

const numberOf = (text: string) => (text.endsWith('%') ? Number(text.slice(0, -1)) : quantityAsNumber(text))
const rounded = (ratio: number) => String(Math.round(ratio * 1000) / 1000)

export function describeAutoscaler(found: AutoscalerExplanation): string {
  const { currentReplicas, desiredReplicas, metrics, conditions, unchanged } = found
  const facts = table([
    ['autoscaler:', found.autoscaler],
    ['target:', found.target],
    ['range:', `${found.minReplicas} to ${found.maxReplicas}`],
    ['replicas:', `${currentReplicas}, set to ${desiredReplicas}${found.lastScaleTime === undefined ? '' : `; last changed ${found.lastScaleTime}`}`],
  ])
  const rows = metrics.map(({ metric, current = 'unknown', target, ratio, replicas }) => [
    metric,
    current,
    target,
    ratio === undefined ? '-' : rounded(ratio),
    ratio === undefined ? '-' : `${currentReplicas} x ${rounded(ratio)} = ${replicas}`,
  ])
  const sums = table([['METRIC', 'CURRENT', 'TARGET', 'RATIO', 'REPLICAS'], ...rows])
  const tolerance = `The largest number counts. A ratio from ${rounded(unchanged.from)} to ${rounded(unchanged.to)} changes nothing.\n`
  const reasons = conditions.map(({ type, status, reason, message }) => `${type} ${status}: ${reason}: ${message}\n`).join('')
  return [facts, `${sums}${tolerance}${podsText(found.pods)}`, reasons].filter((section) => section !== '').join('\n')
}

function podsText(pods: AutoscalerExplanation['pods']): string {
  if (!pods || pods.ready === pods.count) return ''
  const others = pods.count - pods.ready
  return `Now ${others} of ${pods.count} pods ${others === 1 ? 'is' : 'are'} not ready: for CPU such pods count as idle while the others ask for more, and do not count otherwise.\n`
}
