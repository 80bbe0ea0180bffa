/**
 * Decides whether a user may act as another (L3). Five modes are tried, the constrained ones first: associated-node, arbitrary-node,
 * serviceaccount, user-info, each only for what `impersonate-on:<mode>:<verb>` allows; last the legacy mode, which allows every request. The mode
 * that last allowed a user is tried first the next time; what the constrained modes allowed is cached for ten seconds.
 * Upstream: apiserver/pkg/endpoints/filters/impersonation/{constrained_impersonation,mode,cache}.go (v1.36).
 */
import { createHash } from 'node:crypto'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { LruCache } from '#base/lruCache'
import type { AuthorizationAttributes, Authorizer } from '../../authz/authorizer.ts'
import { forbiddenError } from '../../authz/forbidden.ts'
import { authorize } from '../../authz/union.ts'
import type { UserInfo } from '../../core/request.ts'
import { splitServiceAccountName } from '../serviceAccountUser.ts'
import { type Allow, checkFields, nodeOfName } from './fieldChecks.ts'
import type { ImpersonationMetrics } from './metrics.ts'
import { onlyNamed, type WantedUser } from './wantedUser.ts'

export interface Impersonated {
  readonly user: UserInfo
  /** The verb that allowed it, for the audit log; empty for the legacy mode. */
  readonly constraint: string
}

export interface ImpersonatorDeps {
  readonly authorizers: readonly Authorizer[]
  readonly clock: Clock
  readonly metrics: ImpersonationMetrics
}

/** One mode. Undefined: the mode does not apply to such users. @throws Status Forbidden */
type Mode = (wanted: WantedUser, attributes: AuthorizationAttributes) => Promise<Impersonated | undefined>

/** @throws Status Forbidden: the refusal of the first mode that applied */
export type Impersonate = (wanted: WantedUser, attributes: AuthorizationAttributes) => Promise<Impersonated>

const rememberedMs = 10_000
const cacheSize = 10_000

export function createImpersonator(deps: ImpersonatorDeps): Impersonate {
  const allow = allowBy(deps)
  const modes: readonly Mode[] = [associatedNode(deps, allow), ...namedModes.map((mode) => constrained(deps, { ...mode, allow })), legacy(allow)]
  const lastMode = new LruCache<string, { readonly index: number }>(cacheSize)
  return async (wanted, attributes) => {
    const requestor = attributes.user.name
    const known = lastMode.get(requestor)?.index
    const order = known === undefined ? modes.keys() : [known, ...[...modes.keys()].filter((index) => index !== known)]
    let refusal: unknown
    for (const index of order) {
      try {
        const found = await modes[index]?.(wanted, attributes)
        if (!found) continue
        if (index !== known) lastMode.set(requestor, { index })
        return found
      } catch (error) {
        if (!isStatus(error, 'Forbidden')) throw error
        refusal ??= error
      }
    }
    throw refusal
  }
}

function allowBy({ authorizers, clock, metrics }: ImpersonatorDeps): Allow {
  return async (attributes) => {
    const startedMs = clock.monotonicMs()
    const { decision, reason } = await authorize(authorizers, attributes)
    metrics.authorization(attributes.verb, decision === 'allow' ? 'allowed' : 'denied', clock.monotonicMs() - startedMs)
    if (decision !== 'allow') throw forbiddenError(attributes, reason)
  }
}

function legacy(allow: Allow): Mode {
  return async (wanted, { user }) => ({ user: await checkFields({ verb: 'impersonate', isConstrained: false, allow }, wanted, user), constraint: '' })
}

interface NamedMode {
  readonly name: string
  readonly isFor: (wanted: WantedUser) => boolean
}

const isNode = ({ name }: WantedUser): boolean => nodeOfName(name) !== undefined
const isServiceAccount = ({ name }: WantedUser): boolean => splitServiceAccountName(name) !== undefined

const namedModes: readonly NamedMode[] = [
  { name: 'arbitrary-node', isFor: (wanted) => onlyNamed(wanted) && isNode(wanted) },
  { name: 'serviceaccount', isFor: (wanted) => onlyNamed(wanted) && isServiceAccount(wanted) },
  { name: 'user-info', isFor: (wanted) => !isNode(wanted) && !isServiceAccount(wanted) },
]

interface ConstrainedOptions extends NamedMode {
  readonly allow: Allow
  /** The cache key's user and attributes, if they differ from the request's. */
  readonly filedUnder?: ((wanted: WantedUser, attributes: AuthorizationAttributes) => readonly [WantedUser, AuthorizationAttributes]) | undefined
}

function constrained({ clock }: ImpersonatorDeps, { name, isFor, allow, filedUnder = (...given) => given }: ConstrainedOptions): Mode {
  const verb = `impersonate:${name}`
  const ofRequests = briefCache(clock)
  const ofUsers = briefCache(clock)
  return async (wanted, attributes) => {
    if (!isFor(wanted)) return undefined
    const [filed, filedAttributes] = filedUnder(wanted, attributes)
    const requestKey = keyOf(filed, filedAttributes)
    const known = ofRequests.get(requestKey)
    if (known) return known
    await allow({ ...attributes, verb: `impersonate-on:${name}:${attributes.verb}` })
    const userKey = keyOf(filed, { user: filedAttributes.user })
    const found = ofUsers.get(userKey) ?? { user: await checkFields({ verb, isConstrained: true, allow }, wanted, attributes.user), constraint: verb }
    ofUsers.set(userKey, found)
    ofRequests.set(requestKey, found)
    return found
  }
}

/** Caches allowed impersonations for ten seconds. */
function briefCache(clock: Clock) {
  const entries = new LruCache<string, { readonly found: Impersonated; readonly untilMs: number }>(cacheSize)
  return {
    get(key: string): Impersonated | undefined {
      const entry = entries.get(key)
      return entry && clock.monotonicMs() < entry.untilMs ? entry.found : undefined
    },
    set: (key: string, found: Impersonated) => entries.set(key, { found, untilMs: clock.monotonicMs() + rememberedMs }),
  }
}

/** A hash, since the requestor can make the wanted fields long. */
function keyOf(wanted: WantedUser, attributes: Pick<AuthorizationAttributes, 'user'> & Partial<AuthorizationAttributes>): string {
  const hash = createHash('sha256').update(JSON.stringify([wanted, attributes]))
  return `${hash.digest('base64')}/${attributes.user.name}`
}

const nodeNameKey = 'authentication.kubernetes.io/node-name'
const associatedKeys = 'authentication.kubernetes.io/associated-node-keys'

/**
 * A service account that acts as the node on which its pod runs, by the claims of its token. The permission does not name the node, so the question
 * leaves out node-specific fields, and the answer is cached for the account on every node.
 */
function associatedNode(deps: ImpersonatorDeps, allow: Allow): Mode {
  const anywhere = ({ extra = {}, ...user }: UserInfo): UserInfo => ({ ...user, extra: { [associatedKeys]: Object.keys(extra).sort() } })
  const mode = constrained(deps, {
    name: 'associated-node',
    isFor: onlyNamed,
    allow: (attributes) =>
      allow({ ...attributes, user: anywhere(attributes.user), ...(attributes.verb === 'impersonate:associated-node' ? { name: '*' } : {}) }),
    filedUnder: (wanted, attributes) => [
      { ...wanted, name: 'system:node:*' },
      { ...attributes, user: anywhere(attributes.user) },
    ],
  })
  return async (wanted, attributes) => {
    const { name, extra } = attributes.user
    const [ownNode, ...more] = extra?.[nodeNameKey] ?? []
    const node = nodeOfName(wanted.name)
    if (node === undefined || node !== ownNode || more.length > 0 || !splitServiceAccountName(name)) return undefined
    const found = await mode(wanted, attributes)
    return found && { ...found, user: { ...found.user, name: wanted.name } }
  }
}
