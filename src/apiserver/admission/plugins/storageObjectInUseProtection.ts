/**
 * Protects storage objects in use (L3): claims, volumes and attributes classes get the finalizers of the controllers that wait for the end of their use.
 * Upstream: plugin/pkg/admission/storage/storageobjectinuseprotection.
 */
import type { KubeObject } from '#api/machinery/meta'
import type { AdmissionPlugin } from '../admission.ts'
import { isResource, objectOf } from '../attributes.ts'

const protectedKinds = [
  { group: '', resource: 'persistentvolumes', finalizer: 'kubernetes.io/pv-protection' },
  { group: '', resource: 'persistentvolumeclaims', finalizer: 'kubernetes.io/pvc-protection' },
  { group: 'storage.k8s.io', resource: 'volumeattributesclasses', finalizer: 'kubernetes.io/vac-protection' },
]

export const storageObjectInUseProtection: AdmissionPlugin = {
  name: 'StorageObjectInUseProtection',
  handles: (operation) => operation === 'CREATE',
  admit(attributes) {
    const found = protectedKinds.find(({ group, resource }) => isResource(attributes, group, resource))
    if (!found) return
    const { metadata } = objectOf<KubeObject>(attributes)
    if (!metadata.finalizers?.includes(found.finalizer)) metadata.finalizers = [...(metadata.finalizers ?? []), found.finalizer]
  },
}
