/** Where volumes of CSI drivers are on a node (L3), as upstream places them. Upstream: pkg/volume/csi/csi_attacher.go, csi_block.go, csi_util.go (v1.36). */
import { createHash } from 'node:crypto'
import { basename, dirname } from 'node:path'
import type { VolumeContext, VolumeSpec } from '../volumePlugin.ts'
import { csiPlugin } from './csiText.ts'
import { dataFile } from './volumeData.ts'

export interface BlockPlaces {
  /** What the kubelet itself keeps of the volume. */
  readonly own: string
  readonly data: string
  readonly staging: string
  /** With one entry a pod. */
  readonly published: string
}

export const blockDirectory = 'volumeDevices'
export const pluginDirectory = ({ context }: VolumeContext) => `${context.config.rootDirectory}/plugins/${csiPlugin}`

/** @param name the PersistentVolume's */
export function blockPlaces(volumes: VolumeContext, name: string): BlockPlaces {
  const directory = `${pluginDirectory(volumes)}/${blockDirectory}`
  const own = `${directory}/${name}`
  return { own, data: `${own}/data/${dataFile}`, staging: `${directory}/staging/${name}`, published: `${directory}/publish/${name}` }
}

/** Undefined for the pod's own volumes, which are not staged. */
export function stagingPath(volumes: VolumeContext, { name, persistentVolume }: VolumeSpec): string | undefined {
  const { csi, volumeMode } = persistentVolume?.spec ?? {}
  if (!csi) return undefined
  if (volumeMode === 'Block') return blockPlaces(volumes, name).staging
  return `${pluginDirectory(volumes)}/${csi.driver}/${createHash('sha256').update(csi.volumeHandle).digest('hex')}/globalmount`
}

/** Whether a volume's directory below that of its pod is one of a block volume. */
export const isBlockDirectory = (directory: string) => basename(dirname(dirname(directory))) === blockDirectory

/** The uid of the pod in whose directory a volume's directory is. */
export const podOf = (directory: string) => basename(dirname(dirname(dirname(directory))))
