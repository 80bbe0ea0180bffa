/**
 * What the kubelet reads from the API for a CSI volume (L3): the CSIDriver, the VolumeAttachment with what the driver's controller said, and secrets.
 * Upstream: pkg/volume/csi/csi_plugin.go, csi_util.go (v1.36).
 */
import type { CSIDriver, VolumeAttachment } from '#api/gen/types/storage.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { csiDrivers, secrets, volumeAttachments } from '#client/builtIn'
import type { Client } from '#client/client'
import { secretData } from '../payloads.ts'
import { csiText } from './csiText.ts'
import { attachmentName, type CsiVolume, type TextMap } from './source.ts'

export type FrozenDriver = Frozen<CSIDriver>

/** Undefined: the driver has none, which is allowed. */
export async function findDriver(client: Client, name: string): Promise<FrozenDriver | undefined> {
  try {
    return await client.of(csiDrivers).get({ name }, { resourceVersion: '0' })
  } catch (error) {
    if (isStatus(error, 'NotFound')) return undefined
    throw error
  }
}

/** Drivers without a CSIDriver are attached. */
export const isAttached = (driver: FrozenDriver | undefined) => driver?.spec.attachRequired !== false

/** Returns the attachment's name. @throws Error while the volume is not attached to the node */
export async function checkAttachment(client: Client, { handle, driver }: CsiVolume, nodeName: string): Promise<string> {
  const name = attachmentName(handle, driver, nodeName)
  const attachment = await client
    .of(volumeAttachments)
    .get({ name })
    .catch((error: unknown) => {
      throw new Error(`volume ${handle} has GET error for volume attachment ${name}: ${messageOf(error)}`, { cause: error })
    })
  if (attachment.metadata.deletionTimestamp) throw new Error('volume attachment is being deleted')
  if (attachment.status?.attached) return name
  const refusal = attachment.status?.attachError
  throw new Error(refusal ? (refusal.message ?? '') : `volume ${handle} is not attached for volume attachment ${name}`)
}

/** What the driver's controller answered when it attached the volume. */
export async function publishContext(client: Client, volume: CsiVolume, nodeName: string): Promise<TextMap> {
  if (volume.lifecycle === 'Ephemeral' || !isAttached(await findDriver(client, volume.driver))) return {}
  const { status }: Frozen<VolumeAttachment> = await client.of(volumeAttachments).get({ name: attachmentName(volume.handle, volume.driver, nodeName) })
  return status?.attachmentMetadata ?? {}
}

/** @param what the field that refers to the secret */
export async function credentials(client: Client, what: string, reference: CsiVolume['stageSecret']): Promise<TextMap> {
  if (!reference) return {}
  const { namespace = '', name = '' } = reference
  try {
    const data = secretData(await client.of(secrets).get({ namespace, name }))
    return Object.fromEntries([...data].map(([key, value]) => [key, Buffer.from(value).toString()]))
  } catch (error) {
    const reason = csiText(`failed to find the secret ${name} in the namespace ${namespace} with error: ${messageOf(error)}`)
    throw new Error(`fetching ${what} ${namespace}/${name} failed: ${reason}`, { cause: error })
  }
}
