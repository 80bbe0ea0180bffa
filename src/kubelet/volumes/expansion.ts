/**
 * Grows a volume on the node (L3), when its PersistentVolume has grown and its claim does not report the new size yet: while it is being mounted, and while pods use
 * it. When a resizer tracks the expansion in the claim's status, the kubelet starts only on NodeResizePending or NodeResizeInProgress, and writes the outcome there.
 * Upstream: operation_generator.go expandVolumeDuringMount, node_expander.go, volume/util/resize_util.go (v1.36).
 */
import type { PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { compareQuantities } from '#api/machinery/quantity'
import { formatTime } from '#base/time'
import { persistentVolumeClaims } from '#client/builtIn'
import { podReference } from '../core/podReference.ts'
import type { VolumeContext, VolumePlugin, VolumeRequest } from './volumePlugin.ts'

type Claim = Frozen<PersistentVolumeClaim>

/** How a volume refuses to grow: not at all on a node, not while it is in use, never to this size, or not now. */
export type RefusalKind = 'unsupported' | 'inUse' | 'infeasible' | 'failed'

/** Nothing is under way: the volume has its old size. */
export class ExpansionRefusal extends Error {
  readonly kind: RefusalKind

  constructor(kind: RefusalKind, message: string, cause?: unknown) {
    super(message, { cause })
    this.kind = kind
  }
}

const resizeConditions = ['FileSystemResizePending', 'Resizing', 'ControllerResizeError', 'NodeResizeError']
const nodesTurn: readonly (string | undefined)[] = ['NodeResizePending', 'NodeResizeInProgress']

/** Whether the PersistentVolume is larger than its claim says. */
export function isToGrow(plugin: VolumePlugin, { persistentVolume, claim }: VolumeRequest['spec']): boolean {
  const size = persistentVolume?.spec.capacity?.storage
  return plugin.expansion !== undefined && claim !== undefined && size !== undefined && compareQuantities(claim.status?.capacity?.storage ?? '0', size) < 0
}

/** @throws Error when the volume cannot grow; a pod must not start with it */
export async function expandVolume(volumes: VolumeContext, plugin: VolumePlugin, request: VolumeRequest, path: string): Promise<void> {
  const { persistentVolume, claim, readOnly, name } = request.spec
  if (!claim || !isToGrow(plugin, request.spec)) return
  const { name: claimName, namespace, uid } = claim.metadata
  const about = [podReference(request.pod), { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name: claimName, uid }]
  const event = (type: 'Normal' | 'Warning', reason: string, message: string) => {
    for (const object of about) volumes.context.recorder.event(object, type, reason, message)
  }
  if (readOnly) {
    event('Warning', 'FileSystemResizeFailed', `MountVolume.NodeExpandVolume failed for volume "${name}" requested read-only file system`)
    return
  }
  const { allocatedResources, allocatedResourceStatuses: statuses } = claim.status ?? {}
  const isTracked = allocatedResources !== undefined || statuses?.storage !== undefined
  if (isTracked && !nodesTurn.includes(statuses?.storage)) return
  const newSize = (isTracked ? allocatedResources?.storage : undefined) ?? persistentVolume?.spec.capacity?.storage ?? ''
  if (isTracked) await patchStatus(volumes, claim, { allocatedResourceStatuses: { storage: 'NodeResizeInProgress' } })
  try {
    await plugin.expansion?.nodeExpand(volumes, request, path, newSize)
  } catch (error) {
    if (!(error instanceof ExpansionRefusal)) throw error
    if (isTracked) await reportRefusal(volumes, claim, error)
    // The volume is usable with its old size.
    if (error.kind === 'inUse' || (error.kind === 'unsupported' && !isTracked)) return
    throw error
  }
  event('Normal', 'FileSystemResizeSuccessful', `MountVolume.NodeExpandVolume succeeded for volume "${name}" ${request.pod.spec.nodeName ?? ''}`)
  const resizeStatus = statuses ? { allocatedResourceStatuses: { storage: null } } : {}
  await patchStatus(volumes, claim, { capacity: { storage: newSize }, conditions: otherConditions(claim, resizeConditions), ...resizeStatus })
}

async function reportRefusal(volumes: VolumeContext, claim: Claim, { kind, message }: ExpansionRefusal): Promise<void> {
  const lastTransitionTime = formatTime(volumes.context.clock.now())
  const condition = { type: 'NodeResizeError', status: 'True', lastTransitionTime, message: `failed to expand pvc with ${message}` }
  const conditions = [...otherConditions(claim, ['NodeResizeError']), condition]
  const infeasible = kind === 'infeasible' ? { allocatedResourceStatuses: { storage: 'NodeResizeInfeasible' } } : {}
  await patchStatus(volumes, claim, { conditions, ...infeasible })
}

function otherConditions({ status }: Claim, types: readonly string[]) {
  return (status?.conditions ?? []).filter(({ type }) => !types.includes(type))
}

async function patchStatus({ context }: VolumeContext, { metadata }: Claim, status: object): Promise<void> {
  const { namespace = '', name = '' } = metadata
  await context.client.of(persistentVolumeClaims).patch({ namespace, name }, 'merge', { status }, { subresource: 'status' })
}
