/** What a route makes of a request's host and path, for its backend or for the Location of a redirect (L3, pure). */
import type { PathPattern } from '../model/hostRoutes.ts'
import type { Asked, PathChange, Redirect, Route } from '../model/route.ts'
import type { Entrance } from './proxyDeps.ts'

/** What a backend is asked with. */
export interface Target {
  /** As the client wrote it, unless the route rewrites it. */
  readonly authority: string
  /** With the query. */
  readonly url: string
  /** As the client wrote it. */
  readonly askedAuthority: string
}

const portOfScheme = (scheme: string) => (scheme === 'https' ? 443 : 80)

export function rewritten({ rewrite, pattern }: Route, { authority, url, path }: Asked & { readonly authority: string }): Target {
  const changedUrl = rewrite?.path ? changed(rewrite.path, pattern, path, url) : url
  return { authority: rewrite?.host ?? authority, url: changedUrl, askedAuthority: authority }
}

/** Without a port of its own the redirect keeps the listener's, or takes that of its new scheme. */
export function locationOf({ scheme, host, port, path }: Redirect, pattern: PathPattern | undefined, asked: Asked, entrance: Entrance): string {
  const to = scheme ?? entrance.scheme
  const at = port ?? (scheme === undefined ? entrance.port : portOfScheme(scheme))
  const shownPort = at === portOfScheme(to) ? '' : `:${at}`
  return `${to}://${host ?? asked.host}${shownPort}${path ? changed(path, pattern, asked.path, asked.url) : asked.url}`
}

function changed(change: PathChange, pattern: PathPattern | undefined, path: string, url: string): string {
  const query = url.includes('?') ? url.slice(url.indexOf('?')) : ''
  if (change.replaces === 'path' || !pattern || pattern.isExact) return `${change.path || '/'}${query}`
  // The request was matched by its path in the decoded form, which differs from what the client wrote if that has escapes or dots.
  const write = url.slice(0, url.length - query.length) === path ? (text: string) => text : encoded
  const rest = write(path).slice(write(pattern.path).length)
  const joined = `${change.path.replace(/\/$/, '')}${rest}`
  return `${joined.startsWith('/') ? joined : `/${joined}`}${query}`
}

/** An escaped slash is one already. */
function encoded(path: string): string {
  return path
    .split(/(%2F)/i)
    .map((part, at) => (at % 2 === 1 ? part : encodeURI(part).replaceAll('?', '%3F').replaceAll('#', '%23')))
    .join('')
}
