/** The parts of a test cluster's control plane: API server, controllers, scheduler, each of which can stop, crash and start again. */
import { generateKeyPairSync } from 'node:crypto'
import { type ApiServer, createApiServer } from '#apiserver/apiServer'
import { addressBlocks } from '#apiserver/backends/addressBlocks'
import { type Reach, UnreachableAddress } from '#apiserver/backends/reach'
import { createBuiltInRegistry } from '#apiserver/builtInRegistry'
import type { Page } from '#apiserver/core/page'
import type { UserInfo } from '#apiserver/core/request'
import { defaultServiceNetwork } from '#apiserver/kinds/services/serviceStorage'
import { meteredStore } from '#apiserver/registry/storeMetrics'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import { type Random, seededRandom } from '#base/random'
import type { Tracer } from '#base/traceContext'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createClient } from '#client/clientOverTransport'
import { eventSeriesRecorders } from '#client/eventSeriesRecorder'
import type { Transport } from '#client/transport'
import { createControllerManager } from '#controllers/framework/manager'
import type { ControllerOptions } from '#controllers/index'
import { controllers } from '#controllers/index'
import { simulatedNodeBlock } from '#kubelet/runtime/simulated/machine'
import { createConfigFile } from '#main/apiserver/configFile'
import { configFromOptions, depsFromOptions, registryConfigOf } from '#main/apiserver/fromOptions'
import { type ServerOptions, serverOptions } from '#main/apiserver/options/index'
import { ensureKubeletAccess } from '#main/layouts/addonAccess'
import type { OwnKubelets } from '#main/layouts/ownKubelets'
import { createResourceMetricsApi } from '#metrics/resourceMetricsApi'
import { createScheduler } from '#scheduler/scheduler'
import type { Store } from '#store/store'
import type { TraceBook } from '#trace/traceBook'
import type { KubeletCredentials } from './kubeletPort.ts'
import type { Life } from './part.ts'

export interface ClusterTools {
  readonly clock: Clock
  /** Times what makes a request wait within the API server. */
  readonly requestClock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly tracer?: Tracer | undefined
  readonly trace: TraceBook
  /** A source of chance of one part's own: what the others do does not change what it draws. */
  random(part: string): Random
  /** Watches last longer than elsewhere: a connection inside the process cannot break unnoticed. */
  readonly minWatchSeconds: number
  /** How often watches get bookmarks; absent: each minute. */
  readonly bookmarkMs?: number | undefined
}

export const adminUser: UserInfo = { name: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] }
export const adminToken = 'test-admin-token'
const authenticated = 'system:authenticated'

/** FNV-1a, so that each part's seed follows from the cluster's. */
export function seedOf(seed: number, part: string): number {
  let hash = 0x811c9dc5 ^ seed
  for (let i = 0; i < part.length; i++) hash = Math.imul(hash ^ part.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

export function partRandom(seed: number): (part: string) => Random {
  return (part) => seededRandom(seedOf(seed, part))
}

/** A cluster of one process that settles before time moves on has no tenants to protect from each other, and each request costs less without. */
const ownArgs = ['--enable-priority-and-fairness=false', '--enable-bootstrap-token-auth=true', '--enable-admission-plugins=NodeRestriction']

export interface ApiServerSetup {
  readonly store: Store
  readonly options: ServerOptions
  readonly serviceAccountKey: string
}

/** @param args kube-apiserver's flags */
export async function apiServerSetup(store: Store, args: readonly string[], clock: Clock): Promise<ApiServerSetup> {
  const options = await serverOptions([...ownArgs, ...args], { file: (name) => createConfigFile(name, clock) })
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { store, options, serviceAccountKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}

const mayCallKubelets = (transport: Transport, signal: AbortSignal) => ensureKubeletAccess(createClient(transport), signal)

/** The range that nodes get their pods' addresses from. */
export const clusterCidr = '10.128.0.0/9'
const isOfPod = addressBlocks([['10.128.0.0', 9]])
const isOfNode = addressBlocks([[simulatedNodeBlock.network, simulatedNodeBlock.prefix]])
const isOfService = addressBlocks([['10.96.0.0', 16]])

/** Nothing has the addresses of simulated pods and Services, and something on the networks of the test's machine might. */
const simulatedReach: Reach = {
  dialerFor: (address) => {
    if (isOfPod(address)) throw new UnreachableAddress(`${address} is the address of a simulated pod: nothing listens there`)
    if (isOfNode(address)) throw new UnreachableAddress(`${address} is the address of a simulated node: nothing listens there`)
    if (isOfService(address)) throw new UnreachableAddress(`${address} is the cluster IP of a simulated cluster: nothing serves it`)
    return undefined
  },
}

/** A new API server over the cluster's store. `toKubelets`: what it shows to them. */
export function makeApiServer(
  { store, options, serviceAccountKey }: ApiServerSetup,
  tools: ClusterTools,
  toKubelets: KubeletCredentials | undefined,
  ownKubelets: OwnKubelets,
  pages: readonly Page[] = [],
): ApiServer {
  const { clock, requestClock, metrics, tracer } = tools
  const observed = meteredStore(store, { clock, metrics, tracer })
  const log = tools.log.with('apiserver')
  const random = tools.random('apiserver')
  const registry = createBuiltInRegistry({
    store: observed,
    clock,
    log,
    metrics,
    random,
    bookmarkMs: tools.bookmarkMs,
    ...registryConfigOf(options, defaultServiceNetwork.cidr),
  })
  const current = { reader: registry.reader, waitUntilCurrent: () => registry.cacher.waitUntilCurrent() }
  const deps = depsFromOptions(options, { ...current, clock, requestClock, random, log, metrics, tracer, serviceAccountKey, reach: simulatedReach })
  const testToken = {
    name: 'test',
    authenticate: (request: { readonly headers: Readonly<Record<string, unknown>> }) =>
      request.headers.authorization === `Bearer ${adminToken}` ? ({ decision: 'authenticated', user: adminUser } as const) : undefined,
  }
  return createApiServer(
    {
      store: observed,
      clock,
      random,
      log,
      metrics,
      tracer,
      registry,
      trace: tools.trace,
      ...deps,
      pages: [...(deps.pages ?? []), ...pages],
      authenticators: [testToken, ...deps.authenticators],
      postStartHooks: [...(deps.postStartHooks ?? []), ...(toKubelets ? [mayCallKubelets] : [])],
    },
    {
      ...configFromOptions(options),
      advertised: () => ({ address: '192.0.2.1', port: 6443 }),
      kubelet: { ...toKubelets, ownKubelet: ownKubelets.listenAddress },
      reach: simulatedReach,
    },
  )
}

/** Offers metrics.k8s.io; @returns what samples the nodes */
export function offerResourceMetrics(server: ApiServer, { clock, log, metrics }: ClusterTools, ownKubelets: OwnKubelets): Component {
  const { reader, kubelets } = server
  const { group, component } = createResourceMetricsApi({ objects: reader, kubelets, measureOwn: ownKubelets.measure, clock, log, metrics })
  server.addGroup(group)
  return component
}

/** Lives as kube-controller-manager. `names`: as --controllers. */
export async function liveAsControllers(tools: ClusterTools, names: readonly string[], options: ControllerOptions, life: Life): Promise<void> {
  const manager: UserInfo = { name: 'system:kube-controller-manager', groups: [authenticated] }
  const clientFor = (serviceAccount: string) => {
    const groups = ['system:serviceaccounts', 'system:serviceaccounts:kube-system', authenticated]
    const user = { name: `system:serviceaccount:kube-system:${serviceAccount}`, groups }
    return createClient(life.link(user, `kube-controller-manager/${serviceAccount}`))
  }
  const { clock, metrics, tracer, trace, minWatchSeconds } = tools
  const deps = {
    minWatchSeconds,
    client: createClient(life.link(manager, 'kube-controller-manager')),
    clientFor,
    clock,
    metrics,
    tracer,
    trace,
    log: tools.log.with('controllers'),
    random: tools.random('controllers'),
  }
  await createControllerManager(deps, controllers, { ...options, controllers: names }).run(life.signal)
}

/** Lives as kube-scheduler. */
export async function liveAsScheduler(tools: ClusterTools, life: Life): Promise<void> {
  const client = createClient(life.link({ name: 'system:kube-scheduler', groups: [authenticated] }, 'kube-scheduler'))
  const { clock, metrics, tracer, trace } = tools
  const deps = { client, clock, metrics, tracer, trace, log: tools.log.with('scheduler'), random: tools.random('scheduler') }
  const informers = createSharedInformerFactory(client, { ...deps, minWatchSeconds: tools.minWatchSeconds })
  const events = eventSeriesRecorders(deps, 'test', life.signal)
  await Promise.all([createScheduler({ ...deps, informers, events }).run(life.signal), informers.run(life.signal)])
}
