/**
 * The aggregation layer (L3): for every APIService with a Service, keeps its availability condition, its resources in discovery and OpenAPI,
 * and the handler of its requests. Each is synced when its objects change, and every half minute.
 * Upstream: kube-aggregator/pkg/apiserver, pkg/controllers/status/remote.
 */
import type { APIService } from '#api/gen/types/apiregistration.v1'
import type { EndpointSlice } from '#api/gen/types/discovery.v1'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Gauge, Metrics } from '#base/metrics'
import { formatTime } from '#base/time'
import type { Transport } from '#client/transport'
import { itemExponentialFailureRateLimiter } from '#client/workqueue/rateLimiter'
import { createWorkQueue } from '#client/workqueue/workQueue'
import { deepEqual } from '../core/sameObject.ts'
import type { Catalog, CatalogSource } from '../registry/catalog.ts'
import { type Availability, failedDiscoveryCheck, localAvailability, objectsAgainst, passed, withAvailability } from './availability.ts'
import { aggregatorUser, DocumentCache, type GroupVersionDocuments } from './documentCache.ts'
import { apiServices, createExtensionServers, type ExtensionServerDeps, type ExtensionServers } from './extensionServer.ts'
import { endpointSlices, serviceNameLabel, services } from './serviceResolver.ts'

export interface AggregatorDeps extends ExtensionServerDeps {
  readonly catalog: Catalog
  /** The server's own transport, for writing conditions. */
  readonly transport: Transport
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
}

const path = '/apis/apiregistration.k8s.io/v1/apiservices'
const recheckMs = 30_000
const probeTimeoutMs = 5_000
const documentsTimeoutMs = 60_000
const probeAttempts = 5
const workers = 5
const maxProbeBytes = 32 * 1024 * 1024
const nothingKnown: GroupVersionDocuments = { resources: [], revision: '' }

/** Follows the APIServices until the signal aborts. */
export async function runAggregator(deps: AggregatorDeps, signal: AbortSignal): Promise<void> {
  const { reader, clock, log } = deps
  const servers = createExtensionServers({ ...deps, onUnreachable: (name) => queue.add(name) })
  const aggregator = new Aggregator(deps, servers)
  const rateLimiter = itemExponentialFailureRateLimiter<string>(5, recheckMs)
  const queue = createWorkQueue<string>({ clock, name: 'RemoteAvailabilityController', rateLimiter })
  const addAllOf = (namespace: string | undefined, service: string | undefined) => {
    for (const name of aggregator.namesOf(`${namespace}/${service}`)) queue.add(name)
  }
  const stops = [
    reader.onChange<KubeObject>(apiServices, ({ object, old }) => {
      if (aggregator.noteChange(object as Frozen<APIService>, old as Frozen<APIService> | undefined)) queue.add(object.metadata.name ?? '')
    }),
    reader.onChange<KubeObject>(services, ({ object }) => addAllOf(object.metadata.namespace, object.metadata.name)),
    reader.onChange<KubeObject>(endpointSlices, ({ object }) => {
      addAllOf(object.metadata.namespace, (object as unknown as Frozen<EndpointSlice>).metadata.labels?.[serviceNameLabel])
    }),
  ]
  for (const object of reader.list<KubeObject>(apiServices)) {
    aggregator.noteChange(object as Frozen<APIService>, undefined)
    queue.add(object.metadata.name ?? '')
  }
  const work = async () => {
    for (let name = await queue.get(); name !== undefined; name = await queue.get()) {
      try {
        const againMs = await aggregator.sync(name, signal)
        queue.forget(name)
        if (againMs !== undefined) queue.addAfter(name, againMs)
      } catch (error) {
        if (!signal.aborted) log.v(2).info('An APIService is not available', { apiService: name, error: (error as Error).message })
        queue.addRateLimited(name)
      } finally {
        queue.done(name)
      }
    }
  }
  signal.addEventListener('abort', () => queue.shutDown(), { once: true })
  if (signal.aborted) queue.shutDown()
  await Promise.all(Array.from({ length: workers }, work))
  for (const stop of stops) stop()
  servers.close()
}

class Aggregator {
  readonly #deps: AggregatorDeps
  readonly #servers: ExtensionServers
  readonly #documents: DocumentCache
  readonly #unavailable: Gauge
  /** APIService names by `namespace/name` of their Service. */
  readonly #byService = new Map<string, Set<string>>()
  readonly #known = new Map<string, { documents: GroupVersionDocuments; availability?: Availability }>()

  constructor(deps: AggregatorDeps, servers: ExtensionServers) {
    this.#deps = deps
    this.#servers = servers
    this.#documents = new DocumentCache(servers, deps.clock)
    this.#unavailable = deps.metrics.gauge({
      name: 'aggregator_unavailable_apiservice',
      help: '1 for each APIService that cannot be reached.',
      labels: ['name'],
    })
  }

  namesOf(service: string): Iterable<string> {
    return this.#byService.get(service) ?? []
  }

  /** Updates the index by Service; false for our own change of the condition. */
  noteChange(object: Frozen<APIService>, old: Frozen<APIService> | undefined): boolean {
    const name = object.metadata.name ?? ''
    const isDeleted = !this.#deps.reader.get<KubeObject>(apiServices, '', name)
    if (old || isDeleted) this.#byService.get(serviceKey(old ?? object))?.delete(name)
    if (!isDeleted && object.spec.service) {
      const key = serviceKey(object)
      this.#byService.set(key, (this.#byService.get(key) ?? new Set()).add(name))
    }
    const ours = this.#known.get(name)?.availability
    const condition = findCondition(object.status?.conditions, 'Available')
    const isOurs = ours?.status === condition?.status && ours?.reason === condition?.reason && ours?.message === condition?.message
    return isDeleted || !old || !isOurs || !deepEqual(old.spec, object.spec)
  }

  /** @returns ms until the next sync. @throws when it is not available, so that it is retried soon */
  async sync(name: string, signal: AbortSignal): Promise<number | undefined> {
    const apiService = this.#deps.reader.get<KubeObject>(apiServices, '', name) as Frozen<APIService> | undefined
    if (!apiService?.spec.service) {
      this.#forget(name)
      if (apiService) await this.#write(apiService, localAvailability, signal)
      return undefined
    }
    const known = this.#known.get(name) ?? { documents: nothingKnown }
    this.#known.set(name, known)
    if (known.documents === nothingKnown) this.#offer(name, apiService, nothingKnown, false)
    const availability = objectsAgainst(this.#deps.reader, apiService) ?? (await this.#probe(apiService, signal))
    if (availability !== passed) this.#documents.expire(apiService)
    known.availability = availability
    await this.#write(apiService, availability, signal)
    try {
      if (availability !== passed) throw new Error(availability.message)
      known.documents = await this.#within(documentsTimeoutMs, signal, (limited) => this.#documents.of(apiService, limited))
    } catch (error) {
      this.#offer(name, apiService, known.documents, false)
      throw error
    }
    this.#offer(name, apiService, known.documents, true)
    return recheckMs
  }

  #forget(name: string): void {
    this.#deps.catalog.remove(sourceName(name))
    this.#unavailable.remove({ name })
    if (!this.#known.delete(name)) return
    const left = this.#deps.reader.list<KubeObject>(apiServices) as readonly Frozen<KubeObject>[]
    this.#documents.keep(left as readonly Frozen<APIService>[])
  }

  /** One success of five is enough: each try picks a random endpoint, and one of them may be terminating. */
  async #probe(apiService: Frozen<APIService>, signal: AbortSignal): Promise<Availability> {
    const attempt = () => this.#within(probeTimeoutMs, signal, (limited) => this.#probeOnce(apiService, limited))
    try {
      await attempt().catch(() => Promise.any(Array.from({ length: probeAttempts - 1 }, attempt)))
      return passed
    } catch (error) {
      signal.throwIfAborted()
      return failedDiscoveryCheck(((error as AggregateError).errors.at(-1) as Error).message)
    }
  }

  async #probeOnce(apiService: Frozen<APIService>, signal: AbortSignal): Promise<void> {
    const { group, version } = apiService.spec
    const wanted = { path: `/apis/${group}/${version}`, accept: 'application/json', user: aggregatorUser, limitBytes: maxProbeBytes, signal }
    const { status, url } = await this.#servers.fetch(apiService, wanted)
    if (status < 200 || status > 299) throw new Error(`failing or missing response from ${url}: bad status from ${url}: ${status}`)
  }

  async #within<T>(ms: number, signal: AbortSignal, work: (limited: AbortSignal) => Promise<T>): Promise<T> {
    using limit = deadlineScope({ clock: this.#deps.clock, ms }, signal)
    return await work(limit.signal)
  }

  async #write(apiService: Frozen<APIService>, availability: Availability, signal: AbortSignal): Promise<void> {
    const { clock, transport, log } = this.#deps
    const { name = '', resourceVersion } = apiService.metadata
    this.#unavailable.set(availability.status === 'True' ? 0 : 1, { name })
    const conditions = withAvailability(apiService.status?.conditions, availability, formatTime(clock.now()))
    if (!conditions) return
    log.v(2).info('Changing the availability of an APIService', { apiService: name, status: availability.status, reason: availability.reason })
    const body = { ...apiService, metadata: { ...apiService.metadata, resourceVersion }, status: { ...apiService.status, conditions } }
    await transport.request({ method: 'PUT', path: `${path}/${name}/status`, body }, signal)
  }

  /** Puts its documents into the catalog, if they changed. */
  #offer(name: string, apiService: Frozen<APIService>, documents: GroupVersionDocuments, isFresh: boolean): void {
    const { group = '', version = '', groupPriorityMinimum, versionPriority } = apiService.spec
    const revision = [name, groupPriorityMinimum, versionPriority, isFresh, documents.revision].join(' ')
    const { catalog } = this.#deps
    if (catalog.source(sourceName(name))?.revision === revision) return
    const answer = this.#servers.handlerFor(name)
    const { resources, openApiV2, openApiV3Hash } = documents
    const v3: NonNullable<CatalogSource['openApi']>['v3'] = new Map(
      openApiV3Hash === undefined ? [] : [[`apis/${group}/${version}`, { hash: openApiV3Hash, answer }]],
    )
    catalog.set(sourceName(name), {
      revision,
      groupVersions: [{ group, version, groupPriority: groupPriorityMinimum, versionPriority, freshness: isFresh ? 'Current' : 'Stale' }],
      entries: resources.map((facts) => ({ facts })),
      foreign: answer,
      openApi: { v2: openApiV2, v3 },
    })
  }
}

function sourceName(name: string): string {
  return `apiservice ${name}`
}

function serviceKey({ spec }: Frozen<APIService>): string {
  return `${spec.service?.namespace}/${spec.service?.name}`
}
