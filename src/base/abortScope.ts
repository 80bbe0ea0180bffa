/**
 * A signal that follows others (L0): it aborts with the first source that does, at a deadline, or when its owner aborts it.
 * The owner disposes of the scope when its work ends, which removes every listener and timer. AbortSignal.any and AbortSignal.timeout do not
 * offer that: Node 20 may collect a signal made of both before its time is up, and keeps one with a listener until a source aborts.
 */
import { setMaxListeners } from 'node:events'
import type { Clock } from './clock.ts'

export interface AbortScope extends Disposable {
  readonly signal: AbortSignal
  /** Aborts the scope's own signal; its sources are unaffected. */
  abort(reason?: unknown): void
  /** Stops following the sources and the deadline; the signal keeps its state. */
  [Symbol.dispose](): void
}

export interface Deadline {
  readonly clock: Clock
  readonly ms: number
  /** Makes the reason of the signal. Default: a TimeoutError `context deadline exceeded`. */
  readonly reason?: (() => unknown) | undefined
}

/** Follows `sources`, of which absent ones are skipped. One that has aborted already aborts the scope at once. */
export function abortScope(...sources: readonly (AbortSignal | undefined)[]): AbortScope {
  return scopeOf(sources)
}

/** As {@link abortScope}, and aborts after `deadline.ms`. */
export function deadlineScope(deadline: Deadline, ...sources: readonly (AbortSignal | undefined)[]): AbortScope {
  return scopeOf(sources, deadline)
}

function scopeOf(sources: readonly (AbortSignal | undefined)[], deadline?: Deadline): AbortScope {
  const controller = new AbortController()
  const { signal } = controller
  const undo: (() => void)[] = []
  const dispose = () => {
    for (const remove of undo.splice(0)) remove()
  }
  const abort = (reason?: unknown) => {
    dispose()
    controller.abort(reason)
  }
  // Any number of waits may listen to one signal; Node warns from the eleventh on.
  setMaxListeners(0, signal)
  for (const source of sources) {
    if (!source || signal.aborted) continue
    if (source.aborted) abort(source.reason)
    else undo.push(follow(source, abort))
  }
  if (deadline && !signal.aborted) {
    const { clock, ms, reason = contextDeadlineExceeded } = deadline
    const timer = clock.timer(ms, () => abort(reason()))
    undo.push(() => timer.cancel())
  }
  return { signal, abort, [Symbol.dispose]: dispose }
}

/** @returns what stops it */
function follow(source: AbortSignal, abort: (reason: unknown) => void): () => void {
  const onAbort = () => abort(source.reason)
  setMaxListeners(0, source)
  source.addEventListener('abort', onAbort, { once: true })
  return () => source.removeEventListener('abort', onAbort)
}

function contextDeadlineExceeded(): DOMException {
  return new DOMException('context deadline exceeded', 'TimeoutError')
}
