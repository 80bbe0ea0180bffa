/**
 * Random watchers, of which some are slow or are cut off and resume: what each sees, from first to last, is the model's history as its selectors show
 * it, in order, each event once. A watcher that came too late starts over, as a client would.
 */
import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { isStatus } from '#api/machinery/status'
import type { Transport, WatchEvent } from '#client/transport'
import type { Chance } from '../fuzz/chance.ts'
import { type Any, collectionPath, randomSelection, type Selected } from './kinds.ts'
import type { ExpectedEvent, Model } from './model.ts'

/** History that a server holds at least: so many changes, and all that are younger. */
const leastChanges = 1024
const freshMs = 75_000
const caughtUpWithinMs = 60_000

/** From the present state as events ('' or '0'), the same with its end marked, or from a revision. */
type Start = '' | '0' | 'initialEvents' | 'revision'

export interface WatchCounts {
  events: number
  opened: number
  resumed: number
  expired: number
  /** Ended by the server, because they did not read or their time was over. */
  ended: number
}

export class Watcher {
  readonly #transport: Transport
  readonly #model: Model
  readonly #selected: Selected
  readonly #counts: WatchCounts
  /** Has seen everything up to here; undefined: is to start over. */
  #position: number | undefined
  #openedAt = 0
  #start: Start
  #seen: WatchEvent[] = []
  #stop = new AbortController()
  #done: Promise<void> = Promise.resolve()
  #ended: 'no' | 'yes' | 'expired' = 'no'
  #asleep: { wake(): void; readonly until: Promise<void> } | undefined

  constructor(deps: { transport: Transport; model: Model; counts: WatchCounts }, chance: Chance) {
    this.#transport = deps.transport
    this.#model = deps.model
    this.#counts = deps.counts
    this.#selected = randomSelection(chance)
    this.#start = chance.pick(['', '0', 'initialEvents', 'revision'])
    if (this.#start === 'revision') this.#position = Math.max(deps.model.first, deps.model.revision - chance.int(chance.pick([10, 100, 10_000])))
    this.#open()
  }

  /** Reads nothing until it is woken. */
  sleep(): void {
    if (this.#asleep) return
    let wake = () => {}
    const until = new Promise<void>((resolve) => {
      wake = resolve
    })
    this.#asleep = { wake, until }
  }

  wake(): void {
    this.#asleep?.wake()
    this.#asleep = undefined
  }

  get isAsleep(): boolean {
    return this.#asleep !== undefined
  }

  /** Breaks the connection, and resumes after what was seen. */
  async cut(): Promise<void> {
    await this.close()
    this.#reopen()
  }

  async close(): Promise<void> {
    this.wake()
    this.#stop.abort()
    await this.#done
    this.#verify(false)
  }

  /** Waits until it has seen everything, unless it sleeps, and compares. */
  async check(): Promise<void> {
    if (this.#ended === 'no' && !this.#asleep) await this.#caughtUp()
    if (this.#ended === 'no') {
      this.#verify(!this.#asleep)
      return
    }
    await this.#done
    this.#verify(false)
    this.#reopen()
  }

  #reopen(): void {
    if (this.#ended === 'expired') {
      this.#counts.expired++
      this.#checkExpired()
      this.#position = undefined
      this.#start = 'initialEvents'
    } else if (this.#position !== undefined) this.#start = 'revision'
    this.#counts.resumed++
    this.#open()
  }

  #open(): void {
    const { kind, namespace, query } = this.#selected
    this.#ended = 'no'
    this.#openedAt = this.#model.revision
    this.#stop = new AbortController()
    this.#counts.opened++
    const start: Readonly<Record<Start, Record<string, string>>> = {
      '': {},
      '0': { resourceVersion: '0' },
      initialEvents: { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: 'true' },
      revision: { resourceVersion: String(this.#position), allowWatchBookmarks: 'true' },
    }
    const request = { method: 'GET', path: collectionPath(kind, namespace), query: { ...query, ...start[this.#start] } } as const
    const { signal } = this.#stop
    this.#done = this.#read(this.#transport.watch(request, signal), signal)
  }

  async #read(batches: AsyncIterable<readonly WatchEvent[]>, signal: AbortSignal): Promise<void> {
    try {
      for await (const batch of batches) {
        this.#seen.push(...batch)
        await this.#asleep?.until
        if (signal.aborted) return
      }
      this.#ended = 'yes'
      if (!signal.aborted) this.#counts.ended++
    } catch (error) {
      if (signal.aborted) return
      if (!isStatus(error, 'Expired')) throw error
      this.#ended = 'expired'
    }
  }

  async #caughtUp(): Promise<void> {
    const deadline = performance.now() + caughtUpWithinMs
    for (;;) {
      const wanted = this.#wanted(this.#bases()[0] as number).length
      if (this.#ended !== 'no' || this.#events().length >= wanted) return
      assert.ok(performance.now() < deadline, `${this.#describe()} waits for ${wanted} events and has ${JSON.stringify(this.#seen)}`)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** The revisions that it may have started from. */
  #bases(): number[] {
    if (this.#position !== undefined) return [this.#position]
    const end = this.#seen.find(isInitialEnd)
    if (end) return [Number(end.object.metadata.resourceVersion)]
    const later = this.#model.changes(this.#selected.kind).slice(this.#model.indexAfter(this.#selected.kind, this.#openedAt))
    return [this.#openedAt, ...later.map(({ revision }) => revision)]
  }

  #wanted(base: number): ExpectedEvent[] {
    const initial = this.#position === undefined ? this.#model.stateAt(this.#selected, base) : []
    const added = initial.map((object) => ({ type: 'ADDED' as const, revision: Number(object.metadata.resourceVersion), object }))
    return [...added, ...this.#model.eventsFrom(this.#selected, this.#model.indexAfter(this.#selected.kind, base))]
  }

  #events(): WatchEvent[] {
    return this.#seen.filter(({ type }) => type !== 'BOOKMARK')
  }

  #verify(complete: boolean): void {
    if (this.#seen.length === 0 && this.#ended !== 'no') return
    const faults: string[] = []
    for (const base of this.#bases()) {
      const fault = this.#compare(base, complete)
      if (fault === undefined) {
        this.#moveOn(base, complete)
        return
      }
      faults.push(fault)
    }
    assert.fail(`${this.#describe()}: ${faults[0]}`)
  }

  #compare(base: number, complete: boolean): string | undefined {
    const wanted = this.#wanted(base)
    let next = 0
    for (const event of this.#seen) {
      if (event.type === 'BOOKMARK') {
        const early = wanted[next]
        const revision = Number(event.object.metadata.resourceVersion)
        if (early && early.revision <= revision) return `the bookmark ${revision} came before ${shown(early)}`
        continue
      }
      const want = wanted[next++]
      if (!want) return `${event.type} ${JSON.stringify(event.object)} should not have come`
      if (event.type !== want.type || !isDeepStrictEqual(event.object, want.object))
        return `${event.type} ${JSON.stringify(event.object)} came instead of ${shown(want)}`
    }
    return complete && next < wanted.length ? `${shown(wanted[next] as ExpectedEvent)} is missing` : undefined
  }

  /** Checked events need not be kept. */
  #moveOn(base: number, complete: boolean): void {
    const events = this.#events()
    this.#counts.events += events.length
    const initial = this.#position === undefined ? this.#model.stateAt(this.#selected, base).length : 0
    // If the initial events were cut off, none of them count, and the next watch starts again.
    if (events.length >= initial) {
      const last = Math.max(base, ...this.#seen.slice(initial).map(({ object }) => Number(object.metadata.resourceVersion)))
      this.#position = complete ? Math.max(last, this.#lastOf(base)) : last
    }
    this.#seen = []
  }

  #lastOf(base: number): number {
    return this.#model.eventsFrom(this.#selected, this.#model.indexAfter(this.#selected.kind, base)).at(-1)?.revision ?? base
  }

  /** 410 only when the history that it asked for may be gone. */
  #checkExpired(): void {
    const missed = this.#model.changes(this.#selected.kind).slice(this.#model.indexAfter(this.#selected.kind, this.#position ?? 0))
    const old = missed.slice(0, Math.max(0, missed.length - leastChanges))
    const [oldest] = old
    assert.ok(oldest && this.#model.nowMs() - oldest.atMs >= freshMs, `${this.#describe()} expired although ${missed.length} changes are not many or not old`)
  }

  #describe(): string {
    const { kind, namespace, query } = this.#selected
    return `the watch of ${collectionPath(kind, namespace)} ${JSON.stringify(query)} from ${this.#position ?? JSON.stringify(this.#start)}`
  }
}

function isInitialEnd({ type, object }: WatchEvent): boolean {
  return type === 'BOOKMARK' && (object as Any).metadata.annotations?.['k8s.io/initial-events-end'] === 'true'
}

function shown({ type, object }: ExpectedEvent): string {
  return `${type} ${JSON.stringify(object)}`
}
