/**
 * Turns a read of the present into one of the past (L4, pure). Lists are asked for at exactly one revision; one object is asked for as a list of one, because
 * the API reads single objects only in their newest state. Everything that has no past, or is no read, is refused by name.
 */
import { type StatusDetails, StatusError } from '#api/machinery/status'

export interface PastRequest {
  readonly method: string
  /** Path and query, as sent. */
  readonly target: string
  readonly accept: string | undefined
}

/** One object that is read as a list. */
export interface WantedObject {
  readonly group: string
  readonly resource: string
  readonly name: string
}

export type PastPlan =
  /** The same at all times: discovery, schemas, the version. */
  | { readonly type: 'pass'; readonly target: string; readonly accept: string }
  | { readonly type: 'list'; readonly target: string; readonly accept: string; readonly resource: string }
  | { readonly type: 'object'; readonly target: string; readonly accept: string; readonly object: WantedObject }

/** @throws StatusError with the answer for a request that is refused */
export function planPast({ method, target, accept }: PastRequest, revision: number): PastPlan {
  const url = new URL(target, 'http://localhost')
  const { pathname, searchParams: query } = url
  if (method !== 'GET') throw refused(`the past is read-only: ${method} ${pathname} is not possible`)
  if (isTimeless(pathname)) return { type: 'pass', target: pathname + url.search, accept: accept ?? 'application/json' }
  const place = placeOf(pathname)
  if (!place) throw refused(`${pathname} has no history`)
  const { group, resource, name, subresource, collection } = place
  const kind = group === '' ? resource : `${resource}.${group}`
  if (subresource !== undefined) throw refused(`${subresource} of ${kind} has no history`)
  if (isTrue(query.get('watch'))) throw refused(`${kind} cannot be watched in the past`)
  const json = jsonOf(accept)
  query.delete('watch')
  query.delete('resourceVersion')
  query.delete('resourceVersionMatch')
  const at = () => {
    query.set('resourceVersion', String(revision))
    query.set('resourceVersionMatch', 'Exact')
  }
  if (name === undefined) {
    const token = query.get('continue') ?? ''
    // The token has the revision in it.
    if (token === '') at()
    else if (revisionOfToken(token) !== revision) throw new StatusError('Expired', 'The provided continue parameter belongs to another revision.')
    return { type: 'list', target: `${collection}?${query}`, accept: json, resource: kind }
  }
  for (const option of ['continue', 'limit', 'labelSelector']) query.delete(option)
  query.set('fieldSelector', `metadata.name=${name.replace(/[\\,=]/g, '\\$&')}`)
  at()
  return { type: 'object', target: `${collection}?${query}`, accept: json, object: { group, resource, name } }
}

interface Place {
  readonly group: string
  readonly resource: string
  /** The path of the list. */
  readonly collection: string
  readonly name?: string | undefined
  readonly subresource?: string | undefined
}

function placeOf(pathname: string): Place | undefined {
  const segments = pathname.split('/').slice(1)
  const [root, ...rest] = segments
  const head = root === 'api' ? 1 : root === 'apis' ? 2 : undefined
  if (head === undefined || rest.length <= head || segments.includes('')) return undefined
  const below = rest.slice(head)
  if (below[0] === 'watch') throw refused('a watch of the past is not possible')
  const group = head === 1 ? '' : decoded(rest[0] as string)
  // A third segment below a namespace is a resource, unless it is one of the namespace's own subresources.
  const isNamespaced = below[0] === 'namespaces' && below.length > 2 && !(below.length === 3 && ['status', 'finalize'].includes(below[2] as string))
  const start = isNamespaced ? 2 : 0
  const [resource = '', name, ...subresource] = below.slice(start)
  return {
    group,
    resource: decoded(resource),
    collection: `/${segments.slice(0, 1 + head + start + 1).join('/')}`,
    ...(name === undefined ? {} : { name: decoded(name) }),
    ...(subresource.length === 0 ? {} : { subresource: subresource.map(decoded).join('/') }),
  }
}

function decoded(segment: string): string {
  let text: string | undefined
  try {
    text = decodeURIComponent(segment)
  } catch {
    // Refused below.
  }
  if (text === undefined || text.includes('/')) throw new StatusError('BadRequest', `the path segment ${segment} is not valid`)
  return text
}

function isTimeless(path: string): boolean {
  return /^\/(api(\/[^/]+)?|apis(\/[^/]+){0,2}|openapi\/.*|version|healthz|livez|readyz)\/?$/.test(path)
}

/** As the server reads the option. */
const isTrue = (option: string | null) => option !== null && !['0', 'false'].includes(option.toLowerCase())

/** A list of one is turned into its object, which is possible in JSON only. @throws StatusError NotAcceptable */
function jsonOf(accept: string | undefined): string {
  if (accept === undefined || accept.trim() === '') return 'application/json'
  const json = accept
    .split(',')
    .map((one) => one.trim())
    .filter((one) => /^application\/json(;|$)/.test(one))
  if (json.length > 0) return json.join(',')
  if (/(^|[\s,])(\*\/\*|application\/\*)/.test(accept)) return 'application/json'
  throw new StatusError('NotAcceptable', 'only the following media types are accepted: application/json')
}

function revisionOfToken(token: string): number | undefined {
  try {
    return (JSON.parse(Buffer.from(token, 'base64url').toString()) as { rv?: number }).rv
  } catch {
    return undefined
  }
}

function refused(message: string): StatusError {
  return new StatusError('MethodNotAllowed', message)
}

interface Listed {
  readonly kind?: string
  readonly apiVersion?: string
  readonly metadata?: { readonly resourceVersion?: string }
  readonly items?: readonly object[] | null
  readonly rows?: readonly unknown[] | null
}

/** The object of a list of one; a table stays a table. @throws StatusError NotFound */
export function objectOfList(list: unknown, { group, resource, name }: WantedObject, revision: number): unknown {
  const { kind = '', apiVersion, metadata, items, rows } = list as Listed
  if (metadata?.resourceVersion !== String(revision)) throw withoutHistory(resource)
  const found = kind === 'Table' ? rows?.[0] : items?.[0]
  if (found === undefined) {
    const details: StatusDetails = { name, kind: resource, ...(group === '' ? {} : { group }) }
    throw new StatusError('NotFound', `${group === '' ? resource : `${resource}.${group}`} "${name}" not found`, { details })
  }
  return kind === 'Table' ? list : { kind: kind.replace(/List$/, ''), apiVersion, ...(found as object) }
}

/** Servers that compute their objects, or know no exact revision, answer with another one. */
export function withoutHistory(resource: string): StatusError {
  return refused(`${resource} has no history: its server does not store it, or does not read at a revision`)
}

/** The list's own revision, from the beginning of its JSON: it stands before the items. */
export function revisionIn(beginning: string): number | undefined {
  const [, text] = /"resourceVersion":\s*"(\d*)"/.exec(beginning) ?? []
  return text === undefined || text === '' ? undefined : Number(text)
}
