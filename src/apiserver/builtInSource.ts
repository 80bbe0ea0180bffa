/** The catalog's source of built-in resources (L3): stored ones from the registry, computed ones with their handlers. */
import { allGroupVersions, builtInResources, groupVersionKey, optionalResources, resourceKey } from '#api/discovery/resources'
import { bareMap } from '#base/bareMap'
import type { Handler } from './core/stage.ts'
import type { CatalogSource } from './registry/catalog.ts'
import type { Registry } from './registry/registry.ts'

/**
 * @param computed handlers of resources that are not stored, by `group/version/resource`
 * @param disabled resources that are not served, in the same form; a group-version without other resources is not served either
 */
export function builtInSource(
  registry: Registry,
  computed: ReadonlyMap<string, Handler>,
  serverVersion: string,
  disabled: ReadonlySet<string> = new Set(),
): CatalogSource {
  const turnedOn = optionalResources().filter(({ group, version, resource }) => registry.served(group, version, resource))
  const resources = [...builtInResources().filter(({ group, version, resource }) => !disabled.has(resourceKey(group, version, resource))), ...turnedOn]
  const kept = new Set(resources.map(({ group, version }) => groupVersionKey(group, version)))
  return {
    revision: [serverVersion, ...disabled, ...turnedOn.map(({ group, version, resource }) => `+${resourceKey(group, version, resource)}`)].join(' '),
    groupVersions: allGroupVersions().filter(({ group, version }) => kept.has(groupVersionKey(group, version))),
    entries: resources.map((facts) => {
      const { group, version, resource } = facts
      const key = resourceKey(group, version, resource)
      return { facts, served: registry.served(group, version, resource), handler: computed.get(key), warning: deprecated[key] }
    }),
  }
}

/** Warnings in every answer of these resources. */
const deprecated: Readonly<Record<string, string>> = bareMap({
  '/v1/endpoints': 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
  '/v1/componentstatuses': 'v1 ComponentStatus is deprecated in v1.19+',
})
