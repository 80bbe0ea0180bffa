/**
 * A CSI driver whose volumes are directories and files of one node (L2), with every capability that the specification makes optional. Directories have no quota:
 * their size is a promise that the driver accounts for. Counterpart: kubernetes-csi/csi-driver-host-path.
 */
import { skiffVersion } from '#base/version'
import type { Exec } from '#host/exec'
import { makePrivateDirectory } from '#host/files'
import type { CsiDriver } from '../server/csiTypes.ts'
import { diskContents, noContents } from './content.ts'
import { createController, type HostPath } from './controller.ts'
import { createNode } from './node.ts'
import { createGroupController, createSnapshots } from './snapshots.ts'
import { openState } from './state.ts'

export const hostPathDriverName = 'hostpath.csi.skiff.dev'

type Settings = Omit<HostPath, 'file' | 'contents'>

export interface DiskSettings extends Settings {
  readonly exec: Exec
  readonly directory: string
}

/** One process at a time may use the directory. @throws Error when its state cannot be read */
export async function openHostPathDriver({ exec, directory, ...settings }: DiskSettings): Promise<CsiDriver> {
  await makePrivateDirectory(directory)
  const file = await openState(directory)
  const driver: HostPath = { ...settings, file, contents: diskContents(exec, directory, file.contentOf) }
  return { ...driverOf(driver), node: createNode(driver, exec) }
}

/** Its volumes are entries without content, and nothing can be mounted. */
export function simulatedHostPathDriver(settings: Settings & Pick<HostPath, 'file'> & { readonly capacityBytes: number }): CsiDriver {
  return driverOf({ ...settings, contents: noContents })
}

function driverOf(driver: HostPath): CsiDriver {
  return {
    name: hostPathDriverName,
    version: skiffVersion,
    features: {
      topology: true,
      clones: true,
      publishReadonly: true,
      publishedNodes: true,
      volumeCondition: true,
      singleNodeMultiWriter: true,
      volumeMountGroup: true,
      expansion: 'ONLINE',
    },
    controller: { ...createController(driver), ...createSnapshots(driver) },
    groupController: createGroupController(driver),
  }
}
