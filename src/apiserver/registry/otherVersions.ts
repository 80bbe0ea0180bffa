/**
 * Converts a built-in resource between versions for field ownership (L3), through the stored shape.
 * Upstream: the versionConverter of apimachinery/pkg/util/managedfields/internal (v1.36).
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { OtherVersions } from '#api/managedFields/versions'
import { deepCopy } from '#base/frozen'
import type { ServedResource } from './storedResource.ts'

/** `find` returns the resource as a version serves it, undefined when none does. */
export function otherVersions(own: ServedResource, find: (apiVersion: string) => ServedResource | undefined): OtherVersions {
  return (apiVersion) => {
    const other = find(apiVersion)
    return other && { schema: other.schema, show: (object) => across(object, own, other), back: (object) => across(object, other, own) }
  }
}

function across(object: Frozen<KubeObject>, from: ServedResource, to: ServedResource): KubeObject {
  const stored = from.toStored(from.toStrategy(deepCopy<KubeObject>(object)))
  if (stored instanceof Promise) throw new Error(`${from.resource} of ${from.apiVersion} is converted by others`)
  return to.view ? deepCopy<KubeObject>(to.view.convert(stored)) : stored
}
