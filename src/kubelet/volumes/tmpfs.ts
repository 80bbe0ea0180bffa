/** Memory-backed directories (L3). */
import { mkdir } from 'node:fs/promises'
import type { KubeletHost } from '../host.ts'

/** Mounts a tmpfs at the directory unless one is there already. */
export async function mountTmpfs(host: KubeletHost, directory: string, options: readonly string[]): Promise<void> {
  await mkdir(host.path(directory), { recursive: true })
  if ((await host.mounter.list()).some((mount) => mount.mountPoint === directory)) return
  await host.mounter.mount({ source: 'tmpfs', target: directory, filesystem: 'tmpfs', options: ['rw', ...options] })
}

/** Unmounts everything at and below the directory, innermost first. */
export async function unmountIfMounted(host: KubeletHost, directory: string): Promise<void> {
  const mounted = (await host.mounter.list()).map((mount) => mount.mountPoint).filter((point) => point === directory || point.startsWith(`${directory}/`))
  for (const point of mounted.sort((a, b) => b.length - a.length)) await host.mounter.unmount(point)
}
