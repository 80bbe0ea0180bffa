/**
 * The requests of a claim made ready for one node (L3): class, number of devices, and for `All` which ones. Upstream: structured allocator
 * validateDeviceRequest (v1.36).
 */
import type { DeviceClass, DeviceRequest, DeviceSubRequest, DeviceToleration, ExactDeviceRequest, ResourceClaim } from '#api/gen/types/resource.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import type { DeviceMatches, Match } from './deviceMatches.ts'
import type { Pool, PoolDevice } from './pools.ts'

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
  /** Throws when a selector is at fault. */
  readonly matches: (device: PoolDevice) => Match
}

export interface PreparedRequest {
  /** In the order of preference. */
  readonly variants: readonly RequestVariant[]
  readonly isPrioritized: boolean
}

export interface PrepareDeps {
  readonly pools: readonly Pool[]
  readonly classOf: (name: string) => Frozen<DeviceClass> | undefined
  /** Keeps the answers of selectors when the preparation is left. */
  readonly deviceMatches: DeviceMatches
  /** Leaves the preparation by an error, when time is up. */
  readonly leave: () => never
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
  const matches = deps.deviceMatches.of(where, [
    ...(deviceClass.spec.selectors ?? []).map((selector, index) => ({ selector, index, owner: `class ${deviceClassName}` })),
    ...(selectors ?? []).map((selector, index) => ({ selector, index, owner })),
  ])
  const all = allocationMode === 'All' ? allOf(deps, matches, where) : undefined
  if (!all && allocationMode !== 'ExactCount') throw new Error(`${where}: unsupported count mode ${allocationMode}`)
  const adminAccess = 'adminAccess' in request && request.adminAccess === true
  const count = all ? all.length : (request.count ?? 1)
  return { fullName, names, deviceClass, adminAccess, tolerations, capacity: capacity?.requests, count, all, matches }
}

function allOf({ pools, leave }: PrepareDeps, matches: RequestVariant['matches'], where: string): readonly PoolDevice[] {
  for (const { state, driver, name } of pools) {
    if (state === 'usable') continue
    throw new Error(`${where}: asks for all devices, but resource pool ${driver}/${name} is currently ${state === 'invalid' ? 'invalid' : 'being updated'}`)
  }
  return pools.flatMap(({ devices }) =>
    devices.filter((device) => {
      const isMatch = matches(device)
      return isMatch === 'later' ? leave() : isMatch
    }),
  )
}
