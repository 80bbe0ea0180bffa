/**
 * The twelve hops of a pod from a manifest to running containers (L2, pure), made of what was recorded: the request's stages, the notes of controllers, the
 * scheduler and the kubelet, and where nothing was recorded the times that the pod itself has, which are whole seconds.
 */
import type { ExplainedRequest, ObjectEvent, TraceStage } from '#api/debug/traces'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { greatest, least } from '#base/extremes'
import { parseTime } from '#base/time'

export const hopNames = [
  'client validation',
  'TLS',
  'authentication',
  'authorization',
  'mutating admission',
  'validation',
  'storage',
  'watch fan-out',
  'controllers',
  'scheduler',
  'kubelet',
  'runtime',
] as const

export type HopName = (typeof hopNames)[number]

/** Where a hop's times come from. `pod`: its timestamps, of whole seconds. `none`: nothing happened, or nothing is known. */
export type HopSource = 'measured' | 'pod' | 'none'

export interface Hop {
  readonly name: HopName
  /** Milliseconds since the epoch, with a fraction. */
  readonly atMs: number
  readonly durationMs: number
  /** The time between the end of the hop before and this one. */
  readonly gapMs: number
  readonly decision: string
  readonly source: HopSource
}

export interface PodTrace {
  /** namespace/name */
  readonly pod: string
  readonly node?: string
  /** Audit-ID of the request that was traced. */
  readonly request?: string
  readonly startMs: number
  readonly endMs: number
  /** The sum of the durations and gaps. */
  readonly totalMs: number
  readonly hops: readonly Hop[]
  readonly events: readonly ObjectEvent[]
}

export interface Span {
  readonly atMs: number
  readonly durationMs: number
  readonly decision: string
}

export interface HopParts {
  readonly pod: Frozen<Pod>
  /** What this program did itself. */
  readonly client?: { readonly validation: Span; readonly tls?: Span | undefined } | undefined
  /** The request that created the applied object. */
  readonly request?: ExplainedRequest | undefined
  /** The request that created the pod, where a controller sent it. */
  readonly podRequest?: ExplainedRequest | undefined
  /** Events of the pod and its owners. */
  readonly events: readonly ObjectEvent[]
}

type Found = Span & { readonly source: HopSource }

export function hopsOf(parts: HopParts): PodTrace {
  const { pod, request, events } = parts
  const found = hopNames.map((name) => finders[name](parts))
  const hops = inOrder(found)
  const [first, last] = [hops[0] as Hop, hops.at(-1) as Hop]
  const endMs = last.atMs + last.durationMs
  return {
    pod: `${pod.metadata.namespace}/${pod.metadata.name}`,
    ...(pod.spec.nodeName === undefined ? {} : { node: pod.spec.nodeName }),
    ...(request ? { request: request.id } : {}),
    startMs: first.atMs,
    endMs,
    totalMs: endMs - first.atMs,
    hops,
    events,
  }
}

/**
 * Each hop begins no earlier than the one before and ends before the next begins, so that durations and gaps add up. A component may act before the stage
 * that woke it is noted as finished: measured times win over a stage's end, and over the pod's own whole seconds. Unknown hops take no time.
 */
function inOrder(found: readonly (Found | undefined)[]): Hop[] {
  const hops: Hop[] = []
  let endMs = least(found.map((one) => one?.atMs ?? Number.POSITIVE_INFINITY))
  found.forEach((one, at) => {
    const name = hopNames[at] as HopName
    if (!one) {
      hops.push({ name, atMs: endMs, durationMs: 0, gapMs: 0, decision: 'not recorded', source: 'none' })
      return
    }
    const nextMs = Math.max(endMs, earliestMeasured(found.slice(at + 1)))
    const atMs = Math.min(Math.max(one.atMs, endMs), nextMs)
    const untilMs = Math.max(atMs, Math.min(one.atMs + one.durationMs, nextMs))
    hops.push({ name, atMs, durationMs: untilMs - atMs, gapMs: atMs - endMs, decision: one.decision, source: one.source })
    endMs = untilMs
  })
  return hops
}

function earliestMeasured(found: readonly (Found | undefined)[]): number {
  return least(found.map((one) => (one?.source === 'measured' ? one.atMs : Number.POSITIVE_INFINITY)))
}

const finders: Readonly<Record<HopName, (parts: HopParts) => Found | undefined>> = {
  'client validation': ({ client }) => measured(client?.validation),
  TLS: ({ client }) => measured(client?.tls),
  authentication: ({ request }) => ofStages(request, ['authentication']),
  authorization: ({ request }) => ofStages(request, ['authorization']),
  'mutating admission': ({ request }) => ofStages(request, ['mutatingAdmission']),
  validation: ({ request }) => ofStages(request, ['validation', 'validatingAdmission']),
  storage: ({ request, pod }) => ofStages(request, ['storage']) ?? ofPod(pod.metadata.creationTimestamp, 'the pod was stored'),
  'watch fan-out': ({ request }) => ofStages(request, ['watchFanOut']),
  controllers,
  scheduler,
  kubelet,
  runtime,
}

function measured(span: Span | undefined): Found | undefined {
  return span && { ...span, source: 'measured' }
}

function ofStages(request: ExplainedRequest | undefined, names: readonly string[]): Found | undefined {
  const stages = request?.stages.filter(({ stage }) => names.includes(stage)) ?? []
  const [first, last] = [stages[0], stages.at(-1)]
  if (!first || !last) return undefined
  const atMs = first.atMs - first.durationMs
  return { atMs, durationMs: last.atMs - atMs, decision: stages.map(decisionText).join('; '), source: 'measured' }
}

function decisionText({ decision, rule }: TraceStage): string {
  return rule === undefined ? decision : `${decision} (${rule})`
}

/** The reconciles that led to the pod: from the first of an owner until the pod was created. */
function controllers({ pod, request, podRequest, events }: HopParts): Found | undefined {
  const owner = pod.metadata.ownerReferences?.[0]
  if (!owner) {
    const fanOut = ofStages(request, ['watchFanOut'])
    return fanOut && { atMs: fanOut.atMs + fanOut.durationMs, durationMs: 0, decision: 'no controller: the pod has no owner', source: 'none' }
  }
  const endMs = podRequest && podRequest.atMs + podRequest.durationMs
  const reconciles = events.filter(({ what, atMs }) => what === 'reconcile' && (endMs === undefined || atMs <= endMs))
  const [first] = reconciles
  if (!first) return ofPod(pod.metadata.creationTimestamp, `created for ${owner.kind} ${owner.name}`)
  const names = [...new Set(reconciles.map(({ component }) => component))]
  const untilMs = endMs ?? greatest(reconciles.map(({ atMs, durationMs }) => atMs + durationMs))
  return { atMs: first.atMs, durationMs: untilMs - first.atMs, decision: `${names.join(', ')}: ${reconciles.length} reconciles`, source: 'measured' }
}

function scheduler({ pod, events }: HopParts): Found | undefined {
  const own = events.filter(({ component }) => component === 'kube-scheduler')
  const [first, last] = [own[0], own.at(-1)]
  if (first && last) {
    const attempts = own.filter(({ what }) => what === 'attempt')
    const tries = attempts.length > 1 ? `, after ${attempts.length} attempts` : ''
    return {
      atMs: first.atMs,
      durationMs: last.atMs + last.durationMs - first.atMs,
      decision: `${attempts.at(-1)?.result ?? last.result}${tries}`,
      source: 'measured',
    }
  }
  if (!pod.spec.nodeName) return undefined
  return ofPod(pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')?.lastTransitionTime, `bound to ${pod.spec.nodeName}`)
}

/** From the first step until the first call of the runtime. */
function kubelet({ pod, events }: HopParts): Found | undefined {
  const first = events.find(({ component }) => component === 'kubelet')
  if (!first) return ofPod(pod.status?.startTime, `accepted by ${pod.spec.nodeName}`)
  const firstCall = events.find(({ component, atMs }) => component === 'runtime' && atMs >= first.atMs)
  const endMs = firstCall?.atMs ?? first.atMs + first.durationMs
  return {
    atMs: first.atMs,
    durationMs: endMs - first.atMs,
    decision: `${first.what} on ${first.node}, until the first runtime call`,
    source: 'measured',
  }
}

function runtime({ pod, events }: HopParts): Found | undefined {
  const calls = events.filter(({ component }) => component === 'runtime')
  const [first] = calls
  const last = calls.findLast(({ what }) => what === 'StartContainer') ?? calls.at(-1)
  if (first && last) {
    const text = calls.map(({ what }) => what).join(', ')
    return {
      atMs: first.atMs,
      durationMs: last.atMs + last.durationMs - first.atMs,
      decision: text.length > 120 ? `${calls.length} calls` : text,
      source: 'measured',
    }
  }
  const started = pod.status?.containerStatuses?.map(({ state }) => state?.running?.startedAt).find((time) => time !== undefined)
  return ofPod(started, 'a container runs')
}

function ofPod(time: string | undefined, decision: string): Found | undefined {
  const atMs = time === undefined ? undefined : parseTime(time)
  return atMs === undefined ? undefined : { atMs, durationMs: 0, decision, source: 'pod' }
}
