/**
 * How many replicas an object of any scalable resource has and shall have (L2), through its scale subresource.
 * Upstream: client-go/scale (v1.36).
 */
import type { Scale } from '#api/gen/types/autoscaling.v1'
import type { Frozen, KubeObject, ObjectRef } from '#api/machinery/meta'
import type { CallOptions, Client, Resource, WriteOptions } from './client.ts'

export interface ScaleClient {
  get(resource: Resource<KubeObject>, ref: ObjectRef, options?: CallOptions): Promise<Frozen<Scale>>
  update(resource: Resource<KubeObject>, ref: ObjectRef, scale: Scale | Frozen<Scale>, options?: WriteOptions): Promise<Frozen<Scale>>
  /** Sets the replicas whatever they are now. */
  scaleTo(resource: Resource<KubeObject>, ref: ObjectRef, replicas: number, options?: WriteOptions): Promise<Frozen<Scale>>
}

export function createScaleClient(client: Client): ScaleClient {
  return {
    get: (resource, ref, options) => client.of(resource).getSubresource<Scale>(ref, 'scale', options),
    update: (resource, ref, scale, options) => client.of(resource).updateSubresource<Scale>(ref, 'scale', scale, options),
    scaleTo: async (resource, ref, replicas, options) => {
      const answer = await client.of(resource).patch(ref, 'merge', { spec: { replicas } }, { ...options, subresource: 'scale' })
      return answer as unknown as Frozen<Scale>
    },
  }
}
