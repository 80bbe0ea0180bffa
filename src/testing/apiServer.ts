/**
 * A real API server in this process, for integration tests: the memory store, both transports, nothing imitated. The test passes
 * authenticators and authorizers; by default every user may do everything.
 */
import { type ApiServer, type ApiServerConfig, type ApiServerDeps, createApiServer } from '#apiserver/apiServer'
import { createBuiltInRegistry } from '#apiserver/builtInRegistry'
import type { UserInfo } from '#apiserver/core/request'
import type { Encryption } from '#apiserver/encryption/encryption'
import type { KubeletAccess } from '#apiserver/endpoints/subresources/node'
import type { ServiceNetwork } from '#apiserver/kinds/services/serviceStorage'
import type { Registry } from '#apiserver/registry/registry'
import type { StorageMediaType } from '#apiserver/registry/storedForm'
import { meteredStore } from '#apiserver/registry/storeMetrics'
import type { Listener } from '#apiserver/server/listener'
import type { ClientAuthorities } from '#apiserver/server/peerCertificate'
import type { Clock } from '#base/clock'
import { noLog } from '#base/log'
import { type Metrics, noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import type { Tracer } from '#base/traceContext'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'
import type { Store } from '#store/store'
import { defaultStore } from './defaultStore.ts'
import { realClock } from './realClock.ts'
import { testCertificates } from './testCertificates.ts'

const testAdmin: UserInfo = { name: 'test-admin', groups: ['system:masters', 'system:authenticated'] }

export interface TestApiServerOptions {
  readonly clock?: Clock | undefined
  readonly metrics?: Metrics | undefined
  /** Makes spans of requests; absent: none. */
  readonly tracer?: Tracer | undefined
  /** Authorities whose client certificates the port accepts; absent: none. */
  readonly authorities?: ClientAuthorities | undefined
  readonly store?: Store | undefined
  /** Anything of the server's, made with the registry at hand: authenticators, authorizers, admission, tokens. */
  readonly deps?: ((registry: Registry) => Partial<ApiServerDeps>) | undefined
  readonly minWatchTimeoutMs?: number | undefined
  readonly requestTimeoutMs?: number | undefined
  /** More of the server's options. */
  readonly config?: ApiServerConfig | undefined
  /** How values are encrypted; it runs as long as the server. Absent: they are not. */
  /** The form of built-in kinds in the store; absent: that of the default store, or JSON in a store that the test names. */
  readonly mediaType?: StorageMediaType | undefined
  readonly encryption?: Encryption | undefined
  /** Resources that are off by default and on here, as the registry takes them; absent: none. */
  readonly optional?: ReadonlySet<string> | undefined
  /** Where services get addresses and node ports from; absent: the defaults. */
  readonly serviceNetwork?: ServiceNetwork | undefined
  /** The client certificate that the server shows to kubelets. */
  readonly kubelet?: KubeletAccess | undefined
  /** Called before the server runs, to offer computed groups to it. */
  readonly prepare?: ((server: ApiServer) => void) | undefined
  readonly maxInFlight?: { readonly readOnly: number; readonly mutating: number } | undefined
}

export interface TestApiServer {
  readonly server: ApiServer
  readonly store: Store
  readonly clock: Clock
  /** In process, as `testAdmin`. */
  readonly client: Client
  /** A client in process as another user. */
  clientAs(user: UserInfo): Client
  /** Starts the TLS port on first use. */
  listen(): Promise<TestListener>
  close(): Promise<void>
}

export interface TestListener {
  readonly url: string
  readonly port: number
  /** PEM of the server's certificate authority: it is its own. */
  readonly ca: string
  /** Bearer token of `testAdmin`, unless the test brought its own authenticators. */
  readonly token: string
}

const adminToken = 'test-admin-token'

/** Ready to be called when it returns: caches filled, system namespaces and the `kubernetes` service there. */
export async function startTestApiServer(options: TestApiServerOptions = {}): Promise<TestApiServer> {
  const clock = options.clock ?? realClock
  const { tracer } = options
  const store = meteredStore(options.store ?? (await defaultStore.open(clock)), { clock, metrics: options.metrics ?? noMetrics, tracer })
  const random = seededRandom(1)
  const registry = createBuiltInRegistry({
    store,
    clock,
    log: noLog,
    metrics: options.metrics,
    random,
    serviceNetwork: options.serviceNetwork,
    transformers: options.encryption?.transformers,
    optional: options.optional,
    mediaType: options.mediaType ?? (options.store ? undefined : defaultStore.mediaType),
  })
  const server = createApiServer(
    {
      store,
      clock,
      random,
      log: noLog,
      metrics: options.metrics ?? noMetrics,
      tracer,
      registry,
      healthChecks: options.encryption?.healthChecks,
      ...openSecurity,
      ...options.deps?.(registry),
    },
    {
      minWatchTimeoutMs: options.minWatchTimeoutMs,
      requestTimeoutMs: options.requestTimeoutMs,
      maxInFlight: options.maxInFlight,
      kubelet: options.kubelet,
      serviceCidr: options.serviceNetwork?.cidr,
      advertised: () => ({ address: '192.0.2.1', port: 6443 }),
      ...options.config,
    },
  )
  options.prepare?.(server)
  const stop = new AbortController()
  const running = Promise.all([server.run(stop.signal), options.encryption?.run(stop.signal)])
  await server.started
  let listener: Promise<Listener> | undefined
  return {
    server,
    store,
    clock,
    client: createClient(server.transport(testAdmin, 'test')),
    clientAs: (user) => createClient(server.transport(user, 'test')),
    async listen() {
      const { cert, key } = await testCertificates()
      listener ??= server.listen({ host: '127.0.0.1', port: 0, tls: { cert, key, ...options.authorities } })
      const { port } = await listener
      return { url: `https://127.0.0.1:${port}`, port, ca: cert, token: adminToken }
    },
    async close() {
      if (listener) await (await listener).close()
      stop.abort()
      await running
      await store.close()
    },
  }
}

const openSecurity: Pick<ApiServerDeps, 'authenticators' | 'authorizers' | 'admission'> = {
  authenticators: [
    {
      name: 'test',
      authenticate: (request) => (request.headers.authorization === `Bearer ${adminToken}` ? { decision: 'authenticated', user: testAdmin } : undefined),
    },
  ],
  authorizers: [{ name: 'test', authorize: () => ({ decision: 'allow', reason: '' }) }],
  admission: [],
}
