/** Chooses the driver for the cgroups that are mounted (L1). Upstream: opencontainers/cgroups IsCgroup2UnifiedMode (v1.36). */
import { readFile } from 'node:fs/promises'
import type { Cgroups } from './cgroups.ts'
import { createCgroupsV1 } from './cgroupsV1.ts'
import { createCgroupsV2 } from './cgroupsV2.ts'
import { readTextIfExists } from './files.ts'
import { parseMountInfo } from './mounts.ts'

/** Looks at what is mounted under /sys/fs/cgroup and answers with the driver for it. */
export async function detectCgroups(root = '/sys/fs/cgroup', mountInfo = '/proc/self/mountinfo', ownGroups = '/proc/self/cgroup'): Promise<Cgroups> {
  const mounts = parseMountInfo(await readFile(mountInfo, 'utf8'))
  const v2 = mounts.some((mount) => mount.mountPoint === root && mount.filesystem === 'cgroup2')
  if (v2) return createCgroupsV2(root, /^0::(.+)$/m.exec((await readTextIfExists(ownGroups)) ?? '')?.[1])
  const hierarchies = mounts
    .filter((mount) => mount.filesystem === 'cgroup' && mount.mountPoint.startsWith(`${root}/`))
    .map((mount) => ({ directory: mount.mountPoint, controllers: mount.superOptions }))
  const unified = mounts.find((mount) => mount.filesystem === 'cgroup2' && mount.mountPoint.startsWith(`${root}/`))
  if (hierarchies.length === 0) throw new Error(`no cgroup hierarchy is mounted under ${root}`)
  return createCgroupsV1(unified ? [...hierarchies, { directory: unified.mountPoint, controllers: [] }] : hierarchies)
}
