/**
 * Which API server compacts the store next (L3). API servers over one store, upstream's among them, agree on it over one key: its version counts the turns, and a
 * server that has seen the last turn may take the next one. The others learn of it and wait another interval.
 * Upstream: apiserver/pkg/storage/etcd3/compact.go (v1.36).
 */
import type { KeyValue, Op, Revision, Store } from '#store/store'
import { isStoreError } from '#store/storeError'

/** Upstream's, below no prefix: all clusters of an etcd share its history. Its value is the compacted revision, in decimal. */
export const compactRevKey = 'compact_rev_key'

export interface CompactionTurn {
  /** How often servers have taken the turn; 0: none has. */
  readonly version: number
  /** The store's revision when this server learned of the turn: an interval later, what was before it is old enough. */
  readonly revision: Revision
  /** The revision that the turn compacts; 0: none. */
  readonly compacted: Revision
  /** This server has just taken it. */
  readonly isOwn: boolean
}

/** The last turn. It changes nothing. */
export async function lastTurn(store: Pick<Store, 'range'>): Promise<CompactionTurn> {
  const { kvs, revision } = await store.range(compactRevKey)
  return turnOf(kvs[0], revision)
}

/** Takes the turn after `known`, or tells which one another server has taken meanwhile. */
export async function nextTurn(store: Pick<Store, 'range' | 'transact'>, known: CompactionTurn): Promise<CompactionTurn> {
  const { version, revision: compacted } = known
  try {
    const { succeeded, responses, revision } = await store.transact({
      compare: [{ key: compactRevKey, target: 'version', op: '=', value: version }],
      success: [turnTaken(compacted)],
      failure: [{ type: 'range', from: compactRevKey }],
    })
    if (succeeded) return { version: version + 1, revision, compacted, isOwn: true }
    const [found] = responses
    return turnOf(found?.type === 'range' ? found.result.kvs[0] : undefined, revision)
  } catch (error) {
    if (!isStoreError(error, 'noSpace')) throw error
    // A full store takes no key, and compaction is what frees its space: servers that compact the same revision do no harm.
    const now = await lastTurn(store)
    return now.version === version ? { ...now, compacted, isOwn: true } : now
  }
}

/** What a server writes when it takes the turn. */
export function turnTaken(compacted: Revision): Op {
  return { type: 'put', key: compactRevKey, value: Buffer.from(String(compacted)) }
}

function turnOf(key: KeyValue | undefined, revision: Revision): CompactionTurn {
  const text = key === undefined ? '' : Buffer.from(key.value).toString('latin1')
  return { version: key?.version ?? 0, revision, compacted: /^\d{1,15}$/.test(text) ? Number(text) : 0, isOwn: false }
}
