/**
 * The CSINode of this node (L3), which the Node owns and which exists without drivers, too: driverInstallation.ts puts drivers into it. Upstream:
 * pkg/volume/csi/nodeinfomanager, csi_plugin.go initializeCSINode (v1.36).
 */

import type { Node } from '#api/gen/types/core.v1'
import type { CSINode } from '#api/gen/types/storage.v1'
import { ownerReference } from '#api/helpers/owners'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { ownValue } from '#base/bareMap'
import { messageOf } from '#base/messageOf'
import { unlessAborted } from '#base/orAborted'
import { csiNodes, nodes } from '#client/builtIn'
import type { Client } from '#client/client'
import type { KubeletContext } from '../../core/context.ts'

const retryMs = 5_000

const annotation = 'storage.alpha.kubernetes.io/migrated-plugins'
/** In-tree plugins whose volumes CSI drivers serve, as every kubelet of this release publishes them. */
const migratedPlugins = ['aws-ebs', 'azure-disk', 'azure-file', 'cinder', 'gce-pd', 'portworx-volume', 'vsphere-volume']
const annotations = { [annotation]: migratedPlugins.map((name) => `kubernetes.io/${name}`).join(',') }

type Named = { readonly config: Pick<KubeletContext['config'], 'nodeName'> }
type Deps = Pick<KubeletContext, 'client' | 'clock' | 'log'> & Named

/**
 * Resolves once the CSINode is there, or the signal has aborted. `registered` resolves once the Node exists.
 * @param createdUid the uid of a Node that has just been created; undefined: it may have a CSINode
 */
export async function publishCsiNode(
  { client, clock, log, config }: Deps,
  registered: Promise<void>,
  createdUid: () => string | undefined,
  signal: AbortSignal,
): Promise<void> {
  await unlessAborted(registered, signal)
  while (!signal.aborted) {
    try {
      return await publish(client, config.nodeName, createdUid(), signal)
    } catch (error) {
      if (signal.aborted) return
      log.v(2).info('Failed to publish CSINode', { node: config.nodeName, error: messageOf(error) })
    }
    await clock.sleep(retryMs, signal).catch(() => {})
  }
}

async function publish(client: Client, name: string, createdUid: string | undefined, signal: AbortSignal): Promise<void> {
  if (createdUid !== undefined && (await createUnlessThere(client, { name, uid: createdUid }, signal))) return
  const found = await ensureCsiNode(client, name, signal)
  if (ownValue(found.metadata.annotations, annotation) === annotations[annotation]) return
  await client.of(csiNodes).patch({ name }, 'merge', { metadata: { annotations } }, { signal })
}

/** The Node's CSINode; created where there is none. That of an earlier Node of the name is replaced: its drivers are not this node's. */
export async function ensureCsiNode(client: Client, name: string, signal: AbortSignal): Promise<Frozen<CSINode>> {
  const node = await client.of(nodes).get({ name }, { signal })
  const found = await findCsiNode(client, name, signal)
  if (found && isOwnedBy(found, node)) return found
  if (found) await client.of(csiNodes).delete({ name }, { preconditions: { uid: found.metadata.uid }, signal })
  return createCsiNode(client, node.metadata, signal)
}

function createCsiNode(client: Client, { name = '', uid = '' }: Frozen<Node>['metadata'], signal: AbortSignal): Promise<Frozen<CSINode>> {
  const ownerReferences = [ownerReference({ apiVersion: 'v1', kind: 'Node', metadata: { name, uid } })]
  return client.of(csiNodes).create({ metadata: { name, annotations, ownerReferences }, spec: { drivers: [] } }, { signal })
}

/** @returns false when there is one already, of an earlier Node of the name */
async function createUnlessThere(client: Client, node: Frozen<Node>['metadata'], signal: AbortSignal): Promise<boolean> {
  try {
    await createCsiNode(client, node, signal)
    return true
  } catch (error) {
    if (isStatus(error, 'AlreadyExists')) return false
    throw error
  }
}

function isOwnedBy({ metadata }: Frozen<CSINode>, node: Frozen<Node>): boolean {
  return (metadata.ownerReferences ?? []).some(({ kind, name, uid }) => kind === 'Node' && name === node.metadata.name && uid === node.metadata.uid)
}

export async function findCsiNode(client: Client, name: string, signal: AbortSignal): Promise<Frozen<CSINode> | undefined> {
  try {
    return (await client.of(csiNodes).get({ name }, { signal })) as Frozen<CSINode>
  } catch (error) {
    if (isStatus(error, 'NotFound')) return undefined
    throw error
  }
}
