/**
 * Discovery documents (L1), built from resource facts: built-in ones, and those that CRDs and aggregated API servers add.
 * Upstream: apiserver/pkg/endpoints/discovery, kube-aggregator/pkg/apiserver/handler_apis.go (v1.36). The endpoints
 * decide about access and encoding.
 */
import { type GroupVersionFacts, groupVersionKey, type ResourceFacts, type SubresourceFacts } from './resources.ts'

export interface DiscoveryVersion {
  readonly version: string
  readonly resources: readonly ResourceFacts[]
  /** 'Stale' when the server behind an APIService does not answer. */
  readonly freshness?: 'Current' | 'Stale' | undefined
}

export interface DiscoveryGroup {
  /** '' for the core group. */
  readonly group: string
  /** The preferred version first. */
  readonly versions: readonly DiscoveryVersion[]
}

/** The media type of the aggregated form; clients ask for it with Accept. */
export const aggregatedDiscoveryType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

/** Sorts group-versions and their resources into groups, by group priority, then name, then version priority. */
export function discoveryGroups(
  groupVersions: readonly (GroupVersionFacts & Pick<DiscoveryVersion, 'freshness'>)[],
  resources: readonly ResourceFacts[],
): DiscoveryGroup[] {
  const byGroupVersion = new Map<string, ResourceFacts[]>(groupVersions.map(({ group, version }) => [groupVersionKey(group, version), []]))
  for (const facts of resources) byGroupVersion.get(groupVersionKey(facts.group, facts.version))?.push(facts)
  const sorted = [...groupVersions].sort(
    (a, b) => b.groupPriority - a.groupPriority || compare(a.group, b.group) || b.versionPriority - a.versionPriority || compareVersions(a.version, b.version),
  )
  const groups = new Map<string, DiscoveryVersion[]>()
  for (const { group, version, freshness } of sorted) {
    const versions = groups.get(group) ?? []
    groups.set(group, versions)
    versions.push({ version, resources: byGroupVersion.get(groupVersionKey(group, version)) ?? [], freshness })
  }
  return [...groups].map(([group, versions]) => ({ group, versions }))
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Kubernetes' order of version names, best first: v2, v1, v2beta1, v1beta2, v1alpha1, then others by name. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [versionRank(a), versionRank(b)]
  if (!left || !right) return left ? -1 : right ? 1 : compare(a, b)
  for (let i = 0; i < left.length; i++) {
    const difference = (right[i] ?? 0) - (left[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/** [stability, major, minor], greater is better. */
function versionRank(version: string): readonly number[] | undefined {
  const match = /^v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?$/.exec(version)
  if (!match) return undefined
  const stability = match[2] === undefined ? 2 : match[2] === 'beta' ? 1 : 0
  return [stability, Number(match[1]), Number(match[3] ?? 0)]
}

/** GET /api, the unaggregated form. `serverAddress` is host:port as clients reach it. */
export function apiVersions(serverAddress: string): object {
  return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }] }
}

/** GET /apis, the unaggregated form; the core group is not part of it. */
export function apiGroupList(groups: readonly DiscoveryGroup[]): object {
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.filter(({ group }) => group !== '').map(groupBody) }
}

/** GET /apis/<group>. */
export function apiGroup(group: DiscoveryGroup): object {
  return { kind: 'APIGroup', apiVersion: 'v1', ...groupBody(group) }
}

function groupBody({ group, versions }: DiscoveryGroup): object {
  const named = versions.map(({ version }) => ({ groupVersion: `${group}/${version}`, version }))
  return { name: group, versions: named, preferredVersion: named[0] }
}

/** GET /api/v1 and /apis/<group>/<version>. `resources` are those of that group-version. */
export function apiResourceList(group: string, version: string, resources: readonly ResourceFacts[]): object {
  return {
    kind: 'APIResourceList',
    ...(group === '' ? {} : { apiVersion: 'v1' }),
    groupVersion: group === '' ? version : `${group}/${version}`,
    resources: [...resources]
      .sort((a, b) => compare(a.resource, b.resource))
      .flatMap((facts) => [resourceEntry(facts), ...facts.subresources.map((sub) => subresourceEntry(facts, sub))]),
  }
}

function resourceEntry(facts: ResourceFacts): object {
  return {
    name: facts.resource,
    singularName: facts.singular,
    namespaced: facts.namespaced,
    kind: facts.kind,
    verbs: facts.verbs,
    ...(facts.shortNames.length > 0 ? { shortNames: facts.shortNames } : {}),
    ...(facts.categories.length > 0 ? { categories: facts.categories } : {}),
    ...(facts.storageVersionHash === undefined ? {} : { storageVersionHash: facts.storageVersionHash }),
  }
}

function subresourceEntry(facts: ResourceFacts, { name, kind, verbs }: SubresourceFacts): object {
  const foreign = kind.group !== facts.group || kind.version !== facts.version
  return {
    name: `${facts.resource}/${name}`,
    singularName: '',
    namespaced: facts.namespaced,
    ...(foreign ? { group: kind.group, version: kind.version } : {}),
    kind: kind.kind,
    verbs,
  }
}

/** The aggregated form: pass the core group alone for GET /api, all others for GET /apis. */
export function apiGroupDiscoveryList(groups: readonly DiscoveryGroup[]): object {
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: groups.map(({ group, versions }) => ({
      metadata: group === '' ? {} : { name: group },
      versions: versions.map((entry) => ({
        version: entry.version,
        resources: [...entry.resources].sort((a, b) => compare(a.resource, b.resource)).map(discoveryEntry),
        freshness: entry.freshness ?? 'Current',
      })),
    })),
  }
}

function discoveryEntry(facts: ResourceFacts): object {
  return {
    resource: facts.resource,
    responseKind: { group: facts.group, version: facts.version, kind: facts.kind },
    scope: facts.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: facts.singular,
    verbs: facts.verbs,
    ...(facts.shortNames.length > 0 ? { shortNames: facts.shortNames } : {}),
    ...(facts.categories.length > 0 ? { categories: facts.categories } : {}),
    ...(facts.subresources.length > 0
      ? { subresources: facts.subresources.map(({ name, kind, verbs }) => ({ subresource: name, responseKind: { ...kind }, verbs })) }
      : {}),
  }
}
