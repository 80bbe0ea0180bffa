/**
 * Removes images that were unused for too long, or while the disk is too full, least recently used first (L3). The plan is pure.
 * Upstream: kubelet/images/image_gc_manager.go, kubelet.go StartGarbageCollection (v1.36).
 */
import { messageOf } from '#base/messageOf'
import type { RuntimeImage } from '#grpc/criTypes'
import type { KubeletContext } from '../core/context.ts'
import type { ImageManager } from './imageManager.ts'

/** A sandbox uses its image without listing a container of it; runtimes before CRI v1.30 do not pin that image themselves. */
function isPinned(image: RuntimeImage): boolean {
  return image.pinned || image.repoTags.some((tag) => /\/pause[:@]/.test(tag))
}

export interface ImageUse {
  readonly firstSeenMs: number
  /** 0: never, since the kubelet has started. */
  readonly lastUsedMs: number
}

export interface ImageGCInput {
  readonly images: readonly RuntimeImage[]
  readonly inUse: ReadonlySet<string>
  readonly uses: ReadonlyMap<string, ImageUse>
  readonly nowMs: number
  readonly minimumAgeMs: number
}

/** Removable images, least recently used first. Used, pinned and young images stay. */
function removable({ images, inUse, uses, nowMs, minimumAgeMs }: ImageGCInput): RuntimeImage[] {
  const use = (image: RuntimeImage) => uses.get(image.id) ?? { firstSeenMs: nowMs, lastUsedMs: 0 }
  return images
    .filter((image) => !isPinned(image) && !inUse.has(image.id) && nowMs - use(image).firstSeenMs >= minimumAgeMs)
    .sort((a, b) => use(a).lastUsedMs - use(b).lastUsedMs || use(a).firstSeenMs - use(b).firstSeenMs)
}

export interface ImageGCPlan {
  readonly bytesToFree: number
  readonly bytesFound: number
  readonly remove: readonly RuntimeImage[]
}

const usedPercentOf = (capacityBytes: number, availableBytes: number) => 100 - Math.floor((availableBytes * 100) / Math.max(1, capacityBytes))

/** What to remove until the disk is below the low threshold; nothing while it is below the high one. */
export function planImageGC(
  input: ImageGCInput & { readonly capacityBytes: number; readonly availableBytes: number; readonly highPercent: number; readonly lowPercent: number },
): ImageGCPlan {
  if (usedPercentOf(input.capacityBytes, input.availableBytes) < input.highPercent) return { bytesToFree: 0, bytesFound: 0, remove: [] }
  const bytesToFree = Math.floor((input.capacityBytes * (100 - input.lowPercent)) / 100) - input.availableBytes
  const remove: RuntimeImage[] = []
  let bytesFound = 0
  for (const image of removable(input)) {
    if (bytesFound >= bytesToFree) break
    remove.push(image)
    bytesFound += image.size
  }
  return { bytesToFree, bytesFound, remove }
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

function sizeText(bytes: number): string {
  const unit = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  return `${(bytes / 1024 ** unit).toFixed(1)} ${units[unit]}`
}

/** The message of the node's event when too little could be removed. */
export function shortageMessage(capacityBytes: number, availableBytes: number, freedBytes: number): string {
  const used = `${usedPercentOf(capacityBytes, availableBytes)}% of ${sizeText(capacityBytes)} used`
  const advice = 'Investigate disk usage, as it could be used by active images, logs, volumes, or other data.'
  return `Insufficient free disk space on the node's image filesystem (${used}). Failed to free sufficient space by deleting unused images (freed ${freedBytes} bytes). ${advice}`
}

/** Images that were unused for too long. A kubelet that runs for a shorter time cannot know. */
export function planOldImages(input: ImageGCInput & { readonly maximumAgeMs: number; readonly startedMs: number }): RuntimeImage[] {
  const { maximumAgeMs, nowMs, startedMs, uses } = input
  if (maximumAgeMs === 0 || nowMs - startedMs <= maximumAgeMs) return []
  return removable(input).filter((image) => nowMs - (uses.get(image.id)?.lastUsedMs ?? 0) > maximumAgeMs)
}

export interface ImageGC {
  /** One round. @throws Error when it could not free what it had to */
  collect(): Promise<void>
  /** Deletes all unused images, under disk pressure. */
  deleteUnusedImages(): Promise<void>
}

export function createImageGC(context: KubeletContext, images: Pick<ImageManager, 'lastUsedMs' | 'prune'>): ImageGC {
  const { runtime, host, config, clock, recorder } = context
  const startedMs = clock.now()
  const uses = new Map<string, ImageUse>()
  const collected = context.metrics.counter({
    name: 'kubelet_image_garbage_collected_total',
    help: 'How many images were removed, for want of space or for their age.',
    labels: ['reason'],
  })
  const warn = (reason: string, message: string) => {
    recorder.event({ kind: 'Node', name: config.nodeName, uid: config.nodeName }, 'Warning', reason, message)
    return new Error(message)
  }

  const look = async (minimumAgeMs: number): Promise<ImageGCInput> => {
    const present = await runtime.listImages()
    const inUse = new Set((await runtime.listContainers()).map((container) => container.imageRef))
    const nowMs = clock.now()
    const ids = new Set(present.map(({ id }) => id))
    for (const id of uses.keys()) if (!ids.has(id)) uses.delete(id)
    for (const { id } of present) {
      const lastUsedMs = inUse.has(id) ? nowMs : Math.max(images.lastUsedMs.get(id) ?? 0, uses.get(id)?.lastUsedMs ?? 0)
      uses.set(id, { firstSeenMs: uses.get(id)?.firstSeenMs ?? nowMs, lastUsedMs })
    }
    return { images: present, inUse, uses, nowMs, minimumAgeMs }
  }

  const remove = async (going: readonly RuntimeImage[], reason: 'age' | 'space'): Promise<void> => {
    const failures: string[] = []
    let freedBytes = 0
    for (const image of going) {
      try {
        await runtime.removeImage(image.id)
        freedBytes += image.size
        uses.delete(image.id)
        collected.inc({ reason })
      } catch (error) {
        failures.push(messageOf(error))
      }
    }
    if (failures.length > 0) throw new Error(`freed ${freedBytes} bytes space with errors in image deletion: ${failures.join(', ')}`)
  }

  return {
    collect: async () => {
      const beganMs = clock.now()
      const input = await look(config.imageMinimumGCAgeMs)
      await images.prune(input.images, beganMs)
      const old = planOldImages({ ...input, maximumAgeMs: config.imageMaximumGCAgeMs, startedMs })
      await remove(old, 'age')
      const path = (await runtime.imageFilesystem())?.fsId?.mountpoint
      if (!host || path === undefined) return
      const { capacityBytes, availableBytes } = await host.filesystem(path)
      if (capacityBytes === 0) throw warn('InvalidDiskCapacity', 'invalid capacity 0 on image filesystem')
      const left = { ...input, images: input.images.filter((image) => !old.includes(image)) }
      const limits = { capacityBytes, availableBytes, highPercent: config.imageGCHighThresholdPercent, lowPercent: config.imageGCLowThresholdPercent }
      const plan = planImageGC({ ...left, ...limits })
      await remove(plan.remove, 'space')
      if (plan.bytesFound >= plan.bytesToFree) return
      throw warn('FreeDiskSpaceFailed', shortageMessage(capacityBytes, availableBytes, plan.bytesFound))
    },
    deleteUnusedImages: async () => remove(removable(await look(0)), 'space'),
  }
}
