/**
 * Who may call the kubelet (L3): client certificates of the cluster's authority, bearer tokens through TokenReview, then SubjectAccessReview
 * on the node's subresources. Answers are remembered for a while. Upstream: kubelet/server/auth.go, apiserver/plugin/pkg/authorizer/webhook (v1.36).
 */
import type { TokenReview } from '#api/gen/types/authentication.v1'
import type { SubjectAccessReview } from '#api/gen/types/authorization.v1'
import type { Clock } from '#base/clock'
import { subjectAccessReviews, tokenReviews } from '#client/builtIn'
import type { Client } from '#client/client'

export interface KubeletUser {
  readonly name: string
  readonly groups: readonly string[]
}

export interface KubeletRequestAttributes {
  readonly verb: string
  /** Of resource nodes: proxy, stats, metrics, log, healthz, pods, configz. */
  readonly subresource: string
  readonly path: string
}

export interface KubeletAuth {
  /** The user of a bearer token; undefined when it is nobody's. */
  authenticateToken(token: string): Promise<KubeletUser | undefined>
  authorize(user: KubeletUser, attributes: KubeletRequestAttributes): Promise<boolean>
}

const verbs: Readonly<Record<string, string>> = { POST: 'create', GET: 'get', HEAD: 'get', PUT: 'update', PATCH: 'patch', DELETE: 'delete' }
const prefixes = [
  ['/stats', 'stats'],
  ['/metrics', 'metrics'],
  ['/logs', 'log'],
  ['/checkpoint', 'checkpoint'],
] as const
const exact: Readonly<Record<string, string>> = { '/healthz': 'healthz', '/pods': 'pods', '/runningpods': 'pods', '/configz': 'configz' }

/** What must be allowed, most particular first: any of them is enough. */
export function attributesOf(method: string, path: string): KubeletRequestAttributes[] {
  const verb = verbs[method] ?? method.toLowerCase()
  const of = (subresource: string) => ({ verb, subresource, path })
  const prefix = prefixes.find(([start]) => path === start || path.startsWith(`${start}/`))
  if (prefix) return [of(prefix[1])]
  const fine = exact[path.replace(/\/$/, '')]
  return fine ? [of(fine), of('proxy')] : [of('proxy')]
}

const allowedForMs = 300_000
const deniedForMs = 30_000
const maxRemembered = 1024

/** Asks the API server. */
export function apiAuth(client: Client, clock: Clock, nodeName: string): KubeletAuth {
  const remembered = new Map<string, { untilMs: number; value: unknown }>()
  const remember = async <T>(key: string, good: (value: T) => boolean, ask: () => Promise<T>): Promise<T> => {
    const known = remembered.get(key)
    if (known && known.untilMs > clock.now()) return known.value as T
    const value = await ask()
    remembered.delete(key)
    remembered.set(key, { value, untilMs: clock.now() + (good(value) ? allowedForMs : deniedForMs) })
    const [oldest] = remembered.keys()
    if (remembered.size > maxRemembered && oldest !== undefined) remembered.delete(oldest)
    return value
  }
  return {
    authenticateToken: (token) =>
      remember(
        `token ${token}`,
        (user: KubeletUser | undefined) => user !== undefined,
        async () => {
          const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', metadata: {}, spec: { token } }
          const { status } = await client.of<TokenReview>(tokenReviews).create(review)
          return status?.authenticated && status.user ? { name: status.user.username ?? '', groups: [...(status.user.groups ?? [])] } : undefined
        },
      ),
    authorize: (user, { verb, subresource }) =>
      remember(
        `access ${JSON.stringify([user.name, user.groups, verb, subresource])}`,
        (allowed: boolean) => allowed,
        async () => {
          const resourceAttributes = { verb, version: 'v1', resource: 'nodes', subresource, name: nodeName }
          const spec = { user: user.name, groups: [...user.groups], resourceAttributes }
          const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', metadata: {}, spec }
          return (await client.of<SubjectAccessReview>(subjectAccessReviews).create(review)).status?.allowed ?? false
        },
      ),
  }
}
