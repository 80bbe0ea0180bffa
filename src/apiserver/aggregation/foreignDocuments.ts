/**
 * What extension servers say of themselves (L3), read into this server's terms: discovery of either form, and their part of OpenAPI v2.
 * Pure. Upstream: kube-aggregator/pkg/apiserver/handler_discovery.go, kube-openapi/pkg/aggregator (FilterSpecByPaths).
 */
import type { JsonSchema } from '#api/machinery/openapi/schemas'
import type { ResourceFacts, SubresourceFacts } from '#api/resources'
import { emptyMap, ownValue } from '#base/bareMap'

interface Kind {
  readonly group?: string
  readonly version?: string
  readonly kind?: string
}

/** apidiscovery.k8s.io/v2 APIGroupDiscoveryList, as far as it is read. */
export interface DiscoveryList {
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string }
    readonly versions?: readonly { readonly version: string; readonly resources?: readonly DiscoveredResource[] }[]
  }[]
}

interface DiscoveredResource {
  readonly resource: string
  readonly responseKind?: Kind
  readonly scope?: string
  readonly singularResource?: string
  readonly verbs?: readonly string[]
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly subresources?: readonly { readonly subresource: string; readonly responseKind?: Kind; readonly verbs?: readonly string[] }[]
}

/** metav1.APIResourceList, as far as it is read. */
export interface ResourceList {
  readonly resources?: readonly (Kind & {
    readonly name: string
    readonly singularName?: string
    readonly namespaced?: boolean
    readonly verbs?: readonly string[]
    readonly shortNames?: readonly string[]
    readonly categories?: readonly string[]
  })[]
}

/** The resources of a group-version; none when the document does not have it. */
export function factsOfDiscovery(list: DiscoveryList, group: string, version: string): ResourceFacts[] {
  const found = list.items?.find(({ metadata }) => (metadata?.name ?? '') === group)?.versions?.find((one) => one.version === version)
  return (found?.resources ?? []).map((one) => ({
    ...{ group, version, kind: one.responseKind?.kind ?? '' },
    ...{ resource: one.resource, singular: one.singularResource ?? '', namespaced: one.scope === 'Namespaced' },
    ...{ verbs: one.verbs ?? [], shortNames: one.shortNames ?? [], categories: one.categories ?? [] },
    subresources: (one.subresources ?? []).map((sub) => subresource(sub.subresource, sub.responseKind, group, version, sub.verbs)),
  }))
}

/** The same from the plain form, where subresources stand beside their resources. */
export function factsOfResourceList(list: ResourceList, group: string, version: string): ResourceFacts[] {
  const all = list.resources ?? []
  return all
    .filter(({ name }) => !name.includes('/'))
    .map((one) => ({
      ...{ group, version, kind: one.kind ?? '' },
      ...{ resource: one.name, singular: one.singularName ?? '', namespaced: one.namespaced === true },
      ...{ verbs: one.verbs ?? [], shortNames: one.shortNames ?? [], categories: one.categories ?? [] },
      subresources: all
        .filter(({ name }) => name.startsWith(`${one.name}/`))
        .map((sub) => subresource(sub.name.slice(one.name.length + 1), sub, group, version, sub.verbs)),
    }))
}

function subresource(name: string, kind: Kind | undefined, group: string, version: string, verbs: readonly string[] = []): SubresourceFacts {
  return { name, kind: { group: kind?.group ?? group, version: kind?.version ?? version, kind: kind?.kind ?? '' }, verbs, connect: false, parameters: [] }
}

/** The paths of a group-version and the definitions that they need. */
export function openApiPart(document: JsonSchema, group: string, version: string): JsonSchema {
  const prefix = `/apis/${group}/${version}/`
  const all = (document.definitions ?? {}) as Record<string, unknown>
  const paths = Object.fromEntries(Object.entries((document.paths ?? {}) as object).filter(([path]) => path.startsWith(prefix)))
  const definitions: Record<string, unknown> = emptyMap()
  const pending: unknown[] = [paths]
  while (pending.length > 0) {
    const value = pending.pop()
    if (typeof value !== 'object' || value === null) continue
    const reference = (value as { $ref?: unknown }).$ref
    const name = typeof reference === 'string' ? reference.replace('#/definitions/', '') : ''
    const definition = ownValue(all, name)
    if (name !== '' && definition !== undefined && definitions[name] === undefined) {
      definitions[name] = definition
      pending.push(definition)
    }
    pending.push(...Object.values(value))
  }
  return { paths, definitions: { ...definitions } }
}
