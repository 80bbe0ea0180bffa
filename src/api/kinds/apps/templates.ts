/** What Deployments, ReplicaSets, DaemonSets and StatefulSets share (L1): a selector, and a template that it must match. Upstream: pkg/apis/apps/validation (v1.36). */
import type { PodTemplateSpec } from '#api/gen/types/core.v1'
import type { LabelSelector } from '#api/gen/types/meta.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { type IntOrString, intValue, percentOf } from '#api/machinery/intOrString'
import { selectorOf, validateLabelSelector } from '#api/machinery/labelSelector'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isPercent } from '#api/machinery/names'
import { validateNonNegative } from '#api/machinery/objectMeta'
import { dropDisabledTemplateFields } from '../core/pod/disabledFields.ts'
import { validatePodTemplateSpec } from '../core/pod/validatePodSpec.ts'
import { podTemplateWarnings, workloadNameWarnings } from '../core/pod/warnings.ts'
import type { CreateInput, KindStrategy } from '../defineKind.ts'
import { dropStatus, faults, keepStatus } from '../rules.ts'

export interface Templated {
  selector?: LabelSelector | undefined
  template?: PodTemplateSpec | undefined
}

/** The selector must select something, and the template's own pods. @param path of the workload's spec */
export function validateSelectorAndTemplate(spec: Templated, kindWord: string, path: FieldPath): FieldError[] {
  return [...validateSelector(spec, kindWord, path), ...validatePodTemplateSpec(spec.template, path.child('template'))]
}

/** As {@link validateSelectorAndTemplate}, without the template's own rules. */
export function validateSelector({ selector, template }: Templated, kindWord: string, path: FieldPath): FieldError[] {
  const at = path.child('selector')
  const errors = selector ? validateLabelSelector(selector, at) : [fieldError.required(at)]
  const faulty = selector !== undefined && errors.length > 0
  if (selector && Object.keys(selector.matchLabels ?? {}).length + (selector.matchExpressions ?? []).length === 0)
    errors.push(fieldError.invalid(at, selector, `empty selector is invalid for ${kindWord}`))
  if (faulty) return [...errors, fieldError.invalid(at, selector, 'invalid label selector')]
  const parsed = selectorOf(selector)
  const labels = template?.metadata?.labels
  if (!parsed.isEmpty && !parsed.matches(labels))
    errors.push(fieldError.invalid(path.child('template', 'metadata', 'labels'), labels ?? {}, '`selector` does not match template `labels`'))
  return errors
}

/** The faults of a template whose pods must always restart. @param kind the kind as messages name it */
export function alwaysRestartFaults(template: PodTemplateSpec | undefined, kind: string, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const policy = template?.spec?.restartPolicy
  if (policy !== undefined && policy !== 'Always') errors.push(fieldError.notSupported(path.child('spec', 'restartPolicy'), policy, ['Always']))
  if (template?.spec?.activeDeadlineSeconds !== undefined)
    errors.push(fieldError.forbidden(path.child('spec', 'activeDeadlineSeconds'), `activeDeadlineSeconds in ${kind} is not Supported`))
  return errors
}

/** Forgets what the template has of features that are off, unless the old one had it. */
export function dropDisabledTemplate({ obj, old, context }: Omit<CreateInput<KubeObject>, 'path'> & { readonly old?: Frozen<KubeObject> }): void {
  const templateOf = (one: unknown) => (one as { readonly spec?: Templated } | undefined)?.spec?.template
  dropDisabledTemplateFields(templateOf(obj), context, templateOf(old) as Frozen<PodTemplateSpec> | undefined)
}

/** How writes begin of kinds that have a template: the status is not theirs. @param status of new objects */
export function templatedWrites<T extends KubeObject>(status?: object): Required<Pick<KindStrategy<T>, 'prepareForCreate' | 'prepareForUpdate'>> {
  return {
    prepareForCreate(input) {
      dropStatus(input.obj, { ...status })
      dropDisabledTemplate(input)
    },
    prepareForUpdate(input) {
      keepStatus(input)
      dropDisabledTemplate(input)
    },
  }
}

/** At creation about the name and the template, later about a template that changed. */
export function templatedWarnings<T extends KubeObject & { spec?: Templated | undefined }>({ obj, path }: CreateInput<T>, old?: Frozen<T>): string[] {
  const before = (old as Frozen<KubeObject & { spec?: Templated }> | undefined)?.spec?.template
  if (old && semanticEqual(obj.spec?.template, before)) return []
  return [...(old ? [] : workloadNameWarnings(obj.metadata.name)), ...podTemplateWarnings(obj.spec?.template, path.child('spec', 'template'))]
}

/** A counter that resolves hash collisions only ever grows. */
export function collisionFaults(count: number | undefined, before: number | undefined, path: FieldPath): FieldError[] {
  const decremented = (count ?? 0) < (before ?? 0)
  return [...validateNonNegative(count, path), ...(decremented ? [fieldError.invalid(path, count ?? 0, 'cannot be decremented')] : [])]
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

/** An update strategy as upstream prints it in errors: its internal type has no JSON names. */
export function internalStrategy(strategy: { type?: string | undefined; rollingUpdate?: unknown } | undefined): unknown {
  return { Type: strategy?.type ?? '', RollingUpdate: strategy?.rollingUpdate ?? null }
}
