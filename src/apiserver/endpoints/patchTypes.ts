/**
 * The media types of patches (L3), and which of them a resource takes: strategic merge needs list metadata that only built-in kinds have.
 * Upstream: endpoints/installer.go and apiextensions' customresource_handler.go (v1.36).
 */
import type { ServedResource } from '../registry/storedResource.ts'

export const jsonPatchType = 'application/json-patch+json'
export const mergePatchType = 'application/merge-patch+json'
export const strategicMergePatchType = 'application/strategic-merge-patch+json'
export const applyPatchType = 'application/apply-patch+yaml'

const all = [jsonPatchType, mergePatchType, strategicMergePatchType, applyPatchType]
const ofCustomResources = all.filter((type) => type !== strategicMergePatchType)

export function patchTypesOf(served: Pick<ServedResource, 'custom'>): readonly string[] {
  return served.custom ? ofCustomResources : all
}
