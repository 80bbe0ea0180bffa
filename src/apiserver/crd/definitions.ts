/**
 * Properties and names of CustomResourceDefinitions (L3). Upstream: apiextensions-apiserver/pkg/apihelpers/helpers.go.
 */

import { createHash } from 'node:crypto'
import { compareVersions } from '#api/discovery/discovery'
import { allResources } from '#api/discovery/resources'
import type { CustomResourceDefinition, CustomResourceDefinitionVersion } from '#api/gen/types/apiextensions.v1'
import { isConditionTrue } from '#api/machinery/conditions'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import type { Frozen } from '#api/machinery/meta'

export type Definition = Frozen<CustomResourceDefinition>
export type DefinitionVersion = Frozen<CustomResourceDefinitionVersion>

export const definitions = { group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions' }
export const cleanupFinalizer = 'customresourcecleanup.apiextensions.k8s.io'

export function hasCondition(definition: Definition, type: string): boolean {
  return isConditionTrue(definition.status?.conditions, type)
}

/** True from the moment its names are accepted. */
export function isServed(definition: Definition): boolean {
  return (hasCondition(definition, 'NamesAccepted') || hasCondition(definition, 'Established')) && !overlapsBuiltIn(definition)
}

/** No more objects are created once the deletion has begun. */
export function isTerminating(definition: Definition): boolean {
  return definition.metadata.deletionTimestamp !== undefined || hasCondition(definition, 'Terminating')
}

/** A definition may not take over the keys of a built-in resource. */
export function overlapsBuiltIn({ spec }: Definition): boolean {
  return allResources().some(({ group, resource }) => group === spec.group && resource === spec.names.plural)
}

export function storageVersionOf({ spec }: Definition): DefinitionVersion {
  const version = spec.versions.find((one) => one.storage)
  if (!version) throw new Error(`no storage version in ${spec.names.plural}.${spec.group}`)
  return version
}

/** '/registry/example.com/widgets/', as upstream. */
export function prefixOf({ spec }: Definition): string {
  return `/registry/${spec.group}/${spec.names.plural}/`
}

export function resourceOf({ spec }: Definition): { readonly group: string; readonly resource: string } {
  return { group: spec.group, resource: spec.names.plural }
}

/** A hash of all parts of a definition that affect documents or answers. */
export function revisionOf({ metadata, spec, status }: Definition): string {
  const names = JSON.stringify(status?.acceptedNames ?? {})
  return createHash('sha256')
    .update(`${metadata.uid} ${stringifyExactly(spec)} ${names}`)
    .digest('hex')
    .slice(0, 32)
}

/** 'com.example.stable.v1.Widget': the kind's name in OpenAPI documents. */
export function definitionName(group: string, version: string, kind: string): string {
  return `${group.split('.').reverse().join('.')}.${version}.${kind}`
}

/** The warning in every answer of a deprecated version; undefined for other versions. */
export function deprecationWarning({ spec }: Definition, version: DefinitionVersion): string | undefined {
  if (!version.deprecated) return undefined
  if (version.deprecationWarning !== undefined) return version.deprecationWarning
  const text = `${spec.group}/${version.name} ${spec.names.kind} is deprecated`
  const [best] = spec.versions
    .filter((other) => other.served && !other.deprecated && compareVersions(other.name, version.name) < 0)
    .sort((a, b) => compareVersions(a.name, b.name))
  return best ? `${text}; use ${spec.group}/${best.name} ${spec.names.kind}` : text
}
