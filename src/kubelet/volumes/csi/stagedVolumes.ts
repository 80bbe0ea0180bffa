/** Finds volumes that an earlier kubelet may have staged (L3), by the data files next to their places. */
import { messageOf } from '#base/messageOf'
import { listIfExists } from '#host/files'
import type { VolumeContext, VolumeSpec } from '../volumePlugin.ts'
import { blockDirectory, blockPlaces, pluginDirectory, stagingPath } from './places.ts'
import { specOf } from './source.ts'
import { dataFile, loadData } from './volumeData.ts'

export async function stagedVolumes(volumes: VolumeContext): Promise<{ readonly spec: VolumeSpec; readonly stagingPath: string }[]> {
  const found = []
  for (const { file, name, isBlock } of await dataFiles(volumes)) {
    const data = await loadData(volumes.host, file).catch((error: unknown) => {
      // A crash may have left half a file. The other volumes are found.
      volumes.context.log.warn('The data of a staged volume cannot be read', { file, error: messageOf(error) })
      return undefined
    })
    const spec = data && specOf(name, data, isBlock)
    const place = spec && stagingPath(volumes, spec)
    if (spec && place !== undefined) found.push({ spec, stagingPath: place })
  }
  return found
}

async function dataFiles(volumes: VolumeContext): Promise<readonly { readonly file: string; readonly name: string; readonly isBlock: boolean }[]> {
  const { host } = volumes
  const root = pluginDirectory(volumes)
  const below = async (directory: string) => (await listIfExists(host.path(directory))).map((name) => ({ name, directory: `${directory}/${name}` }))
  const drivers = (await below(root)).filter(({ name }) => name !== blockDirectory)
  const filesystems = (await Promise.all(drivers.map(({ directory }) => below(directory)))).flat()
  const devices = (await below(`${root}/${blockDirectory}`)).filter(({ name }) => name !== 'staging' && name !== 'publish')
  return [
    ...filesystems.map(({ name, directory }) => ({ name, isBlock: false, file: `${directory}/${dataFile}` })),
    ...devices.map(({ name }) => ({ name, isBlock: true, file: blockPlaces(volumes, name).data })),
  ]
}
