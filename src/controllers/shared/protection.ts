/**
 * Finalizers that hold an object back while it is in use (L3). Upstream: pkg/controller/volume/protectionutil (v1.36).
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { ResourceClient } from '#client/client'

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

/** Whether a protecting controller must handle the object: it is being deleted, or lacks the finalizer. */
export function needsProtection(object: Frozen<KubeObject>, finalizer: string): boolean {
  return mayGo(object, finalizer) || !isProtected(object, finalizer)
}

/** Takes the finalizer from an object that is being deleted and not used any more; gives it to one that lacks it. */
export async function protect<T extends KubeObject>(
  object: Frozen<T> | undefined,
  finalizer: string,
  { client, isUsed, signal }: { readonly client: ResourceClient<T>; isUsed(object: Frozen<T>): boolean | Promise<boolean>; readonly signal: AbortSignal },
): Promise<undefined> {
  if (!object) return
  if (mayGo(object, finalizer)) {
    if (!(await isUsed(object))) await client.update(withoutFinalizer(object, finalizer), { signal })
  } else if (!isProtected(object, finalizer) && !object.metadata.deletionTimestamp) await client.update(withFinalizer(object, finalizer), { signal })
}
