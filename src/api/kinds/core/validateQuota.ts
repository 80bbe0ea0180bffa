/** Validation of quotas: names, amounts, and which pods they count (L1). Upstream: pkg/apis/core/validation ValidateResourceQuota (v1.36). */
import type { ResourceQuota, ScopedResourceSelectorRequirement } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { bareMap } from '#base/bareMap'
import { validateQuantity, validateResourceName } from './pod/validateResources.ts'

type Spec = ResourceQuota['spec']

const compute = ['cpu', 'memory', 'ephemeral-storage'] as const
const podResources = ['pods', ...compute.flatMap((name) => [name, `requests.${name}`, `limits.${name}`])]
const others = [
  ...['requests.storage', 'services', 'replicationcontrollers', 'secrets', 'configmaps', 'persistentvolumeclaims', 'resourcequotas'],
  ...['services.nodeports', 'services.loadbalancers'],
]
/** Scopes, and whether they may count anything of pods, or only how many there are. */
const scopes: Readonly<Record<string, readonly string[]>> = bareMap({
  BestEffort: ['pods'],
  NotBestEffort: podResources,
  Terminating: podResources,
  NotTerminating: podResources,
  PriorityClass: podResources,
  CrossNamespacePodAffinity: podResources,
  VolumeAttributesClass: ['persistentvolumeclaims', 'requests.storage'],
})
const conflicts = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
]

const isStandard = (name: string): boolean => podResources.includes(name) || others.includes(name) || isHugePages(name)
const isHugePages = (name: string): boolean => /^(requests\.)?hugepages-/.test(name)

/** Checks the amounts of a spec or of a status. */
export function validateQuotaAmounts(amounts: Readonly<Record<string, string>> | undefined, path: FieldPath): FieldError[] {
  return Object.entries(amounts ?? {}).flatMap(([name, value]) => {
    const at = path.key(name)
    const fit = name.includes('/') || isStandard(name)
    return [
      ...validateResourceName(name, at),
      ...(fit ? [] : [fieldError.invalid(at, name, 'must be a standard resource for quota')]),
      ...validateQuantity(name, value, at),
    ]
  })
}

/** Hard limits, and the scopes that select the objects they count. */
export function validateQuotaSpec(spec: Spec, path: FieldPath): FieldError[] {
  return [...validateQuotaAmounts(spec.hard, path.child('hard')), ...scopeFaults(spec, path.child('scopes')), ...selectorFaults(spec, path)]
}

function scopeFaults({ scopes: given = [], hard }: Spec, path: FieldPath): FieldError[] {
  const errors = given.flatMap((scope) => [
    ...(scopes[scope] ? [] : [fieldError.invalid(path, given, 'unsupported scope')]),
    ...unfit(scope, hard).map(() => fieldError.invalid(path, given, 'unsupported scope applied to resource')),
  ])
  return [...errors, ...(conflicting(given) ? [fieldError.invalid(path, given, 'conflicting scopes')] : [])]
}

/** The standard resources of the quota that a scope cannot tell apart. */
function unfit(scope: string, hard: Spec['hard']): string[] {
  const allowed = scopes[scope] ?? []
  return Object.keys(hard ?? {}).filter((name) => isStandard(name) && !allowed.includes(name) && !(isHugePages(name) && allowed.includes('cpu')))
}

const conflicting = (given: readonly string[]): boolean => conflicts.some((pair) => pair.every((scope) => given.includes(scope)))

function selectorFaults({ scopeSelector, hard, scopes: given = [] }: Spec, path: FieldPath): FieldError[] {
  if (!scopeSelector) return []
  const at = path.child('scopeSelector', 'matchExpressions')
  const requirements = scopeSelector.matchExpressions ?? []
  const errors = requirements.flatMap((requirement) => [
    ...(scopes[requirement.scopeName] ? [] : [fieldError.invalid(at.child('scopeName'), requirement.scopeName, 'unsupported scope')]),
    ...unfit(requirement.scopeName, hard).map(() => fieldError.invalid(at, scopeSelector, 'unsupported scope applied to resource')),
    ...requirementFaults(requirement, at),
  ])
  const names = requirements.map(({ scopeName }) => scopeName)
  return [...errors, ...(conflicting(names) ? [fieldError.invalid(at, given, 'conflicting scopes')] : [])]
}

function requirementFaults({ scopeName, operator, values = [] }: ScopedResourceSelectorRequirement, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const plain = ['BestEffort', 'NotBestEffort', 'Terminating', 'NotTerminating', 'CrossNamespacePodAffinity']
  if (plain.includes(scopeName) && operator !== 'Exists') {
    const list = `${['Terminating', 'NotTerminating', 'BestEffort', 'NotBestEffort'].map((name) => `ResourceQuotaScope${name}`).join(', ')} or ResourceQuotaScopeCrossNamespacePodAffinity`
    errors.push(fieldError.invalid(path.child('operator'), operator, `must be 'Exists' when scope is any of ${list}`))
  }
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0)
      errors.push(fieldError.required(path.child('values'), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"))
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values.length > 0)
      errors.push(fieldError.invalid(path.child('values'), values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"))
  } else errors.push(fieldError.invalid(path.child('operator'), operator, 'not a valid selector operator'))
  return errors
}
