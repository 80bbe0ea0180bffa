/**
 * Works out what a path and method mean (L3): verb, group, version, namespace, resource, subresource, name.
 * Upstream: apiserver/pkg/endpoints/request/requestinfo.go.
 */
import type { RequestInfo, ServerRequest } from '../request.ts'
import { decided, type Stage } from './stage.ts'

const verbOf: Readonly<Record<string, string>> = { POST: 'create', GET: 'get', HEAD: 'get', PUT: 'update', PATCH: 'patch', DELETE: 'delete' }
/** Namespaces' own subresources: `/namespaces/x/status` is no resource named status. */
const namespaceSubresources: ReadonlySet<string> = new Set(['status', 'finalize'])
const specialVerbs: ReadonlySet<string> = new Set(['proxy', 'watch'])

export const requestInfoStage: Stage = {
  name: 'requestInfo',
  handle: (request, next) => {
    request.info = parseRequestInfo(request.method, request.path, request.query)
    decided(request, 'requestInfo', request.info.isResourceRequest ? `${request.info.verb} ${request.info.resource}` : request.info.verb, 0)
    return next(request)
  },
}

export function parseRequestInfo(method: string, path: string, query: ServerRequest['query']): RequestInfo {
  const nonResource = nonResourceInfo(method, path)
  let parts = splitPath(path)
  if (parts.length < 3) return nonResource
  const apiPrefix = parts[0]!
  if (apiPrefix !== 'api' && apiPrefix !== 'apis') return nonResource
  let apiGroup = ''
  parts = parts.slice(1)
  if (apiPrefix === 'apis') {
    if (parts.length < 3) return nonResource
    apiGroup = parts[0]!
    parts = parts.slice(1)
  }
  const apiVersion = parts[0]!
  parts = parts.slice(1)
  let verb = verbOf[method] ?? ''
  if (specialVerbs.has(parts[0]!)) {
    if (parts.length < 2) return nonResource
    verb = parts[0]!
    parts = parts.slice(1)
  }
  let namespace = ''
  if (parts[0] === 'namespaces') {
    if (parts.length > 1) {
      namespace = parts[1]!
      if (parts.length > 2 && !namespaceSubresources.has(parts[2]!)) parts = parts.slice(2)
    }
  }
  const [resource = '', name = '', subresource = ''] = parts
  const isWatch = verb === 'watch' || truthy(query.get('watch'))
  const fieldSelector = query.get('fieldSelector') ?? undefined
  const labelSelector = query.get('labelSelector') ?? undefined
  const info = { isResourceRequest: true, path, apiPrefix, apiGroup, apiVersion, namespace, resource, parts: parts.slice(1), fieldSelector, labelSelector }
  if (name === '') return { ...info, verb: collectionVerb(verb, isWatch), subresource: '', name: nameOfSelector(verb, isWatch, fieldSelector) }
  // A watch of one object is asked for with its name in the path; its subresource has no watch.
  return { ...info, verb: verb === 'get' && isWatch ? 'watch' : verb, subresource: verb === 'watch' ? '' : subresource, name }
}

function collectionVerb(verb: string, isWatch: boolean): string {
  if (verb === 'get') return isWatch ? 'watch' : 'list'
  return verb === 'delete' ? 'deletecollection' : verb
}

/** A list or watch of one object by field selector is authorized by the object's name. */
function nameOfSelector(verb: string, isWatch: boolean, fieldSelector: string | undefined): string {
  if (!fieldSelector || (verb !== 'get' && !isWatch && verb !== 'delete')) return ''
  const match = /^metadata\.name={1,2}([^,=!]+)$/.exec(fieldSelector)
  return match && /^[a-z0-9A-Z_.:-]+$/.test(match[1]!) ? match[1]! : ''
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

function splitPath(path: string): string[] {
  const trimmed = path.replace(/^\/+|\/+$/g, '')
  return trimmed === '' ? [] : trimmed.split('/')
}

/** Query flags as Go's strconv.ParseBool with apimachinery's leniency: present and not false. */
export function truthy(value: string | null): boolean {
  return value !== null && value !== 'false' && value !== '0' && value !== 'False' && value !== 'FALSE'
}
