/**
 * Authorization checks of expressions (L3). CEL evaluates synchronously, but an authorizer may be remote: a check without a synchronous answer
 * is recorded, and the expressions run again when the answers are known. Each check is made once per request.
 * Upstream: apiserver/pkg/admission/plugin/authorizer/caching_authorizer.go.
 */
import { type AuthorizationCheck, type AuthorizationDecision, type Authorize, authorizerValue, resourceCheckValue } from '#api/cel/authz'
import type { OpaqueValue } from '#cel/values'
import type { AuthorizationAttributes, Authorizer } from '../../authz/authorizer.ts'
import { authorize } from '../../authz/union.ts'
import { fieldTerms } from '../../core/fieldTerms.ts'
import type { UserInfo } from '../../core/request.ts'
import type { AdmissionAttributes } from '../admission.ts'

type Decision = Awaited<ReturnType<typeof authorize>>

export class RequestAuthorizer {
  readonly #authorizers: readonly Authorizer[]
  readonly #attributes: AdmissionAttributes
  readonly #known = new Map<string, AuthorizationDecision>()
  readonly #pending = new Map<string, Promise<void>>()
  readonly authorizer: OpaqueValue
  readonly requestResource: OpaqueValue

  constructor(authorizers: readonly Authorizer[], attributes: AdmissionAttributes, namespace: string) {
    this.#authorizers = authorizers
    this.#attributes = attributes
    const ask: Authorize = (check) => this.#decide(check)
    const { resource, subresource, name } = attributes
    this.authorizer = authorizerValue(ask)
    this.requestResource = resourceCheckValue(ask, { group: resource.group, resource: resource.resource, subresource, namespace, name })
  }

  /** A promise to await before the results are valid; undefined: they are valid. */
  pending(): Promise<unknown> | undefined {
    return this.#pending.size === 0 ? undefined : Promise.all(this.#pending.values())
  }

  #decide(check: AuthorizationCheck): AuthorizationDecision {
    const key = JSON.stringify(check)
    const known = this.#known.get(key)
    if (known) return known
    if (!this.#pending.has(key)) {
      const late = this.#ask(check)
      if (!(late instanceof Promise)) return this.#keep(key, late)
      const settle = (decision: AuthorizationDecision) => {
        this.#keep(key, decision)
        this.#pending.delete(key)
      }
      this.#pending.set(
        key,
        late.then(
          (decision) => settle(decided(decision)),
          (error: Error) => settle({ allowed: false, reason: '', error: error.message }),
        ),
      )
    }
    return { allowed: false, reason: '' }
  }

  #keep(key: string, decision: AuthorizationDecision | Decision): AuthorizationDecision {
    const kept = 'decision' in decision ? decided(decision) : decision
    this.#known.set(key, kept)
    return kept
  }

  #ask(check: AuthorizationCheck): Promise<Decision> | Decision | AuthorizationDecision {
    try {
      return authorize(this.#authorizers, attributesOf(check, this.#attributes.user))
    } catch (error) {
      return { allowed: false, reason: '', error: (error as Error).message }
    }
  }
}

function decided({ decision, reason, error }: Decision): AuthorizationDecision {
  return { allowed: decision === 'allow', reason, ...(error === undefined ? {} : { error }) }
}

function attributesOf(check: AuthorizationCheck, user: UserInfo): AuthorizationAttributes {
  const { verb, path = '', group = '', resource, subresource = '', namespace = '', name = '', fieldSelector, labelSelector } = check
  return {
    user: check.serviceAccount ? serviceAccountUser(check.serviceAccount) : user,
    verb,
    isResourceRequest: resource !== undefined,
    path,
    namespace,
    apiGroup: group,
    apiVersion: resource === undefined ? '' : '*',
    resource: resource ?? '',
    subresource,
    name,
    fieldSelector: fieldTerms(fieldSelector),
    labelSelector: labelSelector || undefined,
  }
}

function serviceAccountUser({ namespace, name }: { readonly namespace: string; readonly name: string }): UserInfo {
  return {
    name: `system:serviceaccount:${namespace}:${name}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
  }
}
