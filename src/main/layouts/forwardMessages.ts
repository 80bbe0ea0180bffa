/**
 * What the server of a local cluster sends to its forwarder process (L5). Every message goes with a descriptor or names a listener that one brought.
 */
import type { ForwardTarget } from '#host/forwarding/forwarder'

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
