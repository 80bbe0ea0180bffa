/**
 * What the garbage collector can see (L3): every resource of discovery that can be listed, watched and deleted, custom ones as they come.
 * Upstream: pkg/controller/garbagecollector/garbagecollector.go, GetDeletableResources (v1.36).
 */
import type { APIGroupList, APIResourceList } from '#api/gen/types/meta.v1'
import type { KubeObject } from '#api/machinery/meta'
import { apiServices, clusterScoped, customResourceDefinitions, namespaced } from '#client/builtIn'
import type { Client, Resource } from '#client/client'
import type { ControllerContext } from '../framework/controller.ts'

export interface Discovered {
  readonly watchable: readonly Resource<KubeObject>[]
  /** By `apiVersion kind`, in every version served, for owner references. */
  readonly byKind: ReadonlyMap<string, Resource<KubeObject>>
}

const neverCollected = new Set(['/events', 'events.k8s.io/events'])

export async function discoverResources(client: Client, signal: AbortSignal): Promise<Discovered> {
  const get = async <T>(path: string) => (await client.transport.request({ method: 'GET', path }, signal)).body as T
  const groups = (await get<APIGroupList>('/apis')).groups
  const preferred = ['v1', ...groups.flatMap(({ preferredVersion }) => preferredVersion?.groupVersion ?? [])]
  const others = groups.flatMap(({ versions }) => versions.map(({ groupVersion }) => groupVersion)).filter((version) => !preferred.includes(version))
  const watchable = new Map<string, Resource<KubeObject>>()
  const byKind = new Map<string, Resource<KubeObject>>()
  for (const groupVersion of [...preferred, ...others]) {
    // One group that does not answer must not stop collection in the others.
    const list = await get<APIResourceList>(groupVersion === 'v1' ? '/api/v1' : `/apis/${groupVersion}`).catch(() => undefined)
    const [group = '', version = ''] = groupVersion === 'v1' ? ['', 'v1'] : groupVersion.split('/')
    for (const { name, kind, namespaced: isNamespaced, verbs } of list?.resources ?? []) {
      if (name.includes('/')) continue
      const resource = (isNamespaced ? namespaced : clusterScoped)<KubeObject>(group, version, name, kind)
      if (!byKind.has(`${groupVersion} ${kind}`)) byKind.set(`${groupVersion} ${kind}`, resource)
      const can = ['delete', 'list', 'watch'].every((verb) => verbs.includes(verb))
      if (can && !neverCollected.has(`${group}/${name}`) && !watchable.has(`${group}/${name}`)) watchable.set(`${group}/${name}`, resource)
    }
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
