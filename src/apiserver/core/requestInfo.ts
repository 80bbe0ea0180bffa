/**
 * Parses a path and method (L3): verb, group, version, namespace, resource, subresource, name.
 * Upstream: apiserver/pkg/endpoints/request/requestinfo.go.
 */
import { parseFieldSelector } from '#api/machinery/fieldSelector'
import { isPathSegmentName } from '#api/machinery/names'
import { bareMap } from '#base/bareMap'
import type { RequestInfo, ServerRequest } from './request.ts'
import type { Stage } from './stage.ts'

const verbOf: Readonly<Record<string, string>> = bareMap({ POST: 'create', GET: 'get', HEAD: 'get', PUT: 'update', PATCH: 'patch', DELETE: 'delete' })
/** Namespaces' own subresources: `/namespaces/x/status` is no resource named status. */
const namespaceSubresources: ReadonlySet<string> = new Set(['status', 'finalize'])
const specialVerbs: ReadonlySet<string> = new Set(['proxy', 'watch'])

export const requestInfoStage: Stage = {
  name: 'requestInfo',
  handle: (request, next) => {
    const info = parseRequestInfo(request.method, request.path, request.query)
    request.info = info
    return next(request)
  },
}

export function parseRequestInfo(method: string, path: string, query: ServerRequest['query']): RequestInfo {
  const parts = splitPath(path)
  const isGrouped = parts[0] === 'apis'
  let at = isGrouped ? 3 : 2
  if ((!isGrouped && parts[0] !== 'api') || parts.length <= at) return nonResourceInfo(method, path)
  let verb = verbOf[method] ?? ''
  const special = parts[at]!
  const isByPath = specialVerbs.has(special)
  if (isByPath) {
    if (parts.length < at + 2) return nonResourceInfo(method, path)
    verb = special
    at++
  }
  let namespace = ''
  if (parts[at] === 'namespaces' && parts.length > at + 1) {
    namespace = parts[at + 1]!
    if (parts.length > at + 2 && !namespaceSubresources.has(parts[at + 2]!)) at += 2
  }
  const fieldSelector = query.get('fieldSelector') ?? undefined
  const labelSelector = query.get('labelSelector') ?? undefined
  const name = parts[at + 1] ?? ''
  const meant = name === '' ? collectionVerb(verb, query) : verb
  return {
    isResourceRequest: true,
    path,
    apiPrefix: parts[0]!,
    apiGroup: isGrouped ? parts[1]! : '',
    apiVersion: parts[isGrouped ? 2 : 1]!,
    namespace,
    resource: parts[at] ?? '',
    parts: parts.slice(at + 1),
    verb: meant,
    subresource: name === '' || isByPath ? '' : (parts[at + 2] ?? ''),
    // Only a GET takes its name from the field selector: the body of a POST names the object.
    name: name === '' && verb === 'get' ? nameOfSelector(fieldSelector) : name,
    fieldSelector,
    labelSelector,
    ...(isByPath ? { isVerbByPath: true } : {}),
  }
}

function collectionVerb(verb: string, query: ServerRequest['query']): string {
  if (verb === 'get') return truthy(query.get('watch')) ? 'watch' : 'list'
  return verb === 'delete' ? 'deletecollection' : verb
}

/** A list or watch of one object by field selector is authorized by the object's name. */
function nameOfSelector(fieldSelector: string | undefined): string {
  if (!fieldSelector?.includes('metadata.name')) return ''
  try {
    const name = parseFieldSelector(fieldSelector).requiresExactMatch('metadata.name') ?? ''
    return isPathSegmentName(name).length === 0 ? name : ''
  } catch {
    // The handler refuses it later, for authorized users only.
    return ''
  }
}

function nonResourceInfo(method: string, path: string): RequestInfo {
  return {
    isResourceRequest: false,
    path,
    verb: method.toLowerCase(),
    apiPrefix: '',
    apiGroup: '',
    apiVersion: '',
    namespace: '',
    resource: '',
    subresource: '',
    name: '',
    parts: [],
  }
}

/** The segments between the slashes; those at the ends do not count. */
function splitPath(path: string): string[] {
  let start = 0
  let end = path.length
  while (start < end && path[start] === '/') start++
  while (end > start && path[end - 1] === '/') end--
  return start === end ? [] : path.slice(start, end).split('/')
}

/** Query flags as Go's strconv.ParseBool with apimachinery's leniency: present and not false. */
export function truthy(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}
