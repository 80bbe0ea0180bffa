/**
 * Runs tasks in the background (L2): in order within a lane, in parallel between lanes, up to a limit. Nothing waits
 * for a turn of the event loop while there is room, so tasks that are added in one turn travel together.
 */
export interface Lanes {
  /** Tasks waiting or under way. */
  readonly size: number
  /** `task` must not throw: what goes wrong is its own matter. */
  add(lane: string, task: () => Promise<void>): void
  /** Resolves when everything added so far, and what is added meanwhile, has ended. */
  idle(): Promise<void>
}

export function createLanes(limit: number): Lanes {
  /** Lanes with work; the first task of each is next. */
  const waiting = new Map<string, (() => Promise<void>)[]>()
  /** Lanes that could run if the limit allowed it. */
  const ready: string[] = []
  const idlers: (() => void)[] = []
  let size = 0
  let running = 0

  function start(): void {
    while (running < limit) {
      const lane = ready.shift()
      if (lane === undefined) return
      const task = waiting.get(lane)?.shift()
      if (!task) continue
      running++
      const end = () => ended(lane)
      void Promise.resolve().then(task).then(end, end)
    }
  }

  function ended(lane: string): void {
    running--
    size--
    if (waiting.get(lane)?.length) ready.push(lane)
    else waiting.delete(lane)
    if (size === 0) for (const resolve of idlers.splice(0)) resolve()
    start()
  }

  return {
    get size() {
      return size
    },
    add: (lane, task) => {
      size++
      const there = waiting.get(lane)
      if (there) {
        there.push(task)
        return
      }
      waiting.set(lane, [task])
      ready.push(lane)
      start()
    },
    idle: () => (size === 0 ? Promise.resolve() : new Promise((resolve) => idlers.push(resolve))),
  }
}
