/** Requests and WebSockets of the page (L4): to the front, which passes them on with the credentials of the session. */
import { keyProtocol, plainProtocol, tableProtocol } from '../model/protocols.ts'
import { forget, sessionKey } from './session.ts'
import { withRetries } from './withRetries.ts'

/** The server's own words; `reason` as in metav1.Status. */
export class ApiError extends Error {
  readonly status: number
  readonly reason: string
  constructor(status: number, reason: string, message: string) {
    super(message)
    this.status = status
    this.reason = reason
  }
}

/** Until something that the server refused is asked for again: the user may have got the right meanwhile. */
export const refusedAgainMs = 10_000
export const isRefusal = (error: unknown): boolean => error instanceof ApiError && error.status === 403

export interface Call {
  readonly method?: string
  readonly accept?: string
  readonly contentType?: string
  /** A value, sent as JSON, or a text. */
  readonly body?: unknown
  readonly signal?: AbortSignal
}

async function send(path: string, { method = 'GET', accept, contentType, body, signal }: Call): Promise<Response> {
  const headers: Record<string, string> = { 'x-skiff-key': sessionKey(), accept: accept ?? 'application/json' }
  if (body !== undefined) headers['content-type'] = contentType ?? 'application/json'
  const text = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body)
  const ask = () => fetch(path, { method, headers, body: text, signal: signal ?? null })
  const answer = await (method === 'GET' ? withRetries(ask, signal) : ask())
  if (answer.ok) return answer
  throw await errorOf(answer)
}

async function errorOf(answer: Response): Promise<ApiError> {
  const text = await answer.text()
  let status: { readonly reason?: string; readonly message?: string } = {}
  try {
    status = JSON.parse(text) as typeof status
  } catch {
    // A text.
  }
  if (answer.status === 401 && status.message === 'log in first') forget()
  return new ApiError(answer.status, status.reason ?? '', status.message ?? (text.trim() || `the server answered ${answer.status}`))
}

export const get = async <T>(path: string, call: Call = {}): Promise<T> => (await send(path, call)).json() as Promise<T>

export const getText = async (path: string, call: Call = {}): Promise<string> => (await send(path, call)).text()

export interface Patched<T> {
  readonly body: T
  readonly warnings: readonly string[]
}

/** A write; the server's warnings come with its answer. */
export async function write<T>(method: string, path: string, body?: unknown, call: Call = {}): Promise<Patched<T>> {
  const answer = await send(path, { ...call, method, body })
  const warnings = [...(answer.headers.get('warning') ?? '').matchAll(/299 \S+ "((?:\\.|[^"\\])*)"/g)].map(([, text = '']) => text.replace(/\\(.)/g, '$1'))
  const isText = !(answer.headers.get('content-type') ?? '').includes('json')
  return { body: (isText ? await answer.text() : await answer.json()) as T, warnings }
}

export const mergePatch = <T>(path: string, patch: object): Promise<Patched<T>> =>
  write('PATCH', `${path}${path.includes('?') ? '&' : '?'}fieldManager=skiff-ui`, patch, { contentType: 'application/merge-patch+json' })

export { messageOf } from '#base/messageOf'

/** @param protocols of the API; for a watch none */
export function openSocket(path: string, protocols: readonly string[], options: { readonly table?: boolean } = {}): WebSocket {
  const own = [plainProtocol, `${keyProtocol}${sessionKey()}`, ...(options.table ? [tableProtocol] : [])]
  return new WebSocket(`ws://${location.host}${path}`, [...protocols, ...own])
}
