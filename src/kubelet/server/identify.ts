/**
 * Authenticates requests to the kubelet (L3): by the client certificate of the connection, then by the bearer token, in
 * the header or among a WebSocket's subprotocols. A credential that is wrong does not make
 * its bearer anonymous. Upstream: cmd/kubelet/app/auth.go BuildAuthn, apiserver/pkg/authentication/authenticatorfactory/delegating.go (v1.36).
 */
import { X509Certificate } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import type { Clock } from '#base/clock'
import { userOfCertificate } from '#base/distinguishedName'
import type { Logger } from '#base/log'
import { offeredProtocols, tokenOfProtocols } from '#streaming/offeredProtocols'
import { anonymousUser, type KubeletAuth, type KubeletUser, withAuthenticated } from './auth.ts'

interface Deps {
  readonly auth: KubeletAuth
  readonly clock: Clock
  readonly log: Logger
}

interface Shown {
  readonly user: KubeletUser | undefined
  readonly validToMs: number
  /** The error of the certificate. */
  readonly fault: string | undefined
}

/** The user of a request; undefined: 401. */
export function createIdentifier({ auth, clock, log }: Deps): (request: IncomingMessage) => Promise<KubeletUser | undefined> {
  const known = new WeakMap<TLSSocket, Shown>()
  const shownBy = (socket: TLSSocket): Shown => {
    const found = known.get(socket) ?? readCertificate(socket)
    known.set(socket, found)
    // A connection may outlive its certificate.
    return found.user && clock.now() > found.validToMs ? { ...found, user: undefined, fault: 'x509: certificate has expired or is not yet valid' } : found
  }
  return async (request) => {
    const { user, fault } = shownBy(request.socket as TLSSocket)
    if (user) return user
    if (fault !== undefined) log.error(new Error(fault), 'Unable to authenticate the request due to an error')
    const { headers } = request
    const token = bearerToken(headers.authorization)
    const carried = headers.upgrade?.toLowerCase() === 'websocket' ? tokenOfProtocols(headers['sec-websocket-protocol']) : undefined
    if (token === undefined && !carried) return auth.anonymous && fault === undefined ? anonymousUser : undefined
    try {
      const known = token === undefined ? undefined : await auth.authenticateToken(token)
      if (known || !carried) return known
      if ('fault' in carried) throw new Error(carried.fault)
      const browser = await auth.authenticateToken(carried.token)
      // The handshake answers with one of the others.
      if (browser) headers['sec-websocket-protocol'] = offeredProtocols(headers['sec-websocket-protocol']).join(', ')
      return browser
    } catch (error) {
      log.error(error, 'Unable to authenticate the request due to an error')
      return undefined
    }
  }
}

/** The second word of the header, when the first is Bearer; more words change nothing. */
function bearerToken(header: string | undefined): string | undefined {
  const [scheme = '', token = ''] = (header ?? '').trim().split(' ')
  return scheme.toLowerCase() === 'bearer' && token !== '' ? token : undefined
}

function readCertificate(socket: TLSSocket): Shown {
  const shown = socket.getPeerX509Certificate?.()
  if (!shown) return { user: undefined, validToMs: 0, fault: undefined }
  const certificate = new X509Certificate(shown.raw)
  const validToMs = Date.parse(certificate.validTo)
  if (!socket.authorized)
    return { user: undefined, validToMs, fault: `x509: ${String(socket.authorizationError ?? 'certificate signed by unknown authority')}` }
  const found = userOfCertificate(certificate.raw)
  if (!found || typeof found === 'string') return { user: undefined, validToMs, fault: found }
  const { name, uid, groups } = found
  const credential = `X509SHA256=${certificate.fingerprint256.replaceAll(':', '').toLowerCase()}`
  const user = { name, ...(uid ? { uid } : {}), groups: withAuthenticated(groups), extra: { 'authentication.kubernetes.io/credential-id': [credential] } }
  return { user, validToMs, fault: undefined }
}
