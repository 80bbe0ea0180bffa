/** Mounts below the pods' directories (L3): made unless they are there, and taken away with everything on top of them. */
import { release } from 'node:os'
import { makeDirectory } from '#host/files'
import type { MountRequest } from '#host/mounts'
import type { KubeletHost } from '../core/host.ts'

/** Mounts at the directory, which is made first, unless something is mounted there already. */
export async function mountUnlessMounted(host: KubeletHost, request: MountRequest): Promise<void> {
  const isNew = (await makeDirectory(host.path(request.target))) !== undefined
  if (!isNew && (await isMountPoint(host, request.target))) return
  await host.mounter.mount(request)
}

/** Kernels since 6.4 can keep a file system in memory out of swap. */
export function knowsNoSwap(kernelRelease: string): boolean {
  const [major = 0, minor = 0] = kernelRelease.split('.').map((part) => Number.parseInt(part, 10))
  return major > 6 || (major === 6 && minor >= 4)
}

/** A directory in memory, which never reaches a disk where the kernel can promise that. `sizeBytes`: 0 as much as the kernel allows. */
export async function mountTmpfs(host: KubeletHost, directory: string, sizeBytes = 0): Promise<void> {
  const options = [...(sizeBytes > 0 ? [`size=${sizeBytes}`] : ['rw']), ...(knowsNoSwap(release()) ? ['noswap'] : [])]
  await mountUnlessMounted(host, { source: 'tmpfs', target: directory, filesystem: 'tmpfs', options })
}

export async function isMountPoint(host: KubeletHost, path: string): Promise<boolean> {
  return (await host.mounter.list()).some((mount) => mount.mountPoint === path)
}

/** Unmounts everything at and below the directory, innermost first. */
export async function unmountIfMounted(host: KubeletHost, directory: string): Promise<void> {
  const mounted = (await host.mounter.list()).map((mount) => mount.mountPoint).filter((point) => point === directory || point.startsWith(`${directory}/`))
  // The newest first: a path may be mounted more than once.
  for (const point of mounted.reverse()) await host.mounter.unmount(point)
}
