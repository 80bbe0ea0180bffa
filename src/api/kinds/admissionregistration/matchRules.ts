/**
 * What webhooks and policies share (L1): rules of groups, versions and resources, selectors, match conditions, parameters.
 * Upstream: pkg/apis/admissionregistration/validation, apiserver/pkg/util/webhook/validation.go (v1.36).
 */
import type {
  MatchCondition,
  MatchResources,
  NamedRuleWithOperations,
  ParamKind,
  ParamRef,
  RuleWithOperations,
  ServiceReference,
} from '#api/gen/types/admissionregistration.v1'
import { repeatedAt } from '#api/machinery/duplicates'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateLabelSelector } from '#api/machinery/labelSelector'
import { isDns1035Label, isDns1123Subdomain, isPathSegmentName, isPortNumber, isQualifiedName } from '#api/machinery/names'
import { faults } from '../rules.ts'

export const failurePolicies = ['Fail', 'Ignore']
export const matchPolicies = ['Equivalent', 'Exact']
const scopes = ['*', 'Cluster', 'Namespaced']
const operations = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE']
const maxMatchConditions = 64

/** Absent is fine; anything else must be one of a few words. */
export function optionalWord(value: string | undefined, supported: readonly string[], path: FieldPath): FieldError[] {
  return value === undefined || supported.includes(value) ? [] : [fieldError.notSupported(path, value, supported)]
}

/** Operations, groups, versions, resources and scope of one rule. */
export function validateRule(rule: RuleWithOperations, path: FieldPath): FieldError[] {
  const errors = wordListFaults(rule.operations, 'operations', path.child('operations'))
  for (const [i, operation] of (rule.operations ?? []).entries())
    if (!operations.includes(operation)) errors.push(fieldError.notSupported(path.child('operations').index(i), operation, operations))
  errors.push(...wordListFaults(rule.apiGroups, 'API groups', path.child('apiGroups')))
  errors.push(...wordListFaults(rule.apiVersions, 'API versions', path.child('apiVersions')))
  for (const [i, version] of (rule.apiVersions ?? []).entries()) if (!version) errors.push(fieldError.required(path.child('apiVersions').index(i)))
  errors.push(...resourcesFaults(rule.resources ?? [], path.child('resources')))
  return [...errors, ...optionalWord(rule.scope, scopes, path.child('scope'))]
}

function wordListFaults(words: readonly string[] | undefined, what: string, path: FieldPath): FieldError[] {
  if (!words?.length) return [fieldError.required(path)]
  return words.length > 1 && words.includes('*') ? [fieldError.invalid(path, words, `if '*' is present, must not specify other ${what}`)] : []
}

/** `pods`, `pods/*`, `*\/scale`, `*`, `*\/*`: no entry may repeat what another entry covers. */
function resourcesFaults(resources: readonly string[], path: FieldPath): FieldError[] {
  if (resources.length === 0) return [fieldError.required(path)]
  const errors: FieldError[] = []
  const allSubresourcesOf = new Set<string>()
  const subresourceOfAll = new Set<string>()
  let single = false
  let double = false
  let plain = false
  for (const [i, text] of resources.entries()) {
    const at = path.index(i)
    if (text === '') {
      errors.push(fieldError.required(at))
      continue
    }
    if (text === '*/*') double = true
    if (text === '*') single = true
    const slash = text.indexOf('/')
    if (slash < 0) {
      if (text !== '*') plain = true
      continue
    }
    const resource = text.slice(0, slash)
    const subresource = text.slice(slash + 1)
    if (allSubresourcesOf.has(resource)) errors.push(fieldError.invalid(at, text, `if '${resource}/*' is present, must not specify ${text}`))
    if (subresourceOfAll.has(subresource)) errors.push(fieldError.invalid(at, text, `if '*/${subresource}' is present, must not specify ${text}`))
    if (subresource === '*') allSubresourcesOf.add(resource)
    if (resource === '*') subresourceOfAll.add(subresource)
  }
  if (resources.length > 1 && double) errors.push(fieldError.invalid(path, resources, "if '*/*' is present, must not specify other resources"))
  if (single && plain) errors.push(fieldError.invalid(path, resources, "if '*' is present, must not specify other resources without subresources"))
  return errors
}

/** What a policy or binding is about. Absent selectors have been defaulted to all. */
export function validateMatchResources(match: MatchResources | undefined, path: FieldPath): FieldError[] {
  if (!match) return []
  const errors = match.matchPolicy
    ? optionalWord(match.matchPolicy, matchPolicies, path.child('matchPolicy'))
    : [fieldError.required(path.child('matchPolicy'))]
  for (const field of ['namespaceSelector', 'objectSelector'] as const) {
    if (!match[field]) errors.push(fieldError.required(path.child(field)))
    else errors.push(...validateLabelSelector(match[field], path.child(field)))
  }
  for (const field of ['resourceRules', 'excludeResourceRules'] as const)
    for (const [i, rule] of (match[field] ?? []).entries()) errors.push(...namedRuleFaults(rule, path.child(field).index(i)))
  return errors
}

function namedRuleFaults(rule: NamedRuleWithOperations, path: FieldPath): FieldError[] {
  const names = rule.resourceNames ?? []
  const repeated = repeatedAt(names)
  const errors = names.flatMap((name, i) => [
    ...faults(path.child('resourceNames').index(i), name, isPathSegmentName(name)),
    ...(repeated.has(i) ? [fieldError.duplicate(path.child('resourceNames').index(i), name)] : []),
  ])
  return [...errors, ...validateRule(rule, path)]
}

/** How an expression is checked: its faults. */
export type ExpressionCheck = (expression: string, path: FieldPath) => FieldError[]

/** Names and expressions of the match conditions of a webhook or policy. */
export function validateMatchConditions(conditions: readonly MatchCondition[] | undefined, check: ExpressionCheck, path: FieldPath): FieldError[] {
  const all = conditions ?? []
  const errors: FieldError[] = all.length > maxMatchConditions ? [fieldError.tooMany(path, all.length, maxMatchConditions)] : []
  const names = new Set<string>()
  // Of too many, the rest is refused anyway: to compile thousands of expressions takes seconds.
  for (const [i, { name, expression }] of all.slice(0, maxMatchConditions).entries()) {
    const at = path.index(i)
    if (!expression?.trim()) errors.push(fieldError.required(at.child('expression')))
    else errors.push(...check(expression.trim(), at.child('expression')))
    if (!name) errors.push(fieldError.required(at.child('name')))
    else errors.push(...faults(at.child('name'), name, isQualifiedName(name)))
    if (name && names.has(name)) errors.push(fieldError.duplicate(at.child('name'), name))
    names.add(name)
  }
  return errors
}

/** The kind of a policy's parameters. */
export function validateParamKind({ apiVersion, kind }: ParamKind, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const at = path.child('apiVersion')
  const parts = (apiVersion ?? '').split('/')
  const version = parts.at(-1) ?? ''
  const group = parts.length === 2 ? (parts[0] ?? '') : ''
  if (!apiVersion) errors.push(fieldError.required(at))
  else if (parts.length > 2) errors.push(fieldError.invalid(at, apiVersion, `unexpected GroupVersion string: ${apiVersion}`))
  else {
    if (group && isDns1123Subdomain(group).length > 0) errors.push(fieldError.invalid(at, group, isDns1123Subdomain(group).join(',')))
    if (!version) errors.push(fieldError.invalid(at, apiVersion, 'version must be specified'))
    else if (isDns1035Label(version).length > 0) errors.push(fieldError.invalid(at, version, isDns1035Label(version).join(',')))
  }
  const wrong = isDns1035Label((kind ?? '').toLowerCase())
  if (!kind) errors.push(fieldError.required(path.child('kind')))
  else if (wrong.length > 0) errors.push(fieldError.invalid(path.child('kind'), kind, `may have mixed case, but should otherwise match: ${wrong.join(',')}`))
  return errors
}

/** The parameters themselves: one by its name, or all that a selector chooses. */
export function validateParamRef(ref: ParamRef | undefined, path: FieldPath): FieldError[] {
  if (!ref) return []
  const { name, selector, parameterNotFoundAction: action } = ref
  const both = 'name and selector are mutually exclusive'
  const errors = name ? faults(path.child('name'), name, isPathSegmentName(name)) : []
  if (name && selector) errors.push(fieldError.forbidden(path.child('name'), both))
  if (selector) errors.push(...validateLabelSelector(selector, path.child('selector')))
  if (name && selector) errors.push(fieldError.forbidden(path.child('selector'), both))
  if (!name && !selector) errors.push(fieldError.required(path, 'one of name or selector must be specified'))
  if (!action) errors.push(fieldError.required(path.child('parameterNotFoundAction')))
  else if (action !== 'Deny' && action !== 'Allow') errors.push(fieldError.notSupported(path.child('parameterNotFoundAction'), action, ['Deny', 'Allow']))
  return errors
}

/** Where a webhook listens, outside the cluster: https, no user, no query. */
export function validateWebhookUrl(text: string, path: FieldPath): FieldError[] {
  const form = '; desired format: https://host[/path]'
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return [fieldError.required(path, `url must be a valid URL: parse ${JSON.stringify(text)}: invalid URI${form}`)]
  }
  const errors: FieldError[] = []
  if (url.protocol !== 'https:') errors.push(fieldError.invalid(path, url.protocol.replace(/:$/, ''), `'https' is the only allowed URL scheme${form}`))
  if (url.host === '') errors.push(fieldError.invalid(path, url.host, `host must be specified${form}`))
  if (url.username || url.password) errors.push(fieldError.invalid(path, url.username, 'user information is not permitted in the URL'))
  if (url.hash) errors.push(fieldError.invalid(path, url.hash.slice(1), 'fragments are not permitted in the URL'))
  if (url.search) errors.push(fieldError.invalid(path, url.search.slice(1), 'query parameters are not permitted in the URL'))
  return errors
}

/** Where a webhook listens, inside the cluster. */
export function validateWebhookService({ name, namespace, path: urlPath, port }: ServiceReference, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (!name) errors.push(fieldError.required(path.child('name'), 'service name is required'))
  if (!namespace) errors.push(fieldError.required(path.child('namespace'), 'service namespace is required'))
  if (port !== undefined && isPortNumber(port).length > 0)
    errors.push(fieldError.invalid(path.child('port'), port, `port is not valid: ${isPortNumber(port).join(',')}`))
  return urlPath === undefined ? errors : [...errors, ...urlPathFaults(urlPath, path.child('path'))]
}

function urlPathFaults(text: string, path: FieldPath): FieldError[] {
  if (text === '/' || text === '') return []
  if (text === '//') return [fieldError.invalid(path, text, 'segment[0] may not be empty')]
  if (!text.startsWith('/')) return [fieldError.invalid(path, text, "must start with a '/'")]
  const segments = text.slice(1).replace(/\/$/, '').split('/')
  return segments.flatMap((segment, i) => {
    if (segment === '') return [fieldError.invalid(path, text, `segment[${i}] may not be empty`)]
    const wrong = isDns1123Subdomain(segment)
    return wrong.length > 0 ? wrong.map((fault) => fieldError.invalid(path, text, `segment[${i}]: ${fault}`)) : []
  })
}

/** A variable's name in an expression. */
export function isCelIdentifier(name: string): boolean {
  return /^[_a-zA-Z][_a-zA-Z0-9]*$/.test(name) && !reservedWords.has(name)
}

const reservedWords: ReadonlySet<string> = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(' '),
)
