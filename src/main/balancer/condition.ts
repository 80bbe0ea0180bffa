/**
 * Decides which API servers the balancer of a local cluster uses (L5), pure: what a health check says about a server, and the order in which a new connection
 * tries the servers. Upstream has no balancer; kubeadm's guide for high availability asks for one with a check of /readyz.
 */

/** `ok`: /readyz answered 200. `failing`: it answered something else. `refused`: nothing listens. `silent`: no answer in time. */
export type CheckResult = 'ok' | 'failing' | 'refused' | 'silent'

export interface Condition {
  /** `ready` gets new connections. `notReady` keeps the ones it has. `dead` loses them. */
  readonly state: 'ready' | 'notReady' | 'dead'
  /** Checks in a row without an answer. */
  readonly silences: number
}

/** Before the first check. */
export const unknown: Condition = { state: 'dead', silences: 0 }

/** A process that was stopped, or whose host is gone, never refuses: after this many checks without an answer it counts as dead. */
export const mostSilences = 3

export function afterCheck({ state, silences }: Condition, result: CheckResult): Condition {
  if (result === 'ok') return { state: 'ready', silences: 0 }
  if (result === 'failing') return { state: 'notReady', silences: 0 }
  if (result === 'refused' || state === 'dead') return { state: 'dead', silences: 0 }
  return { state: silences + 1 >= mostSilences ? 'dead' : 'notReady', silences: silences + 1 }
}

export interface Candidate {
  readonly state: Condition['state']
  /** Connections that it has. */
  readonly open: number
}

/**
 * The servers for a new connection, the one with the fewest connections first. While no server is ready, those that answer are used: they say what is wrong,
 * and serve reads from their caches.
 * @param turn counts the connections: servers with equally many take turns
 */
export function inOrder<C extends Candidate>(candidates: readonly C[], turn: number): readonly C[] {
  const ready = candidates.filter(({ state }) => state === 'ready')
  const usable = ready.length > 0 ? ready : candidates.filter(({ state }) => state === 'notReady')
  const first = usable.length === 0 ? 0 : turn % usable.length
  return [...usable.slice(first), ...usable.slice(0, first)].sort((a, b) => a.open - b.open)
}
