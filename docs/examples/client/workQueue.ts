/**
 * A controller by hand: an informer, a work queue and workers. Prints every pod as it changes; a name that fails is tried again after a wait that
 * grows, five times. What client-go's example workqueue does. defineController of skiff-kubernetes/controller does all of this for you.
 */
import { createSharedInformer, createWorkQueue, type Connection, defaultControllerRateLimiter, keyOf, pods } from 'skiff-kubernetes/client'

const maxTries = 5

export interface Printer {
  print(line: string): void
}

/** Runs until the signal aborts. */
export async function printPods(connection: Pick<Connection, 'client' | 'clock' | 'random' | 'log'>, { print }: Printer, signal: AbortSignal): Promise<void> {
  const { client, clock } = connection
  const informer = createSharedInformer(client.of(pods), connection, { namespace: 'default' })
  const queue = createWorkQueue<string>({ clock, rateLimiter: defaultControllerRateLimiter(clock) })
  informer.addHandler({
    onAdd: (pod) => queue.add(keyOf(pod)),
    onUpdate: (_, pod) => queue.add(keyOf(pod)),
    onDelete: (pod) => queue.add(keyOf(pod)),
  })
  signal.addEventListener('abort', () => queue.shutDown(), { once: true })

  async function work(): Promise<void> {
    for (let key = await queue.get(); key !== undefined; key = await queue.get()) {
      try {
        const pod = informer.store.get(key)
        print(pod ? `${key} is ${pod.status?.phase ?? 'new'}` : `${key} is gone`)
        queue.forget(key)
      } catch {
        // The same name is never worked on twice at once, and those of others are not held up.
        if (queue.numRequeues(key) < maxTries) queue.addRateLimited(key)
        else queue.forget(key)
      } finally {
        queue.done(key)
      }
    }
  }

  await Promise.all([informer.run(signal), work(), work()])
}
