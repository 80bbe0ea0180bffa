/**
 * Forwards TCP connections of bound listeners (L1): byte for byte, with back-pressure; half-closed ends stay half-closed. Connections are limited for each
 * listener and in all.
 */
import { createServer, type Server, type Socket } from 'node:net'
import type { Clock } from '#base/clock'
import { type Forwarder, type ForwardTarget, maxConnections, type TargetOrder } from './forwarder.ts'
import { connectTo, joinSockets } from './joinedSockets.ts'

/** A target that drops the packets, as a node without an endpoint of its own does, must not hold up the connection. */
const connectTimeoutMs = 1000

export interface TcpForwarding {
  /** @param order absent: the target that answered last comes first */
  serve(bound: Server, targets: readonly ForwardTarget[], order?: TargetOrder): Forwarder
}

export function createTcpForwarding(clock: Clock, limits: typeof maxConnections = maxConnections): TcpForwarding {
  let inAll = 0
  return {
    serve: (bound, initial, order) => {
      let targets = initial
      let own = 0
      // Tries the target that answered last first: with a local traffic policy only some nodes answer.
      let preferred: ForwardTarget | undefined
      const accept = (client: Socket) => {
        if (own >= limits.ofListener || inAll >= limits.ofProcess) {
          client.resetAndDestroy()
          return
        }
        own++
        inAll++
        const onAnswer = (target: ForwardTarget) => {
          preferred = target
        }
        const ordered = order ? order(targets, client.remoteAddress ?? '') : preferredFirst(targets, preferred)
        void forward(clock, client, ordered, onAnswer).finally(() => {
          own--
          inAll--
        })
      }
      const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, accept)
      server.on('error', () => {})
      server.listen(bound)
      return {
        setTargets: (renewed) => {
          targets = renewed
        },
        accept: (client) => {
          client.allowHalfOpen = true
          client.setNoDelay(true)
          accept(client)
        },
        close: () => void server.close(),
      }
    },
  }
}

/** Connects to the first target that answers. Resolves when both ends are closed. */
async function forward(clock: Clock, client: Socket, targets: readonly ForwardTarget[], onAnswer: (target: ForwardTarget) => void): Promise<void> {
  client.on('error', () => {})
  for (const target of targets) {
    const upstream = await connectTo(target, connectTimeoutMs)
    if (!upstream) continue
    onAnswer(target)
    if (client.destroyed) upstream.destroy()
    else await joinSockets(clock, client, upstream)
    return
  }
  client.resetAndDestroy()
}

function preferredFirst(targets: readonly ForwardTarget[], preferred: ForwardTarget | undefined): readonly ForwardTarget[] {
  const found = targets.find(({ address, port }) => address === preferred?.address && port === preferred.port)
  return found ? [found, ...targets.filter((target) => target !== found)] : targets
}
