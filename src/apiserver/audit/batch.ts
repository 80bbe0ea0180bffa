/**
 * Buffers audit events and passes them on in batches, so that no request waits (L3). A full buffer drops events and counts them.
 * Upstream: apiserver/plugin/pkg/audit/buffered.
 */
import type { Clock, Timer } from '#base/clock'
import type { AuditBackend, ReportLoss } from './backend.ts'
import type { AuditEvent } from './event.ts'

export interface BatchConfig {
  readonly bufferSize: number
  /** 1: events are passed on without batching. */
  readonly maxBatchSize: number
  readonly maxBatchWaitMs: number
  /** Batches per second, and the burst; absent: no limit. */
  readonly throttle?: { readonly qps: number; readonly burst: number } | undefined
  /** The next batch does not wait for the one before. */
  readonly asyncDelegate: boolean
}

export function createBatchBackend(delegate: AuditBackend, config: BatchConfig, clock: Clock, reportLoss: ReportLoss): AuditBackend {
  const { bufferSize, maxBatchSize, maxBatchWaitMs, asyncDelegate } = config
  const throttle = config.throttle && createThrottle(clock, config.throttle)
  const sending = new Set<Promise<unknown>>()
  const buffer: AuditEvent[] = []
  let timer: Timer | undefined
  let draining: Promise<void> | undefined
  let closed = false
  const isDue = () => buffer.length >= maxBatchSize || (closed && buffer.length > 0)
  const send = async () => {
    // With a batch size of 1, all buffered events are sent together.
    const batch = buffer.splice(0, Math.max(maxBatchSize, maxBatchSize === 1 ? buffer.length : 0))
    await throttle?.()
    const done = Promise.resolve(delegate.process(batch))
    if (!asyncDelegate) return void (await done)
    sending.add(done)
    void done.finally(() => sending.delete(done))
  }
  const drain = async (all: boolean) => {
    timer?.cancel()
    timer = undefined
    // The request that wrote the event is answered first.
    await clock.sleep(0)
    if (all && buffer.length > 0) await send()
    while (isDue()) await send()
    draining = undefined
    if (isDue()) start(false)
    else wait()
  }
  const start = (all: boolean) => {
    draining ??= drain(all)
  }
  const wait = () => {
    if (buffer.length > 0 && !timer && !closed) timer = clock.timer(maxBatchWaitMs, () => start(true))
  }
  return {
    process(events) {
      const room = closed ? 0 : Math.max(0, bufferSize - buffer.length)
      for (let i = 0; i < events.length && i < room; i++) buffer.push(events[i] as AuditEvent)
      if (room < events.length) reportLoss('buffered', closed ? 'audit backend shut down' : 'audit buffer queue blocked', events.slice(room))
      if (isDue()) start(false)
      else wait()
      return true
    },
    async close() {
      closed = true
      for (start(true); draining; start(buffer.length > 0)) {
        await draining
        if (buffer.length === 0) break
      }
      await Promise.all(sending)
      await delegate.close()
    },
  }
}

/** A token bucket. Upstream: client-go's flowcontrol.NewTokenBucketRateLimiter. */
function createThrottle(clock: Clock, { qps, burst }: { qps: number; burst: number }): () => Promise<void> {
  let tokens = burst
  let lastMs = clock.monotonicMs()
  return async () => {
    const nowMs = clock.monotonicMs()
    tokens = Math.min(burst, tokens + ((nowMs - lastMs) * qps) / 1000) - 1
    lastMs = nowMs
    if (tokens < 0) await clock.sleep((-tokens * 1000) / qps)
  }
}
