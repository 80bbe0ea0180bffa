/**
 * Opens ports on this host's loopback addresses for a local cluster (L5). The server is in the host's network namespace and binds the sockets; a process in the
 * cluster's namespace gets their descriptors and serves them. The process starts with the first port. When it ends, its ports are closed; its successor serves
 * those that are opened again.
 */
import type { ChildProcess } from 'node:child_process'
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import type { Component } from '#base/component'
import { createWakeUp } from '#base/wakeUp'
import type { ForwardTarget } from '#host/forwarding/forwarder'
import type { ForwardMessage, ServeListener } from './forwardMessages.ts'
import { endInNamespace, startInNamespace } from './namespaceProcess.ts'
import type { ProcessList } from './processList.ts'
import type { ProcessTools } from './processTools.ts'
import { superviseProcess } from './superviseProcess.ts'

export interface PortForwarderOptions {
  readonly namespace: string
  /** The cluster's name: the process carries it, so that others can tell whose port it is. */
  readonly cluster: string
  /** Words that run this program. */
  readonly self: readonly string[]
  readonly tools: ProcessTools
  readonly processes: ProcessList
}

export interface ForwardedPort {
  readonly protocol: ServeListener['protocol']
  readonly port: number
  readonly targets: readonly ForwardTarget[]
}

export interface OpenPort {
  setTargets(targets: readonly ForwardTarget[]): void
  /** Frees the port. Established TCP connections stay. */
  close(): void
}

/** One run of the process. Its ports close with it. */
export interface ForwarderRun {
  /** @throws Error of the bind, with `address`, when the port cannot be had on one of the loopback addresses */
  open(port: ForwardedPort): Promise<OpenPort>
}

export interface PortForwarder {
  /** Runs the process, once there is a port to open. */
  readonly component: Component
  /** The run of now; starts the first one. Undefined while no process runs: `onChange` is called when one does. */
  current(): ForwarderRun | undefined
  /** Called when a run has begun or ended. */
  onChange(call: () => void): void
}

/** Both are `localhost` to programs of this host. */
const loopbacks = ['127.0.0.1', '::1'] as const
/** Words that start the process, after the program's own; the cluster's name follows. */
export const forwarderRole = ['forwarder', '--cluster'] as const

export function createPortForwarder({ namespace, cluster, self, tools, processes }: PortForwarderOptions): PortForwarder {
  const needed = createWakeUp()
  let run: ForwarderRun | undefined
  const calls: (() => void)[] = []
  const set = (now: ForwarderRun | undefined) => {
    run = now
    for (const call of calls) call()
  }
  const component: Component = {
    name: 'port forwarder',
    run: async (signal) => {
      await needed.wait(signal)
      await superviseProcess(
        {
          start: () => startInNamespace(namespace, self, [...forwarderRole, cluster]),
          onMissing: () => tools.log.warn('The network namespace of the cluster is missing', { namespace }),
          onStarted: async (child) => {
            // It says so when it takes messages: a listener that came earlier would accept connections that nothing serves.
            child.once('message', () => set(createRun(child)))
            await processes.set('forwarder', { role: 'forwarder', pid: child.pid ?? 0 })
          },
          onEnded: async ({ exitCode, signalCode }, stopped) => {
            set(undefined)
            if (!stopped) tools.log.warn('The port forwarder ended, starting it again', { code: exitCode, signal: signalCode })
            await processes.set('forwarder', undefined)
          },
          end: (child, ended) => endInNamespace(child, ended, tools),
        },
        tools,
        signal,
      )
    },
  }
  return {
    component,
    current: () => {
      if (!run) needed.ring()
      return run
    },
    onChange: (call) => void calls.push(call),
  }
}

/** The channel to the process, as a run of it needs it. */
export type ForwarderChannel = Pick<ChildProcess, 'connected' | 'send' | 'once' | 'off'>

/** A run over a channel that takes messages. */
export function createRun(child: ForwarderChannel): ForwarderRun {
  let lastId = 0
  const tell = (message: ForwardMessage) => {
    // A process that has just ended has no ports any more.
    if (child.connected) child.send(message, () => {})
  }
  return {
    open: async ({ protocol, port, targets }) => {
      const bound = await bindBoth(protocol, port)
      const ids = bound.map(() => ++lastId)
      const close = () => {
        for (const id of ids) tell({ close: id })
      }
      const handed = await Promise.allSettled(bound.map((one, i) => handOver(child, { serve: ids[i] ?? 0, protocol, targets }, one)))
      const failed = handed.find((one) => one.status === 'rejected')
      if (failed) {
        // The process may serve one of the addresses already: the next attempt would find it taken.
        close()
        throw failed.reason
      }
      return {
        setTargets: (renewed) => {
          for (const id of ids) tell({ targetsOf: id, targets: renewed })
        },
        close,
      }
    },
  }
}

/** A socket of this process, to be served by another one. */
interface BoundSocket {
  readonly handle: Server | UdpSocket
  /** Connections that this process has accepted. No more come after the handle is closed. */
  readonly early: readonly Socket[]
}

/** Also closes this process's copies, in any case. @throws Error when the process has ended. A connection that cannot be passed on is closed. */
async function handOver(child: ForwarderChannel, message: ServeListener, { handle, early }: BoundSocket): Promise<void> {
  try {
    await sent(child, message, handle).finally(() => void handle.close())
    for (const client of early) await sent(child, { connectionOf: message.serve }, client).catch(() => {})
  } finally {
    dropEarly(early)
  }
}

function dropEarly(early: readonly Socket[]): void {
  for (const client of early) client.destroy()
}

/** On the addresses of `localhost` that the host has: a client that tries either one first must not reach another program there. */
async function bindBoth(protocol: ForwardedPort['protocol'], port: number): Promise<BoundSocket[]> {
  const bound: BoundSocket[] = []
  try {
    for (const address of loopbacks) {
      const one = await (protocol === 'UDP' ? bindUdp(address, port) : bindTcp(address, port)).catch((error: NodeJS.ErrnoException) => {
        if (address === '::1' && (error.code === 'EADDRNOTAVAIL' || error.code === 'EAFNOSUPPORT')) return undefined
        throw Object.assign(error, { address })
      })
      if (one) bound.push(one)
    }
    return bound
  } catch (error) {
    for (const { handle, early } of bound) {
      handle.close()
      dropEarly(early)
    }
    throw error
  }
}

/** Clients that this process may accept before it has handed the socket over. */
const maxEarly = 64

/** Listening begins here, so that a taken port is noticed: clients that come before the other process listens are passed to it one by one. */
async function bindTcp(host: string, port: number): Promise<BoundSocket> {
  const early: Socket[] = []
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
    client.on('error', () => {})
    if (early.length < maxEarly) early.push(withoutServer(client))
    else client.destroy()
  })
  server.listen({ host, port, exclusive: true })
  await once(server, 'listening')
  server.on('error', () => {})
  return { handle: server, early }
}

async function bindUdp(address: string, port: number): Promise<BoundSocket> {
  const socket = createSocket(address.includes(':') ? { type: 'udp6', ipv6Only: true } : { type: 'udp4' })
  try {
    socket.bind({ address, port, exclusive: true })
    await once(socket, 'listening')
  } catch (error) {
    socket.close()
    throw error
  }
  socket.on('error', () => {})
  return { handle: socket, early: [] }
}

/** Node would have both processes keep an account of the connections of the server, one listener on the channel for each server. */
function withoutServer(client: Socket): Socket {
  return Object.assign(client, { server: null })
}

function sent(child: ForwarderChannel, message: ForwardMessage, handle: Server | Socket | UdpSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    // Messages that wait for their turn are dropped without a word when the channel closes.
    const gone = () => reject(new Error('the port forwarder has ended'))
    child.once('disconnect', gone)
    child.send(message, handle, {}, (error) => {
      child.off('disconnect', gone)
      if (error) reject(error)
      else resolve()
    })
  })
}
