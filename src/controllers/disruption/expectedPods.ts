/**
 * Sums the desired replicas of the controllers of some pods (L3): the built-in ones from caches, any other, custom resources too, through its
 * scale subresource. Upstream: getExpectedScale and the finders of pkg/controller/disruption/disruption.go (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import { controllerOf } from '#api/helpers/owners'
import type { Frozen, KubeObject, OwnerReference } from '#api/machinery/meta'
import { parseGroupVersion } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { deployments, replicaSets, replicationControllers, statefulSets } from '#client/builtIn'
import type { SharedInformer } from '#client/cache/sharedInformer'
import { createDiscovery } from '#client/discovery/discovery'
import { createRestMapper } from '#client/discovery/restMapper'
import { createScaleClient } from '#client/scaleClient'
import type { ControllerContext } from '../framework/controller.ts'

type Scaled = KubeObject & { spec?: { replicas?: number | undefined } | undefined }

export interface ExpectedPods {
  /** Must have their first state before anything is asked. */
  readonly informers: readonly SharedInformer<Scaled>[]
  /**
   * A controller counts once for all its pods. Pods without one count nothing and are returned.
   * @throws Error when a controller cannot be found or does not scale
   */
  of(pods: readonly Frozen<Pod>[], signal: AbortSignal): Promise<{ readonly count: number; readonly unmanaged: number }>
}

export function createExpectedPods(context: ControllerContext): ExpectedPods {
  const discovery = createDiscovery(context.client.transport)
  const mapper = createRestMapper(discovery)
  const scales = createScaleClient(context.client)
  const builtIn: Readonly<Record<string, SharedInformer<Scaled>>> = {
    'apps/ReplicaSet': context.informers.of(replicaSets) as unknown as SharedInformer<Scaled>,
    'apps/Deployment': context.informers.of(deployments) as unknown as SharedInformer<Scaled>,
    'apps/StatefulSet': context.informers.of(statefulSets) as unknown as SharedInformer<Scaled>,
    '/ReplicationController': context.informers.of(replicationControllers) as unknown as SharedInformer<Scaled>,
  }

  /** From a cache, at whose top the controller is a Deployment rather than its ReplicaSet. */
  function cached(reference: Readonly<OwnerReference>, namespace: string | undefined): Frozen<Scaled> | undefined {
    const { group } = parseGroupVersion(reference.apiVersion)
    const owner = builtIn[`${group}/${reference.kind}`]?.lister.get({ namespace, name: reference.name })
    if (!owner || owner.metadata.uid !== reference.uid) return undefined
    const above = reference.kind === 'ReplicaSet' ? controllerOf(owner) : undefined
    return above?.kind === 'Deployment' ? (cached(above, namespace) ?? owner) : owner
  }

  async function replicasOf(reference: Readonly<OwnerReference>, namespace: string | undefined, signal: AbortSignal) {
    const owner = cached(reference, namespace)
    if (owner) return { uid: owner.metadata.uid ?? '', replicas: owner.spec?.replicas ?? 1 }
    const resource = await mapper.forKind(reference.apiVersion, reference.kind, signal)
    try {
      const scale = await scales.get(resource, { namespace, name: reference.name }, { signal })
      return scale.metadata.uid === reference.uid ? { uid: reference.uid, replicas: scale.spec?.replicas ?? 0 } : undefined
    } catch (error) {
      if (!isStatus(error, 'NotFound')) throw error
      // Either the object is gone or its kind does not scale at all.
      if (resource.subresources.some(({ name }) => name === 'scale')) return undefined
      throw new Error(`${resource.resource}${resource.group ? `.${resource.group}` : ''} does not implement the scale subresource`)
    }
  }

  return {
    informers: Object.values(builtIn),
    async of(pods, signal) {
      const asked = new Set<string>()
      const replicas = new Map<string, number>()
      let unmanaged = 0
      for (const pod of pods) {
        const reference = controllerOf(pod)
        if (!reference) unmanaged++
        if (!reference || asked.has(reference.uid)) continue
        asked.add(reference.uid)
        const found = await replicasOf(reference, pod.metadata.namespace, signal)
        if (!found) throw new Error(`found no controllers for pod "${pod.metadata.name}"`)
        replicas.set(found.uid, found.replicas)
      }
      return { count: [...replicas.values()].reduce((sum, count) => sum + count, 0), unmanaged }
    },
  }
}
