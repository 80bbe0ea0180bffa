/**
 * What simulated nodes are made like (L4, pure): a Node as YAML, whose name, label values and taint values are patterns. `{n}` is the node's number, `{a,b,c}` a
 * choice in turn, `{1..40}` a number in turn.
 */
import { isDns1123Subdomain, isLabelValue, isQualifiedName } from '#api/machinery/names'
import { isQuantity, quantityAsNumber } from '#api/machinery/quantity'
import { parseYaml } from '#api/machinery/yaml'
import { greatest } from '#base/extremes'
import { messageOf } from '#base/messageOf'
import { CommandError } from './exitCodes.ts'

export interface NodeTaint {
  readonly key: string
  readonly value?: string | undefined
  readonly effect: string
}

/** Patterns, as they are kept with the cluster. */
export interface NodeLike {
  readonly name?: string | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly taints?: readonly NodeTaint[] | undefined
  readonly capacity?: { readonly cpu?: number; readonly memoryBytes?: number; readonly storageBytes?: number; readonly pods?: number } | undefined
}

/** The most simulated nodes of a cluster. */
export const maxSimulatedNodes = 10_000

/** A value of a pattern for the node with that number, from 1. */
export function expand(pattern: string, number: number): string {
  return pattern.replace(/\{([^{}]*)\}/g, (_, choice: string) => {
    if (choice === 'n') return String(number)
    const range = /^(\d+)\.\.(\d+)$/.exec(choice)
    if (range) return String(Number(range[1]) + ((number - 1) % (Number(range[2]) - Number(range[1]) + 1)))
    const all = choice.split(',')
    return all[(number - 1) % all.length] ?? ''
  })
}

/** The node with that number: its patterns with their values. */
export function nodeAt({ labels = {}, taints = [], capacity }: NodeLike, number: number): Omit<NodeLike, 'name'> {
  return {
    labels: Object.fromEntries(Object.entries(labels).map(([key, value]) => [key, expand(value, number)])),
    taints: taints.map((taint) => ({ ...taint, ...(taint.value === undefined ? {} : { value: expand(taint.value, number) }) })),
    capacity,
  }
}

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']
/** The server sets these for each node. */
const ownLabels = new Set(['kubernetes.io/hostname', 'kubernetes.io/os', 'kubernetes.io/arch', 'beta.kubernetes.io/os', 'beta.kubernetes.io/arch'])

/** @throws CommandError usage, which names the file and the field */
export function readNodeLike(file: string, text: string): NodeLike {
  const refuse = (reason: string): never => {
    throw new CommandError('usage', `--like ${file}: ${reason}`)
  }
  const asMap = (value: unknown, field: string): Readonly<Record<string, unknown>> =>
    value === undefined || value === null
      ? {}
      : typeof value === 'object' && !Array.isArray(value)
        ? (value as Record<string, unknown>)
        : refuse(`${field}: expected a map`)
  const asText = (value: unknown, field: string): string => (typeof value === 'string' ? value : refuse(`${field}: expected a text`))
  const node = asMap(parsed(text, refuse), 'the file')
  if (node.kind !== 'Node') refuse('kind: expected Node')
  const metadata = asMap(node.metadata, 'metadata')
  const labels = Object.entries(asMap(metadata.labels, 'metadata.labels')).map(([key, value]) => {
    const field = `metadata.labels[${key}]`
    const [problem] = [...isQualifiedName(key), ...valueProblems(asText(value, field))]
    return problem ? refuse(`${field}: ${problem}`) : ([key, checkedPattern(value as string, field, refuse)] as const)
  })
  const { taints = [] } = asMap(node.spec, 'spec')
  if (!Array.isArray(taints)) refuse('spec.taints: expected a list')
  const capacity = asMap(asMap(node.status, 'status').capacity, 'status.capacity')
  const amount = (name: string, least: number) => {
    const value = capacity[name]
    if (value === undefined) return undefined
    const number = isQuantity(value) ? quantityAsNumber(value) : Number.NaN
    return number >= least && number <= Number.MAX_SAFE_INTEGER
      ? Math.floor(number)
      : refuse(`status.capacity.${name}: expected a quantity of at least ${least}`)
  }
  const amounts = { cpu: amount('cpu', 1), memoryBytes: amount('memory', 2 ** 20), storageBytes: amount('ephemeral-storage', 0), pods: amount('pods', 0) }
  return {
    ...(metadata.name === undefined ? {} : { name: checkedPattern(asText(metadata.name, 'metadata.name'), 'metadata.name', refuse) }),
    labels: Object.fromEntries(labels.filter(([key]) => !ownLabels.has(key))),
    taints: (taints as unknown[]).map((given, index) => taintOf(asMap(given, `spec.taints[${index}]`), index, refuse)),
    capacity: Object.fromEntries(Object.entries(amounts).filter(([, value]) => value !== undefined)),
  }
}

type Refuse = (reason: string) => never

function parsed(text: string, refuse: Refuse): unknown {
  try {
    return parseYaml(text)
  } catch (error) {
    return refuse(messageOf(error))
  }
}

function taintOf({ key, value, effect }: Readonly<Record<string, unknown>>, index: number, refuse: Refuse): NodeTaint {
  const field = `spec.taints[${index}]`
  if (typeof key !== 'string' || isQualifiedName(key).length > 0) return refuse(`${field}.key: expected the name of a taint`)
  if (typeof effect !== 'string' || !effects.includes(effect)) return refuse(`${field}.effect: expected ${effects.join(', ')}`)
  if (value === undefined) return { key, effect }
  if (typeof value !== 'string' || valueProblems(value).length > 0) return refuse(`${field}.value: expected the value of a label`)
  return { key, value: checkedPattern(value, `${field}.value`, refuse), effect }
}

/** What is wrong with one of the label values that a pattern gives. */
function valueProblems(pattern: string): readonly string[] {
  const most = [...pattern.matchAll(/\{([^{}]*)\}/g)].map(([, choice = '']) => choicesOf(choice))
  // Choices are taken in turn, so each is met within as many nodes as the longest list has; the number of the last node has the most digits.
  const numbers = new Set([maxSimulatedNodes, ...Array.from({ length: Math.min(greatest(most, 1), maxSimulatedNodes) }, (_, at) => at + 1)])
  for (const number of numbers) {
    const problems = isLabelValue(expand(pattern, number))
    if (problems.length > 0) return problems
  }
  return []
}

function choicesOf(choice: string): number {
  const range = /^(\d+)\.\.(\d+)$/.exec(choice)
  return range ? Number(range[2]) - Number(range[1]) + 1 : choice.split(',').length
}

/** A pattern has no empty or backward choice. */
function checkedPattern(pattern: string, field: string, refuse: Refuse): string {
  for (const [whole, choice = ''] of pattern.matchAll(/\{([^{}]*)\}/g)) {
    const range = /^(\d+)\.\.(\d+)$/.exec(choice)
    const isRight = choice === 'n' || (range ? Number(range[1]) <= Number(range[2]) : choice.includes(',') && choice.split(',').every((one) => one !== ''))
    if (!isRight) refuse(`${field}: ${whole} is no pattern: expected {n}, {a,b} or {1..9}`)
  }
  return pattern
}

/** The names of `count` nodes, the first of which has the number `first`. @throws CommandError usage as namesAt() */
export function nodeNames(pattern: string, first: number, count: number, taken: ReadonlySet<string>): string[] {
  return namesAt(
    pattern,
    Array.from({ length: count }, (_, at) => first + at),
    taken,
  )
}

/**
 * The names of nodes with these numbers.
 * @throws CommandError usage when two nodes would have one name, or a name is none
 */
export function namesAt(pattern: string, numbers: readonly number[], taken: ReadonlySet<string>): string[] {
  const names: string[] = []
  const seen = new Set(taken)
  for (const number of numbers) {
    const name = expand(pattern, number)
    const [problem] = isDns1123Subdomain(name)
    if (problem) throw new CommandError('usage', `"${name}" cannot be the name of a node: ${problem}`)
    if (seen.has(name)) throw new CommandError('usage', `the pattern "${pattern}" gives the name "${name}" to two nodes`, { hint: 'let the name contain {n}' })
    seen.add(name)
    names.push(name)
  }
  return names
}
