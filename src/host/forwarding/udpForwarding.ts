/**
 * Forwards the datagrams of bound UDP sockets (L1): each client address has a flow, a socket of its own towards a target, until it is silent for a while. Flows
 * are limited for each listener and in all; TCP connections have limits of their own.
 */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { Clock } from '#base/clock'
import { type Forwarder, type ForwardTarget, flowIdleMs, maxFlows, type TargetOrder } from './forwarder.ts'

/** Datagrams beyond this wait for the kernel: more are dropped, as a full queue of the kernel would. */
const maxQueuedBytes = 1024 * 1024

interface Flow {
  readonly target: ForwardTarget
  /** Sends a datagram of the client to the target. */
  send(data: Buffer): void
  end(): void
}

/** By the client's address and port; the one that was silent for longest comes first. */
type Flows = Map<string, Flow>

export interface UdpForwarding {
  /** @param choice absent: the first target gets each client, and keeps its flows while it is the first */
  serve(bound: Socket, targets: readonly ForwardTarget[], choice?: FlowChoice): Forwarder
}

export interface FlowChoice {
  readonly order: TargetOrder
  /** Which targets keep their flows when the targets change. */
  readonly keep: 'first' | 'any'
}

export function createUdpForwarding(clock: Clock, limits: typeof maxFlows = maxFlows): UdpForwarding {
  let inAll = 0
  const ofListeners = new Set<Flows>()
  return {
    serve: (bound, initial, { order, keep } = firstTarget) => {
      let targets = initial
      const flows: Flows = new Map()
      ofListeners.add(flows)
      const open = (key: string, client: RemoteInfo): Flow | undefined => {
        const [target] = order(targets, client.address)
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
          targets = renewed
          // Flows to a target that is no longer a choice would stay with it for as long as the client sends.
          const kept = keep === 'first' ? renewed.slice(0, 1) : renewed
          const isKept = ({ target }: Flow) => kept.some(({ address, port }) => address === target.address && port === target.port)
          for (const flow of [...flows.values()]) if (!isKept(flow)) flow.end()
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

const firstTarget: FlowChoice = { order: (targets) => targets.slice(0, 1), keep: 'first' }

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
  const socket = createSocket(isIPv6(target.address) ? 'udp6' : 'udp4')
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
    // Anything in the cluster can send to this socket; the client takes answers of its target only.
    if (address !== target.address || port !== target.port) return
    lastMs = clock.monotonicMs()
    sendTo(bound, data, client.port, client.address)
  })
  return {
    target,
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
