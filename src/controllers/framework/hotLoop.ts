/**
 * Notices objects that are reconciled again and again because reconciling them writes (L3): each write is an event that queues the object again.
 * Pure: the caller reports reconciles, and gets the loop when a warning is due. Upstream has no counterpart; authors of operators ask for it.
 */
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { LruCache } from '#base/lruCache'

const windowMs = 5_000
/** Reconciles in one window after which it is no coincidence. */
const most = 10
/** The same object is named again only after so long. */
const quietMs = 60_000
const maxObjects = 1_000
const maxFields = 5

export interface HotLoop {
  readonly times: number
  readonly seconds: number
  /** Paths of the object that were different from one reconcile to the next; none: what it owns or watches is. */
  readonly fields: readonly string[]
}

interface Run {
  sinceMs: number
  times: number
  generation: number | undefined
  last: Frozen<KubeObject>
  readonly fields: Set<string>
  saidMs: number
}

export class HotLoops {
  readonly #runs = new LruCache<string, Run>(maxObjects)

  /** @param wrote whether the reconcile before has written something */
  began(key: string, object: Frozen<KubeObject>, wrote: boolean, nowMs: number): HotLoop | undefined {
    const run = this.#runs.get(key)
    const { generation } = object.metadata
    if (!run || !wrote || nowMs - run.sinceMs >= windowMs || run.generation !== generation) {
      this.#runs.set(key, { sinceMs: nowMs, times: 1, generation, last: object, fields: new Set(), saidMs: run?.saidMs ?? Number.NEGATIVE_INFINITY })
      return undefined
    }
    run.times++
    for (const field of changedFields(run.last, object)) if (run.fields.size < maxFields) run.fields.add(field)
    run.last = object
    if (run.times <= most || nowMs - run.saidMs < quietMs) return undefined
    run.saidMs = nowMs
    return { times: run.times, seconds: Math.max(1, Math.ceil((nowMs - run.sinceMs) / 1000)), fields: [...run.fields] }
  }

  forget(key: string): void {
    this.#runs.delete(key)
  }
}

/** `status.count`, `metadata.annotations.checked`: three names deep at most, without what every write changes. */
function changedFields(old: unknown, now: unknown, path: readonly string[] = []): string[] {
  if (semanticEqual(old, now)) return []
  if (path.length === 3 || !isRecord(old) || !isRecord(now)) return [path.join('.')]
  const names = new Set([...Object.keys(old), ...Object.keys(now)])
  return [...names].flatMap((name) => {
    const at = [...path, name]
    return everyWrite.has(at.join('.')) ? [] : changedFields(old[name], now[name], at)
  })
}

const everyWrite = new Set(['metadata.resourceVersion', 'metadata.managedFields'])

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
