/**
 * Keeps answers for their time to live (L3), those that a name does not exist or has no such record as well. Upstream: CoreDNS plugin/cache.
 */
import type { Clock } from '#base/clock'
import { LruCache } from '#base/lruCache'
import type { Counter } from '#base/metrics'
import type { DnsAnswer, DnsQuestion, DnsRecord } from '../message.ts'
import { type DnsPlugin, type DnsReply, isInZone, recordsOf } from './plugin.ts'

/** Clients choose what is asked for: answers with more records or bytes than this are not kept, and no more answers than this. */
const maxRecords = 40
const maxBytes = 2048
const maxEntries = 4096

/** Upstream's defaults: how many answers are kept, and for how many seconds at least. */
export const defaultCapacity = 9984
export const defaultMinTtl = 5

export interface CacheKind {
  readonly capacity: number
  readonly maxTtl: number
  readonly minTtl: number
  /** Zones whose answers are not kept. */
  readonly disabled: readonly string[]
}

export interface CacheOptions {
  readonly zones: readonly string[]
  readonly success: CacheKind
  readonly denial: CacheKind
}

export interface CacheDeps {
  readonly clock: Clock
  readonly hits: Counter
  readonly misses: Counter
}

interface Entry {
  readonly answer: DnsAnswer
  readonly storedMs: number
  readonly ttl: number
}

export function createCachePlugin({ zones, success, denial }: CacheOptions, { clock, hits, misses }: CacheDeps): DnsPlugin {
  const kinds = [
    { type: 'success', options: success, entries: new LruCache<string, Entry>(Math.min(success.capacity, maxEntries)) },
    { type: 'denial', options: denial, entries: new LruCache<string, Entry>(Math.min(denial.capacity, maxEntries)) },
  ]
  const found = (key: string): DnsAnswer | undefined => {
    const nowMs = clock.monotonicMs()
    for (const { type, entries } of kinds) {
      const entry = entries.get(key)
      const age = entry && Math.floor((nowMs - entry.storedMs) / 1000)
      if (!entry || age === undefined || age >= entry.ttl) continue
      hits.inc({ type })
      return aged(entry, age)
    }
    misses.inc()
    return undefined
  }
  const keep = (key: string, name: string, reply: DnsReply) => {
    const answer = recordsOf(reply)
    const kind = answer && kindOf(answer)
    if (!answer || !kind) return
    const { options, entries } = kinds[kind === 'success' ? 0 : 1] as (typeof kinds)[number]
    const ttl = Math.max(options.minTtl, Math.min(options.maxTtl, timeToLive(answer)))
    if (ttl === 0 || options.disabled.some((zone) => isInZone(name, zone))) return
    entries.set(key, { answer, storedMs: clock.monotonicMs(), ttl })
  }
  return {
    name: 'cache',
    resolve: async (question, query, protocol, next) => {
      if (question.wantsSignatures || !zones.some((zone) => isInZone(question.name, zone))) return undefined
      const key = `${question.type} ${question.name}`
      const known = found(key)
      if (known) return asAsked(known, question)
      const reply = await next(question, query, protocol)
      keep(key, question.name, reply)
      return reply
    },
  }
}

/** Undefined: the answer is not kept. */
function kindOf({ code, answers, authority = [], additional = [] }: DnsAnswer): 'success' | 'denial' | undefined {
  const records = [...answers, ...authority, ...additional]
  if (records.length > maxRecords || records.reduce((sum, record) => sum + (record.type === 'OTHER' ? record.data.length : 0), 0) > maxBytes) return undefined
  if (code === 'NOERROR' && answers.length > 0) return 'success'
  // Without the zone's own record nothing says how long the denial holds.
  return (code === 'NXDOMAIN' || code === 'NOERROR') && authority.some(({ type }) => type === 'SOA') ? 'denial' : undefined
}

function timeToLive({ answers, authority = [], additional = [] }: DnsAnswer): number {
  return [...answers, ...authority, ...additional].reduce(
    (least, record) => Math.min(least, record.type === 'SOA' && answers.length === 0 ? Math.min(record.ttl, record.minimum) : record.ttl),
    Number.MAX_SAFE_INTEGER,
  )
}

function aged({ answer, ttl }: Entry, age: number): DnsAnswer {
  const left = (records: readonly DnsRecord[] = []) => records.map((record) => ({ ...record, ttl: Math.max(0, Math.min(record.ttl, ttl) - age) }))
  return { ...answer, authoritative: false, answers: left(answer.answers), authority: left(answer.authority), additional: left(answer.additional) }
}

/** With the letters of this question, which clients compare. */
function asAsked(answer: DnsAnswer, { name, nameAsAsked }: DnsQuestion): DnsAnswer {
  return { ...answer, answers: answer.answers.map((record) => (record.name.toLowerCase() === name ? { ...record, name: nameAsAsked } : record)) }
}
