/**
 * What the kubelet writes down before a driver sets a volume up (L3), so that a later kubelet can reverse it, and how a place of a volume is removed.
 * Upstream: pkg/volume/csi/csi_util.go, csi_mounter.go removeMountDir (v1.36).
 */
import { rm, rmdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { messageOf } from '#base/messageOf'
import { isMissing, readTextIfExists, writeFileAtomic } from '#host/files'
import type { KubeletHost } from '../../core/host.ts'
import { isMountPoint } from '../podMounts.ts'
import { csiText } from './csiText.ts'

/** Upstream's keys. */
export interface VolumeData {
  readonly specVolID?: string
  readonly volumeHandle: string
  readonly driverName: string
  readonly nodeName?: string
  readonly attachmentID?: string
  readonly volumeLifecycleMode?: string
}

/** Upstream's file. In a pod's directory it means that a publish request was sent, and at the staging path that a stage request was sent. */
export const dataFile = 'vol_data.json'
/** Ours, in a pod's directory: a stage request may have been sent. */
export const stagedFile = 'stage_data.json'

export async function saveData(host: KubeletHost, path: string, data: VolumeData): Promise<void> {
  await writeFileAtomic(host.path(path), `${JSON.stringify(data)}\n`, 0o600).catch((error: unknown) => {
    throw new Error(csiText(`failed to save volume data file ${path}: ${messageOf(error)}`), { cause: error })
  })
}

/** Undefined: there is no such file. @throws Error when it holds something else */
export async function loadData(host: KubeletHost, path: string): Promise<VolumeData | undefined> {
  const text = await readTextIfExists(host.path(path))
  if (text === undefined) return undefined
  try {
    const data: Partial<VolumeData> = JSON.parse(text)
    if (typeof data.driverName === 'string' && typeof data.volumeHandle === 'string') return data as VolumeData
    throw new Error('driverName or volumeHandle is missing')
  } catch (error) {
    throw new Error(csiText(`failed to parse volume data file [${path}]: ${messageOf(error)}`), { cause: error })
  }
}

/** Removes an empty directory where a driver had a volume, and the data file next to it, unless something is mounted there. */
export async function removePlace(host: KubeletHost, place: string): Promise<void> {
  if (await isMountPoint(host, place)) return
  await removeEmpty(host, place)
  await rm(host.path(`${dirname(place)}/${dataFile}`), { force: true })
}

/** @throws Error when it holds anything */
export async function removeEmpty(host: KubeletHost, directory: string): Promise<void> {
  await rmdir(host.path(directory)).catch((error: unknown) => {
    if (!isMissing(error)) throw new Error(csiText(`failed to remove dir [${directory}]: ${messageOf(error)}`), { cause: error })
  })
}
