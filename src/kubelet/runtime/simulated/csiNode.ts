/**
 * The CSINode of a simulated node (L3): without drivers, owned by the Node, created once the Node is registered. The scheduler and CSI controllers look
 * for it. Upstream: pkg/volume/csi/nodeinfomanager (v1.36).
 */
import type { Node } from '#api/gen/types/core.v1'
import type { CSINode } from '#api/gen/types/storage.v1'
import { ownerReference } from '#api/helpers/owners'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { abortScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import { csiNodes, nodes } from '#client/builtIn'
import type { Client } from '#client/client'

interface CsiNodeDeps {
  readonly client: Client
  readonly clock: Clock
  readonly log: Logger
  /** Resolves once the Node exists. */
  readonly registered: Promise<void>
}

const retryMs = 5_000

/** In-tree plugins whose volumes CSI drivers serve, as every kubelet of this release publishes them. */
const migratedPlugins = ['aws-ebs', 'azure-disk', 'azure-file', 'cinder', 'gce-pd', 'portworx-volume', 'vsphere-volume']
const annotations = { 'storage.alpha.kubernetes.io/migrated-plugins': migratedPlugins.map((name) => `kubernetes.io/${name}`).join(',') }

/** The kubelet, which publishes its CSINode while it runs. */
export function withCsiNode<Kubelet extends Component & Pick<CsiNodeDeps, 'registered'>>(
  kubelet: Kubelet,
  deps: Omit<CsiNodeDeps, 'registered'>,
  nodeName: string,
): Kubelet {
  const publishing = { ...deps, registered: kubelet.registered }
  return { ...kubelet, run: async (signal: AbortSignal) => void (await Promise.all([kubelet.run(signal), publishCsiNode(publishing, nodeName, signal)])) }
}

/** Resolves once the CSINode is there, or the signal has aborted. */
async function publishCsiNode(deps: CsiNodeDeps, nodeName: string, signal: AbortSignal): Promise<void> {
  const { clock, log, registered } = deps
  using scope = abortScope(signal)
  await Promise.race([registered, aborted(scope.signal)])
  while (!signal.aborted) {
    try {
      return await publish(deps, nodeName, signal)
    } catch (error) {
      if (signal.aborted) return
      log.v(2).info('Failed to publish CSINode', { node: nodeName, error: messageOf(error) })
    }
    await clock.sleep(retryMs, signal).catch(() => {})
  }
}

async function publish({ client }: CsiNodeDeps, name: string, signal: AbortSignal): Promise<void> {
  const node = await client.of(nodes).get({ name }, { signal })
  const found = await find(client, name, signal)
  const ownerReferences = [ownerReference({ ...node, apiVersion: 'v1', kind: 'Node' } as Frozen<Node>)]
  if (!found) {
    await client.of(csiNodes).create({ metadata: { name, annotations, ownerReferences }, spec: { drivers: [] } }, { signal })
  } else if (found.metadata.ownerReferences?.[0]?.uid !== node.metadata.uid) {
    // The one of an earlier Node of that name.
    await client.of(csiNodes).patch({ name }, 'merge', { metadata: { ownerReferences } }, { signal })
  }
}

async function find(client: Client, name: string, signal: AbortSignal): Promise<Frozen<CSINode> | undefined> {
  try {
    return (await client.of(csiNodes).get({ name }, { signal })) as Frozen<CSINode>
  } catch (error) {
    if (isStatus(error, 'NotFound')) return undefined
    throw error
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
