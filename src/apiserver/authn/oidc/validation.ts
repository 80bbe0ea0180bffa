/**
 * Checks an AuthenticationConfiguration and compiles its expressions (L3, pure).
 * Upstream: apiserver/pkg/apis/apiserver/validation/validation.go ValidateAuthenticationConfiguration (v1.36).
 */
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateDomainPrefixedPath } from '#api/machinery/formats'
import type { Expression } from '#cel/syntax/ast'
import { children } from '#cel/validators'
import type {
  AuthenticationConfiguration,
  ClaimMappings,
  ClaimValidationRule,
  JwtAuthenticatorConfiguration,
  PrefixedClaimOrExpression,
  UserValidationRule,
} from './configuration.ts'
import { type CompiledExpression, compileExpression, type Variable } from './expressions.ts'
import { validateIssuer } from './issuerValidation.ts'

/** A rule that must hold, and the message when it does not. */
export interface CompiledRule {
  readonly rule: CompiledExpression
  readonly message: string
}

/** The compiled expressions of one authenticator. */
export interface ClaimsProgram {
  readonly username?: CompiledExpression | undefined
  readonly groups?: CompiledExpression | undefined
  readonly uid?: CompiledExpression | undefined
  readonly extra: readonly { readonly key: string; readonly value: CompiledExpression }[]
  readonly claimRules: readonly CompiledRule[]
  readonly userRules: readonly CompiledRule[]
}

export interface ValidatedAuthenticator {
  readonly configuration: JwtAuthenticatorConfiguration
  readonly program: ClaimsProgram
}

const mostAuthenticators = 64

/** @param disallowedIssuers the issuers of service account tokens, which no other authenticator may accept */
export function validateAuthenticationConfiguration(
  { jwt, anonymous }: AuthenticationConfiguration,
  disallowedIssuers: readonly string[],
): { readonly faults: readonly FieldError[]; readonly authenticators: readonly ValidatedAuthenticator[] } {
  const root = FieldPath.of('jwt')
  if (jwt.length > mostAuthenticators) return { faults: [fieldError.tooMany(root, jwt.length, mostAuthenticators)], authenticators: [] }
  const faults: FieldError[] = []
  const authenticators = jwt.map((configuration, at) => {
    const path = root.index(at)
    const program = validateAuthenticator(configuration, path, disallowedIssuers, faults)
    const { url = '', discoveryURL = '' } = configuration.issuer
    const before = jwt.slice(0, at).map(({ issuer }) => issuer)
    if (before.some((one) => (one.url ?? '') === url)) faults.push(fieldError.duplicate(path.child('issuer', 'url'), url))
    if (discoveryURL !== '' && before.some((one) => one.discoveryURL === discoveryURL)) {
      faults.push(fieldError.duplicate(path.child('issuer', 'discoveryURL'), discoveryURL))
    }
    return { configuration, program }
  })
  if (anonymous && !anonymous.enabled && anonymous.conditions?.length) {
    faults.push(fieldError.invalid(FieldPath.of('anonymous', 'conditions'), anonymous.conditions, 'enabled should be set to true when conditions are defined'))
  }
  return { faults, authenticators }
}

function validateAuthenticator(
  { issuer, claimValidationRules = [], claimMappings, userValidationRules = [] }: JwtAuthenticatorConfiguration,
  path: FieldPath,
  disallowedIssuers: readonly string[],
  faults: FieldError[],
): ClaimsProgram {
  faults.push(...validateIssuer(issuer, disallowedIssuers, path.child('issuer')))
  const claimRules = validateClaimRules(claimValidationRules, path.child('claimValidationRules'), faults)
  const mappings = validateMappings(claimMappings, path.child('claimMappings'), faults)
  const verifiesEmail = [...claimRules.map(({ rule }) => rule), ...mappings.extra.map(({ value }) => value), mappings.username].some(
    (one) => one && usesClaim(one, 'email_verified'),
  )
  if (mappings.username && usesClaim(mappings.username, 'email') && !verifiesEmail) {
    const expressionPath = path.child('claimMappings', 'username', 'expression')
    faults.push(fieldError.invalid(expressionPath, claimMappings.username?.expression ?? '', emailRule))
  }
  const userRules = validateUserRules(userValidationRules, path.child('userValidationRules'), faults)
  return { ...mappings, claimRules, userRules }
}

const emailRule =
  'claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression'

/** The compiled expression; on an error undefined, and the error is added to `faults`. */
function compiled(variable: Variable, expression: string, isCondition: boolean, path: FieldPath, faults: FieldError[]): CompiledExpression | undefined {
  const result = compileExpression(variable, expression, isCondition, path)
  if ('program' in result) return result
  faults.push(result)
  return undefined
}

function validateClaimRules(rules: readonly ClaimValidationRule[], path: FieldPath, faults: FieldError[]): CompiledRule[] {
  return rules.flatMap(({ claim = '', expression = '', requiredValue = '', message = '' }, at) => {
    const here = path.index(at)
    const before = rules.slice(0, at)
    if (claim && expression) faults.push(fieldError.invalid(here, claim, "claim and expression can't both be set"))
    else if (claim) {
      if (message) faults.push(fieldError.invalid(here.child('message'), message, 'may not be specified when claim is set'))
      if (before.some((one) => one.claim === claim)) faults.push(fieldError.duplicate(here.child('claim'), claim))
    } else if (expression) {
      if (requiredValue) faults.push(fieldError.invalid(here.child('requiredValue'), requiredValue, 'may not be specified when expression is set'))
      if (before.some((one) => one.expression === expression)) faults.push(fieldError.duplicate(here.child('expression'), expression))
      else {
        const rule = compiled('claims', expression, true, here.child('expression'), faults)
        return rule ? [{ rule, message }] : []
      }
    } else faults.push(fieldError.required(here, 'claim or expression is required'))
    return []
  })
}

function validateUserRules(rules: readonly UserValidationRule[], path: FieldPath, faults: FieldError[]): CompiledRule[] {
  return rules.flatMap(({ expression = '', message = '' }, at) => {
    const here = path.index(at).child('expression')
    if (expression === '') faults.push(fieldError.required(here))
    else if (rules.slice(0, at).some((one) => one.expression === expression)) faults.push(fieldError.duplicate(here, expression))
    else {
      const rule = compiled('user', expression, true, here, faults)
      if (rule) return [{ rule, message }]
    }
    return []
  })
}

function validateMappings({ username = {}, groups = {}, uid = {}, extra = [] }: ClaimMappings, path: FieldPath, faults: FieldError[]) {
  const uidPath = path.child('uid')
  if (uid.claim && uid.expression) faults.push(fieldError.invalid(uidPath, '', "claim and expression can't both be set"))
  return {
    username: validateMapping(username, path.child('username'), true, faults),
    groups: validateMapping(groups, path.child('groups'), false, faults),
    uid: uid.expression && !uid.claim ? compiled('claims', uid.expression, false, uidPath.child('expression'), faults) : undefined,
    extra: validateExtra(extra, path.child('extra'), faults),
  }
}

function validateMapping(
  { claim = '', prefix, expression = '' }: PrefixedClaimOrExpression,
  path: FieldPath,
  isRequired: boolean,
  faults: FieldError[],
): CompiledExpression | undefined {
  if (claim && expression) faults.push(fieldError.invalid(path, '', "claim and expression can't both be set"))
  else if (expression) {
    if (prefix !== undefined) faults.push(fieldError.invalid(path.child('prefix'), prefix, 'may not be specified when expression is set'))
    return compiled('claims', expression, false, path.child('expression'), faults)
  } else if (claim) {
    const why = 'prefix is required when claim is set. It can be set to an empty string to disable prefixing'
    if (prefix === undefined) faults.push(fieldError.required(path.child('prefix'), why))
  } else if (isRequired) faults.push(fieldError.required(path, 'claim or expression is required'))
  return undefined
}

const reservedDomain = /(^|\.)(kubernetes|k8s)\.io$/

function validateExtra(extra: NonNullable<ClaimMappings['extra']>, path: FieldPath, faults: FieldError[]): { key: string; value: CompiledExpression }[] {
  return extra.flatMap(({ key = '', valueExpression = '' }, at) => {
    const keyPath = path.index(at).child('key')
    const valuePath = path.index(at).child('valueExpression')
    faults.push(...validateDomainPrefixedPath(key, keyPath))
    if (key !== key.toLowerCase()) faults.push(fieldError.invalid(keyPath, key, 'must be lowercase'))
    if (key.includes('/') && reservedDomain.test(key.slice(0, key.indexOf('/')))) {
      faults.push(fieldError.invalid(keyPath, key, 'k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use'))
    }
    if (extra.slice(0, at).some((one) => (one.key ?? '') === key)) faults.push(fieldError.duplicate(keyPath, key))
    else if (valueExpression === '') faults.push(fieldError.required(valuePath))
    else {
      const value = compiled('claims', valueExpression, false, valuePath, faults)
      if (value) return [{ key, value }]
    }
    return []
  })
}

/** Whether an expression uses a claim: `claims.email`, `has(claims.email)` or `claims.?email`. */
function usesClaim({ checked }: CompiledExpression, claim: string): boolean {
  const isClaims = (expression: Expression | undefined) => expression?.kind === 'identifier' && expression.name === 'claims'
  const uses = (expression: Expression): boolean => {
    if (expression.kind === 'select' && isClaims(expression.operand) && expression.field === claim) return true
    if (expression.kind === 'call' && expression.function === '_?._' && isClaims(expression.args[0])) {
      const field = expression.args[1]
      if (field?.kind === 'literal' && field.value === claim) return true
    }
    return children(expression).some(uses)
  }
  return uses(checked.expression)
}
