/**
 * A process of a component, as far as one process can hold several (tests only): it can be killed, cut off, or fall asleep like a virtual machine
 * that is paused, and then wakes up with everything that it missed. What it writes is written down as it goes out.
 */
import type { UserInfo } from '#apiserver/core/request'
import type { Clock } from '#base/clock'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'
import type { Transport } from '#client/transport'
import { connectionLost } from '#testing/faults'

export interface Write {
  readonly replica: string
  readonly atMs: number
  readonly what: string
}

export class Replica {
  readonly name: string
  readonly clock: Clock
  /** What it ended with; undefined: it runs, or ended in peace. */
  failure: Error | undefined
  #done: Promise<void> = Promise.resolve()
  #isCut = false
  #asleep: { readonly over: Promise<void>; end(): void } | undefined
  readonly #stop = new AbortController()
  readonly #missed: (() => void)[] = []
  readonly #cuts = new Set<() => void>()
  readonly #writes: Write[]

  constructor(name: string, clock: Clock, writes: Write[]) {
    this.name = name
    this.#writes = writes
    this.clock = this.#clockThatSleeps(clock)
  }

  run(act: (signal: AbortSignal) => Promise<void>): void {
    this.#done = act(this.#stop.signal).catch((error: Error) => {
      if (!this.#stop.signal.aborted) this.failure = error
    })
  }

  /** Its way to the server, as that user. */
  client(user: UserInfo, clientAs: (user: UserInfo) => Client): Client {
    return createClient(this.#link(clientAs(user).transport))
  }

  fallAsleep(): void {
    let end = () => {}
    const over = new Promise<void>((resolve) => {
      end = resolve
    })
    this.#asleep = { over, end }
  }

  /** First all due timers run; then answers and events are delivered. */
  wake(): void {
    const asleep = this.#asleep
    this.#asleep = undefined
    for (const fire of this.#missed.splice(0)) fire()
    asleep?.end()
  }

  /** Nothing reaches it any more, and nothing that it sends arrives. */
  cut(): void {
    this.#isCut = true
    for (const cut of [...this.#cuts]) cut()
  }

  mend(): void {
    this.#isCut = false
  }

  kill(): void {
    this.fallAsleep()
    this.cut()
  }

  /** Resolves when the replica has ended, also for one that was killed. */
  async end(): Promise<void> {
    this.#stop.abort(new Error('the test is over'))
    this.wake()
    await this.#done
  }

  #clockThatSleeps(clock: Clock): Clock {
    const timer: Clock['timer'] = (ms, fn) => {
      let isCancelled = false
      const fire = () => {
        if (!isCancelled) fn()
      }
      const inner = clock.timer(ms, () => {
        if (this.#asleep) this.#missed.push(fire)
        else fire()
      })
      return {
        cancel: () => {
          isCancelled = true
          inner.cancel()
        },
      }
    }
    const sleep: Clock['sleep'] = (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const gone = () => {
          waiting.cancel()
          reject(signal?.reason)
        }
        const waiting = timer(ms, () => {
          signal?.removeEventListener('abort', gone)
          resolve()
        })
        signal?.addEventListener('abort', gone, { once: true })
      })
    return { now: () => clock.now(), monotonicMs: () => clock.monotonicMs(), timer, sleep, turn: () => clock.turn() }
  }

  #link(transport: Transport): Transport {
    const { clock } = this
    const arrive = async () => {
      await this.#asleep?.over
      if (this.#isCut) throw connectionLost()
    }
    return {
      request: async (request, signal) => {
        if (this.#isCut) throw connectionLost()
        const what = `${request.method} ${request.path}`
        // Writes to leases are leader election, not the component's work.
        if (request.method !== 'GET' && !/\/leases(\/|$)/.test(request.path)) this.#writes.push({ replica: this.name, atMs: clock.monotonicMs(), what })
        try {
          return await transport.request(request, signal)
        } finally {
          await arrive()
        }
      },
      watch: (request, signal) => this.#watch(transport, request, signal, arrive),
    }
  }

  async *#watch(
    transport: Transport,
    request: Parameters<Transport['watch']>[0],
    signal: AbortSignal,
    arrive: () => Promise<void>,
  ): ReturnType<Transport['watch']> {
    if (this.#isCut) throw connectionLost()
    const broken = new AbortController()
    const cut = () => broken.abort(connectionLost())
    this.#cuts.add(cut)
    try {
      for await (const batch of transport.watch(request, AbortSignal.any([signal, broken.signal]))) {
        await arrive()
        yield batch
      }
      if (broken.signal.aborted) throw connectionLost()
    } finally {
      this.#cuts.delete(cut)
    }
  }
}
