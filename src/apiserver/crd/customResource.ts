/**
 * Builds from a CustomResourceDefinition what the registry and the catalog need to serve it (L3): one stored resource, its versions, their
 * rules and facts. Pure but for the cache it is given.
 * Upstream: getOrCreateServingInfoFor of apiextensions-apiserver/pkg/apiserver/customresource_handler.go, customresource_discovery_controller.go.
 */

import { createHash } from 'node:crypto'
import type { ResourceFacts, SubresourceFacts } from '#api/discovery/resources'
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { groupVersion, type KubeObject } from '#api/machinery/meta'
import { forbidden } from '#api/machinery/status'
import type { Schema } from '#api/schema/schema'
import { compileStructural } from '#api/schema/structural'
import { deepCopy } from '#base/frozen'
import { compilingInSteps } from '#cel/compilingInSteps'
import { isLargeObject } from '../core/fairLoop.ts'
import type { CacheEntry } from '../core/watch/cacheEntry.ts'
import type { CatalogEntry, CatalogSource } from '../registry/catalog.ts'
import type { ServedResource, StorageHooks, StoredResource } from '../registry/storedResource.ts'
import type { WatchCache } from '../registry/watchCache.ts'
import { Converter, type WebhookConversion } from './converter.ts'
import {
  type Definition,
  type DefinitionVersion,
  definitionName,
  deprecationWarning,
  isTerminating,
  prefixOf,
  revisionOf,
  storageVersionOf,
} from './definitions.ts'
import { isPublishableSchema, openApiDefinitions, type ShownVersion } from './openApi.ts'
import { customStrategy, type RuleValidation } from './strategy.ts'

/** The dependencies of a custom resource. */
export interface CustomResourceParts {
  /** Undefined for definitions with the conversion strategy None. */
  webhook(definition: Definition): WebhookConversion | undefined
  /** The CEL rules of a version; undefined where there are none. Pauses while it compiles many. */
  rules(props: JSONSchemaProps): Generator<undefined, RuleValidation | undefined>
}

export interface CustomResource {
  readonly prefix: string
  /** A hash of the definition's uid, spec and accepted names. */
  readonly revision: string
  readonly source: CatalogSource
  /** The served versions. */
  readonly served: readonly ServedResource[]
  /** The storage version, served or not. */
  readonly storage: ServedResource
}

/** Every group of custom resources has the same place in discovery, as upstream's autoregistered APIServices. */
const priorities = { groupPriority: 1000, versionPriority: 100 }

const verbs = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch']
const terminatingVerbs = ['delete', 'deletecollection', 'get', 'list', 'watch']
const subresourceVerbs = ['get', 'patch', 'update']

/** Pauses between the versions and parts of large schemas, and while it compiles many rules. */
export function* customResource(definition: Definition, cache: WatchCache, parts: CustomResourceParts): Generator<undefined, CustomResource> {
  const { group, versions } = definition.spec
  const kind = definition.status.acceptedNames?.kind || definition.spec.names.kind
  const schemas = new Map<string, Schema>()
  const pausing = isLargeObject(stringifyExactly(versions).length)
  if (pausing) yield
  for (const { name, schema } of versions) {
    const props = deepCopy<JSONSchemaProps | undefined>(schema?.openAPIV3Schema)
    if (pausing) yield
    schemas.set(groupVersion({ group, version: name }), compileStructural(definitionName(group, name, kind), props))
    if (pausing) yield
  }
  const revision = revisionOf(definition)
  if (pausing) yield
  const make = versionMaker({ pausing, definition, cache, schemas, kind, revision, converter: new Converter(group, schemas, parts.webhook(definition)), parts })
  const all: { readonly version: DefinitionVersion; readonly resource: ServedResource }[] = []
  for (const version of versions.filter(({ served, storage }) => served || storage)) {
    all.push({ version, resource: yield* make(version) })
    if (pausing) yield
  }
  const served = all.filter(({ version }) => version.served)
  const storage = all.find(({ version }) => version.storage)?.resource
  if (!storage) throw new Error(`no storage version in ${definition.metadata.name}`)
  const source: CatalogSource = {
    revision,
    groupVersions: served.map(({ version }) => ({ group, version: version.name, ...priorities })),
    entries: served.map(({ version, resource }) => entryOf(definition, version, resource)),
    definitions: openApiDefinitions(definition, yield* shownVersions(served)),
  }
  return { prefix: prefixOf(definition), revision, source, served: served.map(({ resource }) => resource), storage }
}

function* shownVersions(served: readonly { readonly version: DefinitionVersion; readonly resource: ServedResource }[]): Generator<undefined, ShownVersion[]> {
  const shown: ShownVersion[] = []
  for (const { version, resource } of served) {
    const isPublishable = yield* compilingInSteps(() => isPublishableSchema(version.schema?.openAPIV3Schema))
    shown.push({ version, schema: resource.schema, isPublishable })
  }
  return shown
}

interface VersionInput {
  /** Whether each pass over a schema gets a separate turn of the event loop. */
  readonly pausing: boolean
  readonly definition: Definition
  readonly cache: WatchCache
  readonly schemas: ReadonlyMap<string, Schema>
  readonly kind: string
  readonly revision: string
  readonly converter: Converter
  readonly parts: CustomResourceParts
}

type VersionMaker = (version: DefinitionVersion) => Generator<undefined, ServedResource>

function versionMaker({ pausing, definition, cache, schemas, kind, revision, converter, parts }: VersionInput): VersionMaker {
  const { spec, status } = definition
  const { group } = spec
  const { plural, singular = '', listKind = `${kind}List` } = status.acceptedNames?.plural ? status.acceptedNames : spec.names
  const namespaced = spec.scope === 'Namespaced'
  const storageVersion = storageVersionOf(definition).name
  const storageApiVersion = groupVersion({ group, version: storageVersion })
  const storageView = converter.view(storageVersion)
  const isOutdated = (entry: CacheEntry) => entry.object.apiVersion !== storageApiVersion || entry.view(storageView) !== entry
  return function* (version) {
    const apiVersion = groupVersion({ group, version: version.name })
    const schema = schemas.get(apiVersion) as Schema
    const props = version.schema?.openAPIV3Schema
    const copy = deepCopy<JSONSchemaProps | undefined>(props)
    if (pausing) yield
    const rules = copy && (yield* parts.rules(copy))
    const stored: StoredResource = {
      group,
      resource: plural,
      kind,
      namespaced,
      prefix: prefixOf(definition),
      storageApiVersion,
      strategy: yield* customStrategy(definition, version, schema, rules),
      hasStatus: version.subresources?.status !== undefined,
      cache,
      hooks: isTerminating(definition) ? refuseCreates({ group, resource: plural }) : undefined,
    }
    const view = version.name === storageVersion ? storageView : converter.view(version.name)
    return {
      group,
      version: version.name,
      apiVersion,
      resource: plural,
      singular,
      kind,
      namespaced,
      verbs,
      schema,
      stored,
      view,
      strategyView: view,
      toStrategy: (object: KubeObject) => object,
      toStored: (object: KubeObject) => converter.toStored(object, storageVersion),
      isOutdated,
      otherVersion: converter.renamed,
      foreignConversion: converter.foreign,
      custom: { revision, listKind },
    }
  }
}

function refuseCreates(resource: { group: string; resource: string }): StorageHooks {
  return {
    beforeCreate(object) {
      throw forbidden(resource, object.metadata.name ?? '', 'create not allowed while custom resource definition is terminating')
    },
  }
}

function entryOf(definition: Definition, version: DefinitionVersion, resource: ServedResource): CatalogEntry {
  const { group, kind, namespaced, singular } = resource
  const { shortNames = [], categories = [] } = definition.status.acceptedNames ?? {}
  const storage = storageVersionOf(definition)
  const facts: ResourceFacts = {
    group,
    version: version.name,
    kind,
    resource: resource.resource,
    singular,
    namespaced,
    verbs,
    shortNames,
    categories,
    subresources: subresourcesOf(version, resource),
    custom: true,
    ...(storage.served ? { storageVersionHash: versionHash(group, storage.name, definition.spec.names.kind) } : {}),
  }
  const warning = deprecationWarning(definition, version)
  return { facts, served: resource, warning, ...(isTerminating(definition) ? { discovered: { ...facts, verbs: terminatingVerbs } } : {}) }
}

function subresourcesOf({ subresources }: DefinitionVersion, { group, version, kind }: ServedResource): SubresourceFacts[] {
  const common = { verbs: subresourceVerbs, connect: false, parameters: [] }
  return [
    ...(subresources?.status ? [{ name: 'status', kind: { group, version, kind }, ...common }] : []),
    ...(subresources?.scale ? [{ name: 'scale', kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' }, ...common }] : []),
  ]
}

/** Upstream: discovery.StorageVersionHash. */
function versionHash(group: string, version: string, kind: string): string {
  return createHash('sha256').update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString('base64')
}
