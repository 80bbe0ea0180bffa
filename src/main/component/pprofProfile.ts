/** V8's profiles as samples, and samples as pprof's profile.proto (L5, pure). Upstream: google/pprof proto/profile.proto. */
import type { Profiler, Runtime } from 'node:inspector'
import { pprofProto } from '#grpc/proto/pprof'
import { loadMessage } from '#grpc/protoMessage'

interface Frame {
  readonly name: string
  readonly file: string
  /** From 1; 0: unknown. */
  readonly line: number
}

interface ValueType {
  readonly type: string
  readonly unit: string
}

export interface SampledProfile {
  readonly types: readonly ValueType[]
  readonly samples: readonly { readonly frames: readonly Frame[]; readonly values: readonly number[] }[]
  readonly durationNs: number
  readonly period: { readonly type: ValueType; readonly value: number }
}

type CallFrame = Runtime.CallFrame

/** V8's sampling heap profile. */
export interface HeapProfile {
  readonly head: HeapNode
  readonly samples: readonly { readonly nodeId: number }[]
}

interface HeapNode {
  readonly id: number
  readonly callFrame: CallFrame
  readonly selfSize: number
  readonly children: readonly HeapNode[]
}

function frameOf({ functionName, url, lineNumber }: CallFrame): Frame {
  return { name: functionName || '(anonymous)', file: url, line: lineNumber + 1 }
}

/** Time in which the process slept counts for nothing, as with Go. */
export function sampledCpu({ nodes, samples = [], timeDeltas = [], startTime, endTime }: Profiler.Profile): SampledProfile {
  const parents = new Map<number, number>()
  for (const { id, children = [] } of nodes) for (const child of children) parents.set(child, id)
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const spent = new Map<number, { count: number; us: number }>()
  for (const [at, id] of samples.entries()) {
    const one = spent.get(id) ?? { count: 0, us: 0 }
    one.count++
    one.us += Math.max(0, timeDeltas[at] ?? 0)
    spent.set(id, one)
  }
  const framesOf = (id: number): Frame[] => {
    const frames: Frame[] = []
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const node = byId.get(at)
      if (node && node.callFrame.functionName !== '(root)') frames.push(frameOf(node.callFrame))
    }
    return frames
  }
  const isWork = (id: number) => byId.get(id)?.callFrame.functionName !== '(idle)' && byId.get(parents.get(id) ?? 0)?.callFrame.url !== 'node:inspector'
  // The profiler's own start and end take a while.
  const busy = [...spent].filter(([id]) => isWork(id))
  const durationNs = (endTime - startTime) * 1000
  const cpu = { type: 'cpu', unit: 'nanoseconds' }
  return {
    types: [{ type: 'samples', unit: 'count' }, cpu],
    samples: busy.map(([id, { count, us }]) => ({ frames: framesOf(id), values: [count, us * 1000] })),
    durationNs,
    period: { type: cpu, value: Math.round(durationNs / Math.max(1, samples.length)) },
  }
}

/** V8's default distance between two sampled bytes. */
const heapPeriodBytes = 32 * 1024

/** Objects and bytes that are alive, by the stack that allocated them. */
export function sampledHeap({ head, samples }: HeapProfile): SampledProfile {
  const counts = new Map<number, number>()
  for (const { nodeId } of samples) counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1)
  const found: { frames: readonly Frame[]; values: readonly number[] }[] = []
  const open: { node: HeapNode; above: readonly Frame[] }[] = [{ node: head, above: [] }]
  for (let next = open.pop(); next; next = open.pop()) {
    const { node, above } = next
    const frames = node === head ? [] : [frameOf(node.callFrame), ...above]
    if (node.selfSize > 0) found.push({ frames, values: [counts.get(node.id) ?? 1, node.selfSize] })
    for (const child of node.children) open.push({ node: child, above: frames })
  }
  const space = { type: 'inuse_space', unit: 'bytes' }
  return { types: [{ type: 'inuse_objects', unit: 'count' }, space], samples: found, durationNs: 0, period: { type: space, value: heapPeriodBytes } }
}

function countsOf(kinds: readonly string[]): [string, number][] {
  const counts = new Map<string, number>()
  for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a)
}

/** What keeps the event loop alive, in place of goroutines. */
export function sampledResources(kinds: readonly string[]): SampledProfile {
  const type = { type: 'goroutine', unit: 'count' }
  const samples = countsOf(kinds).map(([name, count]) => ({ frames: [{ name, file: '', line: 0 }], values: [count] }))
  return { types: [type], samples, durationNs: 0, period: { type, value: 1 } }
}

/** As Go's text form of goroutines. */
export function resourcesText(kinds: readonly string[]): string {
  return `goroutine profile: total ${kinds.length}\n${countsOf(kinds)
    .map(([kind, count]) => `${count} @\n#\t${kind}\n`)
    .join('\n')}`
}

/** The message, not yet compressed. */
export function encodeProfile({ types, samples, durationNs, period }: SampledProfile, nowMs: number): Buffer {
  // The first text must be empty.
  const texts = new Table<string>((text) => text)
  texts.at('')
  const functions = new Table<Frame>(({ name, file }) => `${name}\n${file}`)
  const locations = new Table<Frame>(({ name, file, line }) => `${name}\n${file}\n${line}`)
  const typeOf = ({ type, unit }: ValueType) => ({ type: texts.at(type), unit: texts.at(unit) })
  return loadMessage(pprofProto, 'perftools.profiles.Profile').encode({
    sampleType: types.map(typeOf),
    sample: samples.map(({ frames, values }) => ({ locationId: frames.map((frame) => locations.at(frame) + 1), value: values })),
    location: locations.all.map((frame, at) => ({ id: at + 1, line: [{ functionId: functions.at(frame) + 1, line: frame.line }] })),
    function: functions.all.map(({ name, file, line }, at) => ({
      id: at + 1,
      name: texts.at(name),
      systemName: texts.at(name),
      filename: texts.at(file),
      startLine: line,
    })),
    periodType: typeOf(period.type),
    period: period.value,
    timeNanos: nowMs * 1e6,
    durationNanos: durationNs,
    stringTable: texts.all,
  })
}

/** Values by their place; each has one. */
class Table<T> {
  readonly all: T[] = []
  readonly #places = new Map<string, number>()
  readonly #keyOf: (value: T) => string

  constructor(keyOf: (value: T) => string) {
    this.#keyOf = keyOf
  }

  at(value: T): number {
    const key = this.#keyOf(value)
    const known = this.#places.get(key)
    if (known !== undefined) return known
    this.#places.set(key, this.all.length)
    return this.all.push(value) - 1
  }
}
