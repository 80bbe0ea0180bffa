/** StorageObjectInUseProtection (L3): claims, volumes and attribute classes leave only when nobody uses them. Upstream: plugin/pkg/admission/storage/storageobjectinuseprotection (v1.36). */
import type { AdmissionPlugin } from '../admission.ts'
import { isResource } from '../attributes.ts'

const protectedKinds = [
  { group: '', resource: 'persistentvolumes', finalizer: 'kubernetes.io/pv-protection' },
  { group: '', resource: 'persistentvolumeclaims', finalizer: 'kubernetes.io/pvc-protection' },
  { group: 'storage.k8s.io', resource: 'volumeattributesclasses', finalizer: 'kubernetes.io/vac-protection' },
] as const

export const storageObjectInUseProtection: AdmissionPlugin = {
  name: 'StorageObjectInUseProtection',
  handles: (operation) => operation === 'CREATE',
  admit(attributes) {
    const kind = protectedKinds.find((one) => isResource(attributes, one.group, one.resource))
    const metadata = attributes.object?.metadata
    if (kind && metadata && !metadata.finalizers?.includes(kind.finalizer)) metadata.finalizers = [...(metadata.finalizers ?? []), kind.finalizer]
  },
}
