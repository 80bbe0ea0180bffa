/** HorizontalPodAutoscaler (L1), stored as v2; v1 knows a CPU percentage only. Upstream: pkg/apis/autoscaling/{v1,v2}, printHorizontalPodAutoscaler (v1.36). */
import type { HorizontalPodAutoscaler as HorizontalPodAutoscalerV1 } from '#api/gen/types/autoscaling.v1'
import type { HorizontalPodAutoscaler, MetricSpec, MetricStatus, MetricTarget, MetricValueStatus } from '#api/gen/types/autoscaling.v2'
import type { Frozen } from '#api/machinery/meta'
import { validateNonNegative } from '#api/machinery/objectMeta'
import { featureEnabled } from '#base/featureGates'
import { ageColumn, integer, nameColumn, none, text, unset } from '../columns.ts'
import { defineKind, type StrategyContext } from '../defineKind.ts'
import { dropStatus, keepStatus, statusStrategy } from '../rules.ts'
import { cpuMetric, toV1, toV2 } from './v1Conversion.ts'
import { validateAutoscalerSpec } from './validateAutoscaler.ts'

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
    if ((obj.apiVersion as string) === 'autoscaling/v1') return
    if (!obj.spec.metrics?.length) obj.spec.metrics = [cpuMetric(80)]
    setBehaviorDefaults(obj.spec)
  },
  convert(obj, from, to) {
    if (from === to) return obj
    return to === 'v1' ? (toV1(obj) as unknown as HorizontalPodAutoscaler) : toV2(obj as unknown as HorizontalPodAutoscalerV1)
  },
  prepareForCreate: ({ obj }) => dropStatus(obj, { currentMetrics: null, desiredReplicas: 0 }),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path, context }) => validateAutoscalerSpec(obj, path.child('spec'), { scalesToZero: scalesToZero(context) }),
  validateUpdate: ({ obj, old, path, context }) => validateAutoscalerSpec(obj, path.child('spec'), { old, scalesToZero: scalesToZero(context) }),
  status: statusStrategy<HorizontalPodAutoscaler>({
    validateUpdate: ({ obj: { status }, path }) => [
      ...validateNonNegative(status.currentReplicas, path.child('status', 'currentReplicas')),
      ...validateNonNegative(status.desiredReplicas, path.child('status', 'desiredReplicas')),
    ],
  }),
})

const scalesToZero = ({ featureGates = {} }: StrategyContext) => featureEnabled(featureGates, 'HPAScaleToZero')

/** A direction that has rules gets the rest of them; once there is a behavior at all, both directions are written out. */
function setBehaviorDefaults({ behavior }: HorizontalPodAutoscaler['spec']): void {
  if (!behavior) return
  const { scaleUp, scaleDown } = behavior
  const percent = { type: 'Percent', value: 100, periodSeconds: 15 }
  const upwards = { stabilizationWindowSeconds: 0, selectPolicy: 'Max', policies: [{ type: 'Pods', value: 4, periodSeconds: 15 }, percent] }
  behavior.scaleUp = { ...upwards, ...scaleUp }
  behavior.scaleDown = { selectPolicy: 'Max', policies: [{ ...percent }], ...scaleDown }
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
