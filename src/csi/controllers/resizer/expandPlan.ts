/**
 * To which size a claim's volume is expanded next (L3, pure). An expansion that may be under way ends before another size is asked for; a claim whose
 * expansion failed for good may ask for less. Upstream: external-resizer, pkg/controller/expand_and_recover.go.
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { compareQuantities } from '#api/machinery/quantity'

type Claim = Frozen<PersistentVolumeClaim>
type Volume = Frozen<PersistentVolume>

export interface ExpandPlan {
  readonly size: string
  /** The claim says already that it is expanded to this size. */
  readonly isKnown: boolean
}

const atNode = new Set(['NodeResizePending', 'NodeResizeInProgress'])
const inController = new Set(['ControllerResizeInProgress', 'ControllerResizeInfeasible'])
const wantedOf = ({ spec }: Claim) => spec.resources?.requests?.storage ?? '0'

export const resizeStatusOf = ({ status }: Claim) => status.allocatedResourceStatuses?.storage ?? ''

export function needsExpansion({ status, ...claim }: Claim): boolean {
  return status.phase === 'Bound' && Boolean(claim.spec.volumeName) && compareQuantities(wantedOf({ status, ...claim }), status.capacity?.storage ?? '0') > 0
}

export function isBoundTo({ spec }: Volume, { metadata }: Claim): boolean {
  return spec.claimRef?.namespace === metadata.namespace && spec.claimRef?.uid === metadata.uid
}

/**
 * @param hasFailed the driver has refused the last expansion for good: it is not under way
 * @returns undefined: the node has its turn
 */
export function planExpansion(claim: Claim, volume: Volume, hasFailed: boolean): ExpandPlan | undefined {
  const allocated = claim.status.allocatedResources?.storage
  const size = nextSize(claim, volume, allocated, hasFailed)
  return size === undefined ? undefined : { size, isKnown: allocated !== undefined && compareQuantities(allocated, size) === 0 }
}

function nextSize(claim: Claim, { spec }: Volume, allocated: string | undefined, hasFailed: boolean): string | undefined {
  const wanted = wantedOf(claim)
  const status = resizeStatusOf(claim)
  const has = spec.capacity?.storage ?? '0'
  const begun = allocated ?? wanted
  if (compareQuantities(has, wanted) < 0) {
    if (atNode.has(status)) return compareQuantities(has, begun) >= 0 ? undefined : begun
    if (status === 'NodeResizeInfeasible') return begun
    return status === 'ControllerResizeInProgress' && !hasFailed ? begun : wanted
  }
  if (atNode.has(status)) return undefined
  if (status === 'NodeResizeInfeasible' || inController.has(status) || (status === '' && allocated !== undefined)) return begun
  const isPending = claim.status.conditions?.some((one) => one.type === 'FileSystemResizePending' && one.status === 'True')
  return isPending ? undefined : wanted
}
