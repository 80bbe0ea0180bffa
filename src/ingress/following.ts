/** What the loops share that follow the cluster (L3). */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { Clock } from '#base/clock'

/** A turn of a loop ends after this long. */
const turnMs = 8

/** Gives the event loop back when the turn has become long. */
export function createPauses(clock: Clock): () => Promise<void> | undefined {
  let since = clock.monotonicMs()
  return () => {
    if (clock.monotonicMs() - since < turnMs) return undefined
    return clock.turn().then(() => {
      since = clock.monotonicMs()
    })
  }
}

export function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

/** A handler that gets each object that comes, changes or goes. */
export function onEach<T extends KubeObject>(take: (object: Frozen<T>) => void) {
  return { onAdd: take, onUpdate: (_: Frozen<T>, now: Frozen<T>) => take(now), onDelete: take }
}
