/** Scratch space that lives as long as the pod (L3): a directory, memory, or huge pages. Upstream: pkg/volume/emptydir (v1.36). */
import { chmod } from 'node:fs/promises'
import { formatQuantity, quantityOf } from '#api/machinery/quantity'
import { makeDirectory } from '#host/files'
import { podCgroupLimits } from '../core/cgroupResources.ts'
import type { FrozenPod } from '../core/containers.ts'
import { wholeUnits } from '../core/quantities.ts'
import { setVolumeOwnership } from './ownership.ts'
import { mountTmpfs, mountUnlessMounted, unmountIfMounted } from './podMounts.ts'
import { directoryStatistics, fsGroupOf, type VolumePlugin } from './volumePlugin.ts'

const hugePages = 'HugePages'
const hugePagesResource = 'hugepages-'

/** What a volume in memory may hold: the least of the node's allocatable memory, the pod's own limit and the volume's. */
export function memoryVolumeBytes(allocatable: string | undefined, podLimitBytes: number, sizeLimit: string | undefined): number {
  let bytes = wholeUnits(allocatable)
  for (const limit of [podLimitBytes, wholeUnits(sizeLimit)]) if (limit > 0 && limit <= bytes) bytes = limit
  return bytes
}

/** The mount option with the page size: the medium's own, or the only one that the pod asks for. @throws Error with upstream's text. */
export function pageSizeOption(medium: string, pod: FrozenPod): string {
  const mediumSize = medium === hugePages ? undefined : wholeUnits(medium.slice(hugePages.length + 1))
  const containers = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])]
  const requests = [pod.spec.resources?.requests, ...containers.map(({ resources }) => resources?.requests)]
  const names = requests.flatMap((list) => Object.keys(list ?? {})).filter((name) => name.startsWith(hugePagesResource))
  const sizes = new Set(names.map((name) => wholeUnits(name.slice(hugePagesResource.length))))
  if (mediumSize === undefined && sizes.size > 1) throw new Error(`medium: ${medium} can't be used if container requests multiple huge page sizes`)
  const size = mediumSize === undefined ? [...sizes][0] : sizes.has(mediumSize) ? mediumSize : undefined
  if (size === undefined) throw new Error(`medium ${medium}: hugePages storage requested, but there is no resource request for huge pages`)
  return `pagesize=${formatQuantity(quantityOf(size, 'BinarySI'))}`
}

export const emptyDirVolume: VolumePlugin = {
  name: 'kubernetes.io/empty-dir',
  supports: ({ volume }) => volume?.emptyDir !== undefined,
  setUp: async ({ context, host }, { pod, spec, directory }) => {
    const { medium = '', sizeLimit } = spec.volume?.emptyDir ?? {}
    const path = host.path(directory)
    const fresh = (await makeDirectory(path)) !== undefined
    if (medium === '') {
      // Once only: a pod may have changed its own directory's mode since.
      if (fresh) await chmod(path, 0o777)
    } else if (medium === 'Memory') {
      const podLimit = podCgroupLimits(pod, context.config).memoryLimitBytes ?? 0
      const bytes = memoryVolumeBytes(context.allocatable.memory, podLimit, sizeLimit)
      await mountTmpfs(host, directory, bytes)
    } else if (medium === hugePages || medium.startsWith(`${hugePages}-`)) {
      await mountUnlessMounted(host, { source: 'nodev', target: directory, filesystem: 'hugetlbfs', options: [pageSizeOption(medium, pod)] })
    } else throw new Error(`unknown storage medium "${medium}"`)
    await setVolumeOwnership(path, { fsGroup: fsGroupOf(pod), policy: 'OnRootMismatch' })
    return directory
  },
  tearDown: ({ host }, { directory }) => unmountIfMounted(host, directory),
  statistics: directoryStatistics,
  isLocalEphemeral: ({ volume }) => (volume?.emptyDir?.medium ?? '') === '',
}
