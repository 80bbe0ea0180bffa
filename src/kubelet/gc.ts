/**
 * Gives back what nobody needs (L3): old containers of living pods, everything of pods that are gone, images above a disk threshold.
 * Upstream: kuberuntime_gc.go, images/image_gc_manager.go, kubelet_pods.go HandlePodCleanups (v1.36).
 */
import { rm } from 'node:fs/promises'
import type { RuntimeContainer, RuntimeImage } from '#grpc/criTypes'
import { listIfExists } from '#host/files'
import type { KubeletContext } from './context.ts'
import type { Reclaim } from './eviction/evictionManager.ts'
import type { ImageManager } from './images/imageManager.ts'
import { removeContainerLogs } from './logs/logRotation.ts'
import { isTerminalPhase } from './pods/containers.ts'
import type { PodWorkers } from './pods/podWorkers.ts'
import { qosCgroupPath } from './pods/resources.ts'
import { labelKeys } from './runtime/labels.ts'
import type { VolumeManager } from './volumes/volumeManager.ts'

/** Exited containers to remove: of each container of a pod the newest and one before it stay, for `kubectl logs --previous`. */
export function containersToRemove(containers: readonly RuntimeContainer[]): RuntimeContainer[] {
  const byName = new Map<string, RuntimeContainer[]>()
  for (const container of containers) {
    const key = `${container.labels[labelKeys.podUid]}/${container.metadata.name}`
    byName.set(key, [...(byName.get(key) ?? []), container])
  }
  return [...byName.values()].flatMap((group) => {
    const newestFirst = group.sort((a, b) => b.createdAt - a.createdAt)
    return newestFirst.slice(2).filter((container) => container.state === 'CONTAINER_EXITED')
  })
}

/** Sandboxes hold their image without a container that says so; runtimes before CRI v1.30 do not pin it themselves. */
function isPinned(image: RuntimeImage): boolean {
  return image.pinned || image.repoTags.some((tag) => /\/pause[:@]/.test(tag))
}

export interface ImageGCPlan {
  readonly bytesToFree: number
  readonly remove: readonly RuntimeImage[]
}

/** Images to remove, least recently used first, until the disk is below the low threshold. Used, pinned and young images stay. */
export function planImageGC(input: {
  readonly images: readonly RuntimeImage[]
  readonly inUse: ReadonlySet<string>
  readonly lastUsedMs: ReadonlyMap<string, number>
  readonly firstSeenMs: ReadonlyMap<string, number>
  readonly nowMs: number
  readonly minimumAgeMs: number
  readonly capacityBytes: number
  readonly availableBytes: number
  readonly highPercent: number
  readonly lowPercent: number
}): ImageGCPlan {
  const usedPercent = 100 - Math.floor((input.availableBytes * 100) / Math.max(1, input.capacityBytes))
  if (usedPercent < input.highPercent) return { bytesToFree: 0, remove: [] }
  const bytesToFree = (input.capacityBytes * (100 - input.lowPercent)) / 100 - input.availableBytes
  const lastUsed = (image: RuntimeImage) => input.lastUsedMs.get(image.id) ?? 0
  const candidates = input.images
    .filter((image) => !isPinned(image) && !input.inUse.has(image.id))
    .filter((image) => input.nowMs - (input.firstSeenMs.get(image.id) ?? input.nowMs) >= input.minimumAgeMs)
    .sort((a, b) => lastUsed(a) - lastUsed(b))
  const remove: RuntimeImage[] = []
  let freed = 0
  for (const image of candidates) {
    if (freed >= bytesToFree) break
    remove.push(image)
    freed += image.size
  }
  return { bytesToFree, remove }
}

export interface GarbageDeps {
  readonly context: KubeletContext
  readonly workers: PodWorkers
  readonly images: ImageManager
  readonly volumes: VolumeManager
}

/** Repeats all of it until aborted. A runtime that uses no host needs none of the disk parts. */
export async function collectGarbage(deps: GarbageDeps, signal: AbortSignal): Promise<void> {
  const { context } = deps
  const { clock, config, log } = context
  const firstSeenMs = new Map<string, number>()
  const repeat = async (periodMs: number, work: () => Promise<void>) => {
    while (!signal.aborted) {
      await clock.sleep(periodMs, signal).catch(() => {})
      if (signal.aborted) return
      await work().catch((error: unknown) => log.warn('Garbage collection failed', { error: error instanceof Error ? error.message : String(error) }))
    }
  }
  await Promise.all([
    repeat(config.containerGCPeriodMs, async () => {
      for (const { id } of containersToRemove(await context.runtime.listContainers())) {
        await removeContainerLogs(context, id)
        await context.runtime.removeContainer(id)
      }
      await removeOrphans(deps)
    }),
    repeat(config.imageGCPeriodMs, () => collectImages(deps, firstSeenMs)),
  ])
}

/** Sandboxes, directories and cgroups of pods that no worker knows. */
export async function removeOrphans({ context, workers, volumes }: GarbageDeps): Promise<void> {
  const known = new Set(workers.list().map((pod) => pod.metadata.uid ?? ''))
  await context.resources().releaseOthers(known)
  for (const container of await context.runtime.listContainers()) {
    if (known.has(container.labels[labelKeys.podUid] ?? '')) continue
    if (container.state === 'CONTAINER_RUNNING') await context.runtime.stopContainer(container.id, 30)
    await context.runtime.removeContainer(container.id)
  }
  for (const sandbox of await context.runtime.listPodSandbox()) {
    if (known.has(sandbox.metadata.uid)) continue
    await context.runtime.stopPodSandbox(sandbox.id)
    await context.runtime.removePodSandbox(sandbox.id)
  }
  const { host, config } = context
  if (!host) return
  await volumes.removeOrphans(known)
  for (const qos of ['Guaranteed', 'Burstable', 'BestEffort'] as const) {
    const parent = qosCgroupPath(config.cgroupRoot, qos)
    for (const name of await host.cgroups.children(parent)) {
      if (name.startsWith('pod') && !known.has(name.slice(3))) await host.cgroups.remove(`${parent}/${name}`).catch(() => {})
    }
  }
  for (const name of await listIfExists(host.path(config.podLogsDirectory))) {
    const uid = name.slice(name.lastIndexOf('_') + 1)
    if (!known.has(uid)) await rm(host.path(`${config.podLogsDirectory}/${name}`), { recursive: true, force: true })
  }
}

async function collectImages({ context, images }: GarbageDeps, firstSeenMs: Map<string, number>): Promise<void> {
  const { runtime, host, config, clock } = context
  const present = await runtime.listImages()
  const nowMs = clock.now()
  for (const image of present) if (!firstSeenMs.has(image.id)) firstSeenMs.set(image.id, nowMs)
  const usage = await runtime.imageFilesystem()
  if (!host || !usage?.fsId) return
  const filesystem = await host.filesystem(usage.fsId.mountpoint)
  const inUse = new Set((await runtime.listContainers()).map((container) => container.imageRef))
  const plan = planImageGC({
    images: present,
    inUse,
    lastUsedMs: images.lastUsedMs,
    firstSeenMs,
    nowMs,
    minimumAgeMs: config.imageMinimumGCAgeMs,
    capacityBytes: filesystem.capacityBytes,
    availableBytes: filesystem.availableBytes,
    highPercent: config.imageGCHighThresholdPercent,
    lowPercent: config.imageGCLowThresholdPercent,
  })
  for (const image of plan.remove) await runtime.removeImage(image.id)
}

/** Removes every image that nothing uses, because the disk is short now. */
async function deleteUnusedImages({ context }: GarbageDeps): Promise<void> {
  const { runtime } = context
  const inUse = new Set((await runtime.listContainers()).map((container) => container.imageRef))
  const unused = (await runtime.listImages()).filter((image) => !isPinned(image) && !inUse.has(image.id))
  for (const image of unused) await runtime.removeImage(image.id)
}

/** Removes every container that has ended and will not be asked about, because the disk is short now. */
async function deleteUnusedContainers({ context, workers }: GarbageDeps): Promise<void> {
  for (const container of await context.runtime.listContainers()) {
    const pod = workers.get(container.labels[labelKeys.podUid] ?? '')
    const forgotten = !pod || isTerminalPhase(pod.status?.phase)
    if (container.state === 'CONTAINER_EXITED' && forgotten) await context.runtime.removeContainer(container.id)
  }
}

/** What eviction tries before pods must go. */
export function reclaimOf(deps: GarbageDeps): Reclaim {
  return { deleteUnusedContainers: () => deleteUnusedContainers(deps), deleteUnusedImages: () => deleteUnusedImages(deps) }
}
