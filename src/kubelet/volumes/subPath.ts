/**
 * Parts of volumes that containers mount (L3): each is bind mounted below the pod's directory, so that what the container gets is what was
 * checked, whatever happens in the volume later. Upstream: pkg/volume/util/subpath (v1.36).
 */
import { realpath, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isMissing, makeDirectory } from '#host/files'
import type { KubeletHost } from '../core/host.ts'
import { isSameFile, makeDirectoriesWithin, openWithin } from '../core/safeOpen.ts'
import { isMountPoint } from './podMounts.ts'

export interface SubPath {
  readonly podDirectory: string
  readonly volumeName: string
  readonly volumePath: string
  readonly containerName: string
  /** Position among the container's mounts. */
  readonly index: number
  readonly path: string
}

/** Makes the subpath unless it exists, with the volume's own mode: the pod's users may write there if they may in the volume. */
export async function makeSubPath(host: KubeletHost, { volumePath, path }: SubPath): Promise<void> {
  const root = host.path(volumePath)
  const known = await stat(join(root, path)).catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw error
  })
  if (!known) await makeDirectoriesWithin(root, path, (await stat(root)).mode)
}

/** The node's path that shows the subpath, and nothing else, from now on. */
export async function bindSubPath(host: KubeletHost, subPath: SubPath): Promise<string> {
  const { podDirectory, volumeName, volumePath, containerName, index, path } = subPath
  const target = `${podDirectory}/volume-subpaths/${volumeName}/${containerName}/${index}`
  const localTarget = host.path(target)
  const root = await realpath(host.path(volumePath))
  const opened = await openWithin(root, await realpath(join(root, path)))
  try {
    if (await isMountPoint(host, target)) {
      // The container starts again: the same part of the volume, or what has taken its place.
      if (await isSameFile(opened, localTarget)) return target
      await host.mounter.unmount(target)
    }
    const isDirectory = (await opened.stat()).isDirectory()
    const present = await stat(localTarget).catch(() => undefined)
    if (present && present.isDirectory() !== isDirectory) await rm(localTarget, { recursive: true })
    await makeDirectory(isDirectory ? localTarget : dirname(localTarget), 0o750)
    if (!isDirectory) await writeFile(localTarget, '', { mode: 0o640 })
    await host.mounter.bindDescriptor(opened.fd, target)
    return target
  } finally {
    await opened.close()
  }
}
