/** What Deployments, ReplicaSets, DaemonSets and StatefulSets share (L1): a selector, and a template that it must match. Upstream: pkg/apis/apps/validation (v1.36). */
import type { PodTemplateSpec } from '#api/gen/types/core.v1'
import type { LabelSelector } from '#api/gen/types/meta.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { type IntOrString, intValue, percentOf } from '#api/machinery/intOrString'
import { selectorOf, validateLabelSelector } from '#api/machinery/labelSelector'
import { isPercent } from '#api/machinery/names'
import { validateNonNegative } from '#api/machinery/objectMeta'
import { validatePodTemplateSpec } from '../core/pod/validatePodSpec.ts'
import { faults } from '../rules.ts'

/** The selector must select something, and the template's own pods. @param path of the workload's spec */
export function validateSelectorAndTemplate(
  spec: { selector?: LabelSelector | undefined; template?: PodTemplateSpec | undefined },
  kindWord: string,
  path: FieldPath,
): FieldError[] {
  const at = path.child('selector')
  const errors: FieldError[] = []
  if (!spec.selector) errors.push(fieldError.required(at))
  else {
    errors.push(...validateLabelSelector(spec.selector, at))
    if (Object.keys(spec.selector.matchLabels ?? {}).length + (spec.selector.matchExpressions ?? []).length === 0)
      errors.push(fieldError.invalid(at, spec.selector, `empty selector is invalid for ${kindWord}`))
  }
  const template = path.child('template')
  if (!spec.template) return [...errors, fieldError.required(template)]
  if (spec.selector && errors.length === 0) {
    const selector = selectorOf(spec.selector)
    const labels = spec.template.metadata?.labels
    if (!selector.isEmpty && !selector.matches(labels))
      errors.push(fieldError.invalid(template.child('metadata', 'labels'), labels ?? {}, '`selector` does not match template `labels`'))
  }
  errors.push(...validatePodTemplateSpec(spec.template, template))
  return errors
}

/** Pods that a replica controller restarts for ever. */
export function alwaysRestartFaults(template: PodTemplateSpec | undefined, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const policy = template?.spec?.restartPolicy
  if (policy !== undefined && policy !== 'Always') errors.push(fieldError.notSupported(path.child('spec', 'restartPolicy'), policy, ['Always']))
  if (template?.spec?.activeDeadlineSeconds !== undefined)
    errors.push(fieldError.forbidden(path.child('spec', 'activeDeadlineSeconds'), 'activeDeadlineSeconds in ReplicaSet is not Supported'))
  return errors
}

/** Not negative, or a percentage; at most 100% where that makes sense. */
export function validateIntOrPercent(value: IntOrString | undefined, path: FieldPath, atMostAll = false): FieldError[] {
  if (value === undefined) return [fieldError.invalid(path, value, "must be an integer or percentage (e.g '5%%')")]
  if (typeof value === 'number') return validateNonNegative(value, path)
  const errors = faults(path, value, isPercent(value))
  if (errors.length === 0 && atMostAll && (percentOf(value) ?? 0) > 100) errors.push(fieldError.invalid(path, value, 'must not be greater than 100%'))
  return errors
}

/** 0 or 0%. */
export function isZero(value: IntOrString | undefined): boolean {
  return value === undefined || (percentOf(value) ?? intValue(value)) === 0
}
