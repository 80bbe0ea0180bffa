/**
 * The informers of one component or process (L2): one watch per resource and selector, however many ask. Informers that are asked for
 * while the factory runs start at once. Upstream: client-go/informers/factory.go (v1.36).
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { Client, Resource } from '../client.ts'
import type { ReflectorDeps, ReflectorOptions } from './reflector.ts'
import { createSharedInformer, type SharedInformer } from './sharedInformer.ts'

export interface SharedInformerFactory {
  /** The informer of a resource: the same one for the same resource and options. */
  of<T extends KubeObject>(resource: Resource<T>, options?: ReflectorOptions): SharedInformer<T>
  /** Resolves when every informer asked for so far has its first state. */
  synced(signal: AbortSignal): Promise<void>
  /** Runs all informers until the signal aborts; resolves when they have stopped. */
  run(signal: AbortSignal): Promise<void>
}

export interface SharedInformerFactoryOptions extends ReflectorOptions {
  /** Changes what one resource's list and watch ask for. */
  readonly tweakListOptions?: ((resource: Resource<KubeObject>, options: ReflectorOptions) => ReflectorOptions) | undefined
  /** Makes what is kept of each object of every resource. */
  readonly transform?: ((object: Frozen<KubeObject>) => Frozen<KubeObject>) | undefined
}

/** `client` decides what the informers hold: whole objects, or with createMetadataClient their metadata. */
export function createSharedInformerFactory(client: Client, deps: ReflectorDeps, factoryOptions: SharedInformerFactoryOptions = {}): SharedInformerFactory {
  const { tweakListOptions = (_, options) => options, transform, ...defaults } = factoryOptions
  const informers = new Map<string, { readonly informer: SharedInformer<never>; readonly run: (signal: AbortSignal) => Promise<void> }>()
  const running = new Set<Promise<void>>()
  let started: AbortSignal | undefined

  function start(run: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): void {
    const done: Promise<void> = run(signal).finally(() => running.delete(done))
    running.add(done)
  }

  return {
    of<T extends KubeObject>(resource: Resource<T>, options: ReflectorOptions = {}): SharedInformer<T> {
      const { namespace, labelSelector, fieldSelector } = tweakListOptions(resource, { ...defaults, ...options })
      const key = JSON.stringify([resource.group, resource.version, resource.resource, namespace, labelSelector, fieldSelector])
      const there = informers.get(key)
      if (there) return there.informer as unknown as SharedInformer<T>
      const informer = createSharedInformer(client.of(resource), deps, {
        namespace,
        labelSelector,
        fieldSelector,
        transform: transform as ((object: Frozen<T>) => Frozen<T>) | undefined,
      })
      const run = (signal: AbortSignal) => informer.run(signal)
      informers.set(key, { informer: informer as unknown as SharedInformer<never>, run })
      if (started && !started.aborted) start(run, started)
      return informer
    },
    async synced(signal) {
      await Promise.all([...informers.values()].map(({ informer }) => informer.synced(signal)))
    },
    async run(signal) {
      started = signal
      for (const { run } of informers.values()) start(run, signal)
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve()
        else signal.addEventListener('abort', () => resolve(), { once: true })
      })
      await Promise.all(running)
      started = undefined
    },
  }
}
