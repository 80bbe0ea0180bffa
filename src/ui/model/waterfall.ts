/** What was recorded about an object as bars over time (L4, pure): requests, reconciles, scheduling, kubelet and runtime calls, in groups that belong together. */
import type { ExplainedRequest, ObjectEvent, TracedPlugin, TracedRequest, TraceList } from '#api/debug/traces'
import { greatest } from '#base/extremes'
import { type Hop, hopNames, type PodTrace } from '#trace/hops'

/** The kind of component that acted: the colour of a bar. */
export type Lane = 'request' | 'controller' | 'scheduler' | 'kubelet' | 'runtime' | 'quiet'

export interface Bar {
  readonly id: string
  readonly lane: Lane
  readonly who: string
  readonly what: string
  /** When it began, in milliseconds since the epoch, with a fraction. */
  readonly atMs: number
  readonly durationMs: number
  /** How long it waited in a queue before. */
  readonly waitedMs?: number | undefined
  readonly result: string
  readonly isBad: boolean
  readonly request?: ExplainedRequest | undefined
}

/** Bars without a long pause between them: one rollout, one change. */
export interface Burst {
  readonly startMs: number
  readonly endMs: number
  readonly bars: readonly Bar[]
}

export function laneOf(component: string): Lane {
  if (component === 'kube-scheduler') return 'scheduler'
  return component === 'kubelet' || component === 'runtime' ? component : 'controller'
}

export function barsOf({ requests, events }: Pick<TraceList, 'requests' | 'events'>): Bar[] {
  return [...requests.map(barOfRequest), ...events.map(barOfEvent)].sort((one, other) => one.atMs - other.atMs)
}

function barOfRequest(request: ExplainedRequest): Bar {
  const { id, user, as, verb, object, uri, atMs, durationMs, code, message = '' } = request
  const what = object ? `${verb} ${object.resource}${object.subresource ? `/${object.subresource}` : ''}` : `${verb} ${uri}`
  return { id: `${id} ${user}`, lane: 'request', who: as ?? user, what, atMs, durationMs, result: `${code} ${message}`.trim(), isBad: code >= 400, request }
}

function barOfEvent({ component, what, node, atMs, durationMs, waitedMs, result }: ObjectEvent): Bar {
  const who = node === undefined ? component : `${component} on ${node}`
  const id = `${component} ${what} ${atMs}`
  return { id, lane: laneOf(component), who, what, atMs, durationMs, waitedMs, result, isBad: result.startsWith('failed') }
}

/** The stages of a request that took part in its time. */
export function barsOfStages({ id, stages }: TracedRequest): Bar[] {
  return stages.map(({ stage, decision, rule, atMs, durationMs, plugins = [] }, at) => ({
    ...{ id: `${id} ${at}`, lane: 'request' as const, who: stage, what: rule ?? '', atMs: atMs - durationMs, durationMs, result: decision },
    isBad: plugins.some(({ refused }) => refused !== undefined),
  }))
}

const laneOfHop = (name: Hop['name']): Lane =>
  name === 'scheduler' || name === 'kubelet' || name === 'runtime' ? name : name === 'controllers' ? 'controller' : 'request'

/** The admission plugins that changed the object or refused it. */
export function pluginsOf({ stages }: TracedRequest): TracedPlugin[] {
  return stages.flatMap(({ plugins = [] }) => plugins.filter(({ changes = [], refused }) => changes.length > 0 || refused !== undefined))
}

/** The twelve hops; those without a time are bars without a length. */
export function barsOfHops({ hops }: PodTrace): Bar[] {
  return hops.map(({ name, atMs, durationMs, decision, source }) => ({
    ...{ id: name, lane: source === 'none' ? ('quiet' as const) : laneOfHop(name), who: `${hopNames.indexOf(name) + 1} ${name}`, atMs, durationMs },
    ...{ what: source === 'pod' ? 'by a time of the pod, in whole seconds' : '', result: decision, isBad: false },
  }))
}

/** @param bars by time */
export function burstsOf(bars: readonly Bar[], pauseMs = 3_000): Burst[] {
  const bursts: { startMs: number; endMs: number; bars: Bar[] }[] = []
  for (const bar of bars) {
    const last = bursts.at(-1)
    const endMs = bar.atMs + bar.durationMs
    if (last && bar.atMs - last.endMs < pauseMs) {
      last.bars.push(bar)
      last.endMs = Math.max(last.endMs, endMs)
    } else bursts.push({ startMs: bar.atMs, endMs, bars: [bar] })
  }
  return bursts
}

export function burstOf(bars: readonly Bar[]): Burst {
  return { startMs: bars[0]?.atMs ?? 0, endMs: greatest(bars.map(({ atMs, durationMs }) => atMs + durationMs)), bars }
}

/** Where a bar begins and how long it is, in percent of its burst. */
export function placeOf({ startMs, endMs }: Pick<Burst, 'startMs' | 'endMs'>, { atMs, durationMs }: Pick<Bar, 'atMs' | 'durationMs'>) {
  const scale = endMs > startMs ? 100 / (endMs - startMs) : 0
  const left = Math.min(100, Math.max(0, (atMs - startMs) * scale))
  return { left, width: Math.min(100 - left, Math.max(0, durationMs) * scale) }
}

/** Three digits are enough to compare. */
export function msText(ms: number): string {
  if (ms >= 10_000) return `${(ms / 1000).toFixed(1)} s`
  return `${ms >= 100 ? ms.toFixed(0) : ms >= 1 ? ms.toFixed(1) : ms.toFixed(2)} ms`
}
