/**
 * One of several processes works at a time: the holder of the Lease. What client-go's example leader-election does; beyond it, writes through `fence(client)` are
 * refused from the moment that another might lead.
 */
import { type Connection, configMaps, type ObjectRef, runLeaderElected } from 'skiff-kubernetes/client'

/** Runs until the signal aborts, which releases the Lease at once; throws when the lead is lost otherwise: start again, best as a new process. */
export async function countAsLeader(
  connection: Pick<Connection, 'client' | 'clock' | 'random' | 'log'>,
  identity: string,
  lock: ObjectRef,
  signal: AbortSignal,
): Promise<void> {
  const { clock, client } = connection
  await runLeaderElected(
    connection,
    { lock, identity, leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000, releaseOnCancel: true },
    async (leading, { fence }) => {
      const counters = fence(client).of(configMaps)
      for (let count = 1; !leading.aborted; count++) {
        const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: lock, data: { leader: identity, count: String(count) } }
        await counters.patch(lock, 'apply', body, { fieldManager: 'counter', force: true })
        await clock.sleep(5_000, leading).catch(() => {})
      }
    },
    signal,
  )
}
