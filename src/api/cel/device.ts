/**
 * The CEL environment of device selectors (L1): the variable `device` with its driver, attributes, capacity and whether it is shared, and
 * cel.bind. All sizes are known, so that every selector has a worst cost. Upstream: dynamic-resource-allocation/cel/compile.go (v1.36).
 */
import { bareMap } from '#base/bareMap'

import { fixed, range, type SizeEstimator } from '#cel/cost/model'
import type { CompileResult, Environment } from '#cel/environment'
import { bindings } from '#cel/library/comprehensions'
import { boolType, dynType, mapType, objectType, opaqueType, stringType } from '#cel/types'
import { kubernetesEnvironment } from './environment.ts'

/** The most that one selector may cost. */
export const maxSelectorCost = 1_000_000

const maxAttributes = 32
const maxValueLength = 64
const maxDomainLength = 63
const maxIdLength = 32
const maxDriverLength = 63

const deviceType = objectType('kubernetes.DRADevice', {
  driver: stringType,
  attributes: mapType(stringType, mapType(stringType, dynType)),
  capacity: mapType(stringType, mapType(stringType, opaqueType('kubernetes.Quantity'))),
  allowMultipleAllocations: boolType,
})

const deviceEnvironment: Environment = kubernetesEnvironment.extend({ libraries: [bindings], variables: { device: deviceType } })

/** Largest sizes by the path below `device`, where `*` is any attribute. */
const sizes: Readonly<Record<string, number>> = bareMap({
  driver: maxDriverLength,
  attributes: maxAttributes,
  'attributes @keys': maxDomainLength,
  'attributes @values': maxAttributes,
  'attributes @values @keys': maxIdLength,
  'attributes @values @values': maxValueLength,
  'attributes @values *': maxValueLength,
  capacity: maxAttributes,
  'capacity @keys': maxDomainLength,
  'capacity @values': maxAttributes,
  'capacity @values @keys': maxIdLength,
})

const deviceSizes: SizeEstimator = ({ path }) => {
  if (path?.[0] !== 'device') return undefined
  const steps = path.slice(1)
  const last = steps[2]
  if (steps[0] === 'attributes' && last !== undefined && !last.startsWith('@')) steps[2] = '*'
  const size = sizes[steps.join(' ')]
  return size === undefined ? (steps.length === 0 || steps.join(' ') === 'allowMultipleAllocations' ? fixed(0) : undefined) : range(0, size)
}

/** Compiles a selector; `maxCost` is the worst case. Never throws for a bad expression. */
export function compileSelector(expression: string): { readonly compiled: CompileResult; readonly maxCost: number } {
  const compiled = deviceEnvironment.compile(expression)
  return { compiled, maxCost: compiled.ok ? compiled.estimateCost(deviceSizes).max : 0 }
}
