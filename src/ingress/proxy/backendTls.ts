/**
 * How backends are spoken to over TLS (L3): with the server name, the authorities and the names of a BackendTLSPolicy. Each policy has connections of its own,
 * and no session is resumed: what one policy has verified is not known under another one.
 */
import { Agent } from 'node:https'
import { isIP } from 'node:net'
import { type ConnectionOptions, checkServerIdentity, createSecureContext, type PeerCertificate } from 'node:tls'
import { LruCache } from '#base/lruCache'
import { altNamesOf, matchesAltName } from '../model/altNames.ts'
import type { BackendTls } from '../model/route.ts'

export interface TlsTo {
  /** For `tls.connect`. */
  readonly connection: ConnectionOptions
  /** Keeps connections. */
  readonly agent: Agent
  /** Makes one for each request. */
  readonly freshAgent: Agent
}

/** Policies whose connections are kept. Those of others end when they have been idle. */
const maxPolicies = 1024

/** @param keeping the options of the agent that keeps connections */
export function createBackendTls(keeping: ConstructorParameters<typeof Agent>[0]): (tls: BackendTls) => TlsTo {
  const made = new LruCache<string, TlsTo>(maxPolicies)
  const freshAgent = new Agent({ keepAlive: false, maxCachedSessions: 0 })
  return (tls) => {
    const there = made.get(tls.id)
    if (there) return there
    const one = { connection: connectionOf(tls), agent: new Agent({ ...keeping, maxCachedSessions: 0 }), freshAgent }
    made.set(tls.id, one)
    return one
  }
}

function connectionOf({ hostname, authorities, subjectAltNames }: BackendTls): ConnectionOptions {
  return {
    // No server name is an address: RFC 6066.
    servername: isIP(hostname) ? '' : hostname,
    secureContext: createSecureContext({ minVersion: 'TLSv1.2', ...(authorities === undefined ? {} : { ca: authorities }) }),
    rejectUnauthorized: true,
    checkServerIdentity: (_, certificate) => {
      if (subjectAltNames.length === 0) return checkServerIdentity(hostname, certificate)
      return isAnyOf(subjectAltNames, certificate) ? undefined : new Error('the certificate has none of the names that the policy asks for')
    },
  }
}

function isAnyOf(wanted: BackendTls['subjectAltNames'], { subjectaltname = '' }: PeerCertificate): boolean {
  const names = altNamesOf(subjectaltname)
  return wanted.some((one) => names.some((name) => matchesAltName(one, name)))
}
