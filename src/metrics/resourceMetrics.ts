/**
 * Reads /metrics/resource of a kubelet (L3), Prometheus' text format. The kubelet is not trusted: the caller names the containers of which it may speak,
 * lines and values are bounded, and long answers are read in slices.
 * Upstream: metrics-server pkg/scraper/client/resource/decode.go.
 */
import type { Clock } from '#base/clock'
import type { NodeSample, PodPoints, Point } from './samples.ts'

/** Names of the containers of a pod that is bound to the node; undefined for all other pods. */
export type BoundContainers = (namespace: string, pod: string) => ReadonlySet<string> | undefined

type Member = 'cpuNs' | 'memoryBytes' | 'startedAtMs'

interface Metric {
  readonly of: 'node' | 'container'
  readonly member: Member
}

const metrics: ReadonlyMap<string, Metric> = new Map([
  ['node_cpu_usage_seconds_total', { of: 'node', member: 'cpuNs' }],
  ['node_memory_working_set_bytes', { of: 'node', member: 'memoryBytes' }],
  ['container_cpu_usage_seconds_total', { of: 'container', member: 'cpuNs' }],
  ['container_memory_working_set_bytes', { of: 'container', member: 'memoryBytes' }],
  ['container_start_time_seconds', { of: 'container', member: 'startedAtMs' }],
])
/** To the unit of the member. */
const factors: Readonly<Record<Member, number>> = { cpuNs: 1e9, memoryBytes: 1, startedAtMs: 1000 }

const linesPerTurn = 2_000
const maxLineLength = 4_096
/** The end of the year 9999: later times have no text. */
const maxTimeMs = 253_402_300_799_000
/**
 * A figure measured longer ago, or that much later than now by the clock of the node, is dropped. Upstream shows it as it is. Autoscalers take the time of a
 * figure for the time of the usage.
 */
const maxSkewMs = 3_600_000

type Draft = { -readonly [member in keyof Point]: Point[member] }

/** @throws Error for a text that is not in the format, and for values that are no measurement */
export async function readResourceMetrics(text: string, nowMs: number, bound: BoundContainers, clock: Pick<Clock, 'turn'>): Promise<NodeSample> {
  const node = draft()
  const pods = new Map<string, Map<string, Draft> | undefined>()
  const containersOf = boundPods(pods, bound)
  let lines = 0
  for (const line of linesOf(text)) {
    if (++lines % linesPerTurn === 0) await clock.turn()
    const series = readSeries(line)
    if (!series) continue
    const { metric, labels, value, atMs = nowMs } = series
    const { member } = metric
    const point = metric.of === 'node' ? node : containersOf(labels)
    if (!point) continue
    point[member] = member === 'startedAtMs' ? value * factors[member] : Math.floor(value * factors[member])
    if (member !== 'startedAtMs') point.atMs = atMs
  }
  const isUsable = (point: Draft) => isComplete(point) && Math.abs(point.atMs - nowMs) <= maxSkewMs
  return { node: isUsable(node) ? node : undefined, pods: usablePods(pods, isUsable) }
}

const draft = (): Draft => ({ startedAtMs: 0, atMs: 0, cpuNs: 0, memoryBytes: 0 })

/** Upstream takes a zero for a figure that the kubelet does not have yet. */
function isComplete({ atMs, cpuNs, memoryBytes }: Draft): boolean {
  return atMs > 0 && cpuNs > 0 && memoryBytes > 0
}

/** Without a pod of which one container has no usable figures: its sum would be too small. */
function usablePods(pods: ReadonlyMap<string, ReadonlyMap<string, Draft> | undefined>, isUsable: (point: Draft) => boolean): Map<string, PodPoints> {
  const usable = new Map<string, PodPoints>()
  for (const [key, containers] of pods) if (containers && [...containers.values()].every(isUsable)) usable.set(key, containers)
  return usable
}

type Labels = ReadonlyMap<string, string>

/** The draft of the container that labels name, if the node may speak of it. */
function boundPods(pods: Map<string, Map<string, Draft> | undefined>, bound: BoundContainers): (labels: Labels) => Draft | undefined {
  const names = new Map<string, ReadonlySet<string> | undefined>()
  return (labels) => {
    const [namespace = '', pod = '', container = ''] = ['namespace', 'pod', 'container'].map((label) => labels.get(label))
    const key = `${namespace}/${pod}`
    if (!names.has(key)) names.set(key, bound(namespace, pod))
    if (!names.get(key)?.has(container)) return undefined
    const points = pods.get(key) ?? new Map<string, Draft>()
    pods.set(key, points)
    const point = points.get(container) ?? draft()
    points.set(container, point)
    return point
  }
}

function* linesOf(text: string): Generator<string> {
  for (let from = 0; from < text.length; ) {
    const found = text.indexOf('\n', from)
    const end = found < 0 ? text.length : found
    if (end - from > maxLineLength) throw new Error(`a line is longer than ${maxLineLength} characters`)
    yield text.slice(from, end)
    from = end + 1
  }
}

interface Series {
  readonly metric: Metric
  readonly labels: Labels
  readonly value: number
  readonly atMs: number | undefined
}

const metricName = /^[a-zA-Z_:][a-zA-Z0-9_:]*/
const labelPair = /\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,?)/y
const valueAndTime = /^\s+(\S+)(?:\s+(-?\d+))?\s*$/
const noLabels: Labels = new Map()

/** Undefined for comments, empty lines and other metrics. @throws Error for a line of one of our metrics that is not in the format */
function readSeries(line: string): Series | undefined {
  const name = metricName.exec(line)?.[0]
  const metric = name === undefined ? undefined : metrics.get(name)
  if (name === undefined || metric === undefined) return undefined
  const { labels, end } = line[name.length] === '{' ? readLabels(line, name.length + 1) : { labels: noLabels, end: name.length }
  const match = valueAndTime.exec(line.slice(end))
  if (!match) throw malformed(line)
  const value = Number(match[1])
  const atMs = match[2] === undefined ? undefined : Number(match[2])
  if (!(value >= 0 && value <= Number.MAX_SAFE_INTEGER) || (atMs !== undefined && !(atMs > 0 && atMs <= maxTimeMs))) throw malformed(line)
  return { metric, labels, value, atMs }
}

function readLabels(line: string, from: number): { labels: Labels; end: number } {
  const labels = new Map<string, string>()
  let at = from
  while (line[at] !== '}') {
    labelPair.lastIndex = at
    const match = labelPair.exec(line)
    if (!match) throw malformed(line)
    labels.set(match[1] as string, unescaped(match[2] as string))
    at = labelPair.lastIndex
    if (match[3] === '' && line[at] !== '}') throw malformed(line)
  }
  return { labels, end: at + 1 }
}

function unescaped(text: string): string {
  return text.includes('\\') ? text.replace(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character)) : text
}

function malformed(line: string): Error {
  return new Error(`not a measurement: ${JSON.stringify(line.slice(0, 200))}`)
}
