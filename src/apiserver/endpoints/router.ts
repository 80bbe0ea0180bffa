/**
 * Routes an authorized request to its handler (L3): stored resources by verb, subresources and computed resources by name, all others by path.
 * Upstream: apiserver/pkg/endpoints/installer.go and the non-resource handlers of the generic server.
 */
import type { ResourceFacts, SubresourceFacts } from '#api/discovery/resources'
import { notFound, StatusError } from '#api/machinery/status'
import { bareMap } from '#base/bareMap'
import type { Answer } from '../core/answer.ts'
import { textAnswer } from '../core/answer.ts'
import type { Cancellation } from '../core/cancellation.ts'
import type { RequestInfo, ServerRequest } from '../core/request.ts'
import type { Handler } from '../core/stage.ts'
import type { Catalog, CatalogEntry } from '../registry/catalog.ts'
import { patch } from './patch.ts'
import type { EndpointDeps, Scope } from './scope.ts'
import { create, deleteCollection, deleteOne, getObject, listOrWatch, update } from './verbs.ts'

type VerbHandler = (scope: Scope) => Promise<Answer> | Answer

/** Handlers of subresources with a kind of their own, by `group/resource/subresource`, then verb of discovery. */
export type SubresourceHandlers = Readonly<Record<string, Readonly<Record<string, VerbHandler>>>>

export interface RouterParts {
  readonly catalog: Catalog
  readonly endpoints: EndpointDeps
  readonly subresources: SubresourceHandlers
  /** Paths outside /api and /apis, and discovery. Undefined: not found. */
  nonResource(request: ServerRequest): Promise<Answer | undefined> | Answer | undefined
  /** Resolves when the catalog has a custom resource that was defined before the call, also at another server. Absent: it always has. */
  catchUp?(group: string, resource: string, cancellation: Cancellation | undefined): Promise<void>
}

export const pathNotFound = textAnswer(404, '404 page not found\n', { 'x-content-type-options': 'nosniff' })

const objectVerbs: Readonly<Record<string, VerbHandler>> = { get: getObject, update, patch, delete: deleteOne, watch: listOrWatch }
const collectionVerbs: Readonly<Record<string, VerbHandler>> = { list: listOrWatch, watch: listOrWatch, create, deletecollection: deleteCollection }
const viewVerbs: Readonly<Record<string, VerbHandler>> = bareMap({ get: getObject, update, patch })

export function createRouter(parts: RouterParts): Handler {
  const nonResource = async (request: ServerRequest) => (await parts.nonResource(request)) ?? notFoundAnswer(parts.catalog, request)
  const route = (request: ServerRequest, isKnown: boolean): Promise<Answer> | Answer => {
    const info = request.info as RequestInfo
    // The core group has an empty name, so it has no path below /apis.
    if (info.apiPrefix === 'apis' && info.apiGroup === '') return nonResource(request)
    if (!info.isResourceRequest) return foreignDiscovery(parts, request) ?? nonResource(request)
    const entry = parts.catalog.resource(info.apiGroup, info.apiVersion, info.resource)
    const foreign = parts.catalog.foreign(info.apiGroup, info.apiVersion)
    if (foreign) return foreign(request)
    if (!entry && !isKnown && parts.catchUp && !isBelowBuiltInGroup(parts.catalog, request.path)) {
      return parts.catchUp(info.apiGroup, info.resource, request.cancellation).then(() => route(request, true))
    }
    if (!entry || !placeFits(entry.facts, info)) return nonResource(request)
    if (entry.warning) warnOfDeprecation(request, entry.warning)
    if (info.subresource !== '') return subresource(parts, request, entry)
    // Upstream installs no route for it, although authorization takes it for a get.
    if (request.method === 'HEAD') throw methodNotAllowed()
    if (entry.handler) return entry.handler(request)
    const { facts, served } = entry
    if (!served) return notFoundAnswer(parts.catalog, request)
    if (facts.namespaced && info.namespace === '' && !acrossNamespaces.has(info.verb)) {
      // Upstream passes such a request for a custom resource to the next handler, and there is none: 404.
      if (served.custom) return notFoundAnswer(parts.catalog, request)
      throw methodNotAllowed()
    }
    const onObject = info.parts.length > 0
    const handler = (onObject ? objectVerbs : collectionVerbs)[info.verb]
    if (!handler || !facts.verbs.includes(info.verb)) throw methodNotAllowed()
    return handler({ deps: parts.endpoints, request, info, served })
  }
  return (request) => route(request, false)
}

function warnOfDeprecation(request: ServerRequest, warning: string): void {
  request.warnings.push(warning)
  request.deprecated = true
}

/** GET /apis/<group>/<version> of a group-version that another server answers. */
function foreignDiscovery(parts: RouterParts, request: ServerRequest): Promise<Answer> | Answer | undefined {
  const match = /^\/apis\/([^/]+)\/([^/]+)\/?$/.exec(request.path)
  return match ? parts.catalog.foreign(match[1] as string, match[2] as string)?.(request) : undefined
}

/** Verbs that work across namespaces. */
const acrossNamespaces: ReadonlySet<string> = new Set(['list', 'watch'])

/**
 * Objects of namespaced kinds live below their namespace; cluster-scoped ones do not. `/namespaces/a/namespaces/b` is authorized in the namespace a,
 * so it must not reach the namespace b: the namespace in the path must be the authorized one.
 */
function placeFits(facts: ResourceFacts, info: RequestInfo): boolean {
  if (!facts.namespaced) return info.namespace === '' || (info.resource === 'namespaces' && info.parts[0] === info.namespace)
  // Lists and watches work across namespaces, a create of a computed resource does not.
  return info.namespace !== '' || info.parts.length === 0
}

function subresource(parts: RouterParts, request: ServerRequest, { facts, served }: CatalogEntry): Promise<Answer> | Answer {
  const info = request.info as RequestInfo
  const found = facts.subresources.find((one) => one.name === info.subresource)
  if (!found && served?.custom) throw notFound(served, info.name)
  // Only proxy has a path below the subresource.
  if (!found || !served || (info.parts.length > 2 && found.name !== 'proxy')) return notFoundAnswer(parts.catalog, request)
  if (request.method === 'HEAD' && !found.connect) throw methodNotAllowed()
  const scope: Scope = { deps: parts.endpoints, request, info, served, subresource: found }
  const special = parts.subresources[`${info.apiGroup}/${info.resource}/${info.subresource}`] ?? parts.subresources[`*/${info.subresource}`]
  if (special) {
    const handler = special[info.verb] ?? special.connect
    if (!handler) throw methodNotAllowed()
    return handler(scope)
  }
  if (!isView(facts, found)) throw new StatusError('MethodNotAllowed', `the subresource ${facts.resource}/${found.name} is not served`)
  const handler = viewVerbs[info.verb]
  if (!handler || !found.verbs.includes(info.verb)) throw methodNotAllowed()
  return handler(scope)
}

/** Whether a subresource speaks the object's own kind: status, approval, resize, ephemeralcontainers, finalize. */
function isView(facts: ResourceFacts, sub: SubresourceFacts): boolean {
  return !sub.connect && sub.kind.kind === facts.kind && sub.kind.group === facts.group
}

/** Upstream: the service error handler in apiserver/pkg/server/handler.go below the roots of built-in groups, apiserver/pkg/util/notfoundhandler elsewhere. */
function notFoundAnswer(catalog: Catalog, request: ServerRequest): Answer {
  if (isBelowBuiltInGroup(catalog, request.path)) {
    throw new StatusError('NotFound', 'the server could not find the requested resource', { details: {} })
  }
  if (!request.pathsIncomplete) return pathNotFound
  throw new StatusError('ServiceUnavailable', 'the request has been made before all known HTTP paths have been installed, please try again', {
    details: { retryAfterSeconds: 5 },
  })
}

function isBelowBuiltInGroup(catalog: Catalog, path: string): boolean {
  const [, prefix, group = ''] = path.split('/', 3)
  if (prefix === 'api') return true
  return prefix === 'apis' && group !== '' && catalog.hasBuiltInGroup(group)
}

export function methodNotAllowed(): StatusError {
  return new StatusError('MethodNotAllowed', 'the server does not allow this method on the requested resource', { details: {} })
}
