/**
 * Removes old containers of known pods, and everything of unknown pods (L3). images/imageGc.ts removes images.
 * Upstream: kuberuntime_gc.go, kubelet_pods.go HandlePodCleanups, kubelet.go StartGarbageCollection (v1.36).
 */
import { rm } from 'node:fs/promises'
import { messageOf } from '#base/messageOf'
import type { Counter } from '#base/metrics'
import type { PodSandbox, RuntimeContainer } from '#grpc/criTypes'
import { listIfExists } from '#host/files'
import type { Allocations } from './allocation/allocations.ts'
import { qosCgroupPath } from './core/cgroupResources.ts'
import { isTerminalPhase } from './core/containers.ts'
import type { KubeletContext } from './core/context.ts'
import { labelKeys } from './core/runtimeLabels.ts'
import type { Reclaim } from './eviction/evictionManager.ts'
import type { ImageGC } from './images/imageGc.ts'
import { removeDeadLogLinks } from './logs/logLinks.ts'
import { removeContainerLogs } from './logs/logRotation.ts'
import type { PodWorkers } from './pods/podWorkers.ts'
import type { VolumeManager } from './volumes/volumeManager.ts'

/** Exited containers to remove: the newest instance of each container stays, for `kubectl logs --previous`. */
export function containersToRemove(containers: readonly RuntimeContainer[]): RuntimeContainer[] {
  const byName = new Map<string, RuntimeContainer[]>()
  for (const container of containers) {
    if (container.state !== 'CONTAINER_EXITED') continue
    const key = `${container.labels[labelKeys.podUid]}/${container.metadata.name}`
    byName.set(key, [...(byName.get(key) ?? []), container])
  }
  return [...byName.values()].flatMap((group) => group.sort((a, b) => b.createdAt - a.createdAt).slice(1))
}

/** Stopped sandboxes to remove: those without containers, but the newest of each pod stays, because its status has the addresses and the attempt. */
export function sandboxesToRemove(sandboxes: readonly PodSandbox[], containers: readonly RuntimeContainer[]): PodSandbox[] {
  const used = new Set(containers.map((container) => container.podSandboxId))
  const newest = new Map<string, PodSandbox>()
  for (const sandbox of sandboxes) {
    const known = newest.get(sandbox.metadata.uid)
    if (!known || sandbox.createdAt > known.createdAt) newest.set(sandbox.metadata.uid, sandbox)
  }
  return sandboxes.filter((sandbox) => sandbox.state !== 'SANDBOX_READY' && !used.has(sandbox.id) && newest.get(sandbox.metadata.uid) !== sandbox)
}

export interface GarbageDeps {
  readonly context: KubeletContext
  readonly workers: PodWorkers
  readonly images: ImageGC
  readonly volumes: VolumeManager
  readonly allocations: Pick<Allocations, 'forgetOthers'>
  /** True once every source of pods has delivered its first list: until then an unknown pod may still be added. */
  sourcesReady(): boolean
}

/**
 * Repeats all of it until aborted. A runtime that uses no host needs none of the disk parts.
 * @param onPass called after each cleanup of pods
 */
export async function collectGarbage(deps: GarbageDeps, onPass: () => void, signal: AbortSignal): Promise<void> {
  const { context } = deps
  const { clock, config, log, recorder } = context
  const repeat = async (periodMs: number, failedReason: string, work: () => Promise<void>) => {
    let failed = false
    while (!signal.aborted) {
      await clock.sleep(periodMs, signal).catch(() => {})
      if (signal.aborted) return
      try {
        await work()
        failed = false
      } catch (error) {
        const message = messageOf(error)
        log.warn('Garbage collection failed', { reason: failedReason, error: message })
        // One failure may be temporary, such as statistics of the file system that are not available yet.
        if (failed || failedReason === 'ContainerGCFailed')
          recorder.event({ kind: 'Node', name: config.nodeName, uid: config.nodeName }, 'Warning', failedReason, message)
        failed = true
      }
    }
  }
  const collectsImages = config.imageGCHighThresholdPercent < 100 || config.imageMaximumGCAgeMs > 0
  await Promise.all([
    repeat(config.containerGCPeriodMs, 'ContainerGCFailed', async () => {
      const containers = await context.runtime.listContainers()
      const gone = containersToRemove(containers)
      for (const { id } of gone) {
        await removeContainerLogs(context, id)
        await context.runtime.removeContainer(id)
      }
      const left = containers.filter((container) => !gone.includes(container))
      for (const { id } of sandboxesToRemove(await context.runtime.listPodSandbox(), left)) await context.runtime.removePodSandbox(id)
      if (deps.sourcesReady()) await removeOrphans(deps)
      const remaining = new Set(left.map(({ id }) => id))
      await removeDeadLogLinks(context, (id) => remaining.has(id))
      onPass()
    }),
    ...(collectsImages && context.runtime.usesHost ? [repeat(config.imageGCPeriodMs, 'ImageGCFailed', deps.images.collect)] : []),
  ])
}

function orphanCounter({ metrics }: GarbageDeps['context']): Counter {
  const help = 'Running pods that were unknown to this kubelet, because they were deleted while no kubelet ran.'
  return metrics.counter({ name: 'kubelet_orphaned_runtime_pods_total', help })
}

/** The grace period of an orphan: its pod object is gone, so its own grace period is unknown. */
const orphanGraceSeconds = 1

/** Orphans that are removed at the same time: the runtime waits for its network plugins, which wait for each other. */
const removedAtOnce = 8

/** Works on several items at a time. One failure stops none of the others. @throws the first failure, when all are done */
async function forEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values()
  const failures: unknown[] = []
  const lane = async () => {
    for (const item of waiting) await work(item).catch((error: unknown) => failures.push(error))
  }
  await Promise.all(Array.from({ length: removedAtOnce }, lane))
  if (failures.length > 0) throw failures[0]
}

/**
 * Removes sandboxes, directories and cgroups of unknown pods. Each list is read before isKnown is called, as upstream does: whatever was
 * listed belongs to a pod that was added earlier, so that a pod which is added meanwhile loses nothing.
 */
export async function removeOrphans({ context, workers, volumes, allocations }: GarbageDeps): Promise<void> {
  const isKnown = (uid: string) => workers.get(uid) !== undefined
  allocations.forgetOthers(isKnown)
  await context.resources.releaseOthers(isKnown)
  const strays = (await context.runtime.listContainers()).filter(({ labels }) => !isKnown(labels[labelKeys.podUid] ?? ''))
  const orphans = new Set(strays.filter(({ state }) => state === 'CONTAINER_RUNNING').map(({ labels }) => labels[labelKeys.podUid]))
  orphanCounter(context).inc({}, orphans.size)
  await forEach(strays, async ({ id, state }) => {
    if (state === 'CONTAINER_RUNNING') await context.runtime.stopContainer(id, orphanGraceSeconds)
    await context.runtime.removeContainer(id)
  })
  const sandboxes = (await context.runtime.listPodSandbox()).filter(({ metadata }) => !isKnown(metadata.uid))
  await forEach(sandboxes, async ({ id }) => {
    await context.runtime.stopPodSandbox(id)
    await context.runtime.removePodSandbox(id)
  })
  const { host, config } = context
  if (!host) return
  await volumes.removeOrphans(isKnown)
  await context.userNamespaces.releaseOthers(isKnown)
  for (const qos of ['Guaranteed', 'Burstable', 'BestEffort'] as const) {
    const parent = qosCgroupPath(config.cgroupRoot, qos)
    for (const name of await host.cgroups.children(parent)) {
      if (name.startsWith('pod') && !isKnown(name.slice(3))) await host.cgroups.remove(`${parent}/${name}`).catch(() => {})
    }
  }
  for (const name of await listIfExists(host.path(config.podLogsDirectory))) {
    const uid = name.slice(name.lastIndexOf('_') + 1)
    if (!isKnown(uid)) await rm(host.path(`${config.podLogsDirectory}/${name}`), { recursive: true, force: true })
  }
}

/** Removes exited containers of finished and unknown pods, under disk pressure. */
async function deleteUnusedContainers({ context, workers, sourcesReady }: GarbageDeps): Promise<void> {
  for (const container of await context.runtime.listContainers()) {
    const pod = workers.get(container.labels[labelKeys.podUid] ?? '')
    const forgotten = pod ? isTerminalPhase(pod.status?.phase) : sourcesReady()
    if (container.state !== 'CONTAINER_EXITED' || !forgotten) continue
    await removeContainerLogs(context, container.id)
    await context.runtime.removeContainer(container.id)
  }
}

/** Deletes unused containers and images before eviction ends pods. */
export function reclaimOf(deps: GarbageDeps): Reclaim {
  return { deleteUnusedContainers: () => deleteUnusedContainers(deps), deleteUnusedImages: deps.images.deleteUnusedImages }
}
