/**
 * What devices of a claim must have in common, or must not (L3). Monotonic: a device that is refused now is refused with more devices, too.
 * Upstream: structured allocator matchAttributeConstraint, distinctAttributeConstraint (v1.36).
 */
import type { DeviceAttribute, DeviceConstraint } from '#api/gen/types/resource.v1'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import type { PoolDevice } from './pools.ts'

export interface Constraint {
  /** Adds the device if it is allowed and returns true, else changes nothing. `names`: the request's, and the chosen alternative's (`request/alternative`). */
  add(names: readonly string[], device: PoolDevice): boolean
  /** Undoes an add of the same device; the last one added is removed first. */
  remove(names: readonly string[], device: PoolDevice): void
  /** The state that decides about later devices, as text. */
  state(): string
  /** For a constraint that all devices share a value: the value of a device, and whether devices for these names must have it. */
  readonly group?: { valueOf(device: PoolDevice): string | undefined; concerns(names: readonly string[]): boolean } | undefined
}

/** @throws Error for a constraint of a kind that is not known */
export function createConstraint({ requests, matchAttribute, distinctAttribute }: Frozen<DeviceConstraint>, owner: string): Constraint {
  const attribute = matchAttribute ?? distinctAttribute
  if (attribute === undefined) throw new Error(`${owner}: empty constraint (unsupported constraint type?)`)
  const named = new Set(requests)
  const concerns = (names: readonly string[]) => named.size === 0 || names.some((name) => named.has(name))
  /** Values of the added devices, in their order. */
  const values: string[] = []
  return {
    add: (names, device) => {
      if (!concerns(names)) return true
      const value = comparable(device, attribute)
      if (value === undefined) return false
      if (matchAttribute === undefined ? values.includes(value) : values.length > 0 && values[0] !== value) return false
      values.push(value)
      return true
    },
    remove: (names) => {
      if (concerns(names)) values.pop()
    },
    state: () => (matchAttribute === undefined ? [...values].sort().join() : (values[0] ?? '')),
    group: matchAttribute === undefined ? undefined : { valueOf: (device) => comparable(device, attribute), concerns },
  }
}

/** Comparable across devices, the type included. An attribute without a domain is of the driver's. */
function comparable({ device, pool }: PoolDevice, name: string): string | undefined {
  const slash = name.indexOf('/')
  const short = slash >= 0 && name.slice(0, slash) === pool.driver ? ownValue(device.attributes, name.slice(slash + 1)) : undefined
  const attribute: Frozen<DeviceAttribute> | undefined = ownValue(device.attributes, name) ?? short
  if (!attribute) return undefined
  for (const type of ['string', 'int', 'bool', 'version'] as const) if (attribute[type] !== undefined) return `${type}:${attribute[type]}`
  return undefined
}
