/** The floor under volumes of a CSI driver: the calls that make a volume and mount it for a pod, sent straight to the driver of a real node. */
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { csiProto } from '#grpc/proto/csi'
import { connectUnixService } from '#grpc/unixService'
import { inParallel } from '../cluster/bareCluster.ts'

const driver = 'hostpath.csi.skiff.dev'
const timeoutMs = 60_000
const capability = { mount: {}, accessMode: { mode: 'SINGLE_NODE_WRITER' } }
const directory = '/var/lib/kubelet/bench-volumes'

/** Where the driver keeps its volumes, below the directory of the node's kubelet. */
export const contentOf = (volumeId: string) => path.join('plugins', driver, 'state/content', volumeId)

/**
 * Milliseconds until the driver has made and mounted so many volumes, all asked for at once. They are removed again.
 * @param root the node's root folder, as this process sees it
 */
export async function volumesByHand(root: string, nodeId: string, count: number): Promise<number> {
  const target = `unix:${root}/var/lib/kubelet/plugins/${driver}/csi.sock`
  const [controller, node] = ['Controller', 'Node'].map((name) => connectUnixService(csiProto, `csi.v1.${name}`, target))
  if (!controller || !node) throw new Error('a driver has two services')
  const ids: string[] = []
  const staged = (index: number) => `${directory}/${index}/stage`
  const published = (index: number) => `${directory}/${index}/publish`
  for (let index = 0; index < count; index++) mkdirSync(`${root}${staged(index)}`, { recursive: true })
  const make = async (index: number) => {
    const request = { name: `bench-${index}`, capacityRange: { requiredBytes: 16 * 2 ** 20 }, volumeCapabilities: [capability] }
    const { volume } = await controller.call<{ volume: { volumeId: string } }>('CreateVolume', request, timeoutMs)
    const { volumeId } = volume
    ids[index] = volumeId
    await controller.call('ControllerPublishVolume', { volumeId, nodeId, volumeCapability: capability }, timeoutMs)
    await node.call('NodeStageVolume', { volumeId, stagingTargetPath: staged(index), volumeCapability: capability }, timeoutMs)
    const targets = { stagingTargetPath: staged(index), targetPath: published(index) }
    await node.call('NodePublishVolume', { volumeId, ...targets, volumeCapability: capability }, timeoutMs)
  }
  const remove = async (index: number) => {
    const volumeId = ids[index]
    if (volumeId === undefined) return
    await node.call('NodeUnpublishVolume', { volumeId, targetPath: published(index) }, timeoutMs)
    await node.call('NodeUnstageVolume', { volumeId, stagingTargetPath: staged(index) }, timeoutMs)
    await controller.call('ControllerUnpublishVolume', { volumeId, nodeId }, timeoutMs)
    await controller.call('DeleteVolume', { volumeId }, timeoutMs)
  }
  try {
    const started = performance.now()
    await inParallel(count, make, count)
    const tookMs = performance.now() - started
    await inParallel(count, remove, count)
    return tookMs
  } finally {
    controller.close()
    node.close()
  }
}
