/** The conditions of a claim whose volume is resized or modified (L3, pure). Upstream: external-resizer, pkg/util/util.go. */
import type { PersistentVolumeClaim, PersistentVolumeClaimCondition } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

type Condition = Frozen<PersistentVolumeClaimCondition>
type Claim = Frozen<PersistentVolumeClaim>

const ofResize = new Set(['Resizing', 'FileSystemResizePending', 'ControllerResizeError', 'NodeResizeError'])
const ofModification = new Set(['ModifyingVolume', 'ModifyVolumeError'])

/** @param keepsOthers whether other conditions about the size stay */
export function resizeConditions({ status }: Claim, next: readonly Condition[], keepsOthers: boolean): readonly Condition[] {
  return merged(status.conditions ?? [], next, ({ type }) => keepsOthers || !ofResize.has(type))
}

/** A condition keeps the time of its transition while reason and status are the same. */
export function modifyConditions({ status }: Claim, next: readonly Condition[], now: string): readonly Condition[] {
  const old = new Map((status.conditions ?? []).map((one) => [one.type, one]))
  const timed = next.map((one) => {
    const before = old.get(one.type)
    const isSame = before?.reason === one.reason && before?.status === one.status
    return { ...one, lastProbeTime: now, lastTransitionTime: (isSame && before?.lastTransitionTime) || now }
  })
  return merged(status.conditions ?? [], timed, () => true)
}

export function withoutModification({ status }: Claim): readonly Condition[] {
  return (status.conditions ?? []).filter(({ type }) => !ofModification.has(type))
}

function merged(old: readonly Condition[], next: readonly Condition[], stays: (condition: Condition) => boolean): readonly Condition[] {
  const added = new Map(next.map((one) => [one.type, one]))
  const kept = old.flatMap((one) => {
    const replacement = added.get(one.type)
    added.delete(one.type)
    return replacement ? [replacement] : stays(one) ? [one] : []
  })
  return [...kept, ...added.values()]
}
