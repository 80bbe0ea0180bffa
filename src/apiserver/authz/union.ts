/**
 * Several authorizers as one (L3): asked in order, the first that allows or denies decides; the reasons and errors of all are reported
 * when none does. Upstream: apiserver/pkg/authorization/union.
 */
import { aggregateReasons } from '../core/reasons.ts'
import type { UserInfo } from '../core/request.ts'
import type { AuthorizationAttributes, AuthorizationDecision, Authorizer, NearestRules, RulesAnswer } from './authorizer.ts'

/** Reasons and errors of authorizers without an opinion, so far. */
interface Undecided {
  readonly reasons: readonly string[]
  readonly errors: readonly string[]
}

const nobodyYet: Undecided = { reasons: [], errors: [] }
const undecided: AuthorizationDecision = { decision: 'noOpinion', reason: '' }

/** Returns a promise only if an authorizer does. */
export function authorize(
  authorizers: readonly Authorizer[],
  attributes: AuthorizationAttributes,
  from = 0,
  before = nobodyYet,
): Promise<AuthorizationDecision> | AuthorizationDecision {
  let said = before
  for (let at = from; at < authorizers.length; at++) {
    const result = (authorizers[at] as Authorizer).authorize(attributes)
    if (result instanceof Promise) {
      return result.then((late) => (late.decision === 'noOpinion' ? authorize(authorizers, attributes, at + 1, withResult(said, late)) : late))
    }
    if (result.decision !== 'noOpinion') return result
    said = withResult(said, result)
  }
  if (said === nobodyYet) return undecided
  const { reasons, errors } = said
  return { decision: 'noOpinion', reason: reasons.join('\n'), ...(errors.length > 0 ? { error: aggregateReasons(errors) } : {}) }
}

function withResult(before: Undecided, { reason, error }: AuthorizationDecision): Undecided {
  if (reason === '' && error === undefined) return before
  return {
    reasons: reason === '' ? before.reasons : [...before.reasons, reason],
    errors: error === undefined ? before.errors : [...before.errors, error],
  }
}

/** By the first authorizer that has rules. */
export function nearestRules(authorizers: readonly Authorizer[], attributes: AuthorizationAttributes): NearestRules | undefined {
  for (const { nearest } of authorizers) {
    const found = nearest?.(attributes)
    if (found) return found
  }
  return undefined
}

/** The rules of all authorizers that can list them. */
export function rulesFor(authorizers: readonly Authorizer[], user: UserInfo, namespace: string): RulesAnswer {
  const answers = authorizers.flatMap((authorizer) => authorizer.rulesFor?.(user, namespace) ?? [])
  const errors = answers.flatMap(({ error }) => error ?? [])
  return {
    rules: answers.flatMap(({ rules }) => rules),
    incomplete: answers.some(({ incomplete }) => incomplete),
    ...(errors.length > 0 ? { error: aggregateReasons(errors) } : {}),
  }
}
