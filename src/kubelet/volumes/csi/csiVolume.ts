/**
 * The type of volumes that CSI drivers serve (L3): waits for the attachment, then stages and publishes through the driver. drivers.ts has the drivers of the
 * node, source.ts what a volume is, staging.ts and publishing.ts the two steps, and volumeData.ts what a later kubelet reads.
 * Upstream: pkg/volume/csi (v1.36).
 */
import { basename } from 'node:path'
import { exists } from '#host/files'
import type { VolumePlugin } from '../volumePlugin.ts'
import { checkAttachment, findDriver, isAttached } from './cluster.ts'
import { csiPlugin } from './csiText.ts'
import { blockPlaces, isBlockDirectory, pluginDirectory, stagingPath } from './places.ts'
import { csiVolumeOf, persistentSource, specOf } from './source.ts'
import { dataFile, loadData, stagedFile } from './volumeData.ts'

const steps = () => import('./steps.ts')

export const csiVolume: VolumePlugin = {
  name: csiPlugin,
  supports: ({ persistentVolume, volume }) => (persistentVolume?.spec.csi ?? volume?.csi) !== undefined,
  attachments: {
    uniqueName: (spec) => {
      const source = persistentSource(spec)
      return source && `${source.driver}^${source.volumeHandle}`
    },
    isAttachable: async ({ context }, spec) => {
      const source = persistentSource(spec)
      return source !== undefined && isAttached(await findDriver(context.client, source.driver))
    },
    waitForAttach: ({ context }, { spec, pod }) => checkAttachment(context.client, csiVolumeOf(spec, pod), context.config.nodeName),
  },
  staging: {
    path: stagingPath,
    // A node without such volumes does not load the code.
    staged: async (volumes) => ((await exists(volumes.host.path(pluginDirectory(volumes)))) ? (await steps()).stagedVolumes(volumes) : []),
    mountDevice: async (volumes, request) => {
      const { stageBlock, stageFilesystem } = await steps()
      return (isBlockDirectory(request.directory) ? stageBlock : stageFilesystem)(volumes, request)
    },
    unmountDevice: async (volumes, spec, place) => {
      const { unstageBlock, unstageFilesystem } = await steps()
      return spec.persistentVolume?.spec.volumeMode === 'Block' ? unstageBlock(volumes, spec.name) : unstageFilesystem(volumes, place)
    },
  },
  setUp: async (volumes, request) => (await steps()).publishFilesystem(volumes, request),
  mapDevice: async (volumes, request) => (await steps()).publishBlock(volumes, request),
  tearDown: async (volumes, request) => {
    const { unpublishBlock, unpublishFilesystem } = await steps()
    return (isBlockDirectory(request.directory) ? unpublishBlock : unpublishFilesystem)(volumes, request)
  },
  isRemounted: async ({ context }, spec) => {
    const driver = persistentSource(spec)?.driver ?? spec.volume?.csi?.driver ?? ''
    return (await findDriver(context.client, driver))?.spec.requiresRepublish === true
  },
  expansion: { nodeExpand: async (volumes, request, path, newSize) => (await steps()).growVolume(volumes, request, path, newSize) },
  statistics: async (volumes, volume) => (await steps()).usageOf(volumes, volume),
  reconstruct: async (volumes, directory) => {
    const block = isBlockDirectory(directory)
    const name = basename(directory)
    const files = block ? [blockPlaces(volumes, name).data] : [`${directory}/${dataFile}`, `${directory}/${stagedFile}`]
    for (const file of files) {
      const data = await loadData(volumes.host, file)
      if (data) return specOf(name, data, block)
    }
    return { name, readOnly: false }
  },
}
