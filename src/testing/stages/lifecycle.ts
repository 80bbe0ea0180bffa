/**
 * Decides what a Stage does to an object (testing): which Stage is next, after how long, and what is then written. Pure: reads objects, draws from a
 * Random, returns a plan; playing it is player.ts's work. Upstream: kwok pkg/utils/lifecycle.
 */
import { parseDuration } from '#api/machinery/duration'
import type { KubeObject } from '#api/machinery/meta'
import type { Random } from '#base/random'
import { parseTime } from '#base/time'
import type { CompiledStage, CompiledStep, StageEvent, StageFinalizers } from './stage.ts'
import type { TemplateFunctions } from './templateFunctions.ts'

/** One of the Stages that select the object, drawn by weight; Stages of weight 0 only when no other selects it. */
export function nextStage(stages: readonly CompiledStage[], object: KubeObject, random: Random): CompiledStage | undefined {
  const matching = stages.filter(({ tests }) => tests.every((test) => test(object)))
  if (matching.length < 2) return matching[0]
  const weighed = matching.map((stage) => ({ stage, weight: weightOf(stage, object) }))
  const total = weighed.reduce((sum, { weight = 0 }) => sum + Math.max(0, weight), 0)
  if (total === 0) {
    const known = weighed.filter(({ weight }) => weight !== undefined)
    const among = known.length > 0 ? known : weighed
    return among[random.int(among.length)]?.stage
  }
  let at = random.int(total)
  for (const { stage, weight = 0 } of weighed) {
    at -= Math.max(0, weight)
    if (at < 0) return stage
  }
  return undefined
}

/** Undefined when the annotation is not a weight. */
function weightOf({ weight, weightFrom }: CompiledStage, object: KubeObject): number | undefined {
  const value = weightFrom(object)
  if (typeof value === 'number') return Math.trunc(value)
  if (typeof value !== 'string') return weight
  return value !== '' && Number.isSafeInteger(Number(value)) ? Number(value) : undefined
}

/** How long to wait before the Stage is played. */
export function delayOf({ delay }: CompiledStage, object: KubeObject, nowMs: number, random: Random): number {
  if (!delay) return 0
  const ms = durationOf(delay.from(object), delay.ms, nowMs)
  if (ms === undefined) return 0
  const jitterMs = durationOf(delay.jitterFrom(object), delay.jitterMs, nowMs)
  if (jitterMs === undefined) return Math.max(0, ms)
  // The greatest delay, not an addition; one that is less than the delay replaces it.
  return Math.max(0, jitterMs <= ms ? jitterMs : ms + random.int(Math.ceil(jitterMs - ms)))
}

/** A text is a point in time, or a duration in Go's notation. */
function durationOf(value: unknown, otherwise: number | undefined, nowMs: number): number | undefined {
  if (value === '') return undefined
  if (typeof value !== 'string') return otherwise
  const time = parseTime(value)
  return time === undefined ? (parseDuration(value) ?? otherwise) : time - nowMs
}

export type Effect =
  | { readonly type: 'event'; readonly event: StageEvent }
  | { readonly type: 'delete' }
  | { readonly type: 'patch'; readonly patchType: 'json' | 'merge' | 'strategic'; readonly subresource: string | undefined; readonly body: unknown }

/** What one step does, in order. @throws Error when a template cannot be filled in */
export function effectsOf(step: CompiledStep, object: KubeObject, functions: TemplateFunctions): Effect[] {
  const effects: Effect[] = []
  if (step.event) effects.push({ type: 'event', event: step.event })
  const finalizers = step.finalizers ? finalizerPatch(object.metadata.finalizers ?? [], step.finalizers) : []
  if (finalizers.length > 0) effects.push({ type: 'patch', patchType: 'json', subresource: undefined, body: finalizers })
  if (step.delete) return [...effects, { type: 'delete' }]
  if (step.patch) {
    const { type, subresource, root, template } = step.patch
    const value = template.value(object, functions)
    const body = type === 'json' ? underRoot(value, root) : root === '' ? value : { [root]: value ?? {} }
    effects.push({ type: 'patch', patchType: type, subresource, body })
  }
  return effects
}

function underRoot(operations: unknown, root: string): unknown {
  if (root === '' || !Array.isArray(operations)) return operations
  return operations.map((operation: { readonly path?: string }) => ({ ...operation, path: `/${root}${operation.path ?? ''}` }))
}

interface Operation {
  readonly op: 'add' | 'remove'
  readonly path: string
  readonly value?: unknown
}

/** As a JSON patch, because a merge could not take single ones away. */
function finalizerPatch(present: readonly string[], { add = [], remove = [], empty = false }: StageFinalizers): Operation[] {
  const gone = new Set(empty ? present : remove.map(({ value }) => value))
  const kept = present.filter((finalizer) => !gone.has(finalizer))
  const added = add.map(({ value }) => value).filter((value) => !kept.includes(value))
  if (kept.length === present.length && added.length === 0) return []
  const wanted = [...kept, ...added]
  const path = '/metadata/finalizers'
  if (wanted.length === 0) return [{ op: 'remove', path }]
  return [{ op: 'add', path, value: wanted }]
}
