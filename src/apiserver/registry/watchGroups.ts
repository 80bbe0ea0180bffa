/**
 * The watchers of one resource (L3), grouped by selection: a change is matched once per distinct selection, not once per watcher, and
 * selections that name one value of an indexed field (a node's pods, one object by name) are found by that value.
 * Upstream: cacher's indexedWatchers with triggers.
 */
import type { CacheEntry } from '../core/watch/cacheEntry.ts'
import { EncodedBatches } from '../core/watch/encodedBatches.ts'
import type { CacheChange } from '../core/watch/watchEvent.ts'
import type { WatchItem, WatchSession } from '../core/watch/watchSession.ts'
import { matches, type Selection } from './selection.ts'

export interface FieldIndex {
  readonly field: string
  value(entry: CacheEntry): string
}

interface Group {
  readonly selection: Selection
  readonly sessions: Set<WatchSession>
  readonly batches: EncodedBatches<WatchItem>
}

export class WatchGroups {
  readonly #indexes: readonly FieldIndex[]
  readonly #general = new Map<string, Group>()
  /** Per index: value → groups. */
  readonly #indexed: Map<string, Map<string, Group>>[]
  /** The newest change, and how many watches got it. */
  readonly newest = { revision: 0, watchers: 0 }

  constructor(indexes: readonly FieldIndex[]) {
    this.#indexes = indexes
    this.#indexed = indexes.map(() => new Map())
  }

  add(selection: Selection, session: WatchSession): void {
    const groups = this.#home(selection)
    let group = groups.get(selection.key)
    if (!group) {
      group = { selection, sessions: new Set(), batches: new EncodedBatches() }
      groups.set(selection.key, group)
    }
    group.sessions.add(session)
    session.batches = group.batches
  }

  remove(selection: Selection, session: WatchSession): void {
    const groups = this.#home(selection)
    const group = groups.get(selection.key)
    if (!group?.sessions.delete(session) || group.sessions.size > 0) return
    groups.delete(selection.key)
    if (groups.size > 0) return
    this.#indexes.forEach((index, at) => {
      const value = selection.exactFields[index.field]
      if (value !== undefined && this.#indexed[at]!.get(value) === groups) this.#indexed[at]!.delete(value)
    })
  }

  dispatch(change: CacheChange): void {
    let watchers = this.#general.size > 0 ? deliver(this.#general, change) : 0
    this.#indexes.forEach((index, at) => {
      const byValue = this.#indexed[at]!
      if (byValue.size === 0) return
      const now = index.value(change.entry)
      const before = change.previous ? index.value(change.previous) : now
      const groups = byValue.get(now)
      if (groups) watchers += deliver(groups, change)
      const others = before === now ? undefined : byValue.get(before)
      if (others) watchers += deliver(others, change)
    })
    this.newest.revision = change.revision
    this.newest.watchers = watchers
  }

  *sessions(): Generator<WatchSession> {
    for (const group of this.#general.values()) yield* group.sessions
    for (const byValue of this.#indexed) for (const groups of byValue.values()) for (const group of groups.values()) yield* group.sessions
  }

  #home(selection: Selection): Map<string, Group> {
    for (let at = 0; at < this.#indexes.length; at++) {
      const value = selection.exactFields[this.#indexes[at]!.field]
      if (value === undefined) continue
      const byValue = this.#indexed[at]!
      let groups = byValue.get(value)
      if (!groups) {
        groups = new Map()
        byValue.set(value, groups)
      }
      return groups
    }
    return this.#general
  }
}

/** @returns how many watches got the change */
function deliver(groups: ReadonlyMap<string, Group>, change: CacheChange): number {
  let watchers = 0
  for (const { selection, sessions } of groups.values()) {
    const event = change.seenBy((entry) => matches(selection, entry))
    if (!event) continue
    for (const session of sessions) {
      if (change.revision <= session.afterRevision) continue
      session.push(event)
      watchers++
    }
  }
  return watchers
}
