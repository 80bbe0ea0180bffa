/**
 * Moves the virtual time of a cluster for a client of its API (testing): the time stands still, passes at a speed, or advances by a step. The clock lets
 * all that falls due happen in order and settle, so that a higher speed than the machine can follow passes more slowly, and skips nothing.
 */
import type { ClockState } from '#api/debug/clock'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import type { VirtualClock } from '#base/virtualClock'

/** How often time moves on at a speed. */
const tickMs = 50
/** A tick that comes late makes up for no more than this. */
const mostTickMs = 200
/** Time passes in pieces, between which it can be stopped. */
const pieceMs = 10_000
const turnsBetween = 16

export class ClockControl {
  readonly #virtual: VirtualClock
  readonly #real: Clock
  #speed = 0
  #stepMs = 0
  /** The time is to stand still, and what is under way still ends. */
  #isStopping = false
  #failure: string | undefined
  #moving: Promise<void> | undefined

  constructor(virtual: VirtualClock, real: Clock) {
    this.#virtual = virtual
    this.#real = real
  }

  /** Speed and step stay until the time stands still. */
  get state(): ClockState {
    const failure = this.#failure === undefined ? {} : { failure: this.#failure }
    return { now: new Date(this.#virtual.now()).toISOString(), speed: this.#speed, stepMs: Math.round(this.#stepMs), ...failure }
  }

  /** 0 stops the time, and drops the steps that are left. */
  setSpeed(speed: number): void {
    this.#failure = undefined
    if (speed === 0) this.#isStopping = this.#moving !== undefined
    else {
      this.#dropStopped()
      this.#speed = speed
      this.#move()
    }
  }

  step(ms: number): void {
    this.#dropStopped()
    this.#stepMs += ms
    this.#failure = undefined
    this.#move()
  }

  /** Resolves when the time stands still. */
  async stop(): Promise<void> {
    this.setSpeed(0)
    await this.#moving
  }

  #dropStopped(): void {
    if (!this.#isStopping) return
    this.#isStopping = false
    this.#speed = 0
    this.#stepMs = 0
  }

  #move(): void {
    this.#moving ??= this.#run()
      .catch((error: unknown) => {
        this.#failure = messageOf(error)
        this.#isStopping = true
      })
      .finally(() => {
        this.#dropStopped()
        this.#moving = undefined
      })
  }

  async #run(): Promise<void> {
    // The request that asks for it is answered first.
    await this.#turns()
    let lastMs = this.#real.monotonicMs()
    while (!this.#isStopping && (this.#speed > 0 || this.#stepMs > 0)) {
      if (this.#stepMs > 0) {
        await this.#takePiece()
        lastMs = this.#real.monotonicMs()
        continue
      }
      await this.#real.sleep(tickMs)
      const nowMs = this.#real.monotonicMs()
      await this.#passAtSpeed(Math.min(nowMs - lastMs, mostTickMs))
      lastMs = nowMs
    }
  }

  async #takePiece(): Promise<void> {
    const ms = Math.min(this.#stepMs, pieceMs)
    await this.#pass(ms)
    // The rest may have been dropped meanwhile.
    this.#stepMs = Math.max(0, this.#stepMs - ms)
  }

  async #passAtSpeed(realMs: number): Promise<void> {
    for (let leftMs = realMs * this.#speed; leftMs > 0 && !this.#isStopping; leftMs -= pieceMs) await this.#pass(Math.min(leftMs, pieceMs))
  }

  async #pass(ms: number): Promise<void> {
    await this.#virtual.advance(ms)
    await this.#turns()
  }

  /** Requests from outside are not waited for: they get turns of the event loop before more of the time passes that limits them. */
  async #turns(): Promise<void> {
    for (let turns = 0; turns < turnsBetween; turns++) await this.#real.turn()
  }
}
