/** What HorizontalPodAutoscalers see and want (L4, pure): replicas between their bounds, and each metric against its target. */
import type { HorizontalPodAutoscaler, MetricSpec, MetricStatus } from '#api/gen/types/autoscaling.v2'
import type { Frozen } from '#api/machinery/meta'

export interface AutoscalerRow {
  readonly namespace: string
  readonly name: string
  /** Kind and name of what is scaled. */
  readonly target: string
  readonly least: number
  readonly most: number
  readonly current: number
  readonly desired: number
  /** `cpu 45% of 80%` */
  readonly metrics: readonly string[]
}

/** A new one has no status. */
export type Autoscaler = Frozen<Pick<HorizontalPodAutoscaler, 'metadata' | 'spec'> & Partial<Pick<HorizontalPodAutoscaler, 'status'>>>
type Metric = Frozen<MetricSpec>

export function autoscalerRow({ metadata, spec, status }: Autoscaler): AutoscalerRow {
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    target: `${spec.scaleTargetRef.kind} ${spec.scaleTargetRef.name}`,
    least: spec.minReplicas ?? 1,
    most: spec.maxReplicas ?? 1,
    current: status?.currentReplicas ?? 0,
    desired: status?.desiredReplicas ?? 0,
    metrics: (spec.metrics ?? []).map((metric) => metricText(metric, status?.currentMetrics ?? [])),
  }
}

interface Amounts {
  readonly averageUtilization?: number | undefined
  readonly averageValue?: string | undefined
  readonly value?: string | undefined
}

function metricText(metric: Metric, current: readonly Frozen<MetricStatus>[]): string {
  const { name, target } = partsOf(metric)
  const found = current.map((one) => ({ ...partsOf(one), type: one.type })).find((one) => one.type === metric.type && one.name === name)
  return `${name} ${amountText(found?.current, target)} of ${amountText(target, target)}`
}

/** The members of the source that the type names, of a metric or of its state. */
function partsOf(metric: Metric | Frozen<MetricStatus>): {
  readonly name: string
  readonly target?: Amounts | undefined
  readonly current?: Amounts | undefined
} {
  const { resource, containerResource, pods, object, external } = metric
  const named = resource ?? containerResource
  const { target, current } = (named ?? pods ?? object ?? external ?? {}) as { readonly target?: Amounts; readonly current?: Amounts }
  return { name: named?.name ?? (pods ?? object ?? external)?.metric.name ?? metric.type, target, current }
}

/** In the form of the target: utilization where that is asked for. */
function amountText(amounts: Amounts | undefined, target: Amounts | undefined): string {
  if (target?.averageUtilization !== undefined) return amounts?.averageUtilization === undefined ? 'unknown' : `${amounts.averageUtilization}%`
  return (target?.averageValue === undefined ? amounts?.value : amounts?.averageValue) ?? 'unknown'
}
