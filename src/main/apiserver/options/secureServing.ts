/**
 * The flags that say how the port listens and speaks TLS and HTTP/2 (L5), in Go's names for versions, suites and curves.
 * Upstream: apiserver/pkg/server/options/serving.go, component-base/cli/flag/ciphersuites_flag.go, curves_flag.go, namedcertkey_flag.go (v1.36).
 */

import type { ListenOptions } from '#apiserver/server/listener'
import type { NamedCertificate, TlsRules } from '#apiserver/server/servingTls'
import { type Flag, type FlagValues, flag, list, text, UsageError, whole } from './flags.ts'
import { type Followed, pairOf, readFollowed } from './namedFiles.ts'
import { optionGroup } from './optionGroup.ts'

export interface NamedFiles {
  readonly cert: string
  readonly key: string
  readonly names: readonly string[]
}

const flags = {
  'disable-http2-serving': flag('Speak HTTP/1.1 only'),
  'http2-max-streams-per-connection': whole('How many requests a client may have under way on one HTTP/2 connection; 0: 100', 0),
  'permit-address-sharing': flag('Bind the port although connections of before linger on it (SO_REUSEADDR), which is always done'),
  'permit-port-sharing': flag('Let several servers bind the same address and port (SO_REUSEPORT)'),
  'tls-cipher-suites': list("Suites for TLS before 1.3, in Go's names; none: a safe choice"),
  'tls-curve-preferences': list("Curves for the exchange of keys, by the numbers of Go's CurveID: 23, 24, 25, 29; none: all that are offered"),
  'tls-min-version': text('The oldest TLS that is spoken: VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13; empty: VersionTLS12'),
  'tls-sni-cert-key': namedPairs(
    'A certificate and its key for clients that ask for certain names: FILE,FILE or FILE,FILE:NAME,NAME; without names those of the certificate',
  ),
} as const

type Values = FlagValues<typeof flags>

export interface SecureServingOptions {
  readonly listen: Pick<ListenOptions, 'maxStreams' | 'http2' | 'sharesPort'>
  readonly rules: TlsRules
  /** In the order of the flags. */
  readonly named: readonly { readonly names: readonly string[]; readonly pair: Followed<Pick<NamedCertificate, 'cert' | 'key'> | undefined> }[]
}

export const secureServing = optionGroup({
  name: 'Secure serving',
  flags,
  async settings(values, context): Promise<SecureServingOptions> {
    const { ciphers, curves, minVersion, faults } = rulesOf(values)
    const sharesPort = values['permit-port-sharing']
    if (sharesPort && !canSharePorts(process.versions.node)) faults.push(`--permit-port-sharing needs Node.js 22.12 or later: this is ${process.versions.node}`)
    if (faults.length > 0) throw new UsageError(faults)
    const named = values['tls-sni-cert-key'].map(async ({ cert, key, names }) => ({ names, pair: await readFollowed([cert, key], context, pairOf) }))
    return {
      listen: { maxStreams: Math.max(0, values['http2-max-streams-per-connection']) || undefined, http2: !values['disable-http2-serving'], sharesPort },
      rules: { ciphers, curves, minVersion },
      named: await Promise.all(named),
    }
  },
})

/** The newest of all pairs. */
export function namedCertificates({ named }: SecureServingOptions): readonly NamedCertificate[] {
  return named.flatMap(({ names, pair }) => (pair.value ? [{ ...pair.value, names }] : []))
}

function canSharePorts(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12)
}

function rulesOf(values: Values): TlsRules & { readonly faults: string[] } {
  const suites = values['tls-cipher-suites']
  const curves = values['tls-curve-preferences']
  const minVersion = values['tls-min-version'] || 'VersionTLS12'
  const needsOne = suites.length > 0 && minVersion !== 'VersionTLS13' && !suites.some((name) => neededByHttp2.includes(name))
  return {
    minVersion: versions[minVersion],
    ...(suites.length > 0 ? { ciphers: suites.flatMap((name) => suiteNames[name] ?? []) } : {}),
    ...(curves.length > 0 ? { curves: curves.flatMap((number) => curveNames[number] ?? []) } : {}),
    faults: [
      ...suites.filter((name) => !Object.hasOwn(suiteNames, name)).map((name) => `Cipher suite ${name} not supported or doesn't exist`),
      ...curves.filter((number) => !Object.hasOwn(curveNames, number)).map((number) => `curve preference ${number} is not supported by this server`),
      ...(Object.hasOwn(versions, minVersion) ? [] : [`unknown tls version ${JSON.stringify(minVersion)}`]),
      ...(needsOne
        ? [
            `error configuring http2: http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher (need at least one of ${neededByHttp2.join(' or ')})`,
          ]
        : []),
    ],
  }
}

const versions: Readonly<Record<string, TlsRules['minVersion']>> = {
  VersionTLS10: 'TLSv1',
  VersionTLS11: 'TLSv1.1',
  VersionTLS12: 'TLSv1.2',
  VersionTLS13: 'TLSv1.3',
}

const neededByHttp2 = ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256']

/** Go's names and OpenSSL's. Those of TLS 1.3 are always there. What is too weak for OpenSSL, RC4 and 3DES, is not in the list. */
const suiteNames: Readonly<Record<string, string | undefined>> = {
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
}

const curveNames: Readonly<Record<string, string>> = { 23: 'P-256', 24: 'P-384', 25: 'P-521', 29: 'X25519' }

function namedPairs(usage: string): Flag<readonly NamedFiles[]> {
  const shown = ({ cert, key, names }: NamedFiles) => `${cert},${key}${names.length > 0 ? `:${names.join(',')}` : ''}`
  return {
    type: 'namedCertKey',
    usage,
    default: [],
    format: (pairs) => `[${pairs.map(shown).join(';')}]`,
    parse(given, before = []) {
      const at = given.indexOf(':')
      const names = at < 0 ? undefined : given.slice(at + 1).trim()
      if (names === '') throw new Error('empty names list is not allowed')
      const files = (at < 0 ? given : given.slice(0, at)).split(',').map((file) => file.trim())
      if (files.length !== 2) throw new Error('expected comma separated certificate and key file paths')
      const [cert = '', key = ''] = files
      return [...before, { cert, key, names: names === undefined ? [] : names.split(',').map((name) => name.trim()) }]
    },
  }
}
