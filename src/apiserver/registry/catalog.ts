/**
 * The APIs that the server serves at this moment (L3): built-in resources, one source per custom resource definition, one per aggregated
 * group-version. The router, discovery and OpenAPI read it; the part that adds an API sets a source and removes it.
 * Documents are made lazily and kept as long as `changes` stays the same.
 * Upstream: the delegation chain of kube-aggregator, kube-apiserver and apiextensions-apiserver, and their discovery and OpenAPI managers.
 */
import { type GroupVersionFacts, groupVersionKey, type ResourceFacts, resourceKey } from '#api/discovery/resources'
import type { ExtraDefinition, JsonSchema } from '#api/openapi/schemas'
import type { Handler } from '../core/stage.ts'
import type { ServedResource, StoredResource } from './storedResource.ts'

/** One resource in one version, and how its requests are answered. */
export interface CatalogEntry {
  readonly facts: ResourceFacts
  /** The facts for discovery, if they are fewer than the answered ones. */
  readonly discovered?: ResourceFacts | undefined
  /** Resources that are stored. */
  readonly served?: ServedResource | undefined
  /** Resources that are computed: answers everything but subresources. */
  readonly handler?: Handler | undefined
  /** A warning of deprecation for every answer. */
  readonly warning?: string | undefined
}

export interface CatalogGroupVersion extends GroupVersionFacts {
  /** 'Stale' when the server behind it does not answer. */
  readonly freshness?: 'Current' | 'Stale' | undefined
}

/** Documents of an API that this server does not know itself. */
export interface ForeignOpenApi {
  /** Its paths and definitions become part of /openapi/v2, as far as they are not there yet. */
  readonly v2?: JsonSchema | undefined
  /** By key of the index, such as 'apis/metrics.k8s.io/v1beta1': the content's hash and who answers with it. */
  readonly v3: ReadonlyMap<string, { readonly hash: string; readonly answer: Handler }>
}

export interface CatalogSource {
  /** Identifies the content: equal revisions mean equal documents, after a restart too. Documents' hashes are computed from it. */
  readonly revision: string
  readonly groupVersions: readonly CatalogGroupVersion[]
  readonly entries: readonly CatalogEntry[]
  /** Kinds that are not built in, list kinds included. */
  readonly definitions?: readonly ExtraDefinition[] | undefined
  /** Answers all requests below /apis/<group>/<version> of its group-versions; `entries` then only describe them to discovery. */
  readonly foreign?: Handler | undefined
  readonly openApi?: ForeignOpenApi | undefined
  /** A component of this process computes it: a source of a user's that has the same group-version takes its place. */
  readonly computed?: true | undefined
}

/** The source of the resources that are part of this server. */
export const builtInSourceName = 'built-in'

interface Index {
  readonly entries: ReadonlyMap<string, CatalogEntry>
  readonly groupVersions: ReadonlyMap<string, CatalogGroupVersion>
  /** By group-version: who answers instead of this server. */
  readonly foreign: ReadonlyMap<string, Handler>
  /** By group-version: the revisions of its sources. */
  readonly revisions: ReadonlyMap<string, string>
  readonly builtInGroups: ReadonlySet<string>
}

export class Catalog {
  readonly #sources = new Map<string, CatalogSource>()
  readonly #listeners = new Set<() => void>()
  #index: Index | undefined
  #changes = 0

  /** Grows with every change. A document made for another count is out of date. */
  get changes(): number {
    return this.#changes
  }

  /** Adds or replaces a source. If two sources have the same resource, the earlier one is served. */
  set(name: string, source: CatalogSource): void {
    this.#sources.set(name, source)
    this.#changed()
  }

  remove(name: string): void {
    if (this.#sources.delete(name)) this.#changed()
  }

  /** The resource of a path; undefined when this server has none there. */
  resource(group: string, version: string, resource: string): CatalogEntry | undefined {
    return this.#current().entries.get(resourceKey(group, version, resource))
  }

  /** The handler that answers a whole group-version instead of this server. */
  foreign(group: string, version: string): Handler | undefined {
    const { foreign } = this.#current()
    return foreign.size === 0 ? undefined : foreign.get(groupVersionKey(group, version))
  }

  /** Whether this server itself serves a version of the group, custom resources aside. */
  hasBuiltInGroup(group: string): boolean {
    return this.#current().builtInGroups.has(group)
  }

  groupVersions(): readonly CatalogGroupVersion[] {
    return [...this.#current().groupVersions.values()]
  }

  /** Names the content of a group-version's documents; '' when there is none. */
  revisionOf(group: string, version: string): string {
    return this.#current().revisions.get(groupVersionKey(group, version)) ?? ''
  }

  resources(): readonly ResourceFacts[] {
    return [...this.#current().entries.values()].map((entry) => entry.discovered ?? entry.facts)
  }

  /** The resources with a prefix of the store, each once for all of its versions that are served. */
  stored(): ReadonlySet<StoredResource> {
    return new Set([...this.#current().entries.values()].flatMap(({ served }) => served?.stored ?? []))
  }

  /** One source by its name. */
  source(name: string): CatalogSource | undefined {
    return this.#sources.get(name)
  }

  /** Calls back after every change; returns the way to stop. */
  onChange(fn: () => void): () => void {
    this.#listeners.add(fn)
    return () => this.#listeners.delete(fn)
  }

  sources(): readonly CatalogSource[] {
    return [...this.#sources.values()]
  }

  #changed(): void {
    this.#changes++
    this.#index = undefined
    for (const listener of this.#listeners) listener()
  }

  #current(): Index {
    this.#index ??= indexOf(this.#sources.values(), this.#sources.get(builtInSourceName))
    return this.#index
  }
}

function indexOf(sources: Iterable<CatalogSource>, builtIn: CatalogSource | undefined): Index {
  const entries = new Map<string, CatalogEntry>()
  const groupVersions = new Map<string, CatalogGroupVersion>()
  const foreign = new Map<string, Handler>()
  const revisions = new Map<string, string>()
  for (const source of sources) {
    for (const one of source.groupVersions) {
      const key = groupVersionKey(one.group, one.version)
      const known = groupVersions.get(key)
      groupVersions.set(key, known ? merged(known, one) : one)
      revisions.set(key, `${revisions.get(key) ?? ''} ${source.revision}`)
      if (source.foreign) foreign.set(key, source.foreign)
    }
    for (const entry of source.entries) {
      const { group, version, resource } = entry.facts
      const key = resourceKey(group, version, resource)
      if (!entries.has(key)) entries.set(key, entry)
    }
  }
  return { entries, groupVersions, foreign, revisions, builtInGroups: new Set(builtIn?.groupVersions.map(({ group }) => group)) }
}

function merged(a: CatalogGroupVersion, b: CatalogGroupVersion): CatalogGroupVersion {
  return {
    ...a,
    groupPriority: Math.max(a.groupPriority, b.groupPriority),
    versionPriority: Math.max(a.versionPriority, b.versionPriority),
    freshness: a.freshness === 'Stale' || b.freshness === 'Stale' ? 'Stale' : undefined,
  }
}
