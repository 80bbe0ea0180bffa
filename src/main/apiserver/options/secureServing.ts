/**
 * The flags of the secure port (L5): address, certificates, TLS and HTTP/2. tlsNames.ts knows the names of TLS versions and cipher suites.
 * Upstream: apiserver/pkg/server/options/serving.go, component-base/cli/flag/curves_flag.go, namedcertkey_flag.go (v1.36).
 */
import type { ListenOptions } from '#apiserver/server/listener'
import type { NamedCertificate, TlsRules } from '#apiserver/server/servingTls'
import { curvesOf, unknownCurves } from '#base/tlsCurves'
import { tlsRulesOf } from '../../tlsNames.ts'
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
    const { ciphers, curves, minVersion, faults: inRules } = rulesOf(values)
    const faults = [...inRules]
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

function rulesOf(values: Values): TlsRules & { readonly faults: readonly string[] } {
  const curves = values['tls-curve-preferences']
  const { faults, ...rules } = tlsRulesOf(values['tls-min-version'], values['tls-cipher-suites'])
  const unknown = unknownCurves(curves).map((number) => `curve preference ${number} is not supported by this server`)
  return { ...rules, curves: curvesOf(curves), faults: [...faults, ...unknown] }
}

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
