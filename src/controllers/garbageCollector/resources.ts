/**
 * The resources that the garbage collector watches (L3): every resource of discovery that can be listed, watched and deleted, custom ones as they come.
 * Upstream: pkg/controller/garbagecollector/garbagecollector.go, GetDeletableResources (v1.36).
 */
import { groupVersion, type KubeObject } from '#api/machinery/meta'
import { abortScope } from '#base/abortScope'
import { messageOf } from '#base/messageOf'
import { apiServices, clusterScoped, customResourceDefinitions, namespaced } from '#client/builtIn'
import type { Client, Resource } from '#client/client'
import { createDiscovery, type DiscoveredResource } from '#client/discovery/discovery'
import type { ControllerContext } from '../framework/controller.ts'

export interface Discovered {
  readonly watchable: readonly Resource<KubeObject>[]
  /** By `apiVersion kind`, in every version served, for owner references. */
  readonly byKind: ReadonlyMap<string, Resource<KubeObject>>
}

const neverCollected = new Set(['/events', 'events.k8s.io/events'])

/**
 * Reads discovery on each call; the same value again means that nothing has changed.
 * @throws Error when discovery does not answer, or answers without the core group: then the served resources are unknown.
 */
export function createResourceDiscovery(client: Client): (signal: AbortSignal) => Promise<Discovered> {
  const discovery = createDiscovery(client.transport)
  let served: readonly DiscoveredResource[] = []
  let discovered: Discovered | undefined
  return async (signal) => {
    discovery.invalidate()
    const { resources } = await discovery.resources(signal)
    if (!discovered || resources !== served) discovered = deletable(resources)
    served = resources
    return discovered
  }
}

function deletable(resources: readonly DiscoveredResource[]): Discovered {
  if (!resources.some(({ group }) => group === '')) throw new Error('discovery names no resource of the core group')
  const watchable = new Map<string, Resource<KubeObject>>()
  const byKind = new Map<string, Resource<KubeObject>>()
  // The preferred version of each group is first.
  for (const { group, version, resource: name, kind, namespaced: isNamespaced, verbs } of resources) {
    const resource = (isNamespaced ? namespaced : clusterScoped)<KubeObject>(group, version, name, kind)
    const typeName = `${groupVersion({ group, version })} ${kind}`
    if (!byKind.has(typeName)) byKind.set(typeName, resource)
    const can = ['delete', 'list', 'watch'].every((verb) => verbs.includes(verb))
    const key = `${group}/${name}`
    if (can && !neverCollected.has(key) && !watchable.has(key)) watchable.set(key, resource)
  }
  return { watchable: [...watchable.values()], byKind }
}

/** Discovery changes with the objects that extend the API; it is read now and then all the same. */
const unchangedMs = 5 * 60_000
/** New kinds are often added many at once, and the server needs a moment before it serves them. */
const gatherMs = 1_000
const retryMs = 30_000

/**
 * Runs `work` at once, whenever something that extends the API has changed, and every few minutes all the same, until the signal aborts; what fails
 * is logged and tried again.
 */
export async function followDiscovery(context: ControllerContext, name: string, work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  const { informers, clock, log } = context
  let wake = () => {}
  const changed = () => wake()
  // The initial list is known to discovery already.
  const onAdd = (_: unknown, isInInitialList: boolean) => {
    if (!isInInitialList) changed()
  }
  const handler = { onAdd, onUpdate: changed, onDelete: changed }
  const registrations = [informers.of(customResourceDefinitions).addHandler(handler), informers.of(apiServices).addHandler(handler)]
  while (!signal.aborted) {
    using change = abortScope(signal)
    let isChanged = false
    wake = () => {
      isChanged = true
      change.abort()
    }
    let pauseMs = unchangedMs
    try {
      await work()
    } catch (error) {
      if (signal.aborted) break
      pauseMs = retryMs
      log.warn('A periodic task failed', { task: name, error: messageOf(error) })
    }
    await clock.sleep(pauseMs, change.signal).catch(() => {})
    if (isChanged) await clock.sleep(gatherMs, signal).catch(() => {})
  }
  for (const registration of registrations) registration.remove()
}
