/**
 * What a server serves (L2): asked for in the aggregated form, two calls, and from servers that do not speak it one call a group version.
 * A group version that fails is named and harms none of the others. Upstream: client-go/discovery discovery_client.go,
 * aggregated_discovery.go, cached/memory (v1.36).
 */
import { groupVersion, parseGroupVersion } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Transport } from '../transport.ts'

export interface DiscoveredSubresource {
  readonly name: string
  readonly kind: string
  readonly verbs: readonly string[]
}

/** Can be handed to client.of as it is. */
export interface DiscoveredResource {
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly kind: string
  readonly namespaced: boolean
  readonly singularName: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly verbs: readonly string[]
  readonly subresources: readonly DiscoveredSubresource[]
}

export interface Discovered {
  /** Groups in the server's order, the preferred version of each first. */
  readonly resources: readonly DiscoveredResource[]
  /** Group versions whose resources are not known: their server does not answer. */
  readonly failed: ReadonlyMap<string, Error>
}

export interface Discovery {
  /** Asks once, and remembers the answer until {@link invalidate}. The same value is returned until something has changed. */
  resources(signal?: AbortSignal): Promise<Discovered>
  /** Whether the next answer is one that is remembered. */
  remembers(): boolean
  invalidate(): void
}

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'

export function createDiscovery(transport: Transport): Discovery {
  let known: Promise<Discovered> | undefined
  let last: Answered | undefined
  const ask = async (signal: AbortSignal | undefined): Promise<Discovered> => {
    last = await discover(transport, last, signal)
    return last.discovered
  }
  return {
    resources: (signal) => {
      if (known) return known
      const asked = ask(signal)
      known = asked
      // The caller gets the failure; it is not cached.
      asked.catch(() => {
        if (known === asked) known = undefined
      })
      return asked
    },
    remembers: () => known !== undefined,
    invalidate: () => {
      known = undefined
    },
  }
}

interface AggregatedList {
  readonly kind: 'APIGroupDiscoveryList'
  readonly items?: readonly { readonly metadata?: { readonly name?: string }; readonly versions?: readonly AggregatedVersion[] }[]
}
interface AggregatedVersion {
  readonly version: string
  readonly freshness?: string
  readonly resources?: readonly {
    readonly resource: string
    readonly responseKind?: { readonly kind: string }
    readonly scope: string
    readonly singularResource?: string
    readonly shortNames?: readonly string[]
    readonly categories?: readonly string[]
    readonly verbs?: readonly string[]
    readonly subresources?: readonly { readonly subresource: string; readonly responseKind?: { readonly kind: string }; readonly verbs?: readonly string[] }[]
  }[]
}

interface Answered {
  readonly documents: readonly unknown[]
  readonly discovered: Discovered
}

async function discover(transport: Transport, last: Answered | undefined, signal: AbortSignal | undefined): Promise<Answered> {
  const get = async (path: string) => (await transport.request({ method: 'GET', path, accept: aggregated }, signal)).body
  // An aggregated server alone has no /api, one without extensions no /apis.
  const documents = await Promise.all(['/api', '/apis'].map((path) => get(path).catch(whenMissing)))
  // In one process a document that did not change is the very same value. One that only names group versions tells nothing of what they hold.
  if (last && documents.every((body, index) => isAggregated(body) && body === last.documents[index])) return last
  const resources: DiscoveredResource[] = []
  const failed = new Map<string, Error>()
  for (const body of documents) {
    if (isAggregated(body)) takeAggregated(body, resources, failed)
    else for (const one of groupVersionsOf(body)) await takeGroupVersion(transport, one, resources, failed, signal)
  }
  return { documents, discovered: { resources, failed } }
}

function whenMissing(error: unknown): undefined {
  if (isStatus(error, 'NotFound') || isStatus(error, 'Forbidden')) return undefined
  throw error
}

const isAggregated = (body: unknown): body is AggregatedList => (body as AggregatedList | undefined)?.kind === 'APIGroupDiscoveryList'

function takeAggregated(list: AggregatedList, into: DiscoveredResource[], failed: Map<string, Error>): void {
  for (const { metadata, versions = [] } of list.items ?? []) {
    const group = metadata?.name ?? ''
    for (const { version, freshness, resources = [] } of versions) {
      if (freshness === 'Stale') {
        const name = groupVersion({ group, version })
        failed.set(name, new Error(`stale GroupVersion discovery: ${name}`))
        continue
      }
      for (const { resource, responseKind, scope, singularResource, shortNames, categories, verbs, subresources } of resources) {
        into.push({
          group,
          version,
          resource,
          kind: responseKind?.kind ?? '',
          namespaced: scope === 'Namespaced',
          singularName: singularResource ?? '',
          shortNames: shortNames ?? [],
          categories: categories ?? [],
          verbs: verbs ?? [],
          subresources: (subresources ?? []).map((one) => ({ name: one.subresource, kind: one.responseKind?.kind ?? '', verbs: one.verbs ?? [] })),
        })
      }
    }
  }
}

interface GroupList {
  readonly kind?: string
  readonly versions?: readonly string[]
  readonly groups?: readonly {
    readonly versions?: readonly { readonly groupVersion: string }[]
    readonly preferredVersion?: { readonly groupVersion: string }
  }[]
}

/** The group versions of the older documents, the preferred one of each group first. */
function groupVersionsOf(body: unknown): string[] {
  const { kind, versions, groups } = (body ?? {}) as GroupList
  if (kind === 'APIVersions') return [...(versions ?? [])]
  return (groups ?? []).flatMap((group) => {
    const all = (group.versions ?? []).map((version) => version.groupVersion)
    const preferred = group.preferredVersion?.groupVersion
    return preferred ? [preferred, ...all.filter((name) => name !== preferred)] : all
  })
}

interface ResourceList {
  readonly resources?: readonly {
    readonly name: string
    readonly kind: string
    readonly namespaced: boolean
    readonly singularName?: string
    readonly shortNames?: readonly string[]
    readonly categories?: readonly string[]
    readonly verbs?: readonly string[]
  }[]
}

async function takeGroupVersion(
  transport: Transport,
  name: string,
  into: DiscoveredResource[],
  failed: Map<string, Error>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { group, version } = parseGroupVersion(name)
  let list: ResourceList
  try {
    list = (await transport.request({ method: 'GET', path: group === '' ? `/api/${version}` : `/apis/${name}` }, signal)).body as ResourceList
  } catch (error) {
    if (!isStatus(error)) throw error
    failed.set(name, error)
    return
  }
  const all = list.resources ?? []
  for (const { name: resource, kind, namespaced, singularName, shortNames, categories, verbs } of all) {
    if (resource.includes('/')) continue
    const subresources = all.filter((one) => one.name.startsWith(`${resource}/`))
    into.push({
      group,
      version,
      resource,
      kind,
      namespaced,
      singularName: singularName ?? '',
      shortNames: shortNames ?? [],
      categories: categories ?? [],
      verbs: verbs ?? [],
      subresources: subresources.map((one) => ({ name: one.name.slice(resource.length + 1), kind: one.kind, verbs: one.verbs ?? [] })),
    })
  }
}
