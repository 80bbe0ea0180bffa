/**
 * What the garbage collector can see (L3): every resource of discovery that can be listed, watched and deleted, custom ones as they come.
 * Upstream: pkg/controller/garbagecollector/garbagecollector.go, GetDeletableResources (v1.36).
 */
import { groupVersion, type KubeObject } from '#api/machinery/meta'
import { apiServices, clusterScoped, customResourceDefinitions, namespaced } from '#client/builtIn'
import type { Client, Resource } from '#client/client'
import { createDiscovery } from '#client/discovery/discovery'
import type { ControllerContext } from '../framework/controller.ts'

export interface Discovered {
  readonly watchable: readonly Resource<KubeObject>[]
  /** By `apiVersion kind`, in every version served, for owner references. */
  readonly byKind: ReadonlyMap<string, Resource<KubeObject>>
}

const neverCollected = new Set(['/events', 'events.k8s.io/events'])

/** @throws Error when there is no answer, or one without the core group: it says nothing about what is served. */
export async function discoverResources(client: Client, signal: AbortSignal): Promise<Discovered> {
  const { resources } = await createDiscovery(client.transport).resources(signal)
  if (!resources.some(({ group }) => group === '')) throw new Error('discovery names no resource of the core group')
  const watchable = new Map<string, Resource<KubeObject>>()
  const byKind = new Map<string, Resource<KubeObject>>()
  // The preferred version of each group comes first.
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
const unchangedRounds = 10

/** Runs its work where something that extends the API has changed since it last succeeded, and every few rounds all the same. */
export function whenDiscoveryMayHaveChanged({ informers }: ControllerContext) {
  let left = 0
  const changed = () => {
    left = 0
  }
  const handler = { onAdd: changed, onUpdate: changed, onDelete: changed }
  return {
    registrations: [informers.of(customResourceDefinitions).addHandler(handler), informers.of(apiServices).addHandler(handler)],
    async run(work: () => Promise<void>): Promise<void> {
      if (left > 0) {
        left--
        return
      }
      left = unchangedRounds
      await work().catch((error: unknown) => {
        left = 0
        throw error
      })
    },
  }
}
