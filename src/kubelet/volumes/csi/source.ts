/**
 * A CSI volume in the terms of requests to its driver (L3), from a PersistentVolume or from the pod's own source, and the names that are derived from it.
 * Upstream: pkg/volume/csi/csi_plugin.go, csi_util.go, csi_client.go (v1.36).
 */
import { createHash } from 'node:crypto'
import type { CSIPersistentVolumeSource, CSIVolumeSource } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { FrozenPod } from '../../core/containers.ts'
import type { VolumeSpec } from '../volumePlugin.ts'
import type { DriverOperation } from './drivers.ts'
import type { VolumeData } from './volumeData.ts'

export type TextMap = Readonly<Record<string, string>>
export type Lifecycle = 'Persistent' | 'Ephemeral'
/** Name and namespace. */
type SecretReference = NonNullable<Frozen<CSIPersistentVolumeSource>['nodeStageSecretRef']>

export interface CsiVolume {
  /** The PersistentVolume's name, or the pod's name for the volume. */
  readonly name: string
  readonly driver: string
  /** What the driver calls the volume. */
  readonly handle: string
  readonly lifecycle: Lifecycle
  readonly readOnly: boolean
  readonly block: boolean
  readonly fsType: string
  readonly attributes: TextMap
  /** Kubernetes' access modes; undefined: the object names none. */
  readonly accessModes: readonly string[] | undefined
  readonly mountOptions: readonly string[]
  readonly stageSecret: SecretReference | undefined
  readonly publishSecret: SecretReference | undefined
  readonly expandSecret: SecretReference | undefined
}

/** The access types and modes of a request. */
export interface VolumeCapability {
  readonly block?: object
  readonly mount?: { readonly fsType: string; readonly mountFlags: readonly string[]; readonly volumeMountGroup?: string }
  readonly accessMode: { readonly mode: string }
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/** The source of a PersistentVolume; undefined: the volume is the pod's own, or of another type. */
export function persistentSource({ persistentVolume }: VolumeSpec): Frozen<CSIPersistentVolumeSource> | undefined {
  return persistentVolume?.spec.csi
}

/** @throws Error for volumes of another type */
export function csiVolumeOf(spec: VolumeSpec, pod: FrozenPod): CsiVolume {
  const source = persistentSource(spec)
  if (source) return persistent(spec, source)
  if (spec.volume?.csi) return inline(spec, spec.volume.csi, pod)
  throw new Error('volume source not found in volume.Spec')
}

function persistent({ name, persistentVolume, readOnly }: VolumeSpec, source: Frozen<CSIPersistentVolumeSource>): CsiVolume {
  const { accessModes, mountOptions = [], volumeMode } = persistentVolume?.spec ?? {}
  return {
    ...{ name, readOnly, accessModes, mountOptions, lifecycle: 'Persistent', block: volumeMode === 'Block' },
    ...{ driver: source.driver, handle: source.volumeHandle, fsType: source.fsType ?? '', attributes: source.volumeAttributes ?? {} },
    ...{ stageSecret: source.nodeStageSecretRef, publishSecret: source.nodePublishSecretRef, expandSecret: source.nodeExpandSecretRef },
  }
}

function inline({ name }: VolumeSpec, source: Frozen<CSIVolumeSource>, { metadata }: FrozenPod): CsiVolume {
  const { driver, fsType = '', readOnly = false, volumeAttributes = {}, nodePublishSecretRef } = source
  return {
    ...{ name, driver, fsType, readOnly, lifecycle: 'Ephemeral', block: false, attributes: volumeAttributes },
    ...{ handle: `csi-${sha256(`${metadata.uid}${name}`)}`, accessModes: undefined, mountOptions: [] },
    ...{ stageSecret: undefined, expandSecret: undefined },
    publishSecret: nodePublishSecretRef && { name: nodePublishSecretRef.name ?? '', namespace: metadata.namespace ?? '' },
  }
}

/** The VolumeAttachment of a volume on a node. */
export function attachmentName(handle: string, driver: string, nodeName: string): string {
  return `csi-${sha256(`${handle}${driver}${nodeName}`)}`
}

const modes: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'SINGLE_NODE_WRITER',
  ReadWriteOncePod: 'SINGLE_NODE_WRITER',
  ReadOnlyMany: 'MULTI_NODE_READER_ONLY',
  ReadWriteMany: 'MULTI_NODE_MULTI_WRITER',
}
const finerModes: Readonly<Record<string, string>> = { ...modes, ReadWriteOnce: 'SINGLE_NODE_MULTI_WRITER', ReadWriteOncePod: 'SINGLE_NODE_SINGLE_WRITER' }

/** @param group the pod's fsGroup, of drivers that give the volume to it themselves */
export async function capabilityOf(volume: CsiVolume, operation: DriverOperation, group?: number): Promise<VolumeCapability> {
  const { block, fsType, mountOptions, accessModes } = volume
  const known = (await operation.supports('SINGLE_NODE_MULTI_WRITER')) ? finerModes : modes
  const accessMode = { mode: known[accessModes?.[0] ?? 'ReadWriteOnce'] ?? 'UNKNOWN' }
  if (block) return { block: {}, accessMode }
  return { mount: { fsType, mountFlags: mountOptions, ...(group === undefined ? {} : { volumeMountGroup: String(group) }) }, accessMode }
}

/** From what the kubelet has written down of the volume. */
export function specOf(name: string, { driverName: driver, volumeHandle, volumeLifecycleMode }: VolumeData, block: boolean): VolumeSpec {
  if (volumeLifecycleMode === 'Ephemeral') return { name, readOnly: false, volume: { name, csi: { driver } } }
  const spec = { csi: { driver, volumeHandle }, volumeMode: block ? 'Block' : 'Filesystem' } as const
  return { name, readOnly: false, persistentVolume: { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name }, spec, status: {} } }
}
