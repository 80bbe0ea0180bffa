/**
 * Devices as their selectors see them (L1), and the question whether one matches. Attributes and capacities without a domain belong to the driver's; a
 * domain that a device does not have is an empty map, so that its members are merely absent. Upstream: dynamic-resource-allocation/cel/compile.go (v1.36).
 */
import type { CompileResult } from '#cel/environment'
import { HashMap, type Value } from '#cel/values'
import type { Device, DeviceAttribute } from '../gen/types/resource.v1.ts'
import type { Frozen } from '../machinery/meta.ts'
import { parseQuantity } from '../machinery/quantity.ts'
import { maxSelectorCost } from './device.ts'
import { QuantityValue } from './quantity.ts'
import { toSemver } from './semver.ts'

class Domains extends HashMap {
  readonly #none = new HashMap()

  override get(key: Value): Value {
    return super.get(key) ?? this.#none
  }

  override has(key: Value): boolean {
    return super.get(key) !== undefined
  }

  /** `name` may be qualified, or is the driver's own. */
  put(name: string, driver: string, value: Value): void {
    const slash = name.indexOf('/')
    const domain = slash < 0 ? driver : name.slice(0, slash)
    if (!this.has(domain)) this.set(domain, new HashMap())
    ;(this.get(domain) as HashMap).set(slash < 0 ? name : name.slice(slash + 1), value)
  }
}

/** What `device` stands for in a selector. */
export function deviceValue(device: Frozen<Device>, driver: string): Value {
  const attributes = new Domains()
  for (const [name, attribute] of Object.entries(device.attributes ?? {})) {
    const value = attributeValue(attribute)
    if (value !== undefined) attributes.put(name, driver, value)
  }
  const capacity = new Domains()
  for (const [name, { value }] of Object.entries(device.capacity ?? {})) capacity.put(name, driver, new QuantityValue(parseQuantity(value)))
  const found = new HashMap()
  found.set('driver', driver)
  found.set('attributes', attributes)
  found.set('capacity', capacity)
  found.set('allowMultipleAllocations', device.allowMultipleAllocations === true)
  return found
}

function attributeValue({ string, int, bool, version }: Frozen<DeviceAttribute>): Value | undefined {
  return string ?? int ?? bool ?? (version === undefined ? undefined : toSemver(version))
}

/**
 * @param isInterrupted ends the evaluation with an error
 * @throws Error when the expression fails on this device
 */
export function selectorMatches(compiled: Extract<CompileResult, { ok: true }>, device: Value, isInterrupted?: () => boolean): boolean {
  const result = compiled.program.evaluate(new Map([['device', device]]), { costLimit: maxSelectorCost, isInterrupted })
  if (result.error) throw new Error(result.error.message)
  return result.value === true
}
