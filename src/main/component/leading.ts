/**
 * A component that works only while it leads (L5): one process acts, the others stand by. A process that loses the lead ends at once, as
 * upstream's do; writes that it still tries are refused. Upstream: cmd/kube-scheduler, cmd/kube-controller-manager (v1.36).
 */
import { setMaxListeners } from 'node:events'
import os from 'node:os'
import { randomUid } from '#base/random'
import type { Client } from '#client/client'
import { type LeaderElectionDeps, runLeaderElected } from '#client/leaderElection'

export interface LeaseSettings {
  /** False: it works without asking. */
  readonly leaderElect: boolean
  readonly leaseDurationMs: number
  readonly renewDeadlineMs: number
  readonly retryPeriodMs: number
  readonly resourceNamespace: string
  readonly resourceName: string
}

export interface LeadingParts {
  /** e.g. kube-scheduler. */
  readonly component: string
  /** For the lease alone: its calls must not wait behind the component's own. */
  readonly client: Client
  readonly tools: Omit<LeaderElectionDeps, 'client'>
  readonly lease: LeaseSettings
  /** The identity of this process in the Lease; absent: the host's name and a random suffix. */
  readonly identity?: string | undefined
}

/** What a component writes through; see Leadership.fence. */
export type Fence = (client: Client) => Client

/**
 * Waits for the lead, then acts until the signal aborts.
 * @throws Error as soon as the lead is lost, whether or not `act` has ended by then
 */
export async function runWhileLeading(
  { component, client, tools, lease, identity }: LeadingParts,
  act: (signal: AbortSignal, fence: Fence) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  if (!lease.leaderElect) return act(signal, (own) => own)
  const log = tools.log.with('leaderElection')
  const lock = { namespace: lease.resourceNamespace, name: lease.resourceName }
  const name = `${lock.namespace}/${lock.name}`
  let lose = (_error: Error) => {}
  const lost = new Promise<never>((_, reject) => {
    lose = reject
  })
  const options = {
    ...lease,
    lock,
    name: component,
    identity: identity ?? `${os.hostname()}_${randomUid(tools.random)}`,
    releaseOnCancel: true,
    onNewLeader: (leader: string) => log.info('New leader elected', { lease: name, identity: leader }),
  }
  log.info('Attempting to acquire leader lease...', { lease: name, identity: options.identity })
  const elected = runLeaderElected(
    { ...tools, client, log },
    options,
    async (leading, leadership) => {
      log.info('Successfully acquired lease', { lease: name })
      // All that the component waits for, and every write, listens to them.
      setMaxListeners(0, leading, leadership.lost)
      leadership.lost.addEventListener('abort', () => lose(new Error('leaderelection lost')), { once: true })
      await act(leading, (own) => leadership.fence(own))
    },
    signal,
  )
  await Promise.race([elected, lost])
}
