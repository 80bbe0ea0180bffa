/**
 * What pods have been given (L3, pure): by container and as a whole; twice, as allocated and as actuated. Checkpoints `allocated_pods_state` and
 * `actuated_pods_state` in upstream's format. Upstream: kubelet/allocation/state (v1.36).
 */
import type { ResourceRequirements } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { fnv32a } from '#base/fnv'
import { goDump, goString } from '../core/goDump.ts'

type Resources = Frozen<ResourceRequirements>

export interface PodResourceInfo {
  readonly containers: Readonly<Record<string, Resources>>
  /** The pod as a whole. */
  readonly pod?: Resources | undefined
}

export type PodResourcesState = Map<string, PodResourceInfo>

interface Entry {
  readonly ContainerResources: Readonly<Record<string, Resources>> | null
  readonly PodLevelResources: Resources | null
}

export function renderPodResources(state: PodResourcesState): string {
  const entries = Object.fromEntries(
    [...state].map(([uid, { containers, pod }]): [string, Entry] => [uid, { ContainerResources: containers, PodLevelResources: pod ?? null }]),
  )
  const data = JSON.stringify(state.size > 0 ? { entries } : {})
  return JSON.stringify({ data, checksum: fnv32a(goDump(goString(data))) })
}

/** @throws Error for a file that is damaged. */
export function parsePodResources(text: string): PodResourcesState {
  const { data, checksum } = JSON.parse(text) as { data: string; checksum: number }
  if (fnv32a(goDump(goString(data))) !== checksum) throw new Error('checkpoint is corrupted')
  const { entries = {} } = JSON.parse(data) as { entries?: Record<string, Entry> }
  return new Map(
    Object.entries(entries).map(([uid, { ContainerResources, PodLevelResources }]) => [
      uid,
      { containers: ContainerResources ?? {}, ...(PodLevelResources ? { pod: PodLevelResources } : {}) },
    ]),
  )
}
