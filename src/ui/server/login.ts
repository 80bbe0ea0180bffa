/**
 * Logging in (L4): a one-time code gives the rights of the user who started the front, a bearer token those of its user. Both come in the body of a request,
 * never in a URL that a server sees.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isStatus, StatusError } from '#api/machinery/status'
import type { HttpTransport } from '#client/httpTransport'
import type { ShownCluster } from '../model/shownCluster.ts'
import { cookieName, dataHeaders } from './guard.ts'
import { readBody } from './readBody.ts'
import { type Identity, lifeMs, type Sessions } from './sessions.ts'

export interface LoginOptions {
  /** With the credentials of the user who started the front. */
  readonly transport: HttpTransport
  /** The same server with a token and no other credentials. */
  readonly transportAs: (token: string) => HttpTransport
  /** What the page says about the cluster. */
  readonly cluster: ShownCluster
}

interface LoginState {
  readonly options: LoginOptions
  readonly sessions: Sessions
  readonly port: number
}

const mostLoginBytes = 64 * 1024

/** @throws StatusError Unauthorized, with the same message for a wrong, used or expired code */
export async function login({ options, sessions, port }: LoginState, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'POST') throw new StatusError('MethodNotAllowed', 'log in with POST')
  // A form of another site cannot have this type.
  if (!/^application\/json\b/.test(request.headers['content-type'] ?? '')) throw new StatusError('UnsupportedMediaType', 'expected application/json')
  const { code, token } = credentialsIn(await readBody(request, mostLoginBytes))
  const opened = token === undefined ? byCode(sessions, options.transport, code) : byToken(options.transportAs(token))
  const { transport, release, refusal, undo } = opened
  try {
    const identity = await identityOf(transport, refusal)
    const { cookie, session } = sessions.open(identity, transport, release)
    response.writeHead(200, {
      ...dataHeaders,
      'content-type': 'application/json',
      'set-cookie': `${cookieName(port)}=${cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${lifeMs / 1000}`,
    })
    response.end(JSON.stringify({ key: session.key, ...identity, cluster: options.cluster }))
  } catch (error) {
    undo()
    throw error
  }
}

interface Opened {
  readonly transport: HttpTransport
  /** Ends what only this session uses. */
  readonly release: () => void
  /** After a login that failed. */
  readonly undo: () => void
  /** What the user reads when the cluster does not accept the credentials. */
  readonly refusal: string
}

/** A code is used up before the cluster answers, so that it opens one session even when two tabs use it at once; a login that fails gives it back. */
function byCode(sessions: Sessions, transport: HttpTransport, code: string | undefined): Opened {
  const giveBack = code === undefined ? undefined : sessions.takeCode(code)
  if (!giveBack) throw new StatusError('Unauthorized', 'this code is wrong, used or expired: start skiff ui again')
  return { transport, release: () => {}, undo: giveBack, refusal: 'the cluster does not accept the credentials of the user who started skiff ui' }
}

function byToken(transport: HttpTransport): Opened {
  const release = () => void transport.close()
  return { transport, release, undo: release, refusal: 'the cluster does not accept this token' }
}

function credentialsIn(body: Buffer): { readonly code?: string | undefined; readonly token?: string | undefined } {
  let value: unknown
  try {
    value = JSON.parse(body.toString())
  } catch {
    value = undefined
  }
  if (typeof value !== 'object' || value === null) throw new StatusError('BadRequest', 'expected a code or a token')
  const { code, token } = value as Record<string, unknown>
  return { code: typeof code === 'string' ? code : undefined, token: isToken(token) ? token : undefined }
}

/** As a header can carry it. */
const isToken = (value: unknown): value is string => typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)

interface SelfSubjectReview {
  readonly status?: { readonly userInfo?: { readonly username?: string; readonly groups?: readonly string[] } }
}

/** @throws StatusError Unauthorized when the server does not know the user */
async function identityOf(transport: HttpTransport, refusal: string): Promise<Identity> {
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  try {
    const { status } = (await transport.request({ method: 'POST', path, body })).body as SelfSubjectReview
    const { username = '', groups = [] } = status?.userInfo ?? {}
    return { user: username, groups }
  } catch (error) {
    if (isStatus(error, 'Unauthorized')) throw new StatusError('Unauthorized', refusal)
    // No role lets this authenticated user ask for its name.
    if (isStatus(error, 'Forbidden')) return { user: 'unknown', groups: [] }
    throw error
  }
}
