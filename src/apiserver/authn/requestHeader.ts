/**
 * Authenticates by the headers of a front proxy (L3): X-Remote-User and its like count only on connections whose certificate was signed by the
 * authority for front proxies, with one of the allowed common names.
 * Upstream: apiserver/pkg/authentication/request/headerrequest.
 */
import { X509Certificate } from 'node:crypto'
import type { Clock } from '#base/clock'
import { commonNameOf, subjectOfCertificate } from '#base/distinguishedName'
import { inLowerCase, userOfHeaders } from '../core/identityHeaders.ts'
import { withAuthenticatedGroup } from './authenticatedGroup.ts'
import type { Authenticator } from './authenticator.ts'
import type { RequestHeaderSettings } from './settings.ts'

interface Proxy {
  /** Undefined: the subject cannot be read. */
  readonly commonName: string | undefined
  readonly validToMs: number
}

export function requestHeaderAuthenticator(clock: Clock, settings: RequestHeaderSettings): Authenticator {
  const known = new WeakMap<Uint8Array, Proxy>()
  const { allowedNames } = settings
  const names = inLowerCase(settings)
  return {
    name: 'requestheader',
    authenticate({ peerCertificate, headers }) {
      if (!peerCertificate?.isFrontProxy) return undefined
      let proxy = known.get(peerCertificate.raw)
      if (!proxy) {
        proxy = read(peerCertificate.raw)
        known.set(peerCertificate.raw, proxy)
      }
      if (clock.now() > proxy.validToMs) return { decision: 'rejected', reason: 'x509: certificate has expired or is not yet valid' }
      if (proxy.commonName === undefined || (allowedNames.length > 0 && !allowedNames.includes(proxy.commonName))) {
        return { decision: 'rejected', reason: `x509: subject with cn=${proxy.commonName} is not in the allowed list` }
      }
      const user = userOfHeaders(headers, names)
      return user && { decision: 'authenticated', user: withAuthenticatedGroup({ ...user, groups: [...new Set(user.groups)] }) }
    },
  }
}

function read(raw: Uint8Array): Proxy {
  const subject = subjectOfCertificate(raw)
  // A subject that cannot be read has no allowed common name.
  return { commonName: typeof subject === 'string' ? undefined : commonNameOf(subject), validToMs: Date.parse(new X509Certificate(raw).validTo) }
}
