/**
 * Go's names for versions of TLS and cipher suites, as flags and configuration files have them, and what Node calls those (L5).
 * Upstream: component-base/cli/flag/ciphersuites_flag.go (v1.36); the demand for a suite is net/http's.
 */
import { DEFAULT_CIPHERS } from 'node:tls'
import type { TlsRules } from '#apiserver/server/servingTls'
import { bareMap } from '#base/bareMap'

/** The suites of TLS 1.3 cannot be chosen, as in Go. */
export const suitesOfVersion13 = DEFAULT_CIPHERS.split(':').filter((name) => name.startsWith('TLS_'))

/** @param version empty or absent: VersionTLS12. @param suites none: what Node offers. Faults are in upstream's words. */
export function tlsRulesOf(version: string | undefined, suites: readonly string[]): Pick<TlsRules, 'minVersion' | 'ciphers'> & { readonly faults: string[] } {
  const minVersion = version || 'VersionTLS12'
  const needsOne = suites.length > 0 && minVersion !== 'VersionTLS13' && !suites.some((name) => neededByHttp2.includes(name))
  return {
    minVersion: versions[minVersion],
    ...(suites.length > 0 ? { ciphers: suites.flatMap((name) => suiteNames[name] ?? []) } : {}),
    faults: [
      ...suites.filter((name) => !Object.hasOwn(suiteNames, name)).map((name) => `Cipher suite ${name} not supported or doesn't exist`),
      ...(Object.hasOwn(versions, minVersion) ? [] : [`unknown tls version ${JSON.stringify(minVersion)}`]),
      ...(needsOne
        ? [
            `error configuring http2: http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher (need at least one of ${neededByHttp2.join(' or ')})`,
          ]
        : []),
    ],
  }
}

const versions: Readonly<Record<string, TlsRules['minVersion']>> = bareMap({
  VersionTLS10: 'TLSv1',
  VersionTLS11: 'TLSv1.1',
  VersionTLS12: 'TLSv1.2',
  VersionTLS13: 'TLSv1.3',
})

const neededByHttp2 = ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256']

/** Go's names and OpenSSL's. Those of TLS 1.3 are always there. What is too weak for OpenSSL, RC4 and 3DES, is not in the list. */
const suiteNames: Readonly<Record<string, string | undefined>> = bareMap({
  TLS_AES_128_GCM_SHA256: undefined,
  TLS_AES_256_GCM_SHA384: undefined,
  TLS_CHACHA20_POLY1305_SHA256: undefined,
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: 'ECDHE-ECDSA-AES128-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256: 'ECDHE-ECDSA-AES128-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'ECDHE-ECDSA-AES128-GCM-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: 'ECDHE-ECDSA-AES256-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'ECDHE-ECDSA-AES256-GCM-SHA384',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: 'ECDHE-RSA-AES128-SHA',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256: 'ECDHE-RSA-AES128-SHA256',
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'ECDHE-RSA-AES128-GCM-SHA256',
  TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: 'ECDHE-RSA-AES256-SHA',
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'ECDHE-RSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305: 'ECDHE-RSA-CHACHA20-POLY1305',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-RSA-CHACHA20-POLY1305',
  TLS_RSA_WITH_AES_128_CBC_SHA: 'AES128-SHA',
  TLS_RSA_WITH_AES_128_CBC_SHA256: 'AES128-SHA256',
  TLS_RSA_WITH_AES_128_GCM_SHA256: 'AES128-GCM-SHA256',
  TLS_RSA_WITH_AES_256_CBC_SHA: 'AES256-SHA',
  TLS_RSA_WITH_AES_256_GCM_SHA384: 'AES256-GCM-SHA384',
})
