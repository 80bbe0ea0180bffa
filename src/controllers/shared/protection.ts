/**
 * Finalizers that hold an object back while it is in use (L3). Pure. Upstream: pkg/controller/volume/protectionutil (v1.36).
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'

export function isProtected({ metadata }: Frozen<KubeObject>, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) === true
}

/** It is being deleted, and this finalizer holds it. */
export function mayGo(object: Frozen<KubeObject>, finalizer: string): boolean {
  return object.metadata.deletionTimestamp !== undefined && isProtected(object, finalizer)
}

export function withFinalizer<T extends Frozen<KubeObject>>(object: T, finalizer: string): T {
  return { ...object, metadata: { ...object.metadata, finalizers: [...(object.metadata.finalizers ?? []), finalizer] } }
}

export function withoutFinalizer<T extends Frozen<KubeObject>>(object: T, finalizer: string): T {
  return { ...object, metadata: { ...object.metadata, finalizers: (object.metadata.finalizers ?? []).filter((one) => one !== finalizer) } }
}
