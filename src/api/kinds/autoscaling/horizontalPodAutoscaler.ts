/** HorizontalPodAutoscaler (L1), stored as v2; v1 knows a CPU percentage only. Upstream: pkg/apis/autoscaling/{v1,v2}, printHorizontalPodAutoscaler (v1.36). */
import type { HorizontalPodAutoscaler as HorizontalPodAutoscalerV1 } from '#api/gen/types/autoscaling.v1'
import type { HorizontalPodAutoscaler, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus } from '#api/gen/types/autoscaling.v2'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { ageColumn, integer, nameColumn, none, text, unset } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'

const shown = 2
const unknown = '<unknown>'

export const horizontalPodAutoscaler = defineKind<HorizontalPodAutoscaler>({
  group: 'autoscaling',
  kind: 'HorizontalPodAutoscaler',
  generation: false,
  columns: [
    nameColumn,
    text('Reference', (obj) => `${obj.spec?.scaleTargetRef?.kind ?? ''}/${obj.spec?.scaleTargetRef?.name ?? ''}`),
    text('Targets', (obj) => metricsText(obj.spec?.metrics, obj.status?.currentMetrics)),
    text('MinPods', (obj) => (obj.spec?.minReplicas === undefined ? unset : String(obj.spec.minReplicas))),
    integer('MaxPods', (obj) => obj.spec?.maxReplicas),
    integer('Replicas', (obj) => obj.status?.currentReplicas),
    ageColumn,
  ],
  defaults(obj) {
    obj.spec ??= {} as HorizontalPodAutoscaler['spec']
    obj.status ??= { desiredReplicas: 0 }
    obj.spec.minReplicas ??= 1
    // v1 has no such field; there the conversion fills it in.
    if ((obj.apiVersion as string) !== 'autoscaling/v1' && !obj.spec.metrics?.length) obj.spec.metrics = [cpuMetric(80)]
  },
  convert: convertAutoscaler,
  prepareForCreate: ({ obj }) => dropStatus(obj, { currentMetrics: null, desiredReplicas: 0 }),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  status: statusStrategy<HorizontalPodAutoscaler>(),
})

function cpuMetric(averageUtilization: number): MetricSpec {
  return { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } } }
}

/** v1 keeps what it cannot say in an annotation upstream too; the CPU percentage is all that its clients read. */
function convertAutoscaler(obj: HorizontalPodAutoscaler, from: string, to: string): HorizontalPodAutoscaler {
  if (from === to) return obj
  if (to === 'v1') {
    const { metrics, behavior, ...spec } = obj.spec
    const { currentMetrics, conditions, ...status } = obj.status ?? { desiredReplicas: 0 }
    const target = metrics?.find((metric) => metric.resource?.name === 'cpu')?.resource?.target.averageUtilization
    const current = currentMetrics?.find((metric) => metric.resource?.name === 'cpu')?.resource?.current.averageUtilization
    const others = { metrics: metrics?.filter((metric) => metric.resource?.name !== 'cpu'), behavior, conditions }
    const annotations = { ...obj.metadata.annotations }
    if (others.metrics?.length || behavior) annotations[restAnnotation] = JSON.stringify(others)
    const v1 = {
      ...obj,
      apiVersion: 'autoscaling/v1',
      metadata: { ...obj.metadata, ...(Object.keys(annotations).length > 0 ? { annotations } : {}) },
      spec: { ...spec, ...(target === undefined ? {} : { targetCPUUtilizationPercentage: target }) },
      status: { currentReplicas: 0, ...status, ...(current === undefined ? {} : { currentCPUUtilizationPercentage: current }) },
    }
    return v1 as unknown as HorizontalPodAutoscaler
  }
  const v1 = obj as unknown as HorizontalPodAutoscalerV1
  const { targetCPUUtilizationPercentage: percentage, ...spec } = v1.spec ?? { maxReplicas: 0, scaleTargetRef: { kind: '', name: '' } }
  const { currentCPUUtilizationPercentage: current, ...status } = v1.status ?? { currentReplicas: 0, desiredReplicas: 0 }
  const { [restAnnotation]: rest, ...annotations } = v1.metadata.annotations ?? {}
  const kept = rest ? parseRest(rest) : {}
  const metrics = [...(percentage === undefined ? [] : [cpuMetric(percentage)]), ...(kept.metrics ?? [])]
  return {
    ...v1,
    apiVersion: 'autoscaling/v2',
    metadata: { ...v1.metadata, ...(v1.metadata.annotations ? { annotations } : {}) },
    spec: { ...spec, metrics: metrics.length > 0 ? metrics : [cpuMetric(80)], ...(kept.behavior ? { behavior: kept.behavior } : {}) },
    status: {
      ...status,
      ...(current === undefined ? {} : { currentMetrics: [{ type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: current } } }] }),
    },
  }
}

/** Our own carrier of the v2 fields through v1; never stored, because storage is v2. */
const restAnnotation = 'autoscaling.alpha.kubernetes.io/v2-fields'

function parseRest(text: string): { metrics?: MetricSpec[]; behavior?: HorizontalPodAutoscaler['spec']['behavior'] } {
  try {
    return JSON.parse(text) as { metrics?: MetricSpec[]; behavior?: HorizontalPodAutoscaler['spec']['behavior'] }
  } catch {
    return {}
  }
}

function specFaults({ spec }: HorizontalPodAutoscaler, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (spec.minReplicas !== undefined && spec.minReplicas < 1)
    errors.push(fieldError.invalid(path.child('minReplicas'), spec.minReplicas, 'must be greater than or equal to 1'))
  if (!(spec.maxReplicas > 0)) errors.push(fieldError.invalid(path.child('maxReplicas'), spec.maxReplicas ?? 0, 'must be greater than 0'))
  if (spec.minReplicas !== undefined && spec.maxReplicas < spec.minReplicas)
    errors.push(fieldError.invalid(path.child('maxReplicas'), spec.maxReplicas, 'must be greater than or equal to `minReplicas`'))
  for (const field of ['kind', 'name'] as const) if (!spec.scaleTargetRef?.[field]) errors.push(fieldError.required(path.child('scaleTargetRef', field)))
  return errors
}

function metricsText(specs: readonly Frozen<MetricSpec>[] | undefined, statuses: readonly Frozen<MetricStatus>[] | undefined): string {
  if (!specs?.length) return none
  const list = specs.map((spec, i) => metricText(spec, statuses?.[i]))
  const head = list.slice(0, shown).join(', ')
  return list.length > shown ? `${head} + ${list.length - shown} more...` : head
}

function metricText(spec: Frozen<MetricSpec>, status: Frozen<MetricStatus> | undefined): string {
  switch (spec.type) {
    case 'External':
      return spec.external?.target.averageValue !== undefined
        ? `${status?.external?.current.averageValue ?? unknown}/${spec.external.target.averageValue} (avg)`
        : `${status?.external?.current.value ?? unknown}/${spec.external?.target.value ?? ''}`
    case 'Pods':
      return `${status?.pods?.current.averageValue ?? unknown}/${spec.pods?.target.averageValue ?? ''}`
    case 'Object':
      return spec.object?.target.averageValue !== undefined
        ? `${status?.object?.current.averageValue ?? unknown}/${spec.object.target.averageValue} (avg)`
        : `${status?.object?.current.value ?? unknown}/${spec.object?.target.value ?? ''}`
    case 'Resource':
      return `${spec.resource?.name}: ${targetText(spec.resource?.target, status?.resource?.current)}`
    case 'ContainerResource':
      return `${spec.containerResource?.name}: ${targetText(spec.containerResource?.target, status?.containerResource?.current)}`
    default:
      return '<unknown type>'
  }
}

function targetText(target: Frozen<MetricTarget> | undefined, current: Frozen<MetricValueStatus> | undefined): string {
  if (target?.averageValue !== undefined) return `${current?.averageValue ?? unknown}/${target.averageValue}`
  const percent = (value: number | undefined, otherwise: string) => (value === undefined ? otherwise : `${value}%`)
  return `${percent(current?.averageUtilization, unknown)}/${percent(target?.averageUtilization, '<auto>')}`
}
