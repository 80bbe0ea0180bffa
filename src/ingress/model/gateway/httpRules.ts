/**
 * Compiles the rules of an HTTPRoute into matches with their precedence (L3, pure). Whatever the object holds, this does not throw: a rule that cannot be served
 * is left out and named by a condition. Upstream: apis/v1/httproute_types.go (v1.6.3), whose order of precedence this is.
 */
import { parseDuration } from '#api/machinery/duration'
import type { Frozen } from '#api/machinery/meta'
import type { PathPattern } from '../hostRoutes.ts'
import { patternOf } from '../parsedIngress.ts'
import { backendOf, backendsOf, type WeightedBackend } from './backends.ts'
import { type Changes, changesOf } from './filters.ts'
import type { HttpMatch, HttpRoute, HttpRule, NamedValue } from './kinds.ts'
import { fails, holds, type Outcome } from './outcome.ts'
import type { ClusterView } from './view.ts'

export interface GatewayRule {
  readonly backends: readonly WeightedBackend[]
  /** Sum of the backends' weights. */
  readonly weight: number
  readonly changes: Changes
  readonly timeoutMs: number | undefined
  readonly backendTimeoutMs: number | undefined
}

export interface RuleMatch {
  readonly pattern: PathPattern
  readonly method: string | undefined
  /** The last of two elements of the path: a method of any gRPC service. */
  readonly grpcMethod: string | undefined
  /** Names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly queryParams: readonly (readonly [name: string, value: string])[]
  /** Orders the matches of one path by precedence. */
  readonly rank: string
  readonly rule: GatewayRule
}

export interface CompiledRules {
  readonly matches: readonly RuleMatch[]
  /** True unless no rule can be served. */
  readonly accepted: Outcome
  readonly resolved: Outcome
  /** Only there when some rules are left out. */
  readonly partiallyInvalid: Outcome | undefined
}

/** More than a route has of anything: numbers that are subtracted from it, or added, have the same count of digits. */
const most = 5000
const maxTimeoutMs = 86_400_000

/** @param kind of the object that the rules come from */
export function compileHttpRules(route: Frozen<HttpRoute>, view: ClusterView, kind = 'HTTPRoute'): CompiledRules {
  const { namespace = '', name = '', creationTimestamp = '' } = route.metadata
  const rules = route.spec.rules ?? [{}]
  const unresolved: Outcome[] = []
  const refused: string[] = []
  const matches: RuleMatch[] = []
  for (const [at, rule] of rules.entries()) {
    const compiled = compileRule(rule, { kind, namespace }, view, unresolved)
    const found = typeof compiled === 'string' ? compiled : matchesOf(rule, compiled, `${creationTimestamp} ${namespace}/${name} ${most + at}`)
    if (typeof found === 'string') refused.push(`${found} of rule ${rule.name ?? at} is not supported`)
    else matches.push(...found)
  }
  const problem = `${refused[0]}${refused.length > 1 ? `, and ${refused.length - 1} more` : ''}`
  return {
    matches,
    accepted: refused.length > 0 && matches.length === 0 ? fails('Accepted', 'UnsupportedValue', problem) : holds('Accepted'),
    resolved: unresolved[0] ?? holds('ResolvedRefs'),
    partiallyInvalid: refused.length > 0 && matches.length > 0 ? holds('PartiallyInvalid', `Dropped Rule: ${problem}`, 'UnsupportedValue') : undefined,
  }
}

function compileRule(rule: Frozen<HttpRule>, from: { kind: string; namespace: string }, view: ClusterView, unresolved: Outcome[]): GatewayRule | string {
  const changes = changesOf(rule.filters ?? [], (mirror) => backendOf(mirror, from, view, unresolved))
  if (typeof changes === 'string') return changes
  if (rule.sessionPersistence) return 'session persistence'
  if (rule.retry) return 'a retry'
  const backends = backendsOf(rule.backendRefs ?? [], from, view, unresolved)
  const { request, backendRequest } = rule.timeouts ?? {}
  return {
    backends,
    weight: backends.reduce((sum, { weight }) => sum + weight, 0),
    changes,
    timeoutMs: timeoutOf(request),
    backendTimeoutMs: timeoutOf(backendRequest),
  }
}

/** Zero turns a timeout off. */
function timeoutOf(text: string | undefined): number | undefined {
  const ms = text === undefined ? 0 : (parseDuration(text) ?? 0)
  return ms > 0 ? Math.min(ms, maxTimeoutMs) : undefined
}

function matchesOf({ matches = [] }: Frozen<HttpRule>, rule: GatewayRule, age: string): RuleMatch[] | string {
  const compiled: RuleMatch[] = []
  for (const [at, match] of (matches.length > 0 ? matches : [{}]).entries()) {
    const one = compileMatch(match)
    if (typeof one === 'string') return one
    const rank = `${one.method || one.grpcMethod ? 0 : 1}${most - one.headers.length}${most - one.queryParams.length} ${age} ${most + at}`
    compiled.push({ ...one, rank, rule })
  }
  return compiled
}

function compileMatch({ path = {}, method, grpcMethod, headers = [], queryParams = [] }: Frozen<HttpMatch>): Omit<RuleMatch, 'rank' | 'rule'> | string {
  const { type = 'PathPrefix', value = '/' } = path
  const valued = [...headers, ...queryParams].find((one) => (one.type ?? 'Exact') !== 'Exact')
  if (valued) return `a match of type ${valued.type}`
  if (type !== 'PathPrefix' && type !== 'Exact') return `a path of type ${type}`
  const pattern = patternOf({ path: value, pathType: type })
  if (!pattern) return 'a path'
  return { pattern, method, grpcMethod, headers: distinct(headers, (name) => name.toLowerCase()), queryParams: distinct(queryParams, (name) => name) }
}

/** The first entry of each name counts. */
function distinct(entries: readonly Frozen<NamedValue>[], nameOf: (name: string) => string): (readonly [string, string])[] {
  const found = new Map<string, string>()
  for (const { name, value } of entries) if (!found.has(nameOf(name))) found.set(nameOf(name), value)
  return [...found]
}
