/**
 * Resources that may be used only under a quota (L3): the configuration of the ResourceQuota plugin, and whether a quota covers a use. Pure.
 * Upstream: apiserver/pkg/admission/plugin/resourcequota/{controller.go,apis/resourcequota} (v1.36).
 */
import { decodeConfiguration } from '#api/configuration/decode'
import { kind, list, struct, text } from '#api/configuration/schemas'
import type { ResourceQuota, ScopedResourceSelectorRequirement } from '#api/gen/types/core.v1'
import { type QuotaAmounts, quotaNamesOf, quotaScopesOf, scopeCovers } from '#api/helpers/quotaUsage'
import type { Frozen, GroupResource, KubeObject } from '#api/machinery/meta'

export interface LimitedResource {
  readonly apiGroup?: string | undefined
  readonly resource: string
  /** Substrings of names of quota resources: `.storageclass.storage.k8s.io/requests.storage`. */
  readonly matchContains?: readonly string[] | undefined
  readonly matchScopes?: readonly ScopedResourceSelectorRequirement[] | undefined
}

const requirement = struct('ScopedResourceSelectorRequirement', { scopeName: text, operator: text, values: list(text) })
const fields = {
  limitedResources: list(struct('LimitedResource', { apiGroup: text, resource: text, matchContains: list(text), matchScopes: list(requirement) })),
}
const older = ['resourcequota.admission.k8s.io/v1beta1', 'resourcequota.admission.k8s.io/v1alpha1']
const kinds = [
  { kind: 'ResourceQuotaConfiguration', apiVersions: ['apiserver.config.k8s.io/v1'], schema: kind('ResourceQuotaConfiguration', fields) },
  { kind: 'Configuration', apiVersions: older, schema: kind('Configuration', fields) },
]

/** @throws Error with every fault */
export function limitedResourcesOf(content: string): readonly LimitedResource[] {
  const { limitedResources = [] } = decodeConfiguration(content, kinds).value as { readonly limitedResources?: readonly LimitedResource[] }
  const faults = limitedResources.flatMap(({ resource }, index) => (resource ? [] : [`limitedResources[${index}].resource: Required value`]))
  if (faults.length > 0) throw new Error(faults.length === 1 ? faults[0] : `[${faults.join(', ')}]`)
  return limitedResources
}

export interface Use {
  readonly resource: GroupResource
  readonly object: Frozen<KubeObject>
  readonly usage: QuotaAmounts
}

/**
 * The resources of a use that need a quota and are not covered by one.
 * @param all every quota of the namespace
 * @param covering the quotas whose scopes include the object
 */
export function uncovered(
  limited: readonly LimitedResource[],
  { resource, object, usage }: Use,
  all: readonly Frozen<ResourceQuota>[],
  covering: readonly Frozen<ResourceQuota>[],
): { readonly names: readonly string[]; readonly scopes: readonly ScopedResourceSelectorRequirement[] } {
  const restricted = new Set(covering.flatMap(({ status }) => quotaNamesOf(resource, Object.keys(status?.hard ?? {}))))
  const parts = limited
    .filter((one) => one.resource === resource.resource && (one.apiGroup ?? '') === resource.group)
    .flatMap(({ matchContains = [] }) => matchContains)
  const names = Object.keys(usage).filter((name) => !restricted.has(name) && parts.some((part) => name.includes(part)))
  const matching = all.flatMap(quotaScopesOf).filter((scope) => scopeCovers(scope, resource, object))
  const coveredScopes = new Set(matching.map(({ scopeName }) => scopeName))
  const wanted = limited.flatMap(({ matchScopes = [] }) => matchScopes).filter((scope) => scopeCovers(scope, resource, object))
  return { names: names.sort(), scopes: wanted.filter(({ scopeName }) => !coveredScopes.has(scopeName)) }
}
