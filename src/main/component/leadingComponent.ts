/**
 * A component of a server that works only while the server holds a Lease (L5). The server itself continues when the lease is lost: it has an API to serve, and
 * asks for the lease again when the work has ended. Upstream's processes have nothing else to do, and exit.
 */
import { setMaxListeners } from 'node:events'
import type { Component } from '#base/component'
import type { Client } from '#client/client'
import { runLeaderElected } from '#client/leaderElection'
import type { ProcessTools } from '../layouts/processTools.ts'
import type { Fence, LeaseSettings } from './leading.ts'

export interface LeadingOptions {
  readonly name: string
  /** For the lease alone. */
  readonly client: Client
  readonly tools: ProcessTools
  readonly lease: LeaseSettings
  readonly identity: string
}

/**
 * The component fails when `act` fails, after it has given the lease up, or when the lease is lost, after `act` has ended.
 * @param act called each time the server becomes the leader; it writes through fenced clients
 */
export function leadingComponent(
  { name, client, tools, lease, identity }: LeadingOptions,
  act: (fence: Fence, signal: AbortSignal) => Promise<void>,
): Component {
  if (!lease.leaderElect) return { name, run: (signal) => act((own) => own, signal) }
  const log = tools.log.with('leaderElection')
  const lock = { namespace: lease.resourceNamespace, name: lease.resourceName }
  const onNewLeader = (leader: string) => log.info('New leader elected', { lease: lock.name, identity: leader })
  return {
    name,
    run: (signal) =>
      runLeaderElected(
        { ...tools, client, log },
        { ...lease, lock, name, identity, releaseOnCancel: true, onNewLeader },
        (leading, leadership) => {
          // All that works, and every write, listens to them.
          setMaxListeners(0, leading, leadership.lost)
          return act((own) => leadership.fence(own), leading)
        },
        signal,
      ),
  }
}
