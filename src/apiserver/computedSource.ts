/** The catalog's source of a group-version that a component of this process computes (L3): its handlers, discovery and OpenAPI definitions. */
import type { ExtraDefinition } from '#api/openapi/schemas'
import type { ComputedGroup, DescribedKind } from './core/computedResource.ts'
import { computedHandler } from './endpoints/computedHandlers.ts'
import type { EndpointDeps } from './endpoints/scope.ts'
import type { CatalogSource } from './registry/catalog.ts'

export interface ServedPriorities {
  readonly groupPriorityMinimum: number
  readonly versionPriority: number
}

export function computedSource(
  { group, version, resources }: ComputedGroup,
  { groupPriorityMinimum, versionPriority }: ServedPriorities,
  endpoints: EndpointDeps,
  serverVersion: string,
): CatalogSource {
  return {
    revision: [serverVersion, version, group, groupPriorityMinimum, versionPriority].join(' '),
    groupVersions: [{ group, version, groupPriority: groupPriorityMinimum, versionPriority }],
    entries: resources.map((resource) => ({ facts: resource.facts, handler: computedHandler(endpoints, resource, resource) })),
    definitions: resources.flatMap(definitionsOf),
  }
}

function definitionsOf({ facts, schema, listKind, listSchema, texts, parts = [] }: DescribedKind): ExtraDefinition[] {
  const { group, version, kind } = facts
  const named = [
    { schema, kind: { group, version, kind }, texts },
    { schema: listSchema, kind: { group, version, kind: listKind }, texts: { '': `A list of ${kind}.` } },
    ...parts,
  ]
  return named.map((one) => ({ ...one, name: one.schema.definition ?? '' }))
}
