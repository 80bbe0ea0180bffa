/** Random lists at the newest state, at an exact revision, and in pages during writes. Each equals the model. */
import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { isStatus } from '#api/machinery/status'
import type { Transport } from '#client/transport'
import type { Chance } from '../fuzz/chance.ts'
import { type Any, collectionPath, randomSelection, type Selected } from './kinds.ts'
import type { Model } from './model.ts'

export interface ListCounts {
  lists: number
  pages: number
  expired: number
}

interface Deps {
  readonly transport: Transport
  readonly model: Model
  readonly counts: ListCounts
}

/** One list, or the first page of one, which is returned to be continued. No writes happen meanwhile. */
export async function checkList({ transport, model, counts }: Deps, chance: Chance): Promise<Pages | undefined> {
  const selected = randomSelection(chance)
  const past = Math.max(model.first, model.revision - chance.int(chance.pick([5, 200, 5_000])))
  const choices: readonly Record<string, string>[] = [
    {},
    { resourceVersion: '0' },
    { resourceVersion: String(past), resourceVersionMatch: 'NotOlderThan' },
    { resourceVersion: String(past), resourceVersionMatch: 'Exact' },
  ]
  const wanted = chance.pick(choices)
  const exact = wanted.resourceVersionMatch === 'Exact'
  // Upstream answers "0" whole, whatever the limit.
  const asked = chance.once(2) ? 1 + chance.int(5) : 0
  const limit = wanted.resourceVersion === '0' ? 0 : asked
  counts.lists++
  let list: Any
  try {
    list = await listOf(transport, selected, { ...wanted, ...(asked > 0 ? { limit: String(asked) } : {}) })
  } catch (error) {
    if (!isStatus(error, 'Expired')) throw error
    counts.expired++
    assert.ok(exact && past < model.compacted, `${describe(selected, wanted)} expired, and ${model.compacted} is compacted`)
    return undefined
  }
  const revision = Number(list.metadata.resourceVersion)
  if (exact) assert.equal(revision, past, describe(selected, wanted))
  else assert.ok(revision >= lastChange(model, selected) && revision <= model.revision, `${describe(selected, wanted)} showed ${revision}`)
  const pages = new Pages(selected, revision, limit, model.stateAt(selected, revision))
  pages.take(list)
  return pages.token ? pages : undefined
}

/** A list that is read page by page. */
export class Pages {
  readonly #selected: Selected
  readonly #revision: number
  readonly #limit: number
  /** The objects that later pages must have. */
  #left: Any[]
  token = ''

  constructor(selected: Selected, revision: number, limit: number, items: Any[]) {
    this.#selected = selected
    this.#revision = revision
    this.#limit = limit
    this.#left = items
  }

  /** The next page; the list is over when `token` is empty. */
  async next({ transport, model, counts }: Deps): Promise<void> {
    counts.pages++
    try {
      this.take(await listOf(transport, this.#selected, { limit: String(this.#limit), continue: this.token }))
    } catch (error) {
      if (!isStatus(error, 'Expired')) throw error
      counts.expired++
      assert.ok(this.#revision < model.compacted, `a page of ${this.#revision} expired, and ${model.compacted} is compacted`)
      this.token = ''
    }
  }

  take({ items, metadata }: Any): void {
    const wanted = this.#limit > 0 ? this.#left.splice(0, this.#limit) : this.#left.splice(0)
    const what = describe(this.#selected, { limit: String(this.#limit) })
    assert.ok(isDeepStrictEqual(items.map(bare), wanted.map(bare)), `${what} at ${this.#revision}\n${JSON.stringify(items)}\n${JSON.stringify(wanted)}`)
    assert.equal(metadata.resourceVersion, String(this.#revision), what)
    this.token = metadata.continue ?? ''
    assert.equal(this.token !== '', this.#left.length > 0, `${what}: whether there are more`)
    const countable = Object.keys(this.#selected.query).length === 0 && this.token !== ''
    assert.equal(metadata.remainingItemCount, countable ? this.#left.length : undefined, `${what}: how many remain`)
  }
}

/** Items of a list may leave out apiVersion and kind. */
function bare(object: Any): Any {
  const { apiVersion: _, kind: __, ...rest } = object
  return rest
}

async function listOf(transport: Transport, { kind, namespace, query }: Selected, more: Record<string, string>): Promise<Any> {
  return (await transport.request({ method: 'GET', path: collectionPath(kind, namespace), query: { ...query, ...more } })).body
}

function lastChange(model: Model, { kind }: Selected): number {
  return model.changes(kind).at(-1)?.revision ?? 0
}

function describe({ kind, namespace, query }: Selected, more: object): string {
  return `the list of ${collectionPath(kind, namespace)} ${JSON.stringify({ ...query, ...more })}`
}
