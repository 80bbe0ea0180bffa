/**
 * Makes a user of verified claims (L3, pure), by names of claims or by expressions, and checks the rules that must hold.
 * Upstream: getUsername, getGroups, getUID, getExtra and AuthenticateToken of plugin/pkg/authenticator/token/oidc/oidc.go (v1.36).
 */
import { emptyMap } from '#base/bareMap'
import type { Value } from '#cel/values'
import type { UserInfo } from '../../core/request.ts'
import { type CompiledExpression, evaluate, jsonValue, textsOf, userValue, type Variable } from './expressions.ts'
import type { CompiledRule, ValidatedAuthenticator } from './validation.ts'
import type { Claims } from './verifier.ts'

/** @throws Error with the mapping or rule that the claims do not satisfy */
export function userOfClaims({ configuration, program }: ValidatedAuthenticator, claims: Claims): UserInfo {
  const { username = {}, groups = {}, uid = {} } = configuration.claimMappings
  const value = jsonValue(claims)
  const name = program.username ? nameOf(program.username, value) : `${username.prefix ?? ''}${nameClaim(username.claim ?? '', claims)}`
  const user: UserInfo = {
    name,
    groups: groupsOf(groups, program.groups, claims, value),
    ...optional('uid', uidOf(uid.claim, program.uid, claims, value)),
    ...optional('extra', extraOf(program.extra, claims, value)),
  }
  checkRequiredClaims(configuration.claimValidationRules ?? [], claims)
  checkRules(program.claimRules, 'claims', value, 'oidc: error evaluating claim validation expression')
  if (program.userRules.length > 0) checkRules(program.userRules, 'user', userValue(user), 'oidc: error evaluating user info validation rule')
  return user
}

function optional<K extends string, T>(key: K, value: T | undefined): { readonly [k in K]?: T } {
  return (value === undefined ? {} : { [key]: value }) as { readonly [k in K]?: T }
}

function labelled<T>(label: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new Error(`${label}: ${(error as Error).message}`)
  }
}

function nameOf(expression: CompiledExpression, claims: Value): string {
  const name = labelled('oidc: error evaluating username claim expression', () => {
    const found = evaluate(expression, 'claims', claims)
    if (typeof found !== 'string') throw new Error('username claim expression must return a string')
    return found
  })
  if (name === '') throw new Error('oidc: empty username via CEL expression is not allowed')
  return name
}

/** A claim as text. @throws Error as Go's decoder would */
function textClaim(claims: Claims, claim: string): string {
  if (!Object.hasOwn(claims, claim)) throw new Error('claim not present')
  const value = claims[claim]
  if (value === null) return ''
  if (typeof value === 'string') return value
  throw new Error(`json: cannot unmarshal ${Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value} into Go value of type string`)
}

function nameClaim(claim: string, claims: Claims): string {
  const name = labelled(`oidc: parse username claims ${JSON.stringify(claim)}`, () => textClaim(claims, claim))
  if (claim === 'email' && Object.hasOwn(claims, 'email_verified')) {
    const verified = claims.email_verified ?? false
    if (typeof verified !== 'boolean')
      throw new Error(`oidc: parse 'email_verified' claim: json: cannot unmarshal ${typeof verified} into Go value of type bool`)
    if (!verified) throw new Error('oidc: email not verified')
  }
  return name
}

function groupsOf(
  { claim = '', prefix = '' }: { readonly claim?: string | undefined; readonly prefix?: string | undefined },
  expression: CompiledExpression | undefined,
  claims: Claims,
  value: Value,
): readonly string[] {
  if (claim !== '' && Object.hasOwn(claims, claim)) {
    const groups = [claims[claim] ?? []].flat()
    if (!groups.every((group) => typeof group === 'string')) {
      throw new Error(`oidc: parse groups claim ${JSON.stringify(claim)}: json: cannot unmarshal into Go value of type string`)
    }
    return groups.map((group) => `${prefix}${group}`)
  }
  if (!expression) return []
  return labelled('oidc: error evaluating group claim expression', () => textsOf(evaluate(expression, 'claims', value)))
}

function uidOf(claim = '', expression: CompiledExpression | undefined, claims: Claims, value: Value): string | undefined {
  if (claim !== '') return labelled(`oidc: parse uid claim ${JSON.stringify(claim)}`, () => textClaim(claims, claim)) || undefined
  if (!expression) return undefined
  return labelled('oidc: error evaluating uid claim expression', () => {
    const uid = evaluate(expression, 'claims', value)
    if (typeof uid !== 'string') throw new Error('uid claim expression must return a string')
    return uid || undefined
  })
}

function extraOf(
  mappings: readonly { readonly key: string; readonly value: CompiledExpression }[],
  claims: Claims,
  value: Value,
): Readonly<Record<string, readonly string[]>> | undefined {
  const extra: Record<string, readonly string[]> = emptyMap()
  if (typeof claims.jti === 'string' && claims.jti !== '') extra['authentication.kubernetes.io/credential-id'] = [`JTI=${claims.jti}`]
  for (const mapping of mappings) {
    const found = evaluate(mapping.value, 'claims', value)
    const texts = labelled(`oidc: error evaluating extra claim expression: ${mapping.value.expression}`, () => textsOf(found))
    if (texts.length > 0) extra[mapping.key] = texts
  }
  return Object.keys(extra).length > 0 ? extra : undefined
}

function checkRequiredClaims(rules: readonly { readonly claim?: string | undefined; readonly requiredValue?: string | undefined }[], claims: Claims): void {
  for (const { claim = '', requiredValue = '' } of rules) {
    if (claim === '') continue
    if (!Object.hasOwn(claims, claim)) throw new Error(`oidc: required claim ${claim} not present in ID token`)
    const value = labelled(`oidc: parse claim ${claim}`, () => textClaim(claims, claim))
    if (value !== requiredValue) throw new Error(`oidc: required claim ${claim} value does not match. Got = ${value}, want = ${requiredValue}`)
  }
}

function checkRules(rules: readonly CompiledRule[], variable: Variable, value: Value, label: string): void {
  labelled(label, () => {
    const results = rules.map(({ rule }) => evaluate(rule, variable, value))
    results.forEach((holds, at) => {
      const { rule, message } = rules[at] as CompiledRule
      if (typeof holds !== 'boolean') throw new Error('validation expression must return a boolean')
      if (!holds) throw new Error(`validation expression '${rule.expression}' failed: ${message}`)
    })
  })
}
