/** Paths and queries of requests to a backend (L3). The server decoded the path of the incoming request, so it is escaped again. */
import type { ServerRequest } from '../core/request.ts'

/** Escapes a decoded path; a `?` or `#` in it stays part of the path. */
export function escapePath(path: string): string {
  return encodeURI(path).replace(/[?#]/g, encodeURIComponent)
}

/** The query as the client sent it, with its question mark; empty without one. */
export function querySuffix({ query, rawQuery }: ServerRequest): string {
  const text = rawQuery?.replace(/[^\x21-\x7e]/g, (character) => encodeURIComponent(character)) ?? query.toString()
  return text === '' ? '' : `?${text}`
}
