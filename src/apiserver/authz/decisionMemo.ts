/**
 * Caches decisions by user and attributes (L3), until a role or binding changes. The key leaves out the object's name: where a rule depends on the
 * name, the decision is not cached. Bounded: an evicted decision is computed again.
 */
import { LruCache } from '#base/lruCache'
import type { UserInfo } from '../core/request.ts'
import type { AuthorizationAttributes, AuthorizationDecision } from './authorizer.ts'

export interface Decided {
  readonly decision: AuthorizationDecision
  /** True if the decision depends on the object's name. */
  readonly isOfName: boolean
}

type Decisions = Map<string, AuthorizationDecision>

const mostUsers = 4096
const mostOfUser = 256

export class DecisionMemo {
  #byUser = new WeakMap<UserInfo, Decisions>()
  /** The same by name and groups: authenticators may make a new object for each request. */
  #byIdentity = new LruCache<string, Decisions>(mostUsers)

  forget(): void {
    this.#byUser = new WeakMap()
    this.#byIdentity = new LruCache(mostUsers)
  }

  /** Decisions about non-resource paths are not cached: clients choose how many paths there are. */
  decide(attributes: AuthorizationAttributes, work: (attributes: AuthorizationAttributes) => Decided): AuthorizationDecision {
    if (!attributes.isResourceRequest) return work(attributes).decision
    const { verb, namespace, apiGroup, resource, subresource } = attributes
    const decisions = this.#of(attributes.user)
    const key = `${verb}\n${resource}\n${namespace}\n${apiGroup}\n${subresource}`
    const known = decisions.get(key)
    if (known) return known
    const { decision, isOfName } = work(attributes)
    if (isOfName) return decision
    if (decisions.size >= mostOfUser) decisions.clear()
    decisions.set(key, decision)
    return decision
  }

  #of(user: UserInfo): Decisions {
    let decisions = this.#byUser.get(user)
    if (decisions) return decisions
    // In JSON, because names and groups may contain any separator.
    const identity = JSON.stringify([user.name, user.groups])
    decisions = this.#byIdentity.get(identity)
    if (!decisions) {
      decisions = new Map()
      this.#byIdentity.set(identity, decisions)
    }
    this.#byUser.set(user, decisions)
    return decisions
  }
}
