/**
 * The flags of a component's own port (L5). Upstream: apiserver/pkg/server/options/serving.go (v1.36), with the defaults of kube-scheduler and
 * kube-controller-manager.
 */
import { isIP } from 'node:net'
import { text, UsageError, whole } from '../../apiserver/options/flags.ts'
import { type Followed, pairOf, readFollowed } from '../../apiserver/options/namedFiles.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'
import type { NamedPair } from '../../apiserver/options/serving.ts'

export interface SecureServingSettings {
  readonly host: string
  /** 0: there is no port. */
  readonly port: number
  /** Empty: certificates that are made are kept in memory alone. */
  readonly certDir: string
  /** Absent: one is made. */
  readonly serving: Followed<NamedPair | undefined>
}

const pairFlags = ['tls-cert-file', 'tls-private-key-file'] as const

export function secureServing(port: number) {
  return optionGroup({
    name: 'Secure serving',
    flags: {
      'bind-address': text('The address to listen on; 0.0.0.0 or ::, all of them', '0.0.0.0'),
      'cert-dir': text('Where the certificate is kept that is made when no flag names one; empty: in memory'),
      'secure-port': whole('The port for health, metrics and the like; 0: none', port),
      'tls-cert-file': text('The certificate to show to clients, with those between it and its authority'),
      'tls-private-key-file': text('Its private key'),
    },
    async settings(values, context): Promise<SecureServingSettings> {
      const { 'bind-address': host, 'secure-port': given } = values
      const named = pairFlags.filter((name) => values[name] !== '').length
      const faults = [
        ...(isIP(host) === 0 ? ['--bind-address must be an IP address'] : []),
        ...(given < 0 || given > 65_535 ? [`--secure-port ${given} must be between 0 and 65535, inclusive. 0 for turning off secure port`] : []),
        ...(named === 1 ? [`--${pairFlags[0]} and --${pairFlags[1]} must be specified together`] : []),
      ]
      if (faults.length > 0) throw new UsageError(faults)
      return {
        host,
        port: given,
        certDir: values['cert-dir'],
        serving: await readFollowed(
          pairFlags.map((name) => values[name]),
          context,
          pairOf,
        ),
      }
    },
  })
}
