/**
 * Watches what the node has left and ends pods before the kernel does (L3): one pod a round, images first when the disk is short.
 * Upstream: kubelet/eviction/eviction_manager.go (v1.36).
 */
import { readFile } from 'node:fs/promises'
import type { KubeletContext } from '../context.ts'
import { isTerminalPhase } from '../pods/containers.ts'
import { podReference } from '../pods/podReference.ts'
import type { PodWorkers } from '../pods/podWorkers.ts'
import { labelKeys } from '../runtime/labels.ts'
import { type ContainerConsumption, conditionOf, evictionMessage, type Observations, rankForEviction, thresholdsMet } from './evictionPlan.ts'

export interface Pressure {
  readonly memory: boolean
  readonly disk: boolean
  readonly pid: boolean
}

export interface EvictionManager {
  pressure(): Pressure
  /** Until aborted. `freeImages` removes unused images and says whether it removed any. */
  run(workers: PodWorkers, freeImages: () => Promise<boolean>, signal: AbortSignal): Promise<void>
}

const periodMs = 10_000
/** A condition holds this long after the last time it was seen, so that a node does not flap. */
const transitionMs = 300_000

export function createEvictionManager(context: KubeletContext): EvictionManager {
  const { clock, config, host, log } = context
  const seenAtMs = { memory: Number.NEGATIVE_INFINITY, disk: Number.NEGATIVE_INFINITY, pid: Number.NEGATIVE_INFINITY }
  const holds = (which: keyof Pressure) => clock.monotonicMs() - seenAtMs[which] < transitionMs

  const round = async (workers: PodWorkers, freeImages: () => Promise<boolean>): Promise<void> => {
    const met = thresholdsMet(await observe(context), config.evictionHard)
    for (const { signal } of met) seenAtMs[conditionOf[signal]] = clock.monotonicMs()
    const [worst] = met
    if (!worst) return
    if (conditionOf[worst.signal] === 'disk' && (await freeImages())) return
    const usage = await consumption(context)
    const running = workers.list().filter((pod) => !isTerminalPhase(pod.status?.phase) && !pod.metadata.deletionTimestamp)
    const [victim] = rankForEviction(running, usage, worst.signal)
    if (!victim) return
    const message = evictionMessage(victim, worst, usage)
    context.recorder.event(podReference(victim), 'Warning', 'Evicted', message)
    workers.end(victim.metadata.uid ?? '', { phase: 'Failed', reason: 'Evicted', message, disrupted: true }, 1)
  }

  return {
    pressure: () => ({ memory: holds('memory'), disk: holds('disk'), pid: holds('pid') }),
    run: async (workers, freeImages, signal) => {
      if (!host || Object.keys(config.evictionHard).length === 0) return
      while (!signal.aborted) {
        await round(workers, freeImages).catch((error: unknown) => log.warn('Eviction round failed', { error: String(error) }))
        await clock.sleep(periodMs, signal).catch(() => {})
      }
    },
  }
}

async function observe({ host, config, runtime }: KubeletContext): Promise<Observations> {
  if (!host) return {}
  const meminfo = await readFile('/proc/meminfo', 'utf8')
  const kibibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(meminfo)?.[1] ?? 0) * 1024
  const nodefs = await host.filesystem(config.rootDirectory).catch(() => undefined)
  const imagePath = (await runtime.imageFilesystem().catch(() => undefined))?.fsId?.mountpoint
  const imagefs = imagePath ? await host.filesystem(imagePath).catch(() => undefined) : undefined
  return {
    'memory.available': { available: kibibytes('MemAvailable'), capacity: kibibytes('MemTotal') },
    ...(nodefs
      ? {
          'nodefs.available': { available: nodefs.availableBytes, capacity: nodefs.capacityBytes },
          'nodefs.inodesFree': { available: nodefs.inodesFree, capacity: nodefs.inodes },
        }
      : {}),
    ...(imagefs ? { 'imagefs.available': { available: imagefs.availableBytes, capacity: imagefs.capacityBytes } } : {}),
  }
}

async function consumption({ runtime }: KubeletContext): Promise<ContainerConsumption[]> {
  return (await runtime.listContainerStats()).map(({ attributes, memory, writableLayer }) => ({
    podUid: attributes.labels[labelKeys.podUid] ?? '',
    container: attributes.metadata.name,
    memoryBytes: memory?.workingSetBytes?.value ?? 0,
    diskBytes: writableLayer?.usedBytes?.value ?? 0,
  }))
}
