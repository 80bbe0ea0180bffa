/** Counts and times the syncs of a controller that publishes certificates, by their status codes (L3). Upstream: each publisher's metrics.go (v1.36). */
import { StatusError } from '#api/machinery/status'
import { exponentialBuckets } from '#base/metrics'
import type { ControllerContext } from '../framework/controller.ts'

type Sync = (key: string, signal: AbortSignal) => Promise<void>

/** @param subsystem the start of the metrics' names */
export function measuredSync({ clock, metrics }: Pick<ControllerContext, 'clock' | 'metrics'>, subsystem: string, help: string, sync: Sync) {
  const syncs = metrics.counter({ name: `${subsystem}_sync_total`, help, labels: ['code'] })
  const buckets = exponentialBuckets(0.001, 2, 15)
  const times = metrics.histogram({ name: `${subsystem}_sync_duration_seconds`, help, labels: ['code'], buckets })
  return async (key: string, signal: AbortSignal): Promise<undefined> => {
    const startMs = clock.monotonicMs()
    const record = (code: string) => {
      syncs.inc({ code })
      times.observe((clock.monotonicMs() - startMs) / 1000, { code })
    }
    try {
      await sync(key, signal)
      record('200')
    } catch (error) {
      record(error instanceof StatusError ? String(error.code) : '500')
      throw error
    }
  }
}
