/**
 * A client for a leader (L2): writes are refused from the moment that another process might lead, and those under way are cut off. The server
 * cannot know who leads, so a write that was sent in time and hangs in the network may still arrive; the lease's last third is there for that.
 * Upstream has no counterpart: its processes exit.
 */
import { abortScope } from '#base/abortScope'
import type { Client } from './client.ts'
import { createClient } from './clientOverTransport.ts'
import type { Transport } from './transport.ts'

/** The write was not sent, or its outcome is unknown: another process may lead. */
export class LeadershipLostError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'LeadershipLostError'
  }
}

export interface Fence {
  held(): boolean
  /** Aborts when leadership is lost. */
  readonly lost: AbortSignal
}

export function fencedClient(client: Client, fence: Fence): Client {
  const { transport } = client
  const fenced: Transport = {
    async request(request, signal) {
      if (request.method === 'GET') return transport.request(request, signal)
      if (!fence.held()) throw new LeadershipLostError(`${request.method} ${request.path} was not sent: leadership is lost`)
      using either = abortScope(signal, fence.lost)
      try {
        return await transport.request(request, either.signal)
      } catch (error) {
        if (!fence.lost.aborted || signal?.aborted) throw error
        throw new LeadershipLostError(`${request.method} ${request.path} was cut off: leadership is lost`)
      }
    },
    watch: (request, signal) => transport.watch(request, signal),
  }
  return createClient(fenced)
}
