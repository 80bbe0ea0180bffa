/**
 * One of several acts (L2): who holds the Lease leads, until it is not renewed in time. A leader that cannot renew stops before others may
 * start, by the monotonic clock of each; and what it still tries to write then is refused (leadership.fence), even when its own process was
 * asleep while the lease ran out. Upstream: client-go/tools/leaderelection (v1.36); fencing is ours.
 */

import type { Lease } from '#api/gen/types/coordination.v1'
import type { Frozen, ObjectRef } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { abortScope, deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import { type Metrics, noMetrics } from '#base/metrics'
import { unlessAborted } from '#base/orAborted'
import type { Random } from '#base/random'
import { formatMicroTime } from '#base/time'
import { leases } from './builtIn.ts'
import type { Client } from './client.ts'
import { fencedClient } from './fencedClient.ts'

export interface LeaderElectionDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics?: Metrics | undefined
}

export interface LeaderElectionOptions {
  /** The Lease. */
  readonly lock: ObjectRef
  readonly identity: string
  /** In metrics; default: the lease's. */
  readonly name?: string
  readonly leaseDurationMs?: number
  readonly renewDeadlineMs?: number
  readonly retryPeriodMs?: number
  /** Give the lease up when the signal aborts, so that another need not wait for it to expire. */
  readonly releaseOnCancel?: boolean
  readonly onNewLeader?: (identity: string) => void
}

/** What who leads knows of it. */
export interface Leadership {
  /** False from the moment others might lead: asks the clock, not only the last answer. */
  held(): boolean
  /** A client whose writes are refused (LeadershipLostError), and cut off, once leadership is not held. Reads go through. */
  fence(client: Client): Client
  /** Aborts when leadership is lost, not when it is given up. */
  readonly lost: AbortSignal
}

const jitter = 1.2

interface Election {
  readonly deps: LeaderElectionDeps
  readonly options: LeaderElectionOptions
  readonly leaseDurationMs: number
  /** The last record seen, and when by our own clock: other clocks are not trusted. */
  observed: Frozen<Lease> | undefined
  observedMs: number
  /** When the renewal that succeeded last was sent: the lease surely holds for its duration from then. */
  renewedMs: number
  reported: string | undefined
}

/**
 * Waits to lead, then calls `lead`, whose signal aborts when leadership is lost or `signal` aborts. Resolves when `lead` has ended.
 * @throws Error when leadership was lost: the process must start over, as upstream's processes exit.
 */
export async function runLeaderElected(
  deps: LeaderElectionDeps,
  options: LeaderElectionOptions,
  lead: (signal: AbortSignal, leadership: Leadership) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  checkTimes(options)
  const { clock, random } = deps
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options
  const election: Election = { deps, options, leaseDurationMs, observed: undefined, observedMs: 0, renewedMs: 0, reported: undefined }
  const status = statusGauge(deps.metrics ?? noMetrics, options)
  status.set(0)
  while (!(await tryAcquireOrRenew(election, signal))) {
    if (signal.aborted) return
    await clock.sleep(retryPeriodMs * (1 + jitter * random.next()), signal).catch(() => {})
    if (signal.aborted) return
  }
  status.set(1)
  const lost = new AbortController()
  using over = abortScope(signal, lost.signal)
  using ended = abortScope(signal)
  // Work that continues after `lead` has ended must not write: the lease is released then.
  let isOver = false
  const held = () => !isOver && !lost.signal.aborted && isHolder(election) && clock.monotonicMs() < election.renewedMs + renewDeadlineMs
  const leading = lead(over.signal, { held, lost: lost.signal, fence: (client) => fencedClient(client, { held, lost: lost.signal }) })
  const done = leading.finally(() => {
    isOver = true
    ended.abort()
  })
  const renewing = renew(election, renewDeadlineMs, retryPeriodMs, ended.signal, lost)
  try {
    await done
  } finally {
    ended.abort()
    await renewing
    status.set(0)
    if (options.releaseOnCancel && !lost.signal.aborted) await release(election)
  }
  if (lost.signal.aborted && !signal.aborted) throw lost.signal.reason
}

async function renew(election: Election, renewDeadlineMs: number, retryPeriodMs: number, signal: AbortSignal, lost: AbortController): Promise<void> {
  const { clock } = election.deps
  while (!signal.aborted) {
    await clock.sleep(retryPeriodMs, signal).catch(() => {})
    if (signal.aborted) return
    // A call that hangs must not outlive the deadline: others may lead by then.
    const ms = Math.max(0, election.renewedMs + renewDeadlineMs - clock.monotonicMs())
    using limit = deadlineScope({ clock, ms, reason: () => new Error('renew deadline') }, signal)
    const renewed = await unlessAborted(tryAcquireOrRenew(election, limit.signal), limit.signal)
    if (renewed || signal.aborted) continue
    if (clock.monotonicMs() - election.renewedMs >= renewDeadlineMs || !isHolder(election)) {
      lost.abort(new Error('leaderelection lost'))
      return
    }
  }
}

/** Upstream's own checks. */
function checkTimes({ leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 }: LeaderElectionOptions): void {
  if (leaseDurationMs <= renewDeadlineMs) throw new Error('leaseDuration must be greater than renewDeadline')
  if (renewDeadlineMs <= retryPeriodMs * jitter) throw new Error('renewDeadline must be greater than retryPeriod*JitterFactor')
  if (retryPeriodMs < 1) throw new Error('retryPeriod must be greater than zero')
}

function statusGauge(metrics: Metrics, { lock, name = lock.name }: LeaderElectionOptions) {
  const help = 'Whether this process leads: 1, or 0 while it stands by. name tells the lease'
  return metrics.gauge({ name: 'leader_election_master_status', help, labels: ['name'] }).series({ name })
}

const isHolder = ({ observed, options }: Election) => observed?.spec?.holderIdentity === options.identity

/** One attempt; true when the lease is ours and fresh. */
async function tryAcquireOrRenew(election: Election, signal: AbortSignal): Promise<boolean> {
  const { deps, options, leaseDurationMs } = election
  const client = deps.client.of(leases)
  const sentMs = deps.clock.monotonicMs()
  const now = formatMicroTime(deps.clock.now())
  const mine = { holderIdentity: options.identity, leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000), renewTime: now }
  try {
    let there: Frozen<Lease>
    try {
      there = await client.get(options.lock, { signal })
    } catch (error) {
      if (!isStatus(error, 'NotFound')) throw error
      const metadata = { namespace: options.lock.namespace, name: options.lock.name }
      observe(election, await client.create({ metadata, spec: { ...mine, acquireTime: now, leaseTransitions: 0 } }, { signal }))
      election.renewedMs = sentMs
      return true
    }
    observe(election, there)
    const holder = there.spec?.holderIdentity
    const held = holder !== undefined && holder !== '' && deps.clock.monotonicMs() < election.observedMs + leaseDurationMs
    if (held && holder !== options.identity) return false
    const takingOver = holder !== options.identity
    const spec = {
      ...there.spec,
      ...mine,
      acquireTime: takingOver ? now : there.spec?.acquireTime,
      leaseTransitions: (there.spec?.leaseTransitions ?? 0) + (takingOver ? 1 : 0),
    }
    // The resourceVersion decides between two processes that try at once: one gets Conflict.
    observe(election, await client.update({ ...there, spec } as Frozen<Lease>, { signal }))
    election.renewedMs = sentMs
    return true
  } catch (error) {
    if (!signal.aborted && !isStatus(error, 'Conflict')) {
      deps.log.warn('Failed to acquire or renew the lease', { lease: options.lock, error: messageOf(error) })
    }
    return false
  }
}

function observe(election: Election, lease: Frozen<Lease>): void {
  const { observed } = election
  if (observed?.metadata.resourceVersion !== lease.metadata.resourceVersion) {
    election.observed = lease
    election.observedMs = election.deps.clock.monotonicMs()
  }
  const holder = lease.spec?.holderIdentity
  if (holder && holder !== election.reported) {
    election.reported = holder
    election.options.onNewLeader?.(holder)
  }
}

/** A renewal that was cut off may still arrive. */
const releaseAttempts = 3

async function release(election: Election): Promise<void> {
  const { deps, options } = election
  const client = deps.client.of(leases)
  for (let attempt = 1; isHolder(election); attempt++) {
    const now = formatMicroTime(deps.clock.now())
    const leaseTransitions = election.observed?.spec?.leaseTransitions
    const spec = { leaseDurationSeconds: 1, renewTime: now, acquireTime: now, holderIdentity: '', leaseTransitions }
    try {
      await client.update({ ...election.observed, spec } as Frozen<Lease>)
      return
    } catch (error) {
      if (attempt === releaseAttempts || !isStatus(error, 'Conflict')) {
        deps.log.warn('Failed to release the lease', { error: messageOf(error) })
        return
      }
    }
    const there = await client.get(options.lock).catch(() => undefined)
    if (!there) return
    observe(election, there)
  }
}
