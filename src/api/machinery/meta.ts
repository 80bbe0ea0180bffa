/** The few shapes that every kind shares (L1): identity of kinds and resources, and the object itself. */
import type { ListMeta, ObjectMeta } from '#api/gen/types/meta.v1'
import type { DeepReadonly } from '#base/frozen'

export type { ListMeta, ManagedFieldsEntry, ObjectMeta, OwnerReference } from '#api/gen/types/meta.v1'

export interface GroupVersionKind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

export interface GroupVersionResource {
  readonly group: string
  readonly version: string
  readonly resource: string
}

export interface GroupResource {
  readonly group: string
  readonly resource: string
}

/** Any API object, as JSON. */
export interface KubeObject {
  apiVersion: string
  kind: string
  metadata: ObjectMeta
}

/** An object whose fields beyond the metadata are reached by name: generic code only. */
export type Unstructured = KubeObject & Record<string, unknown>

export type Frozen<T> = DeepReadonly<T>

export interface KubeList<T> {
  apiVersion: string
  kind: string
  metadata: ListMeta
  items: T[]
}

/** Where an object lives; `namespace` is absent for cluster-scoped kinds. */
export interface ObjectRef {
  readonly namespace?: string | undefined
  readonly name: string
}

/** 'apps/v1' or 'v1'. */
export function groupVersion(of: { group: string; version: string }): string {
  return of.group === '' ? of.version : `${of.group}/${of.version}`
}

export function parseGroupVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf('/')
  return slash < 0 ? { group: '', version: apiVersion } : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) }
}

/** 'namespace/name', or 'name' for cluster-scoped objects: the key of queues and caches (client-go's MetaNamespaceKey). */
export function keyOf(object: { readonly metadata: { readonly namespace?: string | undefined; readonly name?: string | undefined } }): string {
  const { namespace, name = '' } = object.metadata
  return namespace ? `${namespace}/${name}` : name
}

/** The inverse of {@link keyOf}. */
export function refOfKey(key: string): ObjectRef {
  const slash = key.indexOf('/')
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}
