/** What the loops share that follow the cluster (L3). */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { WakeUp } from '#base/wakeUp'
import type { SharedInformer } from '#client/cache/sharedInformer'
import type { Client } from '#client/client'

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

export interface Following {
  /** Informers that are read before the first changes are taken over. */
  readonly sources: Readonly<Record<string, { synced(signal: AbortSignal): Promise<void> }>>
  /** Rung when there is something to take over. */
  readonly changes: WakeUp
  takeChanges(): Promise<void>
  /** Called each time after the changes were taken over, or not because of an error. */
  markReady(): void
  readonly log: Logger
  /** The message of an error of `takeChanges`; the next changes are taken over again. */
  readonly failure: string
  /** Removes the handlers at the end. */
  stop(): void
}

/** Takes changes over from the time on when all sources are read, until the signal fires. */
export async function followChanges({ sources, changes, takeChanges, markReady, log, failure, stop }: Following, signal: AbortSignal): Promise<void> {
  try {
    await Promise.all(Object.values(sources).map((source) => source.synced(signal)))
    while (!signal.aborted) {
      await takeChanges().catch((error) => log.error(error, failure))
      markReady()
      await changes.wait(signal)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    stop()
  }
}

const askAgainMs = 1000

/** Resolves when the informer is read, or when the API says that it does not serve the kind. The informer gets its objects if that changes. */
export async function syncedIfServed<T extends KubeObject>(
  informer: Pick<SharedInformer<T>, 'resource' | 'hasSynced' | 'synced'>,
  client: Pick<Client, 'of'>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  while (!informer.hasSynced()) {
    try {
      await client.of(informer.resource).list({ limit: 1, signal })
      await informer.synced(signal)
    } catch (error) {
      if (isStatus(error, 'NotFound')) return
      if (signal.aborted) throw error
      await clock.sleep(askAgainMs, signal)
    }
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
