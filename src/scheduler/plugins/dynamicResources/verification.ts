/** Whether devices that a search found on an older state of the cluster are there and free now (L3). */
import { semanticEqual } from '#api/machinery/equality'
import type { AllocatorDeps, ClaimSolution } from './allocation.ts'
import type { UsedDevices } from './devicesInUse.ts'
import { DeviceUse } from './deviceUse.ts'
import type { PoolDevice } from './pools.ts'

/** All of them together. */
export function areFree(solutions: readonly ClaimSolution[], inUse: UsedDevices): boolean {
  const use = new DeviceUse(inUse)
  return solutions.every(({ taken }, claim) => taken.every(({ device, variant }) => use.take(device, claim, variant) !== undefined))
}

/** Whether pools and classes still are what the solution was chosen from. */
export function areUnchanged(solutions: readonly ClaimSolution[], { pools, classOf }: Pick<AllocatorDeps, 'pools' | 'classOf'>): boolean {
  const now = new Map<string, PoolDevice>()
  for (const { state, devices } of pools) if (state === 'usable') for (const device of devices) now.set(device.id, device)
  return solutions.every(({ taken }) =>
    taken.every(({ device, variant }) => {
      const there = now.get(device.id)
      return (
        there !== undefined && isSameDevice(device, there) && semanticEqual(classOf(variant.deviceClass.metadata.name ?? '')?.spec, variant.deviceClass.spec)
      )
    }),
  )
}

/** A driver may write its slice again without a change. */
function isSameDevice(a: PoolDevice, b: PoolDevice): boolean {
  if (a.slice === b.slice) return true
  return (
    semanticEqual(a.device, b.device) &&
    semanticEqual(selectionOf(a), selectionOf(b)) &&
    semanticEqual([...a.pool.counterSets.values()], [...b.pool.counterSets.values()])
  )
}

function selectionOf({ slice: { spec } }: PoolDevice): object {
  const { nodeName, nodeSelector, allNodes, perDeviceNodeSelection } = spec
  return { nodeName, nodeSelector, allNodes, perDeviceNodeSelection }
}
