/**
 * Serves the resources of CustomResourceDefinitions (L3): follows the definitions in the cache, opens and closes their resources in the registry,
 * and updates the catalog. A definition is served as soon as its names are accepted; its conditions are ./controller.ts's work.
 * Upstream: crdHandler of apiextensions-apiserver/pkg/apiserver/customresource_handler.go.
 */
import type { KubeObject } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { inFewSteps } from '../core/fairLoop.ts'
import type { Catalog } from '../registry/catalog.ts'
import type { Registry } from '../registry/registry.ts'
import type { WatchCache } from '../registry/watchCache.ts'
import { type CustomResource, type CustomResourceParts, customResource } from './customResource.ts'
import { type Definition, definitions, isServed, isTerminating, prefixOf, resourceOf, revisionOf } from './definitions.ts'

export interface ServingDeps {
  readonly registry: Registry
  readonly catalog: Catalog
  readonly clock: Clock
  readonly log: Logger
  readonly parts: CustomResourceParts
}

interface Served {
  readonly uid: string
  readonly cache: WatchCache
  readonly resource: CustomResource
  readonly terminating: boolean
}

export class CustomResources {
  readonly #deps: ServingDeps
  readonly #served = new Map<string, Served>()
  /** Pending calls of `settle` by definition, which run one after the other. */
  readonly #settling = new Map<string, Promise<void>>()
  readonly #again = new Set<string>()
  /** Definitions that could not be served, until they are tried again. */
  readonly #retrying = new Set<string>()
  #signal: AbortSignal | undefined

  constructor(deps: ServingDeps) {
    this.#deps = deps
  }

  /** Serves all existing definitions, then follows changes until the signal aborts. Resolves when the existing ones are served. */
  async follow(signal: AbortSignal): Promise<void> {
    this.#signal = signal
    const { reader } = this.#deps.registry
    const stop = reader.onChange<KubeObject>(definitions, ({ object }) => void this.settle(object.metadata.name ?? ''))
    signal.addEventListener('abort', stop, { once: true })
    await Promise.all(reader.list<KubeObject>(definitions).map(({ metadata }) => this.settle(metadata.name ?? '')))
  }

  /** The resource of a definition while it is served. */
  get(name: string): { readonly resource: CustomResource; readonly cache: WatchCache } | undefined {
    return this.#served.get(name)
  }

  /** Resolves when the served resource matches the cached definition. A definition that could not be served is left to its retry. */
  async catchUp(name: string): Promise<void> {
    const running = this.#settling.get(name)
    if (running) await running
    else if (!this.#retrying.has(name)) await this.settle(name)
  }

  /** Resolves when the served resource matches the current definition. */
  settle(name: string): Promise<void> {
    const running = this.#settling.get(name)
    if (running) {
      this.#again.add(name)
      return running
    }
    const settled = this.#settleUntilQuiet(name).finally(() => this.#settling.delete(name))
    this.#settling.set(name, settled)
    return settled
  }

  async #settleUntilQuiet(name: string): Promise<void> {
    do {
      this.#again.delete(name)
      try {
        await this.#settleOnce(name)
      } catch (error) {
        if (this.#signal?.aborted) return
        this.#deps.log.error(error, 'Serving a custom resource failed; trying again', { customResourceDefinition: name })
        this.#retryLater(name)
      }
    } while (this.#again.has(name))
  }

  /** One retry at a time for each definition, however often it fails meanwhile. */
  #retryLater(name: string): void {
    if (this.#retrying.has(name)) return
    this.#retrying.add(name)
    this.#deps.clock.sleep(retryMs, this.#signal).then(
      () => {
        this.#retrying.delete(name)
        return this.settle(name)
      },
      () => undefined,
    )
  }

  async #settleOnce(name: string): Promise<void> {
    const definition = this.#definition(name)
    const before = this.#served.get(name)
    if (before && (!definition || before.uid !== definition.metadata.uid || !isServed(definition))) this.#withdraw(name, before)
    if (!definition || !isServed(definition)) return
    const known = this.#served.get(name)
    if (known && known.resource.revision === revisionOf(definition) && known.terminating === isTerminating(definition)) return
    try {
      const cache = known?.cache ?? (await this.#deps.registry.openCache(prefixOf(definition), resourceOf(definition)))
      await this.#serve(name, definition, cache, known)
    } catch (error) {
      if (!known) this.#deps.registry.closeCache(prefixOf(definition))
      throw error
    }
  }

  #definition(name: string): Definition | undefined {
    return this.#deps.registry.reader.get<KubeObject>(definitions, '', name) as Definition | undefined
  }

  async #serve(name: string, definition: Definition, cache: WatchCache, before: Served | undefined): Promise<void> {
    const { registry, catalog, parts } = this.#deps
    const building = inFewSteps(customResource(definition, cache, parts))
    const resource = building instanceof Promise ? await building : building
    if (before) {
      registry.remove(before.resource.served)
      cache.forgetViews()
      // Clients watch again and get the new versions.
      if (before.resource.revision !== resource.revision) cache.closeWatches()
    }
    registry.add(resource.served)
    catalog.set(sourceName(name), resource.source)
    this.#served.set(name, { uid: definition.metadata.uid ?? '', cache, resource, terminating: isTerminating(definition) })
  }

  #withdraw(name: string, { resource }: Served): void {
    const { registry, catalog } = this.#deps
    catalog.remove(sourceName(name))
    registry.remove(resource.served)
    registry.closeCache(resource.prefix)
    this.#served.delete(name)
  }
}

const retryMs = 1_000

function sourceName(definition: string): string {
  return `crd ${definition}`
}
