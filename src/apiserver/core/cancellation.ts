/**
 * Whether the work on a request has still a point (L3): not when the client is gone or the time is over. Most requests are answered before
 * anybody asks, so the AbortSignal is made when it is first wanted: two for each request were a tenth of a GET.
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
   * Who listens instead of a signal, which costs more than a request's short wait is worth. There is one: the next takes its place, undefined
   * leaves nobody. Told once; at once, when that is how it is already.
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

  /** The request is over: the outer signal, which may live long, is let go. */
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
