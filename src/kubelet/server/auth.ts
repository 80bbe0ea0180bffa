/**
 * Authenticates and authorizes calls of the kubelet (L3): client certificates, bearer tokens through TokenReview, then SubjectAccessReview
 * on the node's subresources. Answers are cached. Upstream: kubelet/server/auth.go, cmd/kubelet/app/auth.go,
 * apiserver/plugin/pkg/authorizer/webhook (v1.36).
 */
import { createHash } from 'node:crypto'
import type { TokenReview } from '#api/gen/types/authentication.v1'
import type { SubjectAccessReview } from '#api/gen/types/authorization.v1'
import { deadlineScope } from '#base/abortScope'
import { bareMap } from '#base/bareMap'
import type { Clock } from '#base/clock'
import { subjectAccessReviews, tokenReviews } from '#client/builtIn'
import type { Client } from '#client/client'

export interface KubeletUser {
  readonly name: string
  readonly uid?: string | undefined
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined
}

export interface KubeletRequestAttributes {
  readonly verb: string
  /** Of resource nodes: proxy, stats, metrics, log, healthz, pods, configz, statusz, checkpoint. */
  readonly subresource: string
  readonly path: string
}

export interface KubeletAuth {
  /** A request without credentials is system:anonymous; false: it is refused. */
  readonly anonymous: boolean
  /** The user of a bearer token; undefined for an unknown token. */
  authenticateToken(token: string): Promise<KubeletUser | undefined>
  authorize(user: KubeletUser, attributes: KubeletRequestAttributes): Promise<boolean>
}

export interface KubeletAuthSettings {
  readonly anonymous: boolean
  /** False: bearer tokens are not accepted. */
  readonly tokens: boolean
  readonly tokenTtlMs: number
  readonly mode: 'Webhook' | 'AlwaysAllow'
  readonly authorizedTtlMs: number
  readonly unauthorizedTtlMs: number
}

/** Upstream's for a kubelet with a configuration file. */
export const authDefaults: KubeletAuthSettings = {
  anonymous: false,
  tokens: true,
  tokenTtlMs: 120_000,
  mode: 'Webhook',
  authorizedTtlMs: 300_000,
  unauthorizedTtlMs: 30_000,
}

export const anonymousUser: KubeletUser = { name: 'system:anonymous', groups: ['system:unauthenticated'] }

const verbs: Readonly<Record<string, string>> = bareMap({ POST: 'create', GET: 'get', PUT: 'update', PATCH: 'patch', DELETE: 'delete' })
/** Subresources of their own; proxy is enough for these, too. */
const fine = [
  ['/pods', 'pods'],
  ['/healthz', 'healthz'],
  ['/configz', 'configz'],
  ['/runningpods', 'pods'],
] as const
/** For these, proxy is not enough. */
const coarse = [
  ['/stats', 'stats'],
  ['/metrics', 'metrics'],
  ['/logs', 'log'],
  ['/checkpoint', 'checkpoint'],
  ['/statusz', 'statusz'],
  // Flags are configuration.
  ['/flagz', 'configz'],
] as const

/** The attributes to authorize, most specific first: one allowed is enough. */
export function attributesOf(method: string, path: string): KubeletRequestAttributes[] {
  const find = (paths: readonly (readonly [string, string])[]) => paths.find(([start]) => path === start || path.startsWith(`${start}/`))?.[1]
  const own = find(fine)
  const subresources = [...(own ? [own] : []), find(coarse) ?? 'proxy']
  return subresources.map((subresource) => ({ verb: verbs[method] ?? '', subresource, path }))
}

const maxRemembered = 1024

/** Asks the API server. */
export function apiAuth(client: Client, clock: Clock, nodeName: string, settings: KubeletAuthSettings = authDefaults): KubeletAuth {
  const remembered = new Map<string, { untilMs: number; value: Promise<unknown> }>()
  /** One question at a time for each key; what failed is asked again. */
  const remember = <T>(key: string, ttlMs: (value: T) => number, ask: () => Promise<T>): Promise<T> => {
    const known = remembered.get(key)
    if (known && known.untilMs > clock.now()) return known.value as Promise<T>
    const value = ask()
    const entry = { value, untilMs: Number.POSITIVE_INFINITY }
    remembered.delete(key)
    remembered.set(key, entry)
    const [oldest] = remembered.keys()
    if (remembered.size > maxRemembered && oldest !== undefined) remembered.delete(oldest)
    value.then(
      (answer) => {
        entry.untilMs = clock.now() + ttlMs(answer)
      },
      () => {
        if (remembered.get(key) === entry) remembered.delete(key)
      },
    )
    return value
  }
  return {
    anonymous: settings.anonymous,
    authenticateToken: async (token) => {
      if (!settings.tokens) return undefined
      return remember(
        `token ${createHash('sha256').update(token).digest('base64')}`,
        () => settings.tokenTtlMs,
        () => reviewToken(client, clock, token),
      )
    },
    authorize: async (user, { verb, subresource }) => {
      if (settings.mode === 'AlwaysAllow') return true
      return remember(
        `access ${JSON.stringify([user, verb, subresource])}`,
        (allowed: boolean) => (allowed ? settings.authorizedTtlMs : settings.unauthorizedTtlMs),
        () => reviewAccess(client, clock, user, { verb, version: 'v1', resource: 'nodes', subresource, name: nodeName }),
      )
    },
  }
}

/** Requests of the same user wait for one review, so it ends in time. Upstream: TokenAccessReviewTimeout of cmd/kubelet/app/auth.go. */
const reviewTimeoutMs = 10_000

const authenticated = 'system:authenticated'

/** With a certificate that the authority signed, or a token that the API server knows. */
export function withAuthenticated(groups: readonly string[]): string[] {
  return groups.includes(authenticated) ? [...groups] : [...groups, authenticated]
}

async function reviewToken(client: Client, clock: Clock, token: string): Promise<KubeletUser | undefined> {
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', metadata: {}, spec: { token } }
  using limit = deadlineScope({ clock, ms: reviewTimeoutMs })
  const { status } = await client.of<TokenReview>(tokenReviews).create(review, { signal: limit.signal })
  if (!status?.authenticated || !status.user) return undefined
  const { username = '', uid, groups = [], extra } = status.user
  return { name: username, ...(uid ? { uid } : {}), groups: withAuthenticated(groups), ...(extra ? { extra } : {}) }
}

async function reviewAccess(client: Client, clock: Clock, { name, groups, uid, extra }: KubeletUser, resourceAttributes: object): Promise<boolean> {
  const spec = { user: name, groups: [...groups], ...(uid ? { uid } : {}), ...(extra ? { extra } : {}), resourceAttributes }
  const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', metadata: {}, spec } as SubjectAccessReview
  using limit = deadlineScope({ clock, ms: reviewTimeoutMs })
  const { status } = await client.of<SubjectAccessReview>(subjectAccessReviews).create(review, { signal: limit.signal })
  return status?.allowed ?? false
}
