/** FlowSchema (L1): which requests go to which priority level. Upstream: pkg/registry/flowcontrol, pkg/apis/flowcontrol/validation (v1.36). */
import type { FlowSchema, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject } from '#api/gen/types/flowcontrol.v1'
import { findCondition } from '#api/machinery/conditions'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { nameIsDnsLabel, nameIsDnsSubdomain } from '#api/machinery/names'
import { ageColumn, integer, nameColumn, none, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, faults, keepStatus, resetMetadata, statusStrategy } from '../rules.ts'
import { mandatoryFlowSchemas } from './bootstrapObjects.ts'
import { conditionsFaults, fixedSpecFaults, flowcontrolGroup as group } from './conditions.ts'

const maxPrecedence = 10_000
const distinguishers = ['ByNamespace', 'ByUser']
const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'proxy', 'update', 'watch']

export const flowSchema = defineKind<FlowSchema>({
  group,
  kind: 'FlowSchema',
  columns: [
    nameColumn,
    text('PriorityLevel', (obj) => obj.spec?.priorityLevelConfiguration?.name ?? ''),
    integer('MatchingPrecedence', (obj) => obj.spec?.matchingPrecedence),
    text('DistinguisherMethod', (obj) => obj.spec?.distinguisherMethod?.type ?? none),
    ageColumn,
    text('MissingPL', (obj) => findCondition(obj.status?.conditions as { type: string; status: string }[] | undefined, 'Dangling')?.status ?? '?'),
  ],
  defaults(obj) {
    obj.spec ??= { priorityLevelConfiguration: { name: '' } }
    obj.status ??= {}
    obj.spec.matchingPrecedence ||= 1000
  },
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => objectFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, path }) => objectFaults(obj, path.child('spec')),
  status: statusStrategy<FlowSchema>({
    keepMetadata: resetMetadata,
    validateUpdate: ({ obj, path }) => conditionsFaults(obj.status?.conditions, path.child('status', 'conditions')),
  }),
})

function objectFaults(obj: FlowSchema, path: FieldPath): FieldError[] {
  return [...specFaults(obj, path), ...fixedSpecFaults(mandatoryFlowSchemas, obj, path)]
}

function specFaults({ spec, metadata }: FlowSchema, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const precedence = spec.matchingPrecedence ?? 0
  const at = path.child('matchingPrecedence')
  if (precedence <= 0) errors.push(fieldError.invalid(at, precedence, 'must be a positive value'))
  if (precedence > maxPrecedence) errors.push(fieldError.invalid(at, precedence, `must not be greater than ${maxPrecedence}`))
  if (precedence === 1 && metadata.name !== 'exempt')
    errors.push(fieldError.invalid(at, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"))
  if (spec.distinguisherMethod && !distinguishers.includes(spec.distinguisherMethod.type))
    errors.push(fieldError.notSupported(path.child('distinguisherMethod', 'type'), spec.distinguisherMethod, distinguishers))
  const level = path.child('priorityLevelConfiguration', 'name')
  const name = spec.priorityLevelConfiguration?.name
  errors.push(...(name ? faults(level, name, nameIsDnsSubdomain(name, false)) : [fieldError.required(level, 'must reference a priority level')]))
  for (const [i, rule] of (spec.rules ?? []).entries()) errors.push(...ruleFaults(rule, path.child('rules').index(i)))
  return errors
}

function ruleFaults({ subjects, resourceRules = [], nonResourceRules = [] }: PolicyRulesWithSubjects, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (!subjects?.length) errors.push(fieldError.required(path.child('subjects'), 'subjects must contain at least one value'))
  for (const [i, subject] of (subjects ?? []).entries()) errors.push(...subjectFaults(subject, path.child('subjects').index(i)))
  if (resourceRules.length === 0 && nonResourceRules.length === 0)
    errors.push(fieldError.required(path, 'at least one of resourceRules and nonResourceRules has to be non-empty'))
  for (const [i, rule] of resourceRules.entries()) errors.push(...resourceRuleFaults(rule, path.child('resourceRules').index(i)))
  for (const [i, rule] of nonResourceRules.entries()) errors.push(...urlRuleFaults(rule, path.child('nonResourceRules').index(i)))
  return errors
}

const subjectFields = { Group: 'group', ServiceAccount: 'serviceAccount', User: 'user' } as const

function subjectFaults(subject: Subject, path: FieldPath): FieldError[] {
  const field = subjectFields[subject.kind as keyof typeof subjectFields]
  if (!field) return [fieldError.notSupported(path.child('kind'), subject.kind, Object.keys(subjectFields))]
  const at = path.child(field)
  const errors: FieldError[] = []
  const value = subject[field]
  if (!value) errors.push(fieldError.required(at, `${field} is required when subject kind is '${subject.kind}'`))
  else if (!value.name) errors.push(fieldError.required(at.child('name')))
  const { serviceAccount } = subject
  if (field === 'serviceAccount' && serviceAccount) {
    const { name, namespace } = serviceAccount
    if (name && name !== '*') errors.push(...faults(at.child('name'), name, nameIsDnsSubdomain(name, false)))
    if (!namespace) errors.push(fieldError.required(at.child('namespace'), 'must specify namespace for service account'))
    else errors.push(...faults(at.child('namespace'), namespace, nameIsDnsLabel(namespace, false)))
  }
  for (const [kind, other] of Object.entries(subjectFields))
    if (other !== field && subject[other]) errors.push(fieldError.forbidden(path.child(other), `${other} is forbidden when subject kind is not '${kind}'`))
  return errors
}

function resourceRuleFaults(rule: ResourcePolicyRule, path: FieldPath): FieldError[] {
  const errors = verbsFaults(rule.verbs, path.child('verbs'))
  errors.push(...listFaults(rule.apiGroups, 'resource rules must supply at least one api group', 'api groups', path.child('apiGroups')))
  errors.push(...listFaults(rule.resources, 'resource rules must supply at least one resource', 'resources', path.child('resources')))
  const { namespaces = [], clusterScope } = rule
  const at = path.child('namespaces')
  if (namespaces.length === 0 && !clusterScope)
    errors.push(fieldError.required(at, 'resource rules that are not cluster scoped must supply at least one namespace'))
  else if (namespaces.includes('*')) errors.push(...wildcardFaults(namespaces, 'namespaces', at))
  else
    for (const [i, namespace] of namespaces.entries())
      errors.push(
        ...faults(
          at.index(i),
          namespace,
          nameIsDnsLabel(namespace, false).map((fault) => `each member of this list must be '*' or a DNS-1123 label; ${fault}`),
        ),
      )
  return errors
}

function urlRuleFaults({ verbs: given, nonResourceURLs = [] }: NonResourcePolicyRule, path: FieldPath): FieldError[] {
  const at = path.child('nonResourceURLs')
  const errors = verbsFaults(given, path.child('verbs'))
  if (nonResourceURLs.length === 0) errors.push(fieldError.required(at, 'nonResourceURLs must contain at least one value'))
  else if (nonResourceURLs.includes('*')) errors.push(...wildcardFaults(nonResourceURLs, 'non-resource URLs', at))
  else for (const [i, url] of nonResourceURLs.entries()) errors.push(...urlFaults(url, at.index(i)))
  return errors
}

function verbsFaults(given: readonly string[] | undefined, path: FieldPath): FieldError[] {
  if (!given?.length) return [fieldError.required(path, 'verbs must contain at least one value')]
  if (given.includes('*')) return wildcardFaults(given, 'verbs', path)
  return given.every((verb) => verbs.includes(verb)) ? [] : [fieldError.notSupported(path, given, verbs)]
}

function listFaults(given: readonly string[] | undefined, empty: string, what: string, path: FieldPath): FieldError[] {
  if (!given?.length) return [fieldError.required(path, empty)]
  return given.includes('*') ? wildcardFaults(given, what, path) : []
}

function wildcardFaults(given: readonly string[], what: string, path: FieldPath): FieldError[] {
  return given.length > 1 ? [fieldError.invalid(path, given, `if '*' is present, must not specify other ${what}`)] : []
}

function urlFaults(url: string, path: FieldPath): FieldError[] {
  const fault = urlFault(url)
  return fault ? [fieldError.invalid(path, url, fault)] : []
}

function urlFault(url: string): string | undefined {
  if (url === '') return 'must not be empty'
  if (url === '/') return undefined
  if (!url.startsWith('/')) return 'must start with slash'
  if (url.includes(' ')) return 'must not contain white-space'
  if (url.includes('//')) return 'must not contain double slash'
  const stars = url.split('*').length - 1
  return stars > 1 || (stars === 1 && !url.endsWith('/*')) ? 'wildcard can only do suffix matching' : undefined
}
