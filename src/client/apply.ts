/**
 * Server-side apply (L2): sets the fields that one manager owns and leaves the fields of other managers alone. Upstream: the Apply methods of
 * client-go (v1.36).
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { CallOptions, ResourceClient } from './client.ts'

export interface ApplyOptions extends CallOptions {
  /** The field manager: fields that it applied before and omits now are removed. */
  readonly fieldManager: string
  /** Takes fields that others own; absent, they are a Conflict. */
  readonly force?: boolean | undefined
  readonly subresource?: string | undefined
  readonly dryRun?: boolean | undefined
}

/** What one applies: names, and the fields that matter. */
export type ApplyConfiguration<T> = PartialDeep<Omit<T, 'metadata'>> & { metadata: Partial<KubeObject['metadata']> & { name: string } }
type PartialDeep<T> = T extends readonly (infer U)[] ? readonly PartialDeep<U>[] : T extends object ? { [K in keyof T]?: PartialDeep<T[K]> } : T

/** @throws Status Conflict, which names the fields and who owns them. */
export function apply<T extends KubeObject>(client: ResourceClient<T>, object: ApplyConfiguration<T>, options: ApplyOptions): Promise<Frozen<T>> {
  const { group, version, kind } = client.resource
  const { name, namespace } = object.metadata
  const body = { apiVersion: group === '' ? version : `${group}/${version}`, kind, ...object }
  return client.patch({ namespace, name }, 'apply', body, options)
}
