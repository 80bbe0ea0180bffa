/**
 * Validation of a HorizontalPodAutoscaler's spec (L1). What an object has already stays valid.
 * Upstream: pkg/apis/autoscaling/validation, pkg/registry/autoscaling/horizontalpodautoscaler (v1.36).
 */
import type {
  CrossVersionObjectReference,
  HorizontalPodAutoscaler,
  HPAScalingRules,
  MetricIdentifier,
  MetricSpec,
  MetricTarget,
} from '#api/gen/types/autoscaling.v2'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { type Frozen, parseGroupVersion } from '#api/machinery/meta'
import { isDns1123Label, isPathSegmentName } from '#api/machinery/names'
import { canonicalQuantity, isQuantity, quantitySign } from '#api/machinery/quantity'
import { faults } from '../rules.ts'

const maxPeriodSeconds = 1800
const maxStabilizationSeconds = 3600

export interface AutoscalerRules {
  /** What is stored; undefined for a new object. */
  readonly old?: Frozen<HorizontalPodAutoscaler> | undefined
  /** Whether the gate HPAScaleToZero is on. */
  readonly scalesToZero?: boolean | undefined
}

export function validateAutoscalerSpec({ spec }: HorizontalPodAutoscaler, path: FieldPath, { old, scalesToZero }: AutoscalerRules = {}): FieldError[] {
  const { minReplicas, maxReplicas = 0, metrics = [] } = spec
  const errors: FieldError[] = []
  const max = path.child('maxReplicas')
  const least = scalesToZero || old?.spec.minReplicas === 0 ? 0 : 1
  if (minReplicas !== undefined && minReplicas < least)
    errors.push(fieldError.invalid(path.child('minReplicas'), minReplicas, `must be greater than or equal to ${least}`))
  if (maxReplicas === 0) errors.push(fieldError.required(max, 'must be set and greater than 0'))
  if (maxReplicas < 0) errors.push(fieldError.invalid(max, maxReplicas, 'must be greater than or equal to 1'))
  if (minReplicas !== undefined && maxReplicas < minReplicas)
    errors.push(fieldError.invalid(max, maxReplicas, 'must be greater than or equal to `minReplicas`'))
  return [
    ...errors,
    ...referenceFaults(spec.scaleTargetRef, path.child('scaleTargetRef'), targetVersion(spec.scaleTargetRef, old?.spec.scaleTargetRef)),
    ...metrics.flatMap((metric, i) => metricFaults(metric, path.child('metrics').index(i), objectVersion(old))),
    ...(minReplicas === 0 && !metrics.some(({ type }) => type === 'Object' || type === 'External')
      ? [fieldError.forbidden(path.child('metrics'), 'must specify at least one Object or External metric to support scaling to zero replicas')]
      : []),
    ...(['scaleUp', 'scaleDown'] as const).flatMap((field) => rulesFaults(spec.behavior?.[field], path.child('behavior', field))),
  ]
}

/** What the apiVersion of a reference must be: anything, a group version, or one with a group. */
type VersionRule = 'any' | 'valid' | 'grouped'
type Reference = Frozen<CrossVersionObjectReference> | undefined

function targetVersion(target: Reference, old: Reference): VersionRule {
  if (old && old.apiVersion === target?.apiVersion && old.kind === target?.kind) return 'any'
  return target?.kind === 'ReplicationController' ? 'valid' : 'grouped'
}

function objectVersion(old: AutoscalerRules['old']): VersionRule {
  return old?.spec.metrics?.some(({ object }) => object && versionFault(object.describedObject, 'valid')) ? 'any' : 'valid'
}

function versionFault(reference: Reference, rule: VersionRule): string | undefined {
  const apiVersion = reference?.apiVersion ?? ''
  if (rule === 'any') return undefined
  if (apiVersion.split('/').length > 2) return `unexpected GroupVersion string: ${apiVersion}`
  return rule === 'grouped' && parseGroupVersion(apiVersion).group === '' ? 'apiVersion must specify API group' : undefined
}

function referenceFaults(reference: Reference, path: FieldPath, rule: VersionRule): FieldError[] {
  const fault = versionFault(reference, rule)
  return [
    ...(['kind', 'name'] as const).flatMap((field) => segmentFaults(reference?.[field], path.child(field))),
    ...(fault === undefined ? [] : [fieldError.invalid(path.child('apiVersion'), reference?.apiVersion ?? '', fault)]),
  ]
}

function segmentFaults(value: string | undefined, path: FieldPath, missing = ''): FieldError[] {
  return value ? faults(path, value, isPathSegmentName(value)) : [fieldError.required(path, missing)]
}

const sources = ['object', 'external', 'pods', 'resource', 'containerResource'] as const
const types = ['ContainerResource', 'External', 'Object', 'Pods', 'Resource']

function metricFaults(metric: MetricSpec, path: FieldPath, rule: VersionRule): FieldError[] {
  const errors: FieldError[] = []
  const type = path.child('type')
  if (!metric.type) errors.push(fieldError.required(type, 'must specify a metric source type'))
  if (!types.includes(metric.type)) errors.push(fieldError.notSupported(type, metric.type, types))
  const given = sources.filter((source) => metric[source] !== undefined)
  // Only the first is looked into: it must be the only one.
  const [first] = given
  if (first) errors.push(...sourceFaults(metric, first, path.child(first), rule))
  const expected = types.includes(metric.type) ? metric.type.slice(0, 1).toLowerCase() + metric.type.slice(1) : undefined
  if (expected && !given.some((source) => source === expected))
    errors.push(fieldError.required(path.child(expected), 'must populate information for the given metric source'))
  if (given.length !== 1) {
    for (const source of given) if (source !== expected) errors.push(fieldError.forbidden(path.child(source), 'must populate the given metric source only'))
  }
  return errors
}

function sourceFaults(metric: MetricSpec, source: (typeof sources)[number], path: FieldPath, rule: VersionRule): FieldError[] {
  const { target } = metric[source] ?? {}
  const at = path.child('target')
  const errors: FieldError[] = []
  if (source === 'object') errors.push(...referenceFaults(metric.object?.describedObject, path.child('describedObject'), rule))
  if (source === 'resource' || source === 'containerResource') {
    if (!metric[source]?.name) errors.push(fieldError.required(path.child('name'), 'must specify a resource name'))
    if (source === 'containerResource') errors.push(...containerFaults(metric.containerResource?.container, path.child('container')))
  } else errors.push(...identifierFaults(metric[source]?.metric, path.child('metric')))
  errors.push(...targetFaults(target, at))
  const { value, averageValue, averageUtilization } = target ?? {}
  const missing = (field: string, detail: string) => void errors.push(fieldError.required(at.child(field), detail))
  if (source === 'object' && value === undefined && averageValue === undefined) missing('averageValue', 'must set either a target value or averageValue')
  if (source === 'pods' && averageValue === undefined) missing('averageValue', 'must specify a positive target averageValue')
  if (source === 'external') {
    if (value === undefined && averageValue === undefined) missing('averageValue', 'must set either a target value for metric or a per-pod target')
    if (value !== undefined && averageValue !== undefined)
      errors.push(fieldError.forbidden(at.child('value'), 'may not set both a target value for metric and a per-pod target'))
  }
  if (source === 'resource' || source === 'containerResource') {
    if (averageUtilization === undefined && averageValue === undefined)
      missing('averageUtilization', 'must set either a target raw value or a target utilization')
    if (averageUtilization !== undefined && averageValue !== undefined)
      errors.push(fieldError.forbidden(at.child('averageValue'), 'may not set both a target raw value and a target utilization'))
  }
  return errors
}

function containerFaults(container: string | undefined, path: FieldPath): FieldError[] {
  return container ? faults(path, container, isDns1123Label(container)) : [fieldError.required(path, 'must specify a container')]
}

function identifierFaults(metric: MetricIdentifier | undefined, path: FieldPath): FieldError[] {
  return segmentFaults(metric?.name, path.child('name'), 'must specify a metric name')
}

function targetFaults(target: MetricTarget | undefined, path: FieldPath): FieldError[] {
  const { type = '', averageUtilization } = target ?? {}
  const errors: FieldError[] = []
  if (!type) errors.push(fieldError.required(path.child('type'), 'must specify a metric target type'))
  if (!['Utilization', 'Value', 'AverageValue'].includes(type))
    errors.push(fieldError.invalid(path.child('type'), type, 'must be either Utilization, Value, or AverageValue'))
  for (const field of ['value', 'averageValue'] as const) {
    const amount = target?.[field]
    if (amount === undefined || (isQuantity(amount) && quantitySign(amount) > 0)) continue
    errors.push(fieldError.invalid(path.child(field), isQuantity(amount) ? canonicalQuantity(amount) : amount, 'must be positive'))
  }
  if (averageUtilization !== undefined && averageUtilization < 1)
    errors.push(fieldError.invalid(path.child('averageUtilization'), averageUtilization, 'must be greater than 0'))
  return errors
}

function rulesFaults(rules: HPAScalingRules | undefined, path: FieldPath): FieldError[] {
  if (!rules) return []
  const { stabilizationWindowSeconds: window, selectPolicy, policies = [], tolerance } = rules
  const errors: FieldError[] = []
  const at = path.child('stabilizationWindowSeconds')
  if (window !== undefined && window < 0) errors.push(fieldError.invalid(at, window, 'must be greater than or equal to zero'))
  if (window !== undefined && window > maxStabilizationSeconds)
    errors.push(fieldError.invalid(at, window, `must be less than or equal to ${maxStabilizationSeconds}`))
  if (selectPolicy !== undefined && !['Disabled', 'Max', 'Min'].includes(selectPolicy))
    errors.push(fieldError.notSupported(path.child('selectPolicy'), selectPolicy, ['Disabled', 'Max', 'Min']))
  if (policies.length === 0) errors.push(fieldError.required(path.child('policies'), 'must specify at least one Policy'))
  for (const [i, { type, value, periodSeconds }] of policies.entries()) {
    const policy = path.child('policies').index(i)
    if (type !== 'Pods' && type !== 'Percent') errors.push(fieldError.notSupported(policy.child('type'), type, ['Percent', 'Pods']))
    if (!(value > 0)) errors.push(fieldError.invalid(policy.child('value'), value, 'must be greater than zero'))
    if (!(periodSeconds > 0)) errors.push(fieldError.invalid(policy.child('periodSeconds'), periodSeconds, 'must be greater than zero'))
    if (periodSeconds > maxPeriodSeconds)
      errors.push(fieldError.invalid(policy.child('periodSeconds'), periodSeconds, `must be less than or equal to ${maxPeriodSeconds}`))
  }
  if (tolerance !== undefined && isQuantity(tolerance) && quantitySign(tolerance) < 0)
    errors.push(fieldError.invalid(path.child('tolerance'), canonicalQuantity(tolerance), 'must be greater than or equal to zero'))
  return errors
}
