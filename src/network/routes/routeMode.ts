/** What a way to lead packets between nodes is (L3): one file in this folder, one line in index.ts. */
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Exec } from '#host/exec'
import type { Route } from '../podNetwork.ts'

export interface RouteModeDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly exec: Exec
}

/** Where a mode gets the wanted routes from. */
export interface WantedRoutes {
  /**
   * Waits for a change since the last call, at most for the time given; the first call waits for the first routes. Rejects when the signal aborts.
   */
  next(signal: AbortSignal, atMostMs?: number): Promise<void>
  newest(): readonly Route[]
  /** The ranges of the node's own pods, each with the node's address. Empty until they are known, and in a namespace that is no node. */
  own(): readonly Route[]
}

export interface RouteMode {
  readonly name: string
  /** The largest packet that a pod may send, where that is less than the nodes' links carry. */
  readonly podMtu?: number | undefined
  /** The kernel's route for a wanted one; absent: the same. */
  asInKernel?(route: Route): Route
  /** Keeps the host's routes in step with those wanted until the signal aborts. The routes stay: an agent that restarts must not cut the traffic. */
  run(deps: RouteModeDeps, wanted: WantedRoutes, signal: AbortSignal): Promise<void>
  /** Removes from the host what run() made, in this or an earlier process. Nothing to remove is fine. */
  cleanUp(exec: Exec): Promise<void>
}
