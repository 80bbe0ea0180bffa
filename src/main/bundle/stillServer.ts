/**
 * A read-only API server on localhost over a store that does not change (L5): a bundle, or a cluster that is stopped. It creates no object, runs no controller,
 * connects to nothing, and answers the holder of its token alone. It reads the time at which the state was taken.
 */
import { randomBytes, randomInt, timingSafeEqual } from 'node:crypto'
import { type ApiServerDeps, createApiServer } from '#apiserver/apiServer'
import type { Authenticator } from '#apiserver/authn/authenticator'
import type { Authorizer } from '#apiserver/authz/authorizer'
import { privilegedGroupAuthorizer } from '#apiserver/authz/privilegedGroup'
import { rbacAuthorizer } from '#apiserver/authz/rbac'
import { type Reach, UnreachableAddress } from '#apiserver/backends/reach'
import { createBuiltInRegistry } from '#apiserver/builtInRegistry'
import type { UserInfo } from '#apiserver/core/request'
import { changesPage } from '#apiserver/endpoints/changes'
import type { RevisionMark } from '#apiserver/registry/revisionTimes'
import { accessReviews } from '#apiserver/reviews/accessReviews'
import { identityReviews } from '#apiserver/reviews/identityReviews'
import type { Clock } from '#base/clock'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import type { StillServer } from '#cli/bundles'
import type { LocalPrograms } from '#cli/command'
import type { LocalStore } from '#store/store'

export interface StillServerOptions extends Pick<ApiServerDeps, 'trace' | 'scrape' | 'subresources'> {
  readonly store: LocalStore
  /** With the time of the state. */
  readonly clock: Clock
  readonly certificate: Awaited<ReturnType<LocalPrograms['certificate']>>
  /** What it is, for refusals: `a bundle`. */
  readonly what: string
  /** In order. */
  readonly times?: readonly RevisionMark[] | undefined
}

/** The store is closed with the server. */
export async function startStillServer(options: StillServerOptions): Promise<StillServer> {
  const { store, clock, certificate, what, times = [], ...parts } = options
  const token = randomBytes(32).toString('base64url')
  const random = seededRandom(randomInt(0xffff_ffff))
  const common = { store, clock, random, log: noLog, metrics: noMetrics }
  const registry = createBuiltInRegistry({ ...common, mediaType: 'application/json', parsesLate: true })
  const authorizers = [readerAuthorizer(what), privilegedGroupAuthorizer, rbacAuthorizer(registry.reader)]
  const server = createApiServer(
    {
      ...common,
      ...parts,
      registry,
      authorizers,
      authenticators: [tokenAuthenticator(token)],
      admission: [],
      computedResources: [...accessReviews(authorizers), ...identityReviews([], [])],
      pages: [changesPage({ store, registry, authorizers })],
    },
    { readsOnly: true, priorityAndFairness: false, reach: nowhere(what) },
  )
  // Before the first reading: it takes the newest revision for one of now.
  registry.cacher.times.restore(times, times[0]?.revision)
  const stopping = new AbortController()
  const running = server.run(stopping.signal)
  await Promise.race([server.started, running])
  const { ca, ...tls } = certificate
  const listener = await server.listen({ host: '127.0.0.1', port: 0, tls })
  return {
    url: `https://127.0.0.1:${listener.port}`,
    token,
    ca,
    async close() {
      const closed = listener.close()
      stopping.abort()
      await Promise.all([closed, running])
      await store.close()
    },
  }
}

const reader: UserInfo = { name: 'skiff:reader', groups: ['system:authenticated'] }

function tokenAuthenticator(token: string): Authenticator {
  const wanted = Buffer.from(`Bearer ${token}`)
  return {
    name: 'token',
    authenticate: ({ headers }) => {
      const given = Buffer.from(String(headers.authorization ?? ''))
      return given.length === wanted.length && timingSafeEqual(given, wanted) ? { decision: 'authenticated', user: reader } : undefined
    },
  }
}

const reads: ReadonlySet<string> = new Set(['get', 'list', 'watch'])
/** Questions that are asked by a POST, and change nothing. */
const questions: ReadonlySet<string> = new Set(['authentication.k8s.io', 'authorization.k8s.io'])
/** What is stored. Others ask a node. */
const storedSubresources: ReadonlySet<string> = new Set(['', 'log', 'scale', 'status'])

/** The one user reads everything, whatever the roles of the cluster allow; all others have the rights that they had there. */
function readerAuthorizer(what: string): Authorizer {
  return {
    name: 'reader',
    authorize: ({ user, verb, isResourceRequest, apiGroup, subresource }) => {
      if (user.name !== reader.name) return { decision: 'noOpinion', reason: '' }
      if (!isResourceRequest) return verb === 'get' || verb === 'head' ? allowed : { decision: 'deny', reason: `${what} is read-only` }
      if (verb === 'create' && questions.has(apiGroup)) return allowed
      if (!reads.has(verb)) return { decision: 'deny', reason: `${what} is read-only` }
      return storedSubresources.has(subresource) ? allowed : { decision: 'deny', reason: `this needs the running cluster, and ${what} has none` }
    },
    rulesFor: (user) => ({ rules: user.name === reader.name ? readerRules : [], incomplete: false }),
  }
}

const readerRules = [
  { verbs: [...reads], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['get'], nonResourceURLs: ['*'] },
]
const allowed = { decision: 'allow', reason: '' } as const

function nowhere(what: string): Reach {
  return {
    dialerFor: () => {
      throw new UnreachableAddress(`${what} connects to nothing`)
    },
  }
}
