/**
 * Costs of the functions of Kubernetes' libraries and of the strings extension, for which cel-go has none (L1).
 * Kubernetes accepts or refuses CRDs by the estimates, so they must not drift. Upstream: apiserver/pkg/cel/library/cost.go (v1.36).
 */
import type { CallCost, CallEstimate, CallEstimator, CallToEstimate, CostEstimate, EstimateNode } from '#cel/cost/model'
import {
  add,
  createListCost,
  createStructCost,
  fixed,
  matchCost,
  multiply,
  range,
  regexLengthFactor,
  scale,
  sizeOfValue,
  stringTraversalFactor,
  traversal,
  unbounded,
} from '#cel/cost/model'
import type { Library } from '#cel/declarations'
import { typeName, typesEqual } from '#cel/types'
import type { Value } from '#cel/values'
import { ListValue, MapValue, ObjectValue, OpaqueValue } from '#cel/values'
import { FormatValue } from './format.ts'

/** Two checks fit into the limit of one expression, not more. */
const checkCost = 350_000

const each = <T>(names: string, value: T): Record<string, T> => Object.fromEntries(names.split(' ').map((name) => [name, value]))

const nominal =
  'serviceAccount path group resource subresource namespace name allowed reason error errored ' +
  'masked prefixLength family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast format.named ' +
  'sign asInteger isInteger asApproximateFloat isGreaterThan isLessThan compareTo add sub major minor patch ' +
  'getScheme getHostname getHost getPort getEscapedPath getQuery'
const listFunctions = 'isSorted sum max min indexOf lastIndexOf'
const readsFirst = 'url lowerAscii upperAscii substring trim jsonpatch.escapeKey cidr isIP isCIDR quantity isQuantity semver isSemver'

/** A selector's requirements take at least two characters each, and each makes a list and a struct. */
function selectorCost(length: CostEstimate): CostEstimate {
  const requirements = scale(length, 0.5)
  return add(add(fixed(createListCost), scale(length, stringTraversalFactor)), scale(requirements, createListCost + createStructCost))
}

/** The cost of reading a value as a tree. */
function treeCost(value: Value): number {
  if (typeof value === 'string') return Math.floor(new TextEncoder().encode(value).length * stringTraversalFactor)
  if (value instanceof Uint8Array) return Math.floor(value.length * stringTraversalFactor)
  let cost = 0
  if (value instanceof ListValue) for (let i = 0; i < value.size; i++) cost += treeCost(value.at(i))
  else if (value instanceof MapValue) for (const key of value.keys()) cost += treeCost(key) + treeCost(value.get(key)!)
  else if (value instanceof ObjectValue) for (const field of value.fieldNames()) cost += treeCost(field) + treeCost(value.get(field)!)
  else return 1
  return cost
}

const first = ([text]: readonly Value[]): number => traversal(sizeOfValue(text!))
const twice: CallCost = ([text]) => Math.ceil(sizeOfValue(text!) * 2 * stringTraversalFactor)

const containsIp: CallCost = ([cidr, other], overload) =>
  traversal(2 * sizeOfValue(cidr!)) + (overload === 'cidr_contains_ip_string' ? traversal(sizeOfValue(other!)) : 0)

const containsCidr: CallCost = ([cidr, other], overload) => {
  const size = sizeOfValue(cidr!)
  return traversal(2 * size) + traversal(size) + 1 + (overload === 'cidr_contains_cidr_string' ? traversal(sizeOfValue(other!)) : 0)
}

const validateFormat: CallCost = ([format, text]) => (format instanceof FormatValue ? matchCost(sizeOfValue(text!), format.maxRegexSize) : undefined)

const callCosts: Readonly<Record<string, CallCost>> = {
  check: checkCost,
  ...each<CallCost>(nominal, 1),
  ...each<CallCost>('fieldSelector labelSelector', ([, selector]) => selectorCost(fixed(sizeOfValue(selector!))).max),
  ...each<CallCost>(listFunctions, ([list]) => treeCost(list!)),
  ...each<CallCost>(readsFirst, first),
  ...each<CallCost>('replace split ip.isCanonical', twice),
  join: { ofResult: (result) => Math.ceil(sizeOfValue(result) * 2 * stringTraversalFactor) },
  ...each<CallCost>('find findAll', ([text, pattern]) => matchCost(sizeOfValue(text!), sizeOfValue(pattern!))),
  ip: (args, overload) => (overload === 'cidr_ip' ? 1 : first(args)),
  containsIP: containsIp,
  containsCIDR: containsCidr,
  validate: validateFormat,
  '_==_': ([left]) => (isCheapToCompare(left!) ? 1 : undefined),
}

const isCheapToCompare = (value: Value): boolean => value instanceof OpaqueValue

const read = (size: CostEstimate): CostEstimate => scale(size, stringTraversalFactor)
const estimate = (cost: CostEstimate, resultSize?: CostEstimate): CallEstimate => ({ cost, resultSize })

/** What a list holds, known by the list's path or at least by its type. */
function itemOf(list: EstimateNode): EstimateNode | undefined {
  if (list.type.kind !== 'list') return undefined
  return { path: list.path && [...list.path, '@items'], type: list.type.element, expression: undefined, size: undefined }
}

const listFunction: CallEstimator = ({ target, sizeOf }) => {
  if (!target) return undefined
  const item = itemOf(target)
  if (!item) return estimate(read(sizeOf(target)))
  const reads = item.type.kind === 'string' || item.type.kind === 'bytes'
  return estimate(multiply(sizeOf(target), reads ? add(fixed(1), read(sizeOf(item))) : fixed(1)))
}

const readsTarget: CallEstimator = ({ target, sizeOf }) => target && estimate(read(sizeOf(target)), sizeOf(target))
const readsArgument: CallEstimator = ({ args, sizeOf }) => (args[0] ? estimate(read(sizeOf(args[0]))) : undefined)

/** How many replacements there can be, and what stays of the text besides. */
function replacedSize(text: CostEstimate, old: CostEstimate, replacement: CostEstimate): CostEstimate {
  let count = range(0, 0)
  let kept = range(0, 0)
  // Replacing nothing puts the replacement around every character.
  if (old.min === 0) {
    count = range(count.min, Math.min(text.max + 1, unbounded))
    kept = range(kept.min, text.max)
  } else if (replacement.max <= old.min) kept = range(kept.min, text.max)
  else count = range(count.min, Math.ceil(text.max / old.min))
  if (old.max === 0) {
    count = range(text.min + 1, count.max)
    kept = range(text.min, kept.max)
  } else if (old.max <= replacement.min) kept = range(text.min, kept.max)
  else count = range(Math.ceil(text.min / old.max), count.max)
  return add(multiply(count, replacement), kept)
}

const replace: CallEstimator = ({ target, args, sizeOf }) => {
  const [old, replacement] = args
  if (!target || !old || !replacement) return undefined
  const text = sizeOf(target)
  return estimate(scale(text, 2 * stringTraversalFactor), replacedSize(text, sizeOf(old), sizeOf(replacement)))
}

const split: CallEstimator = ({ target, args, sizeOf }) => {
  if (!target) return undefined
  const text = sizeOf(target)
  const literal = args[1]?.expression?.kind === 'literal' ? args[1].expression.value : undefined
  // A negative limit is none; upstream's unsigned conversion makes it the largest number.
  const limit = typeof literal === 'number' ? (literal < 0 ? unbounded : literal) : text.max
  return estimate(scale(text, 2 * stringTraversalFactor), range(0, limit))
}

const join: CallEstimator = ({ target, args, sizeOf }) => {
  if (!target) return undefined
  const count = sizeOf(target)
  const item = itemOf(target)
  let size = item ? multiply(count, sizeOf(item)) : fixed(0)
  if (args[0]) size = add(size, multiply(sizeOf(args[0]), range(Math.max(count.min - 1, 0), Math.max(count.max - 1, 0))))
  return estimate(read(size), size)
}

const find: CallEstimator = ({ target, args, sizeOf }) => {
  if (!target || !args[0]) return undefined
  const text = sizeOf(target)
  const cost = multiply(read(add(text, fixed(1))), scale(sizeOf(args[0]), regexLengthFactor))
  return estimate(cost, range(0, text.max))
}

/** The bytes of an address of either family. */
const addressSize = range(4, 16)

const estimateContainsIp: CallEstimator = ({ args, overload, sizeOf }) => {
  const compare = read(add(addressSize, addressSize))
  return estimate(overload === 'cidr_contains_ip_string' ? add(compare, read(sizeOf(args[0]!))) : compare)
}

const estimateContainsCidr: CallEstimator = ({ args, overload, sizeOf }) => {
  const compare = add(add(read(add(addressSize, addressSize)), read(addressSize)), fixed(1))
  return estimate(overload === 'cidr_contains_cidr_string' ? add(compare, read(sizeOf(args[0]!))) : compare)
}

const maxNameFormatRegexSize = 128
const maxFormatSize = 64

const constantEquality = new Set([
  'net.IP',
  'net.CIDR',
  'kubernetes.Quantity',
  'kubernetes.Semver',
  ...['Authorizer', 'PathCheck', 'GroupCheck', 'ResourceCheck', 'Decision'].map((kind) => `kubernetes.authorization.${kind}`),
])

function equality({ args }: CallToEstimate): CallEstimate | undefined {
  const [left, right] = args as [EstimateNode, EstimateNode]
  if (left.type.kind !== 'opaque' || !typesEqual(left.type, right.type)) return undefined
  const name = typeName(left.type)
  if (constantEquality.has(name)) return estimate(fixed(1))
  if (name === 'kubernetes.NamedFormat') return estimate(read(range(1, maxFormatSize)))
  // Upstream looks at the right side twice; the left one's size does not count.
  return name === 'kubernetes.URL' ? estimate(read(range(1, right.size?.max ?? 1))) : undefined
}

const callEstimates: Readonly<Record<string, CallEstimator>> = {
  check: () => estimate(fixed(checkCost)),
  ...each<CallEstimator>(nominal, () => estimate(fixed(1))),
  ...each<CallEstimator>('fieldSelector labelSelector', ({ args, sizeOf }) => (args.length === 1 ? estimate(selectorCost(sizeOf(args[0]!))) : undefined)),
  ...each<CallEstimator>(listFunctions, listFunction),
  ...each<CallEstimator>('url jsonpatch.escapeKey', ({ args, sizeOf }) => estimate(read(sizeOf(args[0]!)), sizeOf(args[0]!))),
  ...each<CallEstimator>('lowerAscii upperAscii substring trim', readsTarget),
  replace,
  split,
  join,
  ...each<CallEstimator>('find findAll', find),
  ...each<CallEstimator>('cidr isIP isCIDR quantity isQuantity semver isSemver', readsArgument),
  ip: (call) => (call.overload === 'cidr_ip' ? estimate(fixed(1)) : readsArgument(call)),
  'ip.isCanonical': ({ args, sizeOf }) => estimate(scale(sizeOf(args[0]!), 2 * stringTraversalFactor)),
  containsIP: estimateContainsIp,
  containsCIDR: estimateContainsCidr,
  validate: ({ args, sizeOf }) => estimate(scale(read(sizeOf(args[0]!)), maxNameFormatRegexSize * regexLengthFactor)),
  '_==_': equality,
}

export const costsLibrary: Library = { callCosts, callEstimates }
