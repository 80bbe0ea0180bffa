/**
 * Which PersistentVolume a claim gets, or why none (L3, pure). Refusals are worded as csi-provisioner and rancher's local-path-provisioner word them.
 * Upstream: sig-storage-lib-external-provisioner, controller/controller.go provisionClaimOperation.
 */
import type { Node, PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { StorageClass } from '#api/gen/types/storage.v1'
import { localPathFinalizer, localPathNode, localPathOf, localPathProvisioner } from '#api/helpers/localPath'
import { storageClassOf, volumeAnnotations } from '#api/helpers/volumes'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import type { NewObject } from '#client/client'

type Claim = Frozen<PersistentVolumeClaim>

export type ProvisionPlan =
  | { readonly act: 'create'; readonly volume: NewObject<PersistentVolume> }
  | { readonly act: 'refuse'; readonly problem: string }
  /** The scheduler must choose another node. */
  | { readonly act: 'reschedule'; readonly problem: string }
  /** A populator creates the volume from the claim's data source. */
  | { readonly act: 'leaveToPopulator' }

export function volumeNameOf({ metadata }: Claim): string {
  return `pvc-${metadata.uid}`
}

export function selectedNodeOf({ metadata }: Claim): string | undefined {
  return ownValue(metadata.annotations, volumeAnnotations.selectedNode) || undefined
}

/** Whether the claim waits for a volume of this provisioner. */
export function awaitsVolume({ metadata, spec }: Claim): boolean {
  return !spec?.volumeName && !metadata.deletionTimestamp && ownValue(metadata.annotations, volumeAnnotations.storageProvisioner) === localPathProvisioner
}

/** @param node the selected node; undefined: none is selected, or it does not exist */
export function planVolumeFor(claim: Claim, storageClass: Frozen<StorageClass>, node: Frozen<Node> | undefined): ProvisionPlan {
  const source = claim.spec.dataSourceRef ?? claim.spec.dataSource
  if (source && !['PersistentVolumeClaim', 'VolumeSnapshot'].includes(source.kind)) return { act: 'leaveToPopulator' }
  const problem = unsupported(claim, storageClass)
  if (problem !== undefined) return { act: 'refuse', problem }
  const nodeName = selectedNodeOf(claim)
  if (nodeName === undefined) {
    const wanted = `StorageClass "${storageClass.metadata.name}" needs volumeBindingMode WaitForFirstConsumer`
    return { act: 'refuse', problem: `configuration error, no node was specified: ${wanted}` }
  }
  if (!node) return { act: 'reschedule', problem: `failed to get target node: node "${nodeName}" not found` }
  return { act: 'create', volume: volumeFor(claim, storageClass, node) }
}

function unsupported({ spec }: Claim, { parameters }: Frozen<StorageClass>): string | undefined {
  const lacks = (what: string) => `${localPathProvisioner} does not support ${what}`
  const source = spec.dataSourceRef ?? spec.dataSource
  if (source) return lacks(source.kind === 'VolumeSnapshot' ? 'snapshot restore' : 'clone operations')
  if (spec.volumeAttributesClassName) return lacks('VolumeAttributesClass')
  if (spec.selector) return 'claim Selector is not supported'
  if ((spec.accessModes ?? []).some((mode) => mode !== 'ReadWriteOnce' && mode !== 'ReadWriteOncePod')) {
    return `${localPathProvisioner} only supports ReadWriteOnce and ReadWriteOncePod access modes`
  }
  return Object.keys(parameters ?? {}).length > 0 ? lacks('parameters of a StorageClass') : undefined
}

function volumeFor(claim: Claim, { mountOptions, reclaimPolicy }: Frozen<StorageClass>, node: Frozen<Node>): NewObject<PersistentVolume> {
  const name = volumeNameOf(claim)
  const { namespace, name: claimName, uid, resourceVersion } = claim.metadata
  const nodeName = node.metadata.name ?? ''
  const hostname = ownValue(node.metadata.labels, 'kubernetes.io/hostname') ?? nodeName
  const matchExpressions = [{ key: 'kubernetes.io/hostname', operator: 'In', values: [hostname] }]
  return {
    metadata: {
      name,
      annotations: { [volumeAnnotations.provisionedBy]: localPathProvisioner, [localPathNode]: nodeName },
      finalizers: [localPathFinalizer],
    },
    spec: {
      accessModes: [...(claim.spec.accessModes ?? [])],
      capacity: { storage: claim.spec.resources?.requests?.storage ?? '0' },
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name: claimName, uid, resourceVersion },
      local: { path: localPathOf(name) },
      ...(mountOptions?.length ? { mountOptions: [...mountOptions] } : {}),
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
      persistentVolumeReclaimPolicy: reclaimPolicy ?? 'Delete',
      storageClassName: storageClassOf(claim),
      volumeMode: 'Filesystem',
    },
  }
}
