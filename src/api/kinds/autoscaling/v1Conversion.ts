/**
 * HorizontalPodAutoscaler between v1, which knows a CPU percentage only, and v2, which is stored (L1). What v1 cannot say travels in
 * upstream's annotations, in v1's own older shapes; they are never stored. Upstream: pkg/apis/autoscaling/v1/conversion.go (v1.36).
 */
import type { HorizontalPodAutoscaler as HorizontalPodAutoscalerV1 } from '#api/gen/types/autoscaling.v1'
import type { HorizontalPodAutoscaler, MetricSpec, MetricStatus } from '#api/gen/types/autoscaling.v2'
import { bareMap, emptyMap } from '#base/bareMap'
import { parseJson } from '../../machinery/json.ts'
import { schemaOfDefinition } from '../../schema/builtIn.ts'
import { decode } from '../../schema/decode.ts'

const annotation = {
  metrics: 'autoscaling.alpha.kubernetes.io/metrics',
  currentMetrics: 'autoscaling.alpha.kubernetes.io/current-metrics',
  conditions: 'autoscaling.alpha.kubernetes.io/conditions',
  behavior: 'autoscaling.alpha.kubernetes.io/behavior',
} as const

type Fields = Record<string, unknown>

export function cpuMetric(averageUtilization: number): MetricSpec {
  return { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } } }
}

const isCpu = ({ type, resource }: MetricSpec): boolean => type === 'Resource' && resource?.name === 'cpu' && resource.target.averageUtilization !== undefined

/** As a client of v1 sees it: the first CPU percentage in its own field, all else in annotations. */
export function toV1(obj: HorizontalPodAutoscaler): HorizontalPodAutoscalerV1 {
  // Fields that no manager applies any more are removed before validation.
  const { metrics = [], behavior, ...spec } = obj.spec ?? {}
  const { currentMetrics, conditions, ...status } = obj.status ?? { desiredReplicas: 0 }
  const cpu = metrics.find(isCpu)
  const others = metrics.filter((metric) => metric !== cpu)
  const current = currentMetrics?.find(({ type, resource }) => type === 'Resource' && resource?.name === 'cpu')?.resource?.current.averageUtilization
  const annotations = withoutOurs(obj.metadata.annotations)
  const write = (key: keyof typeof annotation, value: unknown) => {
    annotations[annotation[key]] = JSON.stringify(value)
  }
  if (others.length > 0) write('metrics', others.map(olderSpec))
  if (currentMetrics?.length) write('currentMetrics', currentMetrics.map(olderStatus))
  if (conditions?.length) write('conditions', conditions)
  if (behavior) write('behavior', behavior)
  return {
    ...obj,
    apiVersion: 'autoscaling/v1',
    metadata: withAnnotations(obj.metadata, annotations),
    spec: { ...spec, ...(cpu ? { targetCPUUtilizationPercentage: cpu.resource?.target.averageUtilization } : {}) },
    status: { currentReplicas: 0, ...status, ...(current === undefined ? {} : { currentCPUUtilizationPercentage: current }) },
  } as HorizontalPodAutoscalerV1
}

/** As it is stored: metrics of the annotation first, then the CPU percentage; 80 % of CPU when there is neither. */
export function toV2(v1: HorizontalPodAutoscalerV1): HorizontalPodAutoscaler {
  const { targetCPUUtilizationPercentage: percentage, ...spec } = v1.spec ?? { maxReplicas: 0, scaleTargetRef: { kind: '', name: '' } }
  const { currentCPUUtilizationPercentage: current, ...status } = v1.status ?? { currentReplicas: 0, desiredReplicas: 0 }
  const read = (key: keyof typeof annotation) => parse(v1.metadata.annotations?.[annotation[key]])
  const others = all<MetricSpec>('MetricSpec', list(read('metrics')).map(newer))
  const metrics = [...others, ...(percentage === undefined ? [] : [cpuMetric(percentage)])]
  const kept = all<MetricStatus>('MetricStatus', list(read('currentMetrics')).map(newer))
  const cpu = current === undefined ? [] : [{ type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: current } } }]
  const currentMetrics = kept.length > 0 ? kept : cpu
  const conditions = all('HorizontalPodAutoscalerCondition', list(read('conditions')))
  const [behavior] = all('HorizontalPodAutoscalerBehavior', [read('behavior')].filter(isFields))
  return {
    ...v1,
    apiVersion: 'autoscaling/v2',
    metadata: withAnnotations(v1.metadata, withoutOurs(v1.metadata.annotations)),
    spec: { ...spec, metrics: metrics.length > 0 ? metrics : [cpuMetric(80)], ...(behavior ? { behavior } : {}) },
    status: { ...status, ...(currentMetrics.length > 0 ? { currentMetrics } : {}), ...(conditions.length > 0 ? { conditions } : {}) },
  } as unknown as HorizontalPodAutoscaler
}

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)
const list = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isFields) : [])

/** Any client may write annotations: text that is not JSON is ignored. */
function parse(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : parseJson(text).value
  } catch {
    return undefined
  }
}

/** The decoded list; empty when one value has another type, as Go's decoder gives up the whole list (CVE-2024-0793). */
function all<T>(type: string, values: readonly Fields[]): T[] {
  const schema = schemaOfDefinition(`io.k8s.api.autoscaling.v2.${type}`)
  try {
    return values.map((value) => decode(value, schema, { unknown: 'drop', absent: 'keep' }).object as T)
  } catch {
    return []
  }
}

function withoutOurs(annotations: Readonly<Record<string, string>> | undefined): Record<string, string> {
  const ours: readonly string[] = Object.values(annotation)
  return Object.fromEntries(Object.entries(annotations ?? {}).filter(([key]) => !ours.includes(key)))
}

function withAnnotations<M extends { annotations?: Record<string, string> | undefined }>(metadata: M, annotations: Record<string, string>): M {
  const { annotations: _, ...rest } = metadata
  return (Object.keys(annotations).length > 0 ? { ...rest, annotations } : rest) as M
}

/** v1's names of what v2 keeps in `metric` and in `target` or `current`. */
const older: Readonly<Record<string, { readonly metric: string; readonly selector: string; readonly about?: string }>> = bareMap({
  object: { metric: 'metricName', selector: 'selector', about: 'target' },
  pods: { metric: 'metricName', selector: 'selector' },
  external: { metric: 'metricName', selector: 'metricSelector' },
  resource: { metric: '', selector: '' },
  containerResource: { metric: '', selector: '' },
})

const capitalized = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1)

function olderSpec(metric: MetricSpec): Fields {
  return toOlder(metric as unknown as Fields, 'target')
}

function olderStatus(metric: MetricStatus): Fields {
  return toOlder(metric as unknown as Fields, 'current')
}

/** The value names: an Object's average stands alone, all others carry the prefix. */
function valueName(source: string, prefix: string, field: string): string {
  return source === 'object' && field === 'averageValue' ? field : prefix + capitalized(field)
}

function toOlder({ type, ...sources }: Fields, prefix: 'target' | 'current'): Fields {
  const result: Fields = bareMap({ type })
  for (const [source, value] of Object.entries(sources)) {
    const shape = older[source]
    if (!shape || !isFields(value)) continue
    const { metric, describedObject, [prefix]: values, ...rest } = value
    const out: Fields = bareMap({ ...rest })
    if (isFields(metric)) {
      out[shape.metric] = metric.name
      if (metric.selector !== undefined) out[shape.selector] = metric.selector
    }
    if (shape.about && describedObject !== undefined) out[shape.about] = describedObject
    for (const [field, amount] of Object.entries(isFields(values) ? values : {})) if (field !== 'type') out[valueName(source, prefix, field)] = amount
    result[source] = { ...out }
  }
  return { ...result }
}

/** Back from v1's shapes: `target…` values make a spec, `current…` values a status. */
function newer({ type, ...sources }: Fields): Fields {
  const result: Fields = bareMap({ type })
  for (const [source, value] of Object.entries(sources)) {
    const shape = older[source]
    if (!shape || !isFields(value)) continue
    const prefix = Object.keys(value).some((key) => key.startsWith('current')) ? 'current' : 'target'
    const out: Fields = emptyMap()
    const values: Fields = emptyMap()
    for (const [field, amount] of Object.entries(value)) {
      const name = ['averageUtilization', 'averageValue', 'value'].find((one) => valueName(source, prefix, one) === field)
      if (name) values[name] = amount
      else if (field === shape.metric) out.metric = { name: amount, ...(value[shape.selector] === undefined ? {} : { selector: value[shape.selector] }) }
      else if (field === shape.about) out.describedObject = amount
      else if (field !== shape.selector) out[field] = amount
    }
    if (prefix === 'target')
      values.type = values.averageUtilization !== undefined ? 'Utilization' : values.averageValue !== undefined ? 'AverageValue' : 'Value'
    result[source] = { ...out, [prefix]: { ...values } }
  }
  return { ...result }
}
