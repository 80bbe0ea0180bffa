/** Validation of what the scheduler reads: affinity, tolerations, spreading (L1). Upstream: pkg/apis/core/validation (v1.36). */
import type { Affinity, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm, Toleration, TopologySpreadConstraint } from '#api/gen/types/core.v1'
import type { LabelSelector } from '#api/gen/types/meta.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateLabelName, validateLabelSelector } from '#api/machinery/labelSelector'
import { isDns1123Label, isDns1123Subdomain, isLabelValue } from '#api/machinery/names'
import { faults, oneOf } from '../../rules.ts'

export const taintEffects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']
const weightMessage = 'must be in the range 1-100'

/** Keys, operators, effects and seconds of tolerations. */
export function validateTolerations(tolerations: readonly Toleration[] | undefined, path: FieldPath): FieldError[] {
  return (tolerations ?? []).flatMap((toleration, i) => {
    const at = path.index(i)
    const { key, operator, value, effect, tolerationSeconds } = toleration
    const errors = key ? validateLabelName(key, at.child('key')) : []
    if (!key && operator !== 'Exists')
      errors.push(
        fieldError.invalid(at.child('operator'), operator ?? '', 'operator must be Exists when `key` is empty, which means "match all values and all keys"'),
      )
    if (tolerationSeconds !== undefined && effect !== 'NoExecute')
      errors.push(fieldError.invalid(at.child('effect'), effect ?? '', "effect must be 'NoExecute' when `tolerationSeconds` is set"))
    if (!operator || operator === 'Equal') {
      const wrong = isLabelValue(value ?? '')
      if (wrong.length > 0) errors.push(fieldError.invalid(at.child('operator'), value, wrong.join(';')))
    } else if (operator === 'Exists') {
      if (value) errors.push(fieldError.invalid(at.child('operator'), value, "value must be empty when `operator` is 'Exists'"))
    } else errors.push(fieldError.notSupported(at.child('operator'), operator, ['Equal', 'Exists']))
    if (effect) errors.push(...oneOf(effect, taintEffects, at.child('effect')))
    return errors
  })
}

/** Topology spread constraints, and that no two have the same key and whenUnsatisfiable. */
export function validateTopologySpread(constraints: readonly TopologySpreadConstraint[] | undefined, path: FieldPath): FieldError[] {
  const seen = new Set<string>()
  return (constraints ?? []).flatMap((constraint, i) => {
    const at = path.index(i)
    const { maxSkew, topologyKey, whenUnsatisfiable, minDomains } = constraint
    const errors: FieldError[] = []
    if (!(maxSkew > 0)) errors.push(fieldError.invalid(at.child('maxSkew'), maxSkew, 'must be greater than zero'))
    errors.push(...(topologyKey ? validateLabelName(topologyKey, at.child('topologyKey')) : [fieldError.required(at.child('topologyKey'), 'can not be empty')]))
    if (!['DoNotSchedule', 'ScheduleAnyway'].includes(whenUnsatisfiable))
      errors.push(fieldError.notSupported(at.child('whenUnsatisfiable'), whenUnsatisfiable, ['DoNotSchedule', 'ScheduleAnyway']))
    const pair = `{${topologyKey}, ${whenUnsatisfiable}}`
    if (seen.has(pair)) errors.push(fieldError.duplicate(at.child('{topologyKey, whenUnsatisfiable}'), pair))
    seen.add(pair)
    if (minDomains !== undefined) {
      if (minDomains <= 0) errors.push(fieldError.invalid(at.child('minDomains'), minDomains, 'must be greater than zero'))
      if (whenUnsatisfiable !== 'DoNotSchedule')
        errors.push(
          fieldError.invalid(at.child('minDomains'), minDomains, `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`),
        )
    }
    for (const field of ['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const) {
      const policy = constraint[field]
      if (policy !== undefined) errors.push(...oneOf(policy, ['Honor', 'Ignore'], at.child(field)))
    }
    errors.push(...validateLabelSelector(constraint.labelSelector, at.child('labelSelector')))
    return [...errors, ...labelKeyFaults(constraint.matchLabelKeys, constraint.labelSelector, at.child('matchLabelKeys'))]
  })
}

/** Node affinity, and the terms of pod affinity and anti-affinity. */
export function validateAffinity(affinity: Affinity | undefined, path: FieldPath): FieldError[] {
  if (!affinity) return []
  const errors: FieldError[] = []
  const node = affinity.nodeAffinity
  const required = node?.requiredDuringSchedulingIgnoredDuringExecution
  const nodePath = path.child('nodeAffinity')
  if (required) {
    const at = nodePath.child('requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms')
    if (!required.nodeSelectorTerms?.length) errors.push(fieldError.required(at, 'must have at least one node selector term'))
    for (const [i, term] of (required.nodeSelectorTerms ?? []).entries()) errors.push(...validateNodeSelectorTerm(term, true, at.index(i)))
  }
  for (const [i, { weight, preference }] of (node?.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
    const at = nodePath.child('preferredDuringSchedulingIgnoredDuringExecution').index(i)
    if (weight < 1 || weight > 100) errors.push(fieldError.invalid(at.child('weight'), weight, weightMessage))
    errors.push(...validateNodeSelectorTerm(preference, false, at.child('preference')))
  }
  for (const kind of ['podAffinity', 'podAntiAffinity'] as const) {
    const terms = affinity[kind]
    const at = path.child(kind)
    for (const [i, term] of (terms?.requiredDuringSchedulingIgnoredDuringExecution ?? []).entries())
      errors.push(...affinityTermFaults(term, at.child('requiredDuringSchedulingIgnoredDuringExecution').index(i)))
    for (const [i, { weight, podAffinityTerm }] of (terms?.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
      const one = at.child('preferredDuringSchedulingIgnoredDuringExecution').index(i)
      if (weight < 1 || weight > 100) errors.push(fieldError.invalid(one.child('weight'), weight, weightMessage))
      errors.push(...affinityTermFaults(podAffinityTerm, one.child('podAffinityTerm')))
    }
  }
  return errors
}

/** One term of a node selector. @param strict label values are checked; a preference that nothing can meet does no harm */
export function validateNodeSelectorTerm(term: NodeSelectorTerm | undefined, strict: boolean, path: FieldPath): FieldError[] {
  return [
    ...(term?.matchExpressions ?? []).flatMap((requirement, i) => {
      const at = path.child('matchExpressions').index(i)
      const values = strict ? (requirement.values ?? []) : []
      return [
        ...requirementFaults(requirement, at),
        ...validateLabelName(requirement.key, at.child('key')),
        ...values.flatMap((value, j) => faults(at.child('values').index(j), value, isLabelValue(value))),
      ]
    }),
    ...(term?.matchFields ?? []).flatMap((requirement, i) => fieldRequirementFaults(requirement, path.child('matchFields').index(i))),
  ]
}

function fieldRequirementFaults({ key, operator, values = [] }: NodeSelectorRequirement, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (operator !== 'In' && operator !== 'NotIn') errors.push(fieldError.invalid(path.child('operator'), operator, 'not a valid selector operator'))
  else if (values.length !== 1)
    errors.push(fieldError.required(path.child('values'), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
  if (key !== 'metadata.name') return [...errors, fieldError.invalid(path.child('key'), key, 'not a valid field selector key')]
  return [...errors, ...values.flatMap((value, i) => faults(path.child('values').index(i), value, isDns1123Subdomain(value)))]
}

function requirementFaults({ operator, values }: NodeSelectorRequirement, path: FieldPath): FieldError[] {
  const at = path.child('values')
  switch (operator) {
    case 'In':
    case 'NotIn':
      return values?.length ? [] : [fieldError.required(at, "must be specified when `operator` is 'In' or 'NotIn'")]
    case 'Exists':
    case 'DoesNotExist':
      return values?.length ? [fieldError.forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")] : []
    case 'Gt':
    case 'Lt':
      return values?.length === 1 ? [] : [fieldError.required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'")]
    default:
      return [fieldError.invalid(path.child('operator'), operator, 'not a valid selector operator')]
  }
}

function affinityTermFaults(term: PodAffinityTerm | undefined, path: FieldPath): FieldError[] {
  return [
    ...validateLabelSelector(term?.labelSelector, path.child('labelSelector')),
    ...validateLabelSelector(term?.namespaceSelector, path.child('namespaceSelector')),
    ...(term?.namespaces ?? []).flatMap((name) => faults(path.child('namespace'), name, isDns1123Label(name))),
    ...labelKeyFaults(term?.matchLabelKeys, term?.labelSelector, path.child('matchLabelKeys')),
    ...labelKeyFaults(term?.mismatchLabelKeys, term?.labelSelector, path.child('mismatchLabelKeys')),
    ...(term?.matchLabelKeys ?? []).flatMap((key, i) =>
      term?.mismatchLabelKeys?.includes(key)
        ? [fieldError.invalid(path.child('matchLabelKeys').index(i), key, 'exists in both matchLabelKeys and mismatchLabelKeys')]
        : [],
    ),
    ...(term?.topologyKey ? [] : [fieldError.required(path.child('topologyKey'), 'can not be empty')]),
    ...validateLabelName(term?.topologyKey ?? '', path.child('topologyKey')),
  ]
}

/** Keys of the pod's own labels that are added to a selector: there must be one. */
function labelKeyFaults(keys: readonly string[] | undefined, selector: LabelSelector | undefined, path: FieldPath): FieldError[] {
  if (!keys?.length) return []
  if (!selector) return [fieldError.forbidden(path, 'must not be specified when labelSelector is not set')]
  return keys.flatMap((key, i) => validateLabelName(key, path.index(i)))
}
