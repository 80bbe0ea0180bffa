/**
 * The writes of attaching and detaching (L3): VolumeAttachments, which drivers follow, and volumes in the status of nodes.
 * Upstream: pkg/volume/csi/csi_attacher.go Attach, Detach; attachdetach/statusupdater/node_status_updater.go (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import type { VolumeAttachment } from '#api/gen/types/storage.v1'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { ResourceClient } from '#client/client'
import { attachmentName, inTreePluginOf, partsOf, type Wanted } from './attachable.ts'

/** Sets these volumes in the node's status; entries that the controller does not attach belong to other writers. */
export async function reportAttached(
  nodes: ResourceClient<Node>,
  { metadata, status }: Frozen<Node>,
  names: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const said = status?.volumesAttached ?? []
  const foreign = said.filter(({ name }) => partsOf(name) === undefined && inTreePluginOf(name) === undefined)
  const volumesAttached = [...foreign, ...names.map((name) => ({ name, devicePath: '' }))]
  if (semanticEqual(said, volumesAttached)) return
  const body = { status: { volumesAttached: volumesAttached.length > 0 ? volumesAttached : null } }
  await nodes.patch({ name: metadata.name ?? '' }, 'merge', body, { subresource: 'status', signal })
}

/** @param name the volume's unique name */
export async function attach(
  attachments: ResourceClient<VolumeAttachment>,
  nodeName: string,
  name: string,
  wanted: Wanted | undefined,
  signal: AbortSignal,
): Promise<void> {
  const parts = partsOf(name)
  if (!parts || !wanted) return
  const { driver, handle } = parts
  const source = { persistentVolumeName: wanted.volume.metadata.name ?? '' }
  try {
    await attachments.create({ metadata: { name: attachmentName(driver, handle, nodeName) }, spec: { attacher: driver, nodeName, source } }, { signal })
  } catch (error) {
    // Being deleted, perhaps: its end is an event.
    if (!isStatus(error, 'AlreadyExists')) throw error
  }
}

export async function detach(attachments: ResourceClient<VolumeAttachment>, nodeName: string, name: string, signal: AbortSignal): Promise<void> {
  const parts = partsOf(name)
  if (!parts) return
  await attachments.delete({ name: attachmentName(parts.driver, parts.handle, nodeName) }, { signal }).catch((error: unknown) => {
    if (!isStatus(error, 'NotFound')) throw error
  })
}
