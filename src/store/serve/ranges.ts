/** Filters and sorting of etcd's ranges, which the store does not have (L2, pure). Upstream: etcd server/etcdserver/txn/range.go (v3.6). */
import type { KeyValue, RangeOptions, RangeResult } from '../store.ts'
import type { ResponseHeader } from './api.ts'
import { keyValueMessage, type RangeRequest } from './messages.ts'
import { refusal } from './refusals.ts'

/** Whether the limit applies only after filters and sorting, which need every key of the range. */
export function needsWholeRange({ sortOrder, sortTarget, ...filters }: RangeRequest): boolean {
  if (typeof sortOrder === 'number' || typeof sortTarget === 'number') throw refusal('invalidSortOption')
  const isSorted = sortOrder === 'DESCEND' || sortTarget !== 'KEY'
  return isSorted || hasFilters(filters)
}

function hasFilters({ minModRevision, maxModRevision, minCreateRevision, maxCreateRevision }: Omit<RangeRequest, 'sortOrder' | 'sortTarget'>): boolean {
  return minModRevision !== 0 || maxModRevision !== 0 || minCreateRevision !== 0 || maxCreateRevision !== 0
}

export function rangeOptions({ revision, limit, countOnly, keysOnly }: RangeRequest, isWhole: boolean): RangeOptions {
  return {
    ...(revision > 0 ? { revision } : {}),
    ...(!isWhole && limit > 0 ? { limit } : {}),
    ...(countOnly ? { countOnly } : {}),
    ...(keysOnly && !isWhole ? { keysOnly } : {}),
  }
}

/** The message RangeResponse. */
export function rangeMessage(header: Partial<ResponseHeader>, request: RangeRequest, { kvs, count, more }: RangeResult): object {
  const answer = (chosen: readonly KeyValue[], hasMore: boolean) => ({
    header,
    kvs: chosen.map((kv) => keyValueMessage(kv, request.keysOnly)),
    more: hasMore,
    count,
  })
  if (!needsWholeRange(request)) return answer(kvs, more)
  const found = sorted(request, kvs.filter(isWanted(request)))
  const { limit } = request
  return limit > 0 && found.length > limit ? answer(found.slice(0, limit), true) : answer(found, false)
}

function isWanted({ minModRevision, maxModRevision, minCreateRevision, maxCreateRevision }: RangeRequest): (kv: KeyValue) => boolean {
  const isWithin = (value: number, least: number, most: number) => value >= least && (most === 0 || value <= most)
  return (kv) => isWithin(kv.modRevision, minModRevision, maxModRevision) && isWithin(kv.createRevision, minCreateRevision, maxCreateRevision)
}

const compare: Readonly<Record<string, (a: KeyValue, b: KeyValue) => number>> = {
  KEY: (a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0),
  VERSION: (a, b) => a.version - b.version,
  CREATE: (a, b) => a.createRevision - b.createRevision,
  MOD: (a, b) => a.modRevision - b.modRevision,
  VALUE: (a, b) => Buffer.compare(a.value, b.value),
}

function sorted({ sortOrder, sortTarget }: RangeRequest, kvs: KeyValue[]): KeyValue[] {
  // As etcd: a target without an order sorts ascending.
  const order = sortOrder === 'DESCEND' ? -1 : 1
  const by = compare[sortTarget]
  return by ? kvs.sort((a, b) => order * by(a, b)) : kvs
}
