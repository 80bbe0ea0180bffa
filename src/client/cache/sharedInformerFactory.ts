/**
 * The informers of one component or process (L2): one watch per resource and selector, however many ask. Informers that are asked for
 * while the factory runs start at once. Upstream: client-go/informers/factory.go (v1.36).
 */

import type { Frozen, KubeObject } from '#api/machinery/meta'
import { abortScope } from '#base/abortScope'
import { aborted } from '#base/orAborted'
import type { Client, Resource } from '../client.ts'
import type { ReflectorDeps, ReflectorOptions } from './reflector.ts'
import { createSharedInformer, type SharedInformer } from './sharedInformer.ts'

export interface SharedInformerFactory {
  /** The informer of a resource: the same one for the same resource and options. */
  of<T extends KubeObject>(resource: Resource<T>, options?: ReflectorOptions): SharedInformer<T>
  /**
   * Stops and forgets an informer that has no handlers left: its resource is no longer served. If the resource is asked for later, it gets a new
   * informer. An informer with handlers runs on, until the last of their owners calls this.
   */
  stopUnused<T extends KubeObject>(informer: SharedInformer<T>): void
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

interface Entry {
  readonly informer: SharedInformer<never>
  readonly run: (signal: AbortSignal) => Promise<void>
  readonly stop: AbortController
}

async function runUntil(run: Entry['run'], ...signals: readonly AbortSignal[]): Promise<void> {
  using scope = abortScope(...signals)
  await run(scope.signal)
}

/** `client` decides what the informers hold: whole objects, or with createMetadataClient their metadata. */
export function createSharedInformerFactory(client: Client, deps: ReflectorDeps, factoryOptions: SharedInformerFactoryOptions = {}): SharedInformerFactory {
  const { tweakListOptions = (_, options) => options, transform, ...defaults } = factoryOptions
  const informers = new Map<string, Entry>()
  const running = new Set<Promise<void>>()
  let started: AbortSignal | undefined

  function start({ run, stop }: Entry, signal: AbortSignal): void {
    const done: Promise<void> = runUntil(run, signal, stop.signal).finally(() => running.delete(done))
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
      const entry: Entry = { informer: informer as unknown as SharedInformer<never>, run, stop: new AbortController() }
      informers.set(key, entry)
      if (started && !started.aborted) start(entry, started)
      return informer
    },
    stopUnused(informer) {
      if (informer.hasHandlers()) return
      for (const [key, entry] of informers) {
        if (entry.informer !== (informer as unknown)) continue
        informers.delete(key)
        entry.stop.abort(new Error(`the informer of ${informer.resource.resource} is not used any more`))
      }
    },
    async synced(signal) {
      await Promise.all([...informers.values()].map(({ informer }) => informer.synced(signal)))
    },
    async run(signal) {
      started = signal
      for (const entry of informers.values()) start(entry, signal)
      await aborted(signal)
      await Promise.all(running)
      started = undefined
    },
  }
}
