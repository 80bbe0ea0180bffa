/**
 * Gives running containers and their pod's cgroup what has been allocated to them (L3): the pod's own limits are raised before the containers' and lowered
 * after them, so that no container is ever held by a limit that is to be raised. Upstream: kuberuntime_manager.go doPodResizeAction (v1.36).
 */
import { messageOf } from '#base/messageOf'
import type { CgroupLimits } from '#host/cgroups'
import type { Allocations } from '../allocation/allocations.ts'
import { type ContainerResize, changedResources, limitOf, memoryDecreaseError, memoryLimitBytes, planResize, type Resources } from '../allocation/resize.ts'
import { resizeDuration } from '../allocation/resizeMetrics.ts'
import { containerResources, podCgroupLimits, podCgroupPath } from '../core/cgroupResources.ts'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { type ContainerRecord, type PodRuntimeStatus, sandboxIPs } from '../core/podRuntimeStatus.ts'
import { annotationKeys } from '../core/runtimeLabels.ts'
import type { CgroupTree } from '../resources/cgroupTree.ts'
import { containerResourceOptions, podCgroupOptions } from '../resources/resourceOptions.ts'
import { killContainer } from './killing.ts'

export interface PodResizer {
  /** Answers whether it may have changed what runs. @param pod with its allocation */
  carryOut(pod: FrozenPod, status: PodRuntimeStatus): Promise<boolean>
  /** The actual resources of a container; undefined: unknown. */
  actuated(podUid: string, record: ContainerRecord): Resources | undefined
}

/** What it was resized to, or what it was created with. */
function actuatedOf(allocations: Allocations, podUid: string, { name, status }: ContainerRecord): Resources | undefined {
  const known = allocations.actuated(podUid, name)
  if (known) return known
  const created = status.annotations?.[annotationKeys.resources]
  return created === undefined ? undefined : (JSON.parse(created) as Resources)
}

/** @param cgroups sets the limits of pods' own cgroups */
export function createPodResizer(context: KubeletContext, allocations: Allocations, cgroups: CgroupTree): PodResizer {
  const { host, runtime, config } = context
  const duration = resizeDuration(context.metrics)
  const podOptions = podCgroupOptions(context)

  /** Why memory cannot be taken away now. */
  const refuse = async (
    pod: FrozenPod,
    before: CgroupLimits | undefined,
    after: CgroupLimits,
    updates: readonly ContainerResize[],
  ): Promise<string | undefined> => {
    if (!host) return undefined
    const path = podCgroupPath(config.cgroupRoot, pod)
    const usage = async (group: string) => (await host.cgroups.stats(group))?.memoryUsageBytes ?? 0
    const limits: { what: string; limitBytes: number; usageBytes: number }[] = []
    const podLimit = after.memoryLimitBytes
    if (podLimit !== undefined && podLimit < (before?.memoryLimitBytes ?? Number.POSITIVE_INFINITY)) {
      limits.push({ what: 'pod', limitBytes: podLimit, usageBytes: await usage(path) })
    }
    for (const { container, record, before: had, resources } of updates) {
      if (limitOf(resources, 'memory') >= limitOf(had, 'memory')) continue
      limits.push({ what: `container "${container.name}"`, limitBytes: memoryLimitBytes(resources), usageBytes: await usage(`${path}/${record.id}`) })
    }
    return memoryDecreaseError(limits)
  }

  const update = async (pod: FrozenPod, updates: readonly ContainerResize[]): Promise<void> => {
    for (const { container, record, resources } of updates) {
      await runtime.updateContainerResources(record.id, containerResources(pod, container, containerResourceOptions(context)))
      await allocations.setActuated(pod.metadata.uid ?? '', container.name, resources)
    }
  }

  return {
    actuated: (podUid, record) => actuatedOf(allocations, podUid, record),
    carryOut: async (pod, status) => {
      const uid = pod.metadata.uid ?? ''
      const plan = planResize(pod, status, (record) => actuatedOf(allocations, uid, record))
      const wholeChanged = changedResources(allocations.actuated(uid), pod.spec.resources).length > 0
      const before = cgroups.podLimits(uid)
      const after = podCgroupLimits(pod, podOptions)
      const isNew = before === undefined
      if (plan.update.length === 0 && plan.restart.length === 0 && (isNew || !wholeChanged)) {
        await cgroups.limitPod(pod, after)
        if (wholeChanged) await allocations.setActuated(uid, undefined, pod.spec.resources ?? {})
        allocations.finished(pod)
        return false
      }
      const error = await refuse(pod, before, after, plan.update)
      if (error) {
        allocations.failed(pod, error)
        return false
      }
      const startedMs = context.clock.monotonicMs()
      const done = (success: boolean) => duration.observe(context.clock.monotonicMs() - startedMs, { success: String(success) })
      try {
        await cgroups.limitPod(pod, largerOf(before, after))
        await update(pod, plan.update)
        await cgroups.limitPod(pod, after)
        if (wholeChanged) await allocations.setActuated(uid, undefined, pod.spec.resources ?? {})
        done(true)
      } catch (reason) {
        done(false)
        allocations.failed(pod, messageOf(reason))
        return true
      }
      const podIP = sandboxIPs(status)[0] ?? ''
      for (const { container, record } of plan.restart) {
        await killContainer(context, pod, record, podIP, { message: `Container ${container.name} resize requires restart` })
      }
      if (plan.restart.length === 0) allocations.finished(pod)
      return true
    },
  }
}

/** The higher of two limits for each resource; no limit is the highest. */
export function largerOf(before: CgroupLimits | undefined, after: CgroupLimits): CgroupLimits {
  if (!before) return after
  const quota = (limits: CgroupLimits) => (limits.cpuQuotaUs === undefined || limits.cpuQuotaUs < 0 ? Number.POSITIVE_INFINITY : limits.cpuQuotaUs)
  const memory = (limits: CgroupLimits) =>
    limits.memoryLimitBytes === undefined || limits.memoryLimitBytes < 0 ? Number.POSITIVE_INFINITY : limits.memoryLimitBytes
  const finite = (value: number) => (Number.isFinite(value) ? value : -1)
  return {
    ...after,
    cpuShares: Math.max(before.cpuShares ?? 0, after.cpuShares ?? 0),
    cpuQuotaUs: finite(Math.max(quota(before), quota(after))),
    memoryLimitBytes: finite(Math.max(memory(before), memory(after))),
  }
}
