/** What forwards the clients of one listener, and its limits (L1). */
import type { Socket } from 'node:net'

export interface ForwardTarget {
  readonly address: string
  readonly port: number
}

/** The targets to try for a client, the first that answers gets it; none: the client is refused. */
export type TargetOrder = (targets: readonly ForwardTarget[], clientAddress: string) => readonly ForwardTarget[]

/** One listener, as the process serves it. */
export interface Forwarder {
  setTargets(targets: readonly ForwardTarget[]): void
  /** TCP only: serves a connection that another process accepted. */
  accept?(client: Socket): void
  /** Takes no more clients. Established TCP connections stay. */
  close(): void
}

/** More are reset at once. A connection takes two descriptors and, while one side does not read, about 300 KiB. */
export const maxConnections = { ofListener: 512, ofProcess: 1024 }
/** UDP clients, each with a socket of its own towards the target; a new client takes the place of the one that was silent for longest. */
export const maxFlows = { ofListener: 256, ofProcess: 1024 }
/** As the nodes' conntrack keeps a UDP flow with answers. */
export const flowIdleMs = 120_000
