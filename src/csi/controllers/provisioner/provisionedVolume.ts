/** The PersistentVolume for a volume that the driver has created (L3, pure). Upstream: external-provisioner, csiProvisioner.Provision. */
import type { CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import { storageClassOf, volumeAnnotations } from '#api/helpers/volumes'
import type { Frozen } from '#api/machinery/meta'
import { formatQuantity, quantityOf } from '#api/machinery/quantity'
import type { NewObject } from '#client/client'
import type { Volume } from '../../server/csiTypes.ts'
import type { SecretReference } from '../secrets.ts'
import { nodeAffinityOf } from './topology.ts'

export const volumeFinalizer = 'external-provisioner.volume.kubernetes.io/finalizer'

/** Secrets of calls that are made when class and claim may be gone. */
export const secretAnnotations = {
  deletion: { name: 'volume.kubernetes.io/provisioner-deletion-secret-name', namespace: 'volume.kubernetes.io/provisioner-deletion-secret-namespace' },
  modification: { name: 'volume.kubernetes.io/controller-modify-secret-name', namespace: 'volume.kubernetes.io/controller-modify-secret-namespace' },
} as const

type SecretFields = Pick<
  CSIPersistentVolumeSource,
  'controllerPublishSecretRef' | 'nodeStageSecretRef' | 'nodePublishSecretRef' | 'controllerExpandSecretRef' | 'nodeExpandSecretRef'
>

export interface ProvisionedFacts {
  readonly name: string
  readonly driver: string
  /** Of this provisioner, for drivers that compare it. */
  readonly identity: string
  readonly claim: Frozen<PersistentVolumeClaim>
  readonly storageClass: Frozen<StorageClass>
  readonly volume: Volume
  readonly capacityBytes: number
  readonly fsType: string
  readonly isReadOnly: boolean
  readonly hasTopology: boolean
  readonly secretFields: SecretFields
  readonly deletionSecret: SecretReference | undefined
  readonly modificationSecret: SecretReference | undefined
}

export function provisionedVolume(facts: ProvisionedFacts): NewObject<PersistentVolume> {
  const { name, driver, identity, claim, storageClass, volume, capacityBytes, fsType, isReadOnly, hasTopology, secretFields } = facts
  const { volumeMode, accessModes, volumeAttributesClassName } = claim.spec
  const { reclaimPolicy, mountOptions } = storageClass
  const { namespace, name: claimName, uid, resourceVersion } = claim.metadata
  return {
    metadata: { name, annotations: annotationsOf(facts), finalizers: [volumeFinalizer] },
    spec: {
      accessModes: [...(accessModes ?? [])],
      capacity: { storage: formatQuantity(quantityOf(capacityBytes, 'BinarySI')) },
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name: claimName, uid, resourceVersion },
      csi: {
        driver,
        volumeHandle: volume.volumeId,
        volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': identity, ...volume.volumeContext },
        ...secretFields,
        ...(isReadOnly ? { readOnly: true } : {}),
        ...(volumeMode !== 'Block' && fsType !== '' ? { fsType } : {}),
      },
      ...(mountOptions?.length ? { mountOptions: [...mountOptions] } : {}),
      ...(hasTopology ? { nodeAffinity: nodeAffinityOf(volume.accessibleTopology ?? []) } : {}),
      ...(reclaimPolicy ? { persistentVolumeReclaimPolicy: reclaimPolicy } : {}),
      storageClassName: storageClassOf(claim),
      ...(volumeMode ? { volumeMode } : {}),
      ...(volumeAttributesClassName ? { volumeAttributesClassName } : {}),
    },
  }
}

function annotationsOf({ storageClass, deletionSecret, modificationSecret }: ProvisionedFacts): Record<string, string> {
  const { deletion, modification } = secretAnnotations
  return {
    [volumeAnnotations.provisionedBy]: storageClass.provisioner,
    [deletion.name]: deletionSecret?.name ?? '',
    [deletion.namespace]: deletionSecret?.namespace ?? '',
    ...(modificationSecret ? { [modification.name]: modificationSecret.name, [modification.namespace]: modificationSecret.namespace } : {}),
  }
}
