/**
 * CEL's library for authorization checks: authorizer.group('').resource('pods').namespace('x').check('create').allowed() (L1).
 * Evaluation is synchronous, so the authorizer is asked synchronously; who gives it decides how.
 * Upstream: apiserver/pkg/cel/library/authz.go (v1.36).
 */
import type { Library } from '#cel/declarations'
import { declare, member } from '#cel/declarations'
import { opaqueType } from '#cel/types'
import { EvaluationError, OpaqueValue } from '#cel/values'
import { nameIsDnsLabel, nameIsDnsSubdomain } from '../machinery/names.ts'

/** The service account that a check is about, in place of the request's own user. */
export interface ServiceAccountRef {
  readonly namespace: string
  readonly name: string
}

export interface AuthorizationCheck {
  readonly verb: string
  /** Undefined for the user of the request. */
  readonly serviceAccount: ServiceAccountRef | undefined
  /** The path of a request for no resource. */
  readonly path?: string | undefined
  readonly group?: string | undefined
  readonly resource?: string | undefined
  readonly subresource?: string | undefined
  readonly namespace?: string | undefined
  readonly name?: string | undefined
  /** As written; not yet parsed. */
  readonly fieldSelector?: string | undefined
  readonly labelSelector?: string | undefined
}

export interface AuthorizationDecision {
  readonly allowed: boolean
  readonly reason: string
  /** Why the authorizer could not decide. */
  readonly error?: string | undefined
}

/** What the environment must bring. */
export type Authorize = (check: AuthorizationCheck) => AuthorizationDecision

type Kind = 'Authorizer' | 'PathCheck' | 'GroupCheck' | 'ResourceCheck' | 'Decision'
const nameOf = (kind: Kind): string => `kubernetes.authorization.${kind}`

class CheckValue extends OpaqueValue {
  readonly typeName: string
  readonly authorize: Authorize
  readonly check: Omit<AuthorizationCheck, 'verb'>

  constructor(kind: Kind, authorize: Authorize, check: Omit<AuthorizationCheck, 'verb'>) {
    super()
    this.typeName = nameOf(kind)
    this.authorize = authorize
    this.check = check
  }
  equals(other: OpaqueValue): boolean {
    return other instanceof CheckValue && this.authorize === other.authorize && JSON.stringify(this.check) === JSON.stringify(other.check)
  }
}

class DecisionValue extends OpaqueValue {
  readonly typeName = nameOf('Decision')
  readonly decision: AuthorizationDecision

  constructor(decision: AuthorizationDecision) {
    super()
    this.decision = decision
  }
  equals(other: OpaqueValue): boolean {
    return other instanceof DecisionValue && JSON.stringify(this.decision) === JSON.stringify(other.decision)
  }
}

/** The value of the variable `authorizer`. */
export const authorizerValue = (authorize: Authorize): OpaqueValue => new CheckValue('Authorizer', authorize, { serviceAccount: undefined })

/** The value of the variable `authorizer.requestResource`. */
export function resourceCheckValue(
  authorize: Authorize,
  resource: { group: string; resource: string; subresource: string; namespace: string; name: string },
): OpaqueValue {
  return new CheckValue('ResourceCheck', authorize, { serviceAccount: undefined, ...resource })
}

/** The types of these variables. */
export const authorizerType = opaqueType(nameOf('Authorizer'))
export const resourceCheckType = opaqueType(nameOf('ResourceCheck'))

const isBlank = (text: string): boolean => text.trim() === ''

function withPath({ authorize, check }: CheckValue, path: string): CheckValue {
  if (isBlank(path)) throw new EvaluationError('path must not be empty')
  return new CheckValue('PathCheck', authorize, { ...check, path })
}

function withResource({ authorize, check }: CheckValue, resource: string): CheckValue {
  if (isBlank(resource)) throw new EvaluationError('resource must not be empty')
  return new CheckValue('ResourceCheck', authorize, { ...check, resource })
}

function asServiceAccount({ authorize }: CheckValue, namespace: string, name: string): CheckValue {
  if (nameIsDnsSubdomain(name, false).length > 0) throw new EvaluationError('Invalid service account name')
  if (nameIsDnsLabel(namespace, false).length > 0) throw new EvaluationError('Invalid service account namespace')
  return new CheckValue('Authorizer', authorize, { serviceAccount: { namespace, name } })
}

const types = Object.fromEntries(
  (['Authorizer', 'PathCheck', 'GroupCheck', 'ResourceCheck', 'Decision'] as const).map((kind) => [kind, nameOf(kind)]),
) as Record<Kind, string>

/** Narrows a check of resources by one more attribute. */
const narrowing = (name: string, id: string, attribute: keyof AuthorizationCheck) =>
  declare(
    name,
    member(
      id,
      `(${types.ResourceCheck}, string) -> ${types.ResourceCheck}`,
      ({ authorize, check }: CheckValue, value: string) => new CheckValue('ResourceCheck', authorize, { ...check, [attribute]: value }),
    ),
  )

const check = ({ authorize, check: rest }: CheckValue, verb: string): DecisionValue => new DecisionValue(authorize({ ...rest, verb }))

export const authzLibrary: Library = {
  typeNames: Object.values(types).map((name) => opaqueType(name)),
  functions: [
    declare('path', member('authorizer_path', `(${types.Authorizer}, string) -> ${types.PathCheck}`, withPath)),
    declare(
      'group',
      member(
        'authorizer_group',
        `(${types.Authorizer}, string) -> ${types.GroupCheck}`,
        (authorizer: CheckValue, group: string) => new CheckValue('GroupCheck', authorizer.authorize, { ...authorizer.check, group }),
      ),
    ),
    declare('serviceAccount', member('authorizer_serviceaccount', `(${types.Authorizer}, string, string) -> ${types.Authorizer}`, asServiceAccount)),
    declare('resource', member('groupcheck_resource', `(${types.GroupCheck}, string) -> ${types.ResourceCheck}`, withResource)),
    narrowing('subresource', 'resourcecheck_subresource', 'subresource'),
    narrowing('namespace', 'resourcecheck_namespace', 'namespace'),
    narrowing('name', 'resourcecheck_name', 'name'),
    narrowing('fieldSelector', 'authorizer_fieldselector', 'fieldSelector'),
    narrowing('labelSelector', 'authorizer_labelselector', 'labelSelector'),
    declare(
      'check',
      member('pathcheck_check', `(${types.PathCheck}, string) -> ${types.Decision}`, check),
      member('resourcecheck_check', `(${types.ResourceCheck}, string) -> ${types.Decision}`, check),
    ),
    declare(
      'errored',
      member('decision_errored', `(${types.Decision}) -> bool`, ({ decision }: DecisionValue) => decision.error !== undefined),
    ),
    declare(
      'error',
      member('decision_error', `(${types.Decision}) -> string`, ({ decision }: DecisionValue) => decision.error ?? ''),
    ),
    declare(
      'allowed',
      member('decision_allowed', `(${types.Decision}) -> bool`, ({ decision }: DecisionValue) => decision.allowed),
    ),
    declare(
      'reason',
      member('decision_reason', `(${types.Decision}) -> string`, ({ decision }: DecisionValue) => decision.reason),
    ),
  ],
}
