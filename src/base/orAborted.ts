/**
 * Waits that end when a signal aborts (L0), for work that does not listen to the signal itself. Each removes its listener when it ends, so that any number of
 * waits may use a signal that lives as long as the process.
 */
import { setMaxListeners } from 'node:events'

/** Settles as `work` does. @throws the signal's reason when it aborts first; what `work` does later is then ignored, its failure too */
export function orAborted<T>(work: PromiseLike<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => race(work, signal, { resolve, reject, stop: () => reject(signal.reason) }))
}

/** As {@link orAborted}, but resolves with undefined when the signal aborts first. */
export function unlessAborted<T>(work: PromiseLike<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => race<T | undefined>(work, signal, { resolve, reject, stop: () => resolve(undefined) }))
}

interface Ends<T> {
  resolve(value: T): void
  reject(error: unknown): void
  stop(): void
}

function race<T>(work: PromiseLike<T>, signal: AbortSignal, { resolve, reject, stop }: Ends<T>): void {
  const forget = () => signal.removeEventListener('abort', stop)
  listen(signal, stop)
  work.then(
    (value) => {
      forget()
      resolve(value)
    },
    (error) => {
      forget()
      reject(error)
    },
  )
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => listen(signal, () => resolve()))
}

function listen(signal: AbortSignal, act: () => void): void {
  if (signal.aborted) {
    act()
    return
  }
  // Node warns from the eleventh listener on.
  setMaxListeners(0, signal)
  signal.addEventListener('abort', act, { once: true })
}
