/**
 * Assembles the API server (L3): registry and caches over a store, the pipeline, the endpoints, the transports.
 * Upstream: kube-apiserver's server chain, without the aggregation and extension servers.
 */
import { setMaxListeners } from 'node:events'
import { abortScope, deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { FeatureGateSettings } from '#base/featureGates'
import type { Logger } from '#base/log'
import type { Metrics } from '#base/metrics'
import { unlessAborted } from '#base/orAborted'
import type { Random } from '#base/random'
import type { Tracer } from '#base/traceContext'
import type { Transport } from '#client/transport'
import type { Store } from '#store/store'
import { TraceBook } from '#trace/traceBook'
import type { AdmissionPlugin } from './admission/admission.ts'
import { createAdmissionChain } from './admission/chain.ts'
import { traceMark } from './admission/traceMark.ts'
import { createAggregationLayer } from './aggregation/aggregationLayer.ts'
import type { Trust } from './aggregation/trustConfigMap.ts'
import type { AuditSink } from './audit/sink.ts'
import type { Authenticator } from './authn/authenticator.ts'
import type { Authorizer } from './authz/authorizer.ts'
import type { BackendTls } from './backends/backend.ts'
import { OwnEndpoints } from './backends/ownEndpoints.ts'
import type { Reach } from './backends/reach.ts'
import { bootstrap, keepBootstrapped } from './bootstrap/bootstrap.ts'
import { EndpointReconciler, type EndpointReconcilerType } from './bootstrap/endpointReconciler.ts'
import { identityLease } from './bootstrap/identityLease.ts'
import { MasterLeases } from './bootstrap/masterLeases.ts'
import type { Advertised } from './bootstrap/objects.ts'
import { builtInSource } from './builtInSource.ts'
import { computedSource } from './computedSource.ts'
import type { Answer } from './core/answer.ts'
import type { ComputedGroup, ComputedResource, TokenIssuer } from './core/computedResource.ts'
import type { HealthCheck } from './core/health.ts'
import type { ObjectReader } from './core/objectReader.ts'
import type { Page } from './core/page.ts'
import type { RequestInfo, ServerRequest, UserInfo } from './core/request.ts'
import type { ServerWork } from './core/serverWork.ts'
import type { Handler } from './core/stage.ts'
import { installCustomResources } from './crd/install.ts'
import { type ComponentProbe, componentStatuses, healthy } from './endpoints/componentStatuses.ts'
import { computedHandlers } from './endpoints/computedHandlers.ts'
import { createDiscovery } from './endpoints/discovery.ts'
import { createKubeletClient, type KubeletClient } from './endpoints/kubeletClient.ts'
import { listedPaths } from './endpoints/listedPaths.ts'
import { type NonResourceParts, nonResourceHandler, versionInfo } from './endpoints/nonResource.ts'
import { createOpenApi, type Describe } from './endpoints/openapi.ts'
import { revisionsPage } from './endpoints/revisions.ts'
import { createRouter, type SubresourceHandlers } from './endpoints/router.ts'
import type { EndpointDeps } from './endpoints/scope.ts'
import { type StoreCheckTimes, storeChecks } from './endpoints/storeChecks.ts'
import { storeKeysPage } from './endpoints/storeKeys.ts'
import { bindingsHandler } from './endpoints/subresources/binding.ts'
import { subresourceHandlers } from './endpoints/subresources/index.ts'
import type { KubeletAccess } from './endpoints/subresources/node.ts'
import { ownTracesAuthorizer, tracesPage } from './endpoints/traces/tracesPage.ts'
import { upgradeHandler } from './endpoints/upgrade.ts'
import { zpages } from './endpoints/zpages.ts'
import { createFlowControl, type FlowControl } from './flowcontrol/flowControl.ts'
import { createObjectStats } from './flowcontrol/objectStats.ts'
import { defaultServiceNetwork } from './kinds/services/serviceStorage.ts'
import { createPipeline, type PipelineConfig, type PipelineDeps } from './pipeline/index.ts'
import { RequestGroup } from './pipeline/requestGroup.ts'
import { builtInSourceName, Catalog } from './registry/catalog.ts'
import { compactRegularly, defaultCompactionIntervalMs } from './registry/compactor.ts'
import { type HistoryLimits, keepHistory } from './registry/history.ts'
import { objectMetrics } from './registry/objectMetrics.ts'
import type { Registry } from './registry/registry.ts'
import type { WriterDeps } from './registry/writer.ts'
import { inProcessTransport } from './server/inProcess.ts'
import { type Listener, type ListenOptions, listen } from './server/listener.ts'
import { latch, tryUntilDone } from './startingUp.ts'
import { YamlThread } from './yaml/yamlThread.ts'

export interface ApiServerDeps {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: Metrics
  readonly registry: Registry
  readonly authenticators: readonly Authenticator[]
  readonly authorizers: readonly Authorizer[]
  /** The ordered chain. */
  readonly admission: readonly AdmissionPlugin[]
  readonly tokens?: TokenIssuer | undefined
  readonly computedResources?: readonly ComputedResource[] | undefined
  /** In addition to the server's own checks: post-start hooks and the like. */
  readonly healthChecks?: readonly HealthCheck[] | undefined
  /** Receives the in-process transport of the server itself, before the first request. */
  readonly connect?: ((transport: Transport) => void) | undefined
  /** Run once at start, after the system namespaces exist; readiness waits for them (RBAC's bootstrap policy). */
  readonly postStartHooks?: readonly ((transport: Transport, signal: AbortSignal) => Promise<void>)[] | undefined
  /** The components that `kubectl get componentstatuses` lists in addition to the store. */
  readonly components?: readonly ComponentProbe[] | undefined
  /** Texts of the OpenAPI documents; absent: none. */
  readonly describe?: Describe | undefined
  /** More pages, such as the token issuer's keys. */
  readonly pages?: readonly Page[] | undefined
  /** The trace that the components of this process share with the server. Absent: the server has its own. */
  readonly trace?: TraceBook | undefined
  /** Where audit events go. Absent: nothing is audited. */
  readonly audit?: AuditSink | undefined
  /** Makes the spans of requests and of the work on them. Absent: none are made. */
  readonly tracer?: Tracer | undefined
  /** Handlers that replace those of the server. */
  readonly subresources?: SubresourceHandlers | undefined
  /** /metrics in the format that the Accept header asks for. */
  readonly scrape?: NonResourceParts['scrape']
}

type PipelineOptions = { readonly [option in keyof PipelineConfig]?: PipelineConfig[option] | undefined }

/** The pipeline's options have kube-apiserver's defaults. */
export interface ApiServerConfig extends PipelineOptions {
  /** Every option by kube-apiserver's name, as /flagz shows them. */
  readonly flags?: Readonly<Record<string, string>> | undefined
  /** --runtime-config: built-in resources that are not served, by `resourceKey`; absent: all are. */
  readonly disabledResources?: ReadonlySet<string> | undefined
  /** --etcd-compaction-interval; default 5 minutes, 0: the store is never compacted. */
  readonly compactionIntervalMs?: number | undefined
  /** Default true; false, as --etcd-count-metric-poll-period=0: there are no metrics of how many objects each resource has. */
  readonly countsObjects?: boolean | undefined
  readonly storeCheckTimes?: StoreCheckTimes | undefined
  /** --history, --history-size; absent: history is kept for the compaction interval. */
  readonly history?: HistoryLimits | undefined
  /** --enable-priority-and-fairness; default true. The limits in flight are then its seats together. */
  readonly priorityAndFairness?: boolean | undefined
  /** The store does not change, and nothing is written to it: no object is created at the start, and no background work runs. Default false. */
  readonly readsOnly?: boolean | undefined
  /** --trace-requests-every; default 0: only requests with a reader are recorded. */
  readonly traceRequestsEvery?: number | undefined
  /** --shutdown-delay-duration: how long requests are still served after the shutdown is announced. */
  readonly shutdownDelayMs?: number | undefined
  /** How long a shutdown waits at most for open requests; default: the request timeout. */
  readonly shutdownTimeoutMs?: number | undefined
  readonly minWatchTimeoutMs?: number | undefined
  /** Values of --feature-gates that the rules of kinds read; absent gates have their default of v1.36. */
  readonly featureGates?: FeatureGateSettings | undefined
  /** The feature gate AllowUnsafeMalformedObjectDeletion; default false. */
  readonly unsafeDeletion?: boolean | undefined
  /** Default 10.96.0.0/16; the registry's service network must be the same. */
  readonly serviceCidr?: string | undefined
  /** Names this server in events and in its identity lease; absent: localhost, and no lease. */
  readonly hostName?: string | undefined
  /** The feature gate APIServerIdentity; default true. */
  readonly identityLease?: boolean | undefined
  /** Where pods reach this server: the `kubernetes` service points there. Absent: no such service. */
  readonly advertised?: (() => Advertised | undefined) | undefined
  /** --endpoint-reconciler-type; default lease. */
  readonly endpointReconciler?: EndpointReconcilerType | undefined
  /** --apiserver-count; default 1. */
  readonly serverCount?: number | undefined
  /** Credentials for kubelets; without it no client certificate is sent, and kubelets' certificates are not verified. */
  readonly kubelet?: KubeletAccess | undefined
  /** How connections to addresses of the cluster are made: kubelets, pods, services, extension servers, conversion webhooks. Absent: by this process. */
  readonly reach?: Reach | undefined
  /** What extension API servers are shown (--proxy-client-cert-file, --proxy-client-key-file). */
  readonly proxyClient?: Pick<BackendTls, 'cert' | 'key'> | undefined
  /** Default true: a redirect of an extension API server is answered with 502, not forwarded. */
  readonly rejectForwardingRedirects?: boolean | undefined
  /** Published for extension API servers, so that they can verify this server and its users. Absent: not published. */
  readonly trust?: Trust | undefined
}

export interface ApiServer {
  readonly handle: Handler
  readonly registry: Registry
  /** The APIs that are served now; more are added here. */
  readonly catalog: Catalog
  readonly reader: ObjectReader
  listen(options: ListenOptions): Promise<Listener>
  /** For components of this process. */
  readonly kubelets: KubeletClient
  /** Offers a group-version that a component of this process computes. Call it before `run`. */
  addGroup(group: ComputedGroup): void
  /** An in-process transport without encoding or authentication. Returned objects are frozen and shared with the cache. */
  transport(user: UserInfo, userAgent: string): Transport
  /** Resolves when the first start is finished: caches filled, system objects there, post-start hooks done. */
  readonly started: Promise<void>
  /** Makes /readyz fail; resolves after the delay in which load balancers notice. Then the signal of `run` may abort. */
  announceShutdown(): Promise<void>
  /** Follows the store until the signal aborts. Nothing is answered before this runs. */
  run(signal: AbortSignal): Promise<void>
}

/** The user of the server's own in-process requests. */
const loopbackUser: UserInfo = { name: 'system:apiserver', groups: ['system:masters', 'system:authenticated'] }
/** Twice the interval at which the endpoints are kept. */
const withdrawTimeoutMs = 20_000

interface OpenRequests {
  readonly requests: RequestGroup
  readonly watches: RequestGroup
}

const defaults = { requestTimeoutMs: 60_000, maxInFlight: { readOnly: 400, mutating: 200 }, minWatchTimeoutMs: 1_800_000 }

export function createApiServer(deps: ApiServerDeps, config: ApiServerConfig = {}): ApiServer {
  const { registry, clock, store } = deps
  const [trace, stopping, beginning] = [traceOf(deps, config), new AbortController(), latch()]
  const notice = shutdownNotice(clock, stopping.signal, config.shutdownDelayMs)
  const ownEndpoints = new OwnEndpoints(config.advertised)
  const endpoints: EndpointDeps = {
    registry,
    store,
    clock,
    yaml: new YamlThread(),
    writer: writerOf(deps, config),
    ...endpointSettings(config),
  }
  const catalog = new Catalog()
  catalog.set(builtInSourceName, builtInSource(registry, handlersOfComputed(deps, endpoints), versionInfo.gitVersion, config.disabledResources))
  const openApi = createOpenApi({ catalog, describe: deps.describe ?? (() => undefined), serverVersion: versionInfo.gitVersion })
  const router = createRouter({
    catalog,
    endpoints,
    catchUp: (...wanted) => customResources.catchUp(...wanted),
    subresources: { ...subresourceHandlers({ endpoints, ownEndpoints, ...backendSettings(deps, config) }), ...deps.subresources },
    nonResource: otherPaths(deps, config, {
      catalog,
      isStarted: beginning.isDone,
      address: () => ownEndpoints.newest,
      shutdown: notice.signal,
      openApi,
      flowControl: () => flowControl,
      trace,
    }),
  })
  const computedGroups: ComputedGroup[] = []
  const open: OpenRequests = { requests: new RequestGroup(), watches: new RequestGroup() }
  const pipelineConfig = pipelineConfigOf(config)
  const flowControl = config.priorityAndFairness === false ? undefined : flowControlOf(deps, pipelineConfig.maxInFlight)
  const isServed = servedIn(catalog)
  const handle = createPipeline(pipelineDepsOf(deps, { trace, flowControl, shutdown: stopping.signal, ...open, isServed }), pipelineConfig, router)
  const transport: ApiServer['transport'] = (user, userAgent) => inProcessTransport({ handle, clock }, user, userAgent)
  const own = transport(loopbackUser, 'kube-apiserver')
  registry.connect(own)
  deps.connect?.(own)
  const works = worksOf(deps, config, own)
  const { proxyClient: clientCertificate, trust, rejectForwardingRedirects, reach } = config
  const extension = { ownEndpoints, clientCertificate, rejectForwardingRedirects, reach }
  const computed = { computedGroups, sourceOf: sourceOfGroup(endpoints) }
  const aggregation = createAggregationLayer({ ...deps, ...extension, ...computed, reader: registry.reader, catalog, transport: own, trust })
  const customResources = installCustomResources({ ...deps, catalog, writer: endpoints.writer, reach, user: loopbackUser, transport: () => own })
  const endpointsOfService = endpointsOf(deps, config, own)
  const bootstrapDeps = { reader: registry.reader, transport: own, clock, log: deps.log, endpoints: endpointsOfService }
  const bootstrapConfig = { serviceCidr: config.serviceCidr ?? defaultServiceNetwork.cidr, advertised: () => config.advertised?.() }
  /** Creates the objects that a cluster must have. */
  const start = async (signal: AbortSignal) => {
    await endpointsOfService.removeStale(signal)
    await bootstrap(bootstrapDeps, bootstrapConfig, signal)
    await flowControl?.sync(own, signal)
    await Promise.all(works.map((work) => work.start?.(signal)))
    await aggregation.start(signal)
    for (const hook of deps.postStartHooks ?? []) await hook(own, signal)
    await endpointsOfService.reconcile(signal)
    beginning.done()
  }
  /** Set when open requests have finished, or the bound is over. */
  let drained: Promise<void> | undefined
  const drain = () => drainOf(deps, open, config, pipelineConfig.requestTimeoutMs)
  return {
    handle,
    registry,
    catalog,
    reader: registry.reader,
    kubelets: createKubeletClient(registry.reader, { kubelet: config.kubelet, ownEndpoints, reach }),
    addGroup: (group) => void computedGroups.push(group),
    async listen(options) {
      const beforeAnswers = () => deps.audit?.flush?.()
      const listener = await listen({ handle, upgrade: upgradeHandler(handle, clock, beforeAnswers), beforeAnswers, clock, log: deps.log }, options)
      const forget = ownEndpoints.add(listener)
      const close = () => {
        forget()
        stopping.abort()
        drained ??= drain()
        return config.shutdownSendRetryAfter ? drained.then(() => listener.close()) : listener.close(drained)
      }
      return { ...listener, close }
    },
    transport,
    started: beginning.started,
    async announceShutdown() {
      await Promise.all([notice.announce(), withdraw([...works, endpointsOfService], deps)])
    },
    async run(signal) {
      abortWith(signal, stopping)
      const following = registry.cacher.run(signal)
      await registry.cacher.loaded
      await customResources.serve(signal)
      if (config.readsOnly) {
        beginning.done()
        return following
      }
      aggregation.serve(signal)
      await tryUntilDone(deps, start, signal)
      await Promise.all([
        following,
        customResources.run(signal),
        compact(deps, config, signal),
        ...works.map((work) => work.run(signal)),
        keepBootstrapped(bootstrapDeps, bootstrapConfig, signal),
        aggregation.run(signal),
        flowControl?.run(own, signal),
      ])
      await deps.audit?.close?.()
    },
  }
}

type PipelineParts = Pick<PipelineDeps, 'trace' | 'flowControl' | 'shutdown' | 'requests' | 'watches' | 'isServed'>

function pipelineDepsOf(deps: ApiServerDeps, parts: PipelineParts): PipelineDeps {
  return { ...deps, ...parts, authorizers: [...deps.authorizers, ownTracesAuthorizer], pathsComplete: () => deps.registry.cacher.revision > 0 }
}

function traceOf({ clock, trace = new TraceBook(clock) }: ApiServerDeps, { traceRequestsEvery = 0 }: ApiServerConfig): TraceBook {
  trace.sample(traceRequestsEvery)
  return trace
}

/** With limits of the history by those, otherwise at every interval. */
function compact({ store, registry, clock, log }: ApiServerDeps, { history, compactionIntervalMs }: ApiServerConfig, signal: AbortSignal): Promise<void> {
  const compactor = { store, times: registry.cacher.times, clock, log }
  return history ? keepHistory(compactor, history, signal) : compactRegularly(compactor, compactionIntervalMs ?? defaultCompactionIntervalMs, signal)
}

/** Waits for open requests. Watches are closed: they would keep their connections open. */
async function drainOf({ registry, clock, log }: ApiServerDeps, open: OpenRequests, config: ApiServerConfig, requestTimeoutMs: number): Promise<void> {
  registry.cacher.closeWatches()
  const left = await Promise.all([
    open.requests.wait(clock, config.shutdownTimeoutMs ?? requestTimeoutMs),
    open.watches.wait(clock, config.shutdownWatchTerminationGraceMs ?? 0),
  ])
  if (left[0] + left[1] > 0) log.warn('Shutting down with requests still under way', { requests: left[0], watches: left[1] })
}

function endpointsOf({ store, registry }: ApiServerDeps, config: ApiServerConfig, transport: Transport): EndpointReconciler {
  const { endpointReconciler: type = 'lease', serverCount = 1, advertised = () => undefined } = config
  return new EndpointReconciler({ reader: registry.reader, transport, leases: new MasterLeases(store) }, { type, serverCount, advertised })
}

function worksOf(deps: ApiServerDeps, { hostName, identityLease: hasLease = true }: ApiServerConfig, transport: Transport): readonly ServerWork[] {
  const { registry } = deps
  const works = registry.works({ ...deps, transport, hostName: hostName ?? 'localhost' })
  return hostName !== undefined && hasLease ? [...works, identityLease({ ...deps, reader: registry.reader, transport, hostName })] : works
}

/** Takes this server out of what shows live servers. A store that does not answer delays the shutdown no longer than upstream's. */
async function withdraw(parts: readonly Pick<ServerWork, 'stop'>[], { clock, log }: ApiServerDeps): Promise<void> {
  using given = deadlineScope({ clock, ms: withdrawTimeoutMs })
  const failed = (error: unknown) => log.error(error, 'Taking this server out of those that are known failed')
  // Not every call of the store listens to the signal.
  const all = await unlessAborted(Promise.all(parts.map((part) => part.stop?.(given.signal).catch(failed))), given.signal)
  if (!all) log.warn('Taking this server out of those that are known took too long')
}

function backendSettings({ tokens, authorizers }: ApiServerDeps, { kubelet, reach }: ApiServerConfig) {
  return { tokens, authorizers, kubelet, reach }
}

function endpointSettings({ unsafeDeletion = false, minWatchTimeoutMs = defaults.minWatchTimeoutMs }: ApiServerConfig) {
  return { unsafeDeletion, minWatchTimeoutMs }
}

function writerOf({ registry, clock, random, metrics, authorizers, admission, tracer }: ApiServerDeps, { featureGates }: ApiServerConfig): WriterDeps {
  const { storage, reader } = registry
  const plugins = tracer?.marksObjects ? [traceMark(tracer), ...admission] : admission
  return { storage, reader, clock, random, featureGates, authorizers, admission: createAdmissionChain(plugins, clock, metrics, tracer) }
}

/** The signal aborts when the shutdown is announced, or when the server stops without an announcement. */
function shutdownNotice(clock: Clock, stopping: AbortSignal, delayMs = 0): { readonly signal: AbortSignal; announce(): Promise<void> } {
  const ending = abortScope(stopping)
  return {
    signal: ending.signal,
    async announce() {
      ending.abort()
      if (delayMs > 0) await clock.sleep(delayMs)
    },
  }
}

/** Handlers of computed resources. */
function handlersOfComputed({ store, clock, computedResources = [], components = [] }: ApiServerDeps, endpoints: EndpointDeps): ReadonlyMap<string, Handler> {
  const statuses = componentStatuses([storeProbe(store), ...components], clock)
  return new Map([...computedHandlers(endpoints, [...computedResources, statuses]), ['/v1/bindings', bindingsHandler(endpoints)]])
}

function sourceOfGroup(endpoints: EndpointDeps) {
  return (group: ComputedGroup, priorities: ComputedGroup['priorities']) => computedSource(group, priorities, endpoints, versionInfo.gitVersion)
}

interface OtherPathsParts {
  readonly catalog: Catalog
  isStarted(): boolean
  /** host:port as clients reach it. */
  address(): string
  readonly shutdown: AbortSignal
  openApi(request: ServerRequest): Promise<Answer> | Answer | undefined
  flowControl(): FlowControl | undefined
  readonly trace: TraceBook
}

/** Handlers of paths that are no resources. */
function otherPaths(deps: ApiServerDeps, config: ApiServerConfig, { catalog, isStarted, address, shutdown, openApi, flowControl, trace }: OtherPathsParts) {
  const { clock, registry } = deps
  const checks: readonly HealthCheck[] = [
    { name: 'ping', check: () => undefined },
    { name: 'log', check: () => undefined },
    ...storeChecks({ store: deps.store, clock, cachedRevision: () => registry.cacher.revision }, config.storeCheckTimes ?? {}),
    { name: 'poststarthook/bootstrap', check: () => (isStarted() ? undefined : 'not finished') },
    ...(deps.healthChecks ?? []),
  ]
  const paths = () => listedPaths(catalog, checks)
  return nonResourceHandler({
    discovery: createDiscovery(catalog, address),
    checks,
    shutdown,
    paths,
    scrape: scrapeOf(deps, config),
    pages: [
      { prefix: '/openapi', handle: openApi },
      revisionsPage({ store: deps.store, times: registry.cacher.times }),
      storeKeysPage({ store: deps.store, catalog }),
      tracesPage({ book: trace, reader: registry.reader, authorizers: deps.authorizers }),
      ...zpages({ ...zpagesVersions, clock, startedMs: clock.now(), paths, flags: config.flags ?? {} }),
      { prefix: '/debug/api_priority_and_fairness', handle: (request) => flowControl()?.debugPage(request) },
      ...(deps.pages ?? []),
    ],
  })
}

function servedIn(catalog: Catalog): (info: RequestInfo) => boolean {
  return ({ apiGroup, apiVersion, resource }) => catalog.resource(apiGroup, apiVersion, resource) !== undefined
}

function scrapeOf({ registry, store, metrics, scrape }: ApiServerDeps, { countsObjects }: ApiServerConfig): NonResourceParts['scrape'] {
  const refresh = objectMetrics(registry, store, metrics, { countsObjects })
  return (
    scrape &&
    (async (accept) => {
      await refresh()
      return scrape(accept)
    })
  )
}

const zpagesVersions = {
  binaryVersion: versionInfo.gitVersion.replace(/^v/, ''),
  emulationVersion: `${versionInfo.emulationMajor}.${versionInfo.emulationMinor}`,
  runtimeVersion: `node ${process.version}`,
}

function abortWith(signal: AbortSignal, controller: AbortController): void {
  // Every part of the server listens to it.
  setMaxListeners(0, signal)
  signal.addEventListener('abort', () => controller.abort(), { once: true })
}

function pipelineConfigOf(config: ApiServerConfig): PipelineConfig {
  const { requestTimeoutMs = defaults.requestTimeoutMs, maxInFlight = defaults.maxInFlight } = config
  return { ...config, requestTimeoutMs, maxInFlight }
}

function flowControlOf(deps: ApiServerDeps, { readOnly, mutating }: PipelineConfig['maxInFlight']): FlowControl {
  const objectStats = createObjectStats(deps.registry, deps.clock)
  return createFlowControl({ ...deps, reader: deps.registry.reader, objectStats }, readOnly + mutating)
}

/** Reads a key that does not exist: the store answers all the same. Upstream's probe of etcd does that, too. */
function storeProbe(store: Store): ComponentProbe {
  return { name: 'etcd-0', probe: async () => store.range('/registry/health').then(() => healthy) }
}
