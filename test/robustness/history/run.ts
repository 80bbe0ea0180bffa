/**
 * One random history: rounds of concurrent writes, with watchers that start, pause, break and resume, lists, compactions, and advances of the clock.
 * Same seed, same history: a failure is repeated with a check after each round, to find the shortest prefix that fails.
 */
import type { Transport } from '#client/transport'
import type { Store } from '#store/store'
import { Chance } from '../fuzz/chance.ts'
import { kinds } from './kinds.ts'
import { checkList, type ListCounts, type Pages } from './lists.ts'
import { Model } from './model.ts'
import { type WatchCounts, Watcher } from './watchers.ts'
import { carryOut, checkWritten, Writer } from './writes.ts'

export interface HistoryWorld {
  readonly transport: Transport
  readonly store: Store
  readonly nowMs: () => number
  /** Lets time go by, where time is virtual. */
  advance(ms: number): Promise<void>
  close(): Promise<void>
}

export interface HistorySize {
  readonly writes: number
  readonly watchers: number
  /** Rounds between two checks of the watchers. */
  readonly checkEvery: number
  /** No further than this round. */
  readonly rounds?: number | undefined
}

export interface HistoryCounts extends WatchCounts, ListCounts {
  writes: number
  accepted: number
  compactions: number
}

/** A law that was broken, and the round it was noticed in. */
export class HistoryFailure extends Error {
  readonly round: number

  constructor(round: number, cause: unknown) {
    super(`round ${round}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.name = 'HistoryFailure'
    this.round = round
  }
}

const mostAtOnce = 16

/** Adds to `counts`. @throws HistoryFailure */
export async function runHistory(world: HistoryWorld, seed: number, size: HistorySize, counts: HistoryCounts): Promise<void> {
  const history = new History(world, new Chance(seed), size, counts)
  let round = 0
  let left = size.writes
  try {
    for (; left > 0 && round < (size.rounds ?? Infinity); round++) left -= await history.round(round)
    await history.end()
  } catch (error) {
    throw new HistoryFailure(round, error)
  } finally {
    await history.close()
  }
}

class History {
  readonly #world: HistoryWorld
  readonly #chance: Chance
  readonly #size: HistorySize
  readonly #counts: HistoryCounts
  readonly #model: Model
  readonly #writer: Writer
  readonly #stop = new AbortController()
  readonly #following: Promise<void>
  #watchers: Watcher[] = []
  #pages: Pages[] = []

  constructor(world: HistoryWorld, chance: Chance, size: HistorySize, counts: HistoryCounts) {
    this.#world = world
    this.#chance = chance
    this.#size = size
    this.#counts = counts
    this.#model = new Model(world.store, world.nowMs)
    this.#following = this.#model.follow(this.#stop.signal)
    this.#writer = new Writer(this.#model, chance)
  }

  /** @returns how many writes were tried */
  async round(number: number): Promise<number> {
    const seen = new Map(kinds.map((kind) => [kind, this.#model.changes(kind).length]))
    const writes = this.#writer.round(1 + this.#chance.int(mostAtOnce))
    const writing = Promise.all(writes.map((write) => carryOut(this.#world.transport, write)))
    await this.#moveWatchers()
    const written = await writing
    await this.#model.settled()
    this.#counts.writes += writes.length
    this.#counts.accepted += written.filter(({ outcome }) => outcome === 'ok').length
    checkWritten(written, new Map(kinds.map((kind) => [kind, this.#model.changes(kind).slice(seen.get(kind))])))
    await this.#list()
    if (number % this.#size.checkEvery === 0) await this.#checkWatchers()
    await this.#world.advance(this.#chance.int(2_000))
    if (this.#chance.once(40)) await this.#compact()
    return writes.length
  }

  async end(): Promise<void> {
    for (const watcher of this.#watchers) watcher.wake()
    await this.#checkWatchers()
  }

  async close(): Promise<void> {
    const watchers = this.#watchers
    this.#watchers = []
    await Promise.allSettled(watchers.map((watcher) => watcher.close()))
    this.#stop.abort()
    await this.#following
  }

  async #moveWatchers(): Promise<void> {
    const deps = { transport: this.#world.transport, model: this.#model, counts: this.#counts }
    if (this.#watchers.length < this.#size.watchers || this.#chance.once(20)) this.#watchers.push(new Watcher(deps, this.#chance))
    const one = this.#chance.pick(this.#watchers)
    switch (this.#chance.int(20)) {
      case 0:
        one.sleep()
        break
      case 1:
        one.wake()
        break
      case 2:
        await one.cut()
        break
      default:
        if (this.#watchers.length <= this.#size.watchers) break
        this.#watchers = this.#watchers.filter((other) => other !== one)
        await one.close()
    }
  }

  async #checkWatchers(): Promise<void> {
    await Promise.all(this.#watchers.map((watcher) => watcher.check()))
  }

  async #list(): Promise<void> {
    const deps = { transport: this.#world.transport, model: this.#model, counts: this.#counts }
    if (this.#chance.once(3)) {
      const pages = await checkList(deps, this.#chance)
      if (pages) this.#pages.push(pages)
    }
    if (this.#pages.length === 0 || this.#chance.once(2)) return
    const one = this.#chance.pick(this.#pages)
    await one.next(deps)
    if (one.token === '') this.#pages = this.#pages.filter((other) => other !== one)
  }

  async #compact(): Promise<void> {
    const revision = this.#model.revision - this.#chance.int(this.#chance.pick([10, 500]))
    if (revision <= this.#model.compacted) return
    await this.#world.store.compact(revision)
    this.#model.compacted = revision
    this.#counts.compactions++
  }
}
