/**
 * The resources of the v1.36 API (L1): 22 group-versions, 68 resources and 45 subresources that are served by default, with their names, verbs,
 * short names, categories and where they are stored, and those that can be turned on. Read-only and shared. Custom resources have ResourceFacts made
 * from their definitions.
 * Upstream: pkg/controlplane, pkg/kubeapiserver/default_storage_factory_builder.go (v1.36).
 */
import { factsTable, once, type ResourceRow } from '../gen/table.ts'
import type { GroupVersionKind } from '../machinery/meta.ts'

export interface SubresourceFacts {
  /** 'status', 'exec', … */
  readonly name: string
  /** The kind of the subresource's bodies: Pod for pods/status, Scale of autoscaling/v1 for …/scale. */
  readonly kind: GroupVersionKind
  readonly verbs: readonly string[]
  /** Answers by taking the connection over (exec, attach, portforward, proxy). */
  readonly connect: boolean
  /** Query parameters in addition to the general ones. */
  readonly parameters: readonly { readonly name: string; readonly type: string }[]
}

export interface ResourceFacts {
  readonly group: string
  readonly version: string
  readonly kind: string
  /** Plural name as in paths. */
  readonly resource: string
  readonly singular: string
  readonly namespaced: boolean
  /** Sorted: create, delete, deletecollection, get, list, patch, update, watch. */
  readonly verbs: readonly string[]
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly subresources: readonly SubresourceFacts[]
  /** A successful DELETE answers with the object (upstream ReturnDeletedObject) instead of a Status. */
  readonly returnsDeletedObject?: boolean | undefined
  /** Absent for resources that are computed, never stored (reviews, bindings, componentstatuses). */
  readonly storage?: StorageFacts | undefined
  /** A custom resource: only JSON and YAML, no strategic merge, no deprecated watch paths. */
  readonly custom?: boolean | undefined
  /** Discovery's opaque hash of the storage version. */
  readonly storageVersionHash?: string | undefined
}

export interface StorageFacts {
  /** The key path between /registry/ and the namespace or name, e.g. 'services/specs'. */
  readonly prefix: string
  /** Group and version that stored objects are written in: events are core/v1 under both groups, HPAs autoscaling/v2. */
  readonly group: string
  readonly version: string
  /** Upstream's version in etcd, where it is older than `version`, so that the release before can read it. */
  readonly writtenVersion?: string | undefined
}

export interface GroupVersionFacts {
  readonly group: string
  readonly version: string
  /** APIService groupPriorityMinimum and versionPriority. */
  readonly groupPriority: number
  readonly versionPriority: number
  /** Not served by default. */
  readonly optional?: true
}

/** The group-versions that are served by default, and those that can be turned on, in discovery's order; the first of a group is the preferred one. */
export const allGroupVersions: () => readonly GroupVersionFacts[] = once(() =>
  factsTable().groups.map(({ g, v, gp, vp, off }) => ({ group: g, version: v, groupPriority: gp, versionPriority: vp, ...(off ? { optional: true } : {}) })),
)

export const builtInGroupVersions: () => readonly GroupVersionFacts[] = once(() => allGroupVersions().filter(({ optional }) => !optional))

const optionalVersions = once(() => new Set(allGroupVersions().flatMap(({ group, version, optional }) => (optional ? [groupVersionKey(group, version)] : []))))
const isOptional = ({ group, version }: ResourceFacts): boolean => optionalVersions().has(groupVersionKey(group, version))

/** Resources that are served by default, and those that can be turned on, in discovery's order: by group priority, version priority, then name. */
export const allResources: () => readonly ResourceFacts[] = once(() => factsTable().resources.map(resourceFacts))

/** The resources that are served by default. */
export const builtInResources: () => readonly ResourceFacts[] = once(() => allResources().filter((facts) => !isOptional(facts)))

/** The resources that --runtime-config turns on, provided that their feature gates are on. */
export const optionalResources: () => readonly ResourceFacts[] = once(() => allResources().filter(isOptional))

const byName = once(() => new Map(builtInResources().map((facts) => [resourceKey(facts.group, facts.version, facts.resource), facts])))

/** The facts of one resource, undefined when v1.36 does not serve it by default. */
export function builtInResource(group: string, version: string, resource: string): ResourceFacts | undefined {
  return byName().get(resourceKey(group, version, resource))
}

/** 'apps/v1/deployments', '/v1/pods': how tables of resources are keyed. */
export function resourceKey(group: string, version: string, resource: string): string {
  return `${group}/${version}/${resource}`
}

/** 'apps/v1', '/v1': how tables of group-versions are keyed. */
export function groupVersionKey(group: string, version: string): string {
  return `${group}/${version}`
}

/** The key prefix of a stored resource, without a trailing slash: /registry/services/specs. */
export function storagePrefix(storage: StorageFacts): string {
  return `/registry/${storage.prefix}`
}

/** The feature gates of optional resources, by plural name. */
export const gatesOfOptional: Readonly<Record<string, string>> = {
  clustertrustbundles: 'ClusterTrustBundle',
  podcertificaterequests: 'PodCertificateRequest',
  storageversionmigrations: 'StorageVersionMigrator',
}

function resourceFacts(row: ResourceRow): ResourceFacts {
  return {
    group: row.g,
    version: row.v,
    kind: row.k,
    resource: row.r,
    singular: row.s,
    namespaced: row.n === 1,
    verbs: row.verbs,
    shortNames: row.short ?? [],
    categories: row.cat ?? [],
    subresources: row.sub.map((sub) => ({
      name: sub.n,
      kind: { group: sub.k[0], version: sub.k[1], kind: sub.k[2] },
      verbs: sub.verbs,
      connect: sub.c === 1,
      parameters: (sub.p ?? []).map(([name, type]) => ({ name, type })),
    })),
    ...(row.del === 1 ? { returnsDeletedObject: true } : {}),
    ...(row.prefix === undefined ? {} : { storage: storageFacts(row, row.prefix), storageVersionHash: row.hash }),
  }
}

function storageFacts({ g, v, sg = g, sv = v, wv }: ResourceRow, prefix: string): StorageFacts {
  return { prefix, group: sg, version: sv, ...(wv === undefined ? {} : { writtenVersion: wv }) }
}
