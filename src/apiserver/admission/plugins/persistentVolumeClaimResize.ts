/** Allows a larger request of a claim only if it is bound and its class allows expansion (L3). Upstream: plugin/pkg/admission/storage/persistentvolume/resize. */
import type { PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import type { Frozen } from '#api/machinery/meta'
import { compareQuantities } from '#api/machinery/quantity'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionPlugin } from '../admission.ts'
import { isResource, objectOf, refuse } from '../attributes.ts'

export function persistentVolumeClaimResize(reader: ObjectReader): AdmissionPlugin {
  return {
    name: 'PersistentVolumeClaimResize',
    handles: (operation) => operation === 'UPDATE',
    validate(attributes) {
      if (!isResource(attributes, '', 'persistentvolumeclaims')) return
      const claim = objectOf<PersistentVolumeClaim>(attributes)
      const old = attributes.oldObject as Frozen<PersistentVolumeClaim>
      if (compareQuantities(sizeOf(claim), sizeOf(old)) <= 0) return
      if (old.status?.phase !== 'Bound') throw refuse(attributes, 'Only bound persistent volume claims can be expanded')
      const name = classOf(claim)
      const found =
        name === '' || name !== classOf(old) ? undefined : reader.get<StorageClass>({ group: 'storage.k8s.io', resource: 'storageclasses' }, '', name)
      if (found?.allowVolumeExpansion) return
      throw refuse(attributes, 'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize')
    },
  }
}

function sizeOf({ spec }: Frozen<PersistentVolumeClaim>): string {
  return spec?.resources?.requests?.storage ?? '0'
}

function classOf({ metadata, spec }: Frozen<PersistentVolumeClaim>): string {
  return metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ?? spec?.storageClassName ?? ''
}
