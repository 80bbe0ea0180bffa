/**
 * Serves the group-versions that components of this process compute (L3), each as long as its APIService exists and names no Service, and no other source
 * has the group-version: a user's custom resources replace it. The APIService is created once in the life of a cluster. From then on it is the user's: one who
 * points it at a Service, such as a metrics-server, or deletes it, finds it like that after every restart. The mark of the creation is an annotation of the
 * namespace kube-system, so that clusters which existed before a group-version was introduced get it too.
 *
 * Upstream's automatic registration (`kube-aggregator.kubernetes.io/automanaged: onstart`) would create a deleted APIService again at each start and
 * reset a changed one that still has the label. It does not touch one without the label, and wants none for a group-version that is not served. Its readiness
 * waits for its own APIServices, never for those of other servers; hence the start waits for these only a moment.
 */
import type { APIService } from '#api/gen/types/apiregistration.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { deadlineScope } from '#base/abortScope'
import { ownValue } from '#base/bareMap'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { aborted, unlessAborted } from '#base/orAborted'
import type { Transport } from '#client/transport'
import { itemExponentialFailureRateLimiter } from '#client/workqueue/rateLimiter'
import { createWorkQueue } from '#client/workqueue/workQueue'
import type { ComputedGroup } from '../core/computedResource.ts'
import type { ObjectReader } from '../core/objectReader.ts'
import type { Catalog, CatalogSource } from '../registry/catalog.ts'
import { managedLabel } from './autoRegister.ts'
import { apiServices } from './extensionServer.ts'

export interface ComputedGroupsDeps {
  readonly reader: ObjectReader
  readonly catalog: Catalog
  readonly transport: Transport
  readonly clock: Clock
  readonly log: Logger
  /** The source of a group-version with the priorities of its APIService. */
  sourceOf(group: ComputedGroup, priorities: ComputedGroup['priorities']): CatalogSource
}

export interface ComputedGroups {
  /** Follows the APIServices and the other sources until the signal aborts. */
  serve(signal: AbortSignal): void
  /** Creates the APIServices that this cluster never had. Resolves when they exist, or after 5 seconds; `run` creates the rest. */
  register(signal: AbortSignal): Promise<void>
  /** Creates what `register` could not, until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

const namespaces = { group: '', resource: 'namespaces' }
const markedNamespace = 'kube-system'
const markPrefix = 'apiservices.skiff.dev/'
/** A healthy server needs milliseconds, so that clients find the groups right after the start. */
const startTimeoutMs = 5_000
const retryMs = { first: 500, most: 60_000 }

/** @param groups complete when `serve` is called */
export function createComputedGroups(deps: ComputedGroupsDeps, groups: readonly ComputedGroup[]): ComputedGroups {
  const { reader, catalog, clock, log, transport } = deps
  const current = (name: string) => reader.get<KubeObject>(apiServices, '', name) as Frozen<APIService> | undefined
  const settle = (group: ComputedGroup) => {
    const name = nameOf(group)
    const sourceName = `computed ${name}`
    const apiService = current(name)
    if (!apiService || apiService.spec.service || isManaged(apiService) || isTaken(catalog, group)) return catalog.remove(sourceName)
    const source = { ...deps.sourceOf(group, apiService.spec), computed: true as const }
    if (catalog.source(sourceName)?.revision !== source.revision) catalog.set(sourceName, source)
  }
  const isMissing = (group: ComputedGroup) => {
    const name = nameOf(group)
    const marks = reader.get<KubeObject>(namespaces, '', markedNamespace)?.metadata.annotations
    return ownValue(marks, `${markPrefix}${name}`) === undefined && !isTaken(catalog, group) && !isManaged(current(name))
  }
  const ensure = async (group: ComputedGroup, signal: AbortSignal) => {
    if (isMissing(group)) await create(transport, group, signal)
  }
  const failed = (group: ComputedGroup, error: unknown) => log.error(error, 'Registering a computed group failed; trying again', { apiService: nameOf(group) })
  const follow = (settled: (group: ComputedGroup) => void) => {
    const settleAll = () => {
      for (const group of groups) settled(group)
    }
    const stops = [
      reader.onChange<KubeObject>(apiServices, ({ object }) => {
        const group = groups.find((one) => nameOf(one) === object.metadata.name)
        if (group) settled(group)
      }),
      catalog.onChange(settleAll),
    ]
    settleAll()
    return () => {
      for (const stop of stops) stop()
    }
  }
  return {
    serve(signal) {
      signal.addEventListener('abort', follow(settle), { once: true })
    },
    async register(signal) {
      using limit = deadlineScope({ clock, ms: startTimeoutMs }, signal)
      const all = groups.map((group) => ensure(group, limit.signal).catch((error: unknown) => failed(group, error)))
      await unlessAborted(Promise.all(all), limit.signal)
      signal.throwIfAborted()
    },
    async run(signal) {
      const rateLimiter = itemExponentialFailureRateLimiter<ComputedGroup>(retryMs.first, retryMs.most)
      const queue = createWorkQueue<ComputedGroup>({ clock, name: 'computed_groups', rateLimiter })
      const stop = follow((group) => {
        if (isMissing(group)) queue.add(group)
      })
      void aborted(signal).then(() => queue.shutDown())
      for (let group = await queue.get(); group !== undefined; group = await queue.get()) {
        try {
          await ensure(group, signal)
          queue.forget(group)
        } catch (error) {
          if (!signal.aborted) failed(group, error)
          queue.addRateLimited(group)
        } finally {
          queue.done(group)
        }
      }
      stop()
    },
  }
}

/** Automatic registration creates such an APIService for custom resources, and deletes it with them. */
function isManaged(apiService: Frozen<APIService> | undefined): boolean {
  return apiService?.metadata.labels?.[managedLabel] !== undefined
}

function isTaken(catalog: Catalog, { group, version }: ComputedGroup): boolean {
  return catalog.sources().some(({ computed, groupVersions }) => !computed && groupVersions.some((one) => one.group === group && one.version === version))
}

function nameOf({ group, version }: ComputedGroup): string {
  return `${version}.${group}`
}

async function create(transport: Transport, computed: ComputedGroup, signal: AbortSignal): Promise<void> {
  const name = nameOf(computed)
  const { group, version, priorities } = computed
  const body = { apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', metadata: { name }, spec: { group, version, ...priorities } }
  try {
    await transport.request({ method: 'POST', path: '/apis/apiregistration.k8s.io/v1/apiservices', body }, signal)
  } catch (error) {
    // The user has one of their own.
    if (!isStatus(error, 'AlreadyExists')) throw error
  }
  const annotations = { [`${markPrefix}${name}`]: 'created' }
  const patch = { method: 'PATCH', path: `/api/v1/namespaces/${markedNamespace}`, body: { metadata: { annotations } }, contentType: mergePatch } as const
  await transport.request(patch, signal)
}

const mergePatch = 'application/merge-patch+json'
