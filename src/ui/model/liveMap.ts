/** The components as a map (L4, pure): the lines between them, and the way of a recorded request from one to the next with its times. */
import { type ObjectEvent, objectKey, type TracedRequest } from '#api/debug/traces'
import { greatest } from '#base/extremes'
import { laneOf } from './waterfall.ts'

export const components = ['clients', 'apiServer', 'store', 'watchCache', 'controllers', 'scheduler', 'kubelets', 'proxy'] as const

export type ComponentName = (typeof components)[number]

export interface Line {
  readonly from: ComponentName
  readonly to: ComponentName
}

export const lines: readonly Line[] = [
  { from: 'clients', to: 'apiServer' },
  { from: 'apiServer', to: 'store' },
  { from: 'store', to: 'watchCache' },
  ...(['controllers', 'scheduler', 'kubelets', 'proxy'] as const).map((to) => ({ from: 'watchCache' as const, to })),
]

export interface Rectangle {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/** The path of a line in SVG: from the right side to the left one, or the reverse, if one box is left of the other; otherwise from bottom to top. */
export function linePath(from: Rectangle, to: Rectangle): string {
  const middle = ({ left, top, width, height }: Rectangle) => ({ x: left + width / 2, y: top + height / 2 })
  const [a, b] = [middle(from), middle(to)]
  if (from.left + from.width <= to.left) return curve(from.left + from.width, a.y, to.left, b.y, true)
  if (to.left + to.width <= from.left) return curve(from.left, a.y, to.left + to.width, b.y, true)
  return a.y <= b.y ? curve(a.x, from.top + from.height, b.x, to.top, false) : curve(a.x, from.top, b.x, to.top + to.height, false)
}

function curve(x: number, y: number, toX: number, toY: number, isAcross: boolean): string {
  const [dx, dy] = isAcross ? [(toX - x) / 2, 0] : [0, (toY - y) / 2]
  return `M${x} ${y} C${x + dx} ${y + dy} ${toX - dx} ${toY - dy} ${toX} ${toY}`
}

/** One stop of a request on the map. */
export interface Stop {
  readonly at: ComponentName
  readonly text: string
  /** Since the request arrived. */
  readonly afterMs: number
  readonly durationMs: number
}

const stageAt = new Map<string, ComponentName>([
  ['storage', 'store'],
  ['watchFanOut', 'watchCache'],
])

/** How long after the request what a component does about the object counts as its consequence. */
const consequenceMs = 3_000
const mostStops = 40

/** The stages of a request, then what components did about its object. */
export function stopsOf(request: TracedRequest, events: readonly ObjectEvent[]): Stop[] {
  const { object, stages, atMs: startMs } = request
  const isWrite = stages.some(({ stage }) => stage === 'storage')
  const own = stages
    // The handler of a write contains the stages before it; that of a read is all of its work.
    .filter(({ stage }) => stage !== 'handler' || !isWrite)
    .map(({ stage, decision, atMs, durationMs }): Stop => {
      return { at: stageAt.get(stage) ?? 'apiServer', text: `${stage}: ${decision}`, afterMs: Math.max(0, atMs - durationMs - startMs), durationMs }
    })
  const key = object && request.revision !== undefined ? objectKey(object.resource, object.namespace, object.name) : undefined
  const later = events
    .filter(({ object: about, atMs }) => about === key && atMs >= startMs && atMs - startMs <= consequenceMs)
    .map(({ component, what, result, atMs, durationMs }): Stop => {
      return { at: componentOf(component), text: `${component} ${what}: ${result}`, afterMs: atMs - startMs, durationMs }
    })
  return [...own, ...later].sort((one, other) => one.afterMs - other.afterMs).slice(0, mostStops)
}

/** Events of two sources, each once: those of the server, and those that a node keeps. */
export function joined(one: readonly ObjectEvent[], other: readonly ObjectEvent[]): ObjectEvent[] {
  return [...new Map([...one, ...other].map((event) => [`${event.component} ${event.what} ${event.object} ${event.atMs}`, event])).values()]
}

function componentOf(component: string): ComponentName {
  const lane = laneOf(component)
  return lane === 'scheduler' ? 'scheduler' : lane === 'kubelet' || lane === 'runtime' ? 'kubelets' : 'controllers'
}

/** From the arrival until the last stop is over. */
export function lengthOf(stops: readonly Stop[]): number {
  return greatest(
    stops.map(({ afterMs, durationMs }) => afterMs + durationMs),
    0.01,
  )
}

/** The live view asks itself, all the time. */
export const isPoll = ({ uri }: Pick<TracedRequest, 'uri'>): boolean => /^\/(metrics|skiff)\b/.test(uri)

const reads: ReadonlySet<string> = new Set(['get', 'list', 'watch'])
export const isRead = ({ verb }: Pick<TracedRequest, 'verb'>): boolean => reads.has(verb)

/** Components write them all the time, about other objects. */
const background: ReadonlySet<string> = new Set(['events', 'leases'])

/** Refusals and changes, without what components do all the time. Among the others are the reads that took a bundle. */
export function isTelling({ uri, verb, code, object }: Pick<TracedRequest, 'uri' | 'verb' | 'code' | 'object'>): boolean {
  if (isPoll({ uri }) || object === undefined || background.has(object.resource)) return false
  return code >= 400 || !(isRead({ verb }) || object.resource.endsWith('reviews'))
}

/** What the map shows of many requests: writes before those of events and leases and before reads, those about objects before other paths, then the newest. */
export function mostTelling(requests: readonly TracedRequest[]): TracedRequest | undefined {
  const rank = ({ object, stages, ...request }: TracedRequest) => {
    if (stages.length === 0) return 4
    if (object === undefined) return 3
    return isRead(request) ? 2 : background.has(object.resource) ? 1 : 0
  }
  return requests
    .filter(({ verb }) => verb !== 'watch')
    .reduce<TracedRequest | undefined>(
      (best, one) => (!best || rank(one) < rank(best) || (rank(one) === rank(best) && one.atMs > best.atMs) ? one : best),
      undefined,
    )
}

/** One line on what is recorded. @param sampled undefined: there is no sample */
export function recordedText(
  sampled: { readonly seen: number; readonly kept: number } | undefined,
  before: { readonly seen: number; readonly kept: number } | undefined,
) {
  if (!sampled) return 'only your own requests are recorded'
  const isSame = before !== undefined && sampled.seen >= before.seen
  const [seen, kept] = isSame ? [sampled.seen - before.seen, sampled.kept - before.kept] : [sampled.seen, sampled.kept]
  if (kept >= seen) return `all ${seen} requests of the last seconds are recorded`
  return `sampled: ${kept} of ${seen} requests of the last seconds are recorded`
}
