/** What the server's own metrics say (L4), every two seconds, and what changed since the reading before. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { RevisionHistory } from '#api/debug/revisions'
import { type Sample, samplesOf, sumOf } from '../../../model/prometheus.ts'
import { queueFamilies } from '../../../model/queues.ts'
import { get, getText } from '../../api.ts'
import { useAnswer } from '../../parts/useAnswer.ts'
import { isStill } from '../../session.ts'

const everyMs = 2_000
/** Two minutes. */
export const keptReadings = 60

const families = new Set([
  ...['apiserver_request_total', 'apiserver_current_inflight_requests', 'apiserver_longrunning_requests'],
  ...['apiserver_request_duration_seconds_sum', 'apiserver_request_duration_seconds_count'],
  ...['apiserver_storage_events_received_total', 'apiserver_storage_size_bytes', 'apiserver_storage_objects'],
  ...['scheduler_pending_pods', 'scheduler_schedule_attempts_total', 'process_resident_memory_bytes', 'process_cpu_seconds_total'],
  ...queueFamilies,
])

export interface Reading {
  readonly atMs: number
  readonly samples: readonly Sample[]
  readonly store: RevisionHistory | undefined
}

export interface Rates {
  readonly requests: number
  readonly writes: number
  readonly events: number
  readonly reconciles: number
  readonly attempts: number
  readonly cpu: number
  readonly averageMs: number
  readonly storeBytes: number
}

async function read(signal: AbortSignal): Promise<Reading> {
  const [text, store] = await Promise.all([
    getText('/metrics', { accept: 'text/plain', signal }),
    get<RevisionHistory>('/skiff/revisions', { signal }).catch(() => undefined),
  ])
  return { atMs: performance.now(), samples: samplesOf(text, families), store }
}

function ratesBetween(before: Reading, after: Reading): Rates {
  const seconds = (after.atMs - before.atMs) / 1_000
  const grown = (name: string) => Math.max(0, sumOf(after.samples, name) - sumOf(before.samples, name))
  const answered = grown('apiserver_request_duration_seconds_count')
  return {
    requests: grown('apiserver_request_total') / seconds,
    writes: Math.max(0, (after.store?.revision ?? 0) - (before.store?.revision ?? 0)) / seconds,
    events: grown('apiserver_storage_events_received_total') / seconds,
    reconciles: grown('workqueue_work_duration_seconds_count') / seconds,
    attempts: grown('scheduler_schedule_attempts_total') / seconds,
    cpu: grown('process_cpu_seconds_total') / seconds,
    averageMs: answered === 0 ? 0 : (1_000 * grown('apiserver_request_duration_seconds_sum')) / answered,
    storeBytes: sumOf(after.samples, 'apiserver_storage_size_bytes'),
  }
}

export interface Readings {
  readonly last: Reading | undefined
  readonly before: Reading | undefined
  readonly rates: readonly Rates[]
}

export function useReadings() {
  // The metrics of a bundle are of one moment.
  const { value, error, again } = useAnswer(read, 'readings', isStill() ? undefined : everyMs)
  const kept = useSignal<Readings>({ last: undefined, before: undefined, rates: [] })
  useEffect(() => {
    if (!value) return
    const { last, rates } = kept.peek()
    kept.value = { last: value, before: last, rates: last ? [...rates.slice(1 - keptReadings), ratesBetween(last, value)] : rates }
  }, [value])
  return { ...kept.value, error, again }
}
