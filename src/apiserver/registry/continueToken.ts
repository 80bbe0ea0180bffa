/**
 * The place at which a paged list continues (L3). The token is opaque to clients; it has upstream's form, so that tools that decode it keep working.
 * Upstream: apiserver/pkg/storage/continue.go.
 */
import { badRequest } from '#api/machinery/status'

export interface Continue {
  /** All pages show this revision; -1: continue at the key in the newest state (the first page's revision was compacted). */
  readonly revision: number
  /** The first key wanted, relative to the resource's prefix. */
  readonly start: string
}

export function encodeContinue(token: Continue): string {
  return Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: token.revision, start: token.start })).toString('base64url')
}

/** @throws Status BadRequest for a text that is no token of this server. */
export function decodeContinue(text: string): Continue {
  const bad = (why: string) => badRequest(`invalid continue token: continue key is not valid: ${why}`)
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    throw bad('the token does not decode')
  }
  const { v, rv, start } = (value ?? {}) as { v?: unknown; rv?: unknown; start?: unknown }
  if (v !== 'meta.k8s.io/v1') throw bad(`server does not recognize this encoded version ${v ?? ''}`)
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv === 0) throw bad('incorrect encoded start resourceVersion (version meta.k8s.io/v1)')
  if (typeof start !== 'string' || start === '') throw bad('encoded start key empty (version meta.k8s.io/v1)')
  // Only a normalized key is safe: others could lead out of the resource's prefix.
  if (
    start.endsWith('/') ||
    start
      .replace(/^\//, '')
      .split('/')
      .some((part) => part === '' || part === '.' || part === '..')
  )
    throw bad(start)
  return { revision: rv, start: start.replace(/^\//, '') }
}
