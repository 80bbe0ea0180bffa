/**
 * What the server of a local cluster sends to its forwarder process, and the limits that the process keeps (L5). Every message goes with a descriptor or names
 * a listener that one brought.
 */
import type { Socket } from 'node:net'

export interface ForwardTarget {
  readonly address: string
  readonly port: number
}

/** Comes with a bound socket, which the process serves from now on. */
export interface ServeListener {
  readonly serve: number
  readonly protocol: 'TCP' | 'UDP'
  readonly targets: readonly ForwardTarget[]
}

/** Comes with a connection that the server accepted before the process had the listener. */
export interface ServeConnection {
  readonly connectionOf: number
}

/** For connections from now on. */
export interface SetTargets {
  readonly targetsOf: number
  readonly targets: readonly ForwardTarget[]
}

/** Established connections stay. */
export interface CloseListener {
  readonly close: number
}

export type ForwardMessage = ServeListener | ServeConnection | SetTargets | CloseListener

/** One listener, as the process serves it. */
export interface Forwarder {
  setTargets(targets: readonly ForwardTarget[]): void
  /** TCP only: serves a connection that the server accepted. */
  accept?(client: Socket): void
  /** Takes no more clients. Established TCP connections stay. */
  close(): void
}

/** More are reset at once. A connection takes two descriptors and, while one side does not read, about 300 KiB. */
export const maxConnections = { ofListener: 512, ofProcess: 1024 }
/** UDP clients, each with a socket of its own towards the node; a new client takes the place of the one that was silent for longest. */
export const maxFlows = { ofListener: 256, ofProcess: 1024 }
/** As the nodes' conntrack keeps a UDP flow with answers. */
export const flowIdleMs = 120_000
