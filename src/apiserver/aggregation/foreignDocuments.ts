/**
 * Reads the documents of extension servers into this server's types (L3): discovery of either form, and their part of OpenAPI v2.
 * Pure. Upstream: kube-aggregator/pkg/apiserver/handler_discovery.go, kube-openapi/pkg/aggregator (FilterSpecByPaths).
 */
import type { ResourceFacts, SubresourceFacts } from '#api/discovery/resources'
import type { JsonSchema } from '#api/openapi/schemas'
import { append } from '#base/extremes'

/** A document of an extension server may be hostile: every member is checked before it enters this server's own documents. */
type Untrusted = Readonly<Record<string, unknown>>

/** apidiscovery.k8s.io/v2 APIGroupDiscoveryList. */
export type DiscoveryList = Untrusted
/** metav1.APIResourceList. */
export type ResourceList = Untrusted

/** Discovery is sent to every client, so one group-version has no more than this many resources, and a resource as many subresources. */
const maxResources = 5_000
const maxNameLength = 253
const maxWords = 64
/** Deeper documents are refused: they would overflow the stack of code that walks them. */
const maxDepth = 1_000
/** No path separators, no control characters. */
const name = /^[A-Za-z0-9][A-Za-z0-9_.:-]*$/

const objectOf = (value: unknown): Untrusted => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Untrusted) : {})
const listOf = (value: unknown): readonly Untrusted[] => (Array.isArray(value) ? value.map(objectOf) : [])
const textOf = (value: unknown): string => (typeof value === 'string' && value.length <= maxNameLength && name.test(value) ? value : '')
const textsOf = (value: unknown): string[] => (Array.isArray(value) ? value.slice(0, maxWords).map(textOf).filter(Boolean) : [])

/** @throws Error for invalid JSON, or nesting that is too deep */
export function parseDocument(body: Buffer): unknown {
  let depth = 0
  let inString = false
  for (let i = 0; i < body.length; i++) {
    const byte = body[i]
    if (inString) {
      if (byte === 0x5c) i++
      else if (byte === 0x22) inString = false
    } else if (byte === 0x22) inString = true
    else if (byte === 0x5b || byte === 0x7b) {
      if (++depth > maxDepth) throw new Error('the document nests too deep')
    } else if (byte === 0x5d || byte === 0x7d) depth--
  }
  return JSON.parse(body.toString())
}

/** The resources of a group-version; none when the document does not have it. */
export function factsOfDiscovery(list: DiscoveryList, group: string, version: string): ResourceFacts[] {
  const groups = listOf(objectOf(list).items)
  const versions = listOf(groups.find(({ metadata }) => (objectOf(metadata).name ?? '') === group)?.versions)
  const resources = listOf(versions.find((one) => one.version === version)?.resources)
  return resources.slice(0, maxResources).flatMap((one) => {
    const resource = textOf(one.resource)
    if (resource === '') return []
    const subresources = listOf(one.subresources).slice(0, maxResources)
    return [
      {
        ...{ group, version, kind: textOf(objectOf(one.responseKind).kind) },
        ...{ resource, singular: textOf(one.singularResource), namespaced: one.scope === 'Namespaced' },
        ...{ verbs: textsOf(one.verbs), shortNames: textsOf(one.shortNames), categories: textsOf(one.categories) },
        subresources: subresources.flatMap((sub) => subresource(sub.subresource, objectOf(sub.responseKind), group, version, sub.verbs)),
      },
    ]
  })
}

/** The same from the plain form, which lists subresources as entries next to their resources. */
export function factsOfResourceList(list: ResourceList, group: string, version: string): ResourceFacts[] {
  const all = listOf(objectOf(list).resources).slice(0, 2 * maxResources)
  const subresources = new Map<string, SubresourceFacts[]>()
  for (const one of all) {
    const [resource = '', sub, ...rest] = typeof one.name === 'string' ? one.name.split('/', 3) : []
    if (sub === undefined || rest.length > 0) continue
    const found = subresource(sub, one, group, version, one.verbs)
    const known = subresources.get(resource)
    if (known) append(known, found)
    else subresources.set(resource, found)
  }
  return all.flatMap((one) => {
    const resource = textOf(one.name)
    if (resource === '') return []
    return [
      {
        ...{ group, version, kind: textOf(one.kind) },
        ...{ resource, singular: textOf(one.singularName), namespaced: one.namespaced === true },
        ...{ verbs: textsOf(one.verbs), shortNames: textsOf(one.shortNames), categories: textsOf(one.categories) },
        subresources: subresources.get(resource) ?? [],
      },
    ]
  })
}

function subresource(named: unknown, kind: Untrusted, group: string, version: string, verbs: unknown): SubresourceFacts[] {
  const text = textOf(named)
  if (text === '') return []
  const of = { group: kind.group === undefined ? group : textOf(kind.group), version: kind.version === undefined ? version : textOf(kind.version) }
  return [{ name: text, kind: { ...of, kind: textOf(kind.kind) }, verbs: textsOf(verbs), connect: false, parameters: [] }]
}

/** The paths of a group-version and the definitions that they need. */
export function openApiPart(document: JsonSchema, group: string, version: string): JsonSchema {
  const prefix = `/apis/${group}/${version}/`
  const all = objectOf(objectOf(document).definitions)
  const paths = Object.fromEntries(Object.entries(objectOf(objectOf(document).paths)).filter(([path]) => path.startsWith(prefix)))
  const definitions = new Map<string, unknown>()
  const pending: unknown[] = [paths]
  while (pending.length > 0) {
    const value = pending.pop()
    if (typeof value !== 'object' || value === null) continue
    const reference = (value as { $ref?: unknown }).$ref
    const name = typeof reference === 'string' ? reference.replace('#/definitions/', '') : ''
    if (name !== '' && Object.hasOwn(all, name) && !definitions.has(name)) {
      definitions.set(name, all[name])
      pending.push(all[name])
    }
    for (const member of Object.values(value)) pending.push(member)
  }
  return { paths, definitions: Object.fromEntries(definitions) }
}
