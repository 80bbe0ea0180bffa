/**
 * Forwards the datagrams of bound UDP sockets (L5): each client address has a flow, a socket of its own towards a node, until it is silent for a while. Flows
 * are limited for each listener and in all; TCP connections have limits of their own.
 */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import type { Clock } from '#base/clock'
import { type Forwarder, type ForwardTarget, flowIdleMs, maxFlows } from './forwardMessages.ts'

/** Datagrams beyond this wait for the kernel: more are dropped, as a full queue of the kernel would. */
const maxQueuedBytes = 1024 * 1024

interface Flow {
  /** Sends a datagram of the client to the node. */
  send(data: Buffer): void
  end(): void
}

/** By the client's address and port; the one that was silent for longest comes first. */
type Flows = Map<string, Flow>

export interface UdpForwarding {
  serve(bound: Socket, targets: readonly ForwardTarget[]): Forwarder
}

export function createUdpForwarding(clock: Clock, limits: typeof maxFlows = maxFlows): UdpForwarding {
  let inAll = 0
  const ofListeners = new Set<Flows>()
  return {
    serve: (bound, initial) => {
      let targets = initial
      const flows: Flows = new Map()
      ofListeners.add(flows)
      const open = (key: string, client: RemoteInfo): Flow | undefined => {
        const [target] = targets
        if (!target) return undefined
        if (flows.size >= limits.ofListener) endOldest(flows)
        else if (inAll >= limits.ofProcess) endOldest(largest(ofListeners))
        inAll++
        const flow = openFlow(clock, bound, client, target, () => {
          inAll--
          if (flows.get(key) === flow) flows.delete(key)
        })
        return flow
      }
      bound.on('error', () => {})
      bound.on('message', (data, client) => {
        const key = `${client.address} ${client.port}`
        const flow = flows.get(key) ?? open(key, client)
        if (!flow) return
        flows.delete(key)
        flows.set(key, flow)
        flow.send(data)
      })
      const endAll = () => {
        for (const flow of [...flows.values()]) flow.end()
      }
      return {
        setTargets: (renewed) => {
          const before = targets[0]
          targets = renewed
          // Flows to a node that is no longer the first choice would stay with it for as long as the client sends.
          if (before?.address !== renewed[0]?.address || before?.port !== renewed[0]?.port) endAll()
        },
        close: () => {
          endAll()
          ofListeners.delete(flows)
          bound.close()
        },
      }
    },
  }
}

function endOldest(flows: Flows): void {
  flows.values().next().value?.end()
}

/** Returns the flows of the listener that has the most: a listener with many clients must not keep the first client of another one out. */
function largest(ofListeners: ReadonlySet<Flows>): Flows {
  let found: Flows = new Map()
  for (const flows of ofListeners) if (flows.size > found.size) found = flows
  return found
}

function openFlow(clock: Clock, bound: Socket, client: RemoteInfo, target: ForwardTarget, onEnd: () => void): Flow {
  const socket = createSocket(target.address.includes(':') ? 'udp6' : 'udp4')
  let lastMs = clock.monotonicMs()
  let isOpen = true
  const end = () => {
    if (!isOpen) return
    isOpen = false
    timer.cancel()
    socket.close()
    onEnd()
  }
  const look = () => {
    const leftMs = lastMs + flowIdleMs - clock.monotonicMs()
    if (leftMs <= 0) end()
    else timer = clock.timer(leftMs, look)
  }
  let timer = clock.timer(flowIdleMs, look)
  socket.on('error', end)
  socket.on('message', (data, { address, port }) => {
    // Anything in the cluster can send to this socket; the client takes answers of its node only.
    if (address !== target.address || port !== target.port) return
    lastMs = clock.monotonicMs()
    sendTo(bound, data, client.port, client.address)
  })
  return {
    send: (data) => {
      lastMs = clock.monotonicMs()
      sendTo(socket, data, target.port, target.address)
    },
    end,
  }
}

/** A datagram that cannot be sent is lost, as on any network. */
function sendTo(socket: Socket, data: Buffer, port: number, address: string): void {
  try {
    if (socket.getSendQueueSize() <= maxQueuedBytes) socket.send(data, port, address, () => {})
  } catch {
    // The socket was closed meanwhile.
  }
}
