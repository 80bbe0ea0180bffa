/** The directories of this machine as the controllers make and delete them (L5): volumes of type hostPath, for development on one machine. */

import { rm } from 'node:fs/promises'
import type { HostPaths } from '#controllers/persistentVolumeBinder/options'
import { makeDirectory } from '#host/files'

export const hostPaths: HostPaths = {
  make: async (path) => void (await makeDirectory(path, 0o750)),
  remove: (path) => rm(path, { recursive: true, force: true }),
}
