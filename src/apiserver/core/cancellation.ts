/**
 * Whether the work on a request was cancelled (L3), because its client is gone or its time is over. Most requests are answered before the
 * signal is needed, so the AbortSignal is created on first use: two signals per request took a tenth of a GET's time.
 */
import { setMaxListeners } from 'node:events'

export class Cancellation {
  readonly #outer: AbortSignal | undefined
  #controller: AbortController | undefined
  #listener: (() => void) | undefined
  #follow: (() => void) | undefined
  #reason: unknown
  #aborted = false

  /** `outer`: a signal of the caller's that cancels too, until {@link release}. */
  constructor(outer?: AbortSignal) {
    this.#outer = outer
  }

  get aborted(): boolean {
    return this.#aborted || (this.#outer?.aborted ?? false)
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.aborted) this.#controller.abort(this.#aborted ? this.#reason : this.#outer?.reason)
      else this.#followOuter()
    }
    return this.#controller.signal
  }

  /**
   * Sets a listener, which is cheaper than the signal for a short wait. There is one: the next replaces it, undefined removes it. It is called
   * once, and immediately if the work is already cancelled.
   */
  onAbort(listener: (() => void) | undefined): void {
    this.#listener = listener
    if (!listener) return
    if (this.aborted) this.#tell()
    else this.#followOuter()
  }

  /** The first reason stays. */
  abort(reason?: unknown): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason
    this.#controller?.abort(reason)
    this.#tell()
  }

  /** Called at the end of the request: removes the listener from the outer signal, which may live long. */
  release(): void {
    if (this.#follow) this.#outer?.removeEventListener('abort', this.#follow)
    this.#follow = undefined
  }
  #tell(): void {
    const listener = this.#listener
    this.#listener = undefined
    listener?.()
  }

  #followOuter(): void {
    if (!this.#outer || this.#follow) return
    this.#follow = () => this.abort(this.#outer?.reason)
    // Components share one signal among all their requests.
    setMaxListeners(0, this.#outer)
    this.#outer.addEventListener('abort', this.#follow, { once: true })
  }
}
