/**
 * Works out what a path and method mean (L3): verb, group, version, namespace, resource, subresource, name.
 * Upstream: apiserver/pkg/endpoints/request/requestinfo.go.
 */

import { parseFieldSelector } from '#api/machinery/fieldSelector'
import { isPathSegmentName } from '#api/machinery/names'
import { bareMap } from '#base/bareMap'
import type { RequestInfo, ServerRequest } from '../request.ts'
import { decided, type Stage } from './stage.ts'

const verbOf: Readonly<Record<string, string>> = bareMap({ POST: 'create', GET: 'get', HEAD: 'get', PUT: 'update', PATCH: 'patch', DELETE: 'delete' })
/** Namespaces' own subresources: `/namespaces/x/status` is no resource named status. */
const namespaceSubresources: ReadonlySet<string> = new Set(['status', 'finalize'])
const specialVerbs: ReadonlySet<string> = new Set(['proxy', 'watch'])

export const requestInfoStage: Stage = {
  name: 'requestInfo',
  handle: (request, next) => {
    const info = parseRequestInfo(request.method, request.path, request.query)
    request.info = info
    if (request.trace) decided(request, 'requestInfo', info.isResourceRequest ? `${info.verb} ${info.resource}` : info.verb, 0)
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
  if (specialVerbs.has(special)) {
    if (parts.length < at + 2) return nonResourceInfo(method, path)
    verb = special
    at++
  }
  let namespace = ''
  if (parts[at] === 'namespaces' && parts.length > at + 1) {
    namespace = parts[at + 1]!
    if (parts.length > at + 2 && !namespaceSubresources.has(parts[at + 2]!)) at += 2
  }
  const isWatch = verb === 'watch' || truthy(query.get('watch'))
  const fieldSelector = query.get('fieldSelector') ?? undefined
  const name = parts[at + 1] ?? ''
  return {
    isResourceRequest: true,
    path,
    apiPrefix: parts[0]!,
    apiGroup: isGrouped ? parts[1]! : '',
    apiVersion: parts[isGrouped ? 2 : 1]!,
    namespace,
    resource: parts[at] ?? '',
    parts: parts.slice(at + 1),
    // A watch of one object is asked for with its name in the path; its subresource has no watch.
    verb: name === '' ? collectionVerb(verb, isWatch) : verb === 'get' && isWatch ? 'watch' : verb,
    subresource: name === '' || verb === 'watch' ? '' : (parts[at + 2] ?? ''),
    name: name === '' ? nameOfSelector(verb, isWatch, fieldSelector) : name,
    fieldSelector,
    labelSelector: query.get('labelSelector') ?? undefined,
  }
}

function collectionVerb(verb: string, isWatch: boolean): string {
  if (verb === 'get') return isWatch ? 'watch' : 'list'
  return verb === 'delete' ? 'deletecollection' : verb
}

/** A list or watch of one object by field selector is authorized by the object's name. */
function nameOfSelector(verb: string, isWatch: boolean, fieldSelector: string | undefined): string {
  if (!fieldSelector?.includes('metadata.name') || (verb !== 'get' && !isWatch && verb !== 'delete')) return ''
  try {
    const name = parseFieldSelector(fieldSelector).requiresExactMatch('metadata.name') ?? ''
    return isPathSegmentName(name).length === 0 ? name : ''
  } catch {
    // The handler refuses it later, to those who may ask at all.
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
  return value !== null && value !== 'false' && value !== '0' && value !== 'False' && value !== 'FALSE'
}
