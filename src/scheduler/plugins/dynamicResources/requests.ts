/**
 * The requests of a claim made ready for one node (L3): class, number of devices, and for `All` which ones. Upstream: structured allocator
 * validateDeviceRequest (v1.36).
 */
import type { DeviceClass, DeviceRequest, DeviceSubRequest, DeviceToleration, ExactDeviceRequest, ResourceClaim } from '#api/gen/types/resource.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import type { DeviceSelectors } from './deviceSelectors.ts'
import { type Pool, type PoolDevice, reaches } from './pools.ts'

/** One way to satisfy a request: the request itself, or one of its alternatives. */
export interface RequestVariant {
  /** As allocations name it: `request` or `request/alternative`. */
  readonly fullName: string
  /** The names by which constraints may mean it. */
  readonly names: readonly string[]
  readonly deviceClass: Frozen<DeviceClass>
  readonly adminAccess: boolean
  readonly tolerations: readonly Frozen<DeviceToleration>[]
  readonly capacity: Readonly<Record<string, string>> | undefined
  readonly count: number
  /** Present for `All`: these, and no others. */
  readonly all: readonly PoolDevice[] | undefined
  readonly matches: (device: PoolDevice) => boolean
}

export interface PreparedRequest {
  /** In the order of preference. */
  readonly variants: readonly RequestVariant[]
  readonly isPrioritized: boolean
}

export interface PrepareDeps {
  readonly pools: readonly Pool[]
  readonly node: Parameters<typeof reaches>[1]
  readonly selectors: DeviceSelectors
  readonly classOf: (name: string) => Frozen<DeviceClass> | undefined
  /** What selectors have said, by request; kept when a search is left. */
  readonly matched: Map<string, Map<PoolDevice, boolean>>
  /** Called after each question to selectors, which may take long. May throw to leave the preparation. */
  readonly afterMatch: () => void
}

/** @throws Error when the claim cannot be satisfied as it is, or a pool that `All` needs is not whole */
export function prepareRequest(request: Frozen<DeviceRequest>, claim: Frozen<ResourceClaim>, deps: PrepareDeps): PreparedRequest {
  const { name, exactly, firstAvailable = [] } = request
  if (exactly) return { variants: [variantOf(exactly, [name], claim, deps)], isPrioritized: false }
  return { variants: firstAvailable.map((one) => variantOf(one, [name, `${name}/${one.name}`], claim, deps)), isPrioritized: true }
}

function variantOf(
  request: Frozen<ExactDeviceRequest> | Frozen<DeviceSubRequest>,
  names: readonly string[],
  claim: Frozen<ResourceClaim>,
  deps: PrepareDeps,
): RequestVariant {
  const fullName = names.at(-1) as string
  const owner = `claim ${keyOf(claim)}`
  const where = `${owner}, request ${fullName}`
  const { deviceClassName, allocationMode = 'ExactCount', selectors, tolerations = [], capacity } = request
  const deviceClass = deps.classOf(deviceClassName)
  if (!deviceClass) throw new Error(`${where}: could not retrieve device class ${deviceClassName}: deviceclass.resource.k8s.io "${deviceClassName}" not found`)
  const known = deps.matched.get(where) ?? new Map<PoolDevice, boolean>()
  deps.matched.set(where, known)
  const matches = (device: PoolDevice): boolean => {
    let answer = known.get(device)
    if (answer === undefined) {
      const { pool, slice } = device
      answer =
        deps.selectors.match(deviceClass.spec.selectors, device.device, pool.driver, `class ${deviceClassName}`) &&
        deps.selectors.match(selectors, device.device, pool.driver, owner) &&
        (!slice.spec.perDeviceNodeSelection || reaches(device.device, deps.node))
      known.set(device, answer)
      deps.afterMatch()
    }
    return answer
  }
  const all = allocationMode === 'All' ? allOf(deps.pools, matches, where) : undefined
  if (!all && allocationMode !== 'ExactCount') throw new Error(`${where}: unsupported count mode ${allocationMode}`)
  const adminAccess = 'adminAccess' in request && request.adminAccess === true
  const count = all ? all.length : (request.count ?? 1)
  return { fullName, names, deviceClass, adminAccess, tolerations, capacity: capacity?.requests, count, all, matches }
}

function allOf(pools: readonly Pool[], matches: (device: PoolDevice) => boolean, where: string): readonly PoolDevice[] {
  for (const { state, driver, name } of pools) {
    if (state === 'usable') continue
    throw new Error(`${where}: asks for all devices, but resource pool ${driver}/${name} is currently ${state === 'invalid' ? 'invalid' : 'being updated'}`)
  }
  return pools.flatMap(({ devices }) => devices.filter(matches))
}
