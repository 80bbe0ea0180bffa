/**
 * A component of a test cluster that can end in two ways: a stop lets it tidy up; a crash cuts its connection first, so that none of its later
 * writes arrives. After either it can be started again, without its memory.
 */
import { setMaxListeners } from 'node:events'
import type { UserInfo } from '#apiserver/core/request'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { type Faults, Link } from './faults.ts'
import type { Activity } from './settle.ts'

export interface PartDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly faults: Faults
  readonly activity: Activity
  /** The API server of this moment, as that user; undefined: none is running. */
  server(user: UserInfo, userAgent: string): ReturnType<ConstructorParameters<typeof Link>[0]['server']>
}

/** The life of one instance. */
export interface Life {
  readonly signal: AbortSignal
  /** A way to the API server that ends with this life. */
  link(user: UserInfo, userAgent: string): Link
}

const restartPauseMs = 1_000

export class Part {
  readonly name: string
  readonly #deps: PartDeps
  readonly #live: (life: Life) => Promise<void>
  #life: { readonly stop: AbortController; readonly links: Link[]; readonly done: Promise<void> } | undefined
  /** Those that crashed and have not noticed yet. */
  readonly #ghosts = new Set<Promise<void>>()
  #isPartitioned = false

  constructor(name: string, deps: PartDeps, live: (life: Life) => Promise<void>) {
    this.name = name
    this.#deps = deps
    this.#live = live
  }

  get isRunning(): boolean {
    return this.#life !== undefined
  }

  start(): void {
    if (this.#life) return
    const stop = new AbortController()
    // Every link and watch of it listens.
    setMaxListeners(0, stop.signal)
    const links: Link[] = []
    const life: Life = {
      signal: stop.signal,
      link: (user, userAgent) => {
        const { faults, activity, server } = this.#deps
        const link = new Link({ component: this.name, faults, activity, server: () => server(user, userAgent) })
        links.push(link)
        if (this.#isPartitioned) link.cut()
        return link
      },
    }
    this.#life = { stop, links, done: this.#keepAlive(life) }
  }

  /** Resolves when it has stopped. */
  async stop(): Promise<void> {
    const life = this.#life
    this.#life = undefined
    life?.stop.abort(new Error(`${this.name} is stopped`))
    await life?.done
  }

  /** Gone at once, in the middle of whatever it does. */
  crash(): void {
    const life = this.#life
    if (!life) return
    this.#life = undefined
    for (const link of life.links) link.cut()
    life.stop.abort(new Error(`${this.name} crashed`))
    const ghost: Promise<void> = life.done.finally(() => this.#ghosts.delete(ghost))
    this.#ghosts.add(ghost)
  }

  /** Cuts its connection to the API server, or restores it; it keeps running. */
  partition(cut: boolean): void {
    this.#isPartitioned = cut
    for (const link of this.#life?.links ?? []) {
      if (cut) link.cut()
      else link.mend()
    }
  }

  /** Resolves when all its instances have ended. */
  async gone(): Promise<void> {
    await Promise.all([this.stop(), ...this.#ghosts])
  }

  /** A component that fails is started again after a pause. */
  async #keepAlive(life: Life): Promise<void> {
    const { clock, log } = this.#deps
    while (!life.signal.aborted) {
      try {
        await this.#live(life)
      } catch (error) {
        if (!life.signal.aborted) log.error(error, 'A component failed', { component: this.name })
      }
      if (!life.signal.aborted) await clock.sleep(restartPauseMs, life.signal).catch(() => {})
    }
  }
}
