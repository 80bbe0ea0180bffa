/**
 * The flags of a server that runs alone (L5): its store, its port, its serving certificates. A local cluster decides these itself.
 * Upstream: apiserver/pkg/server/options/serving.go, pkg/controlplane/apiserver/options (v1.36); --data-dir, --cert-names and --node-apis are Skiff's own.
 */
import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { parseCidr } from '#api/machinery/ip'
import { type FlagValues, flag, list, text, UsageError, whole } from './flags.ts'
import { type Followed, pairOf, readFollowed } from './namedFiles.ts'
import { type OptionContext, optionGroup } from './optionGroup.ts'

const flags = {
  'advertise-address': text('The address at which pods reach this server; empty: no kubernetes Service is made'),
  'bind-address': text('The address to listen on', '127.0.0.1'),
  'cert-dir': text('Where certificates are made and kept that no other flag names; empty: below --data-dir'),
  'cert-names': list('More names and addresses that the certificate which is made for clients is valid for'),
  'data-dir': text('Where the objects are stored'),
  'kubelet-certificate-authority': text('Who signs the serving certificates of kubelets'),
  'kubelet-client-certificate': text('The certificate to show to kubelets'),
  'kubelet-client-key': text('Its private key'),
  'node-apis': flag('Serve metrics.k8s.io and node.skiff.dev, by asking the kubelets of all nodes'),
  'proxy-client-cert-file': text('The certificate to show to extension API servers'),
  'proxy-client-key-file': text('Its private key'),
  'secure-port': whole('The port to listen on', 6443),
  'service-cluster-ip-range': text('The range that Services get addresses from, or one of each address family', '10.96.0.0/16'),
  'tls-cert-file': text('The certificate to show to clients, with those between it and its authority'),
  'tls-private-key-file': text('Its private key'),
} as const

type Values = FlagValues<typeof flags>

/** PEM. */
export interface NamedPair {
  readonly cert: string
  readonly key: string
}

export interface ServingOptions {
  readonly dataDir: string
  readonly certDir: string
  readonly certNames: readonly string[]
  readonly host: string
  readonly port: number
  readonly advertised: string | undefined
  readonly serviceCidr: string
  /** Absent: made in `certDir`. */
  readonly serving: Followed<NamedPair | undefined>
  readonly kubeletClient: NamedPair | undefined
  readonly kubeletCa: string | undefined
  readonly proxyClient: NamedPair | undefined
  readonly nodeApis: boolean
}

export const serving = optionGroup({
  name: 'Serving',
  flags,
  async settings(values, context): Promise<ServingOptions> {
    const faults = checks.flatMap((check) => check(values))
    if (faults.length > 0) throw new UsageError(faults)
    return {
      dataDir: values['data-dir'],
      certDir: values['cert-dir'] || `${values['data-dir']}/pki`,
      certNames: values['cert-names'],
      host: values['bind-address'],
      port: values['secure-port'],
      advertised: values['advertise-address'] || undefined,
      serviceCidr: values['service-cluster-ip-range'],
      serving: await readFollowed([values['tls-cert-file'], values['tls-private-key-file']], context, pairOf),
      kubeletClient: await namedPair(values, 'kubelet-client-certificate', 'kubelet-client-key', context),
      kubeletCa: await read(values['kubelet-certificate-authority'], context),
      proxyClient: await namedPair(values, 'proxy-client-cert-file', 'proxy-client-key-file', context),
      nodeApis: values['node-apis'],
    }
  },
})

async function read(path: string, context: OptionContext): Promise<string | undefined> {
  if (path === '') return undefined
  return context
    .file(path)
    .read()
    .catch((error: Error) => {
      throw new UsageError([error.message])
    })
}

async function namedPair(values: Values, certFlag: keyof Values, keyFlag: keyof Values, context: OptionContext): Promise<NamedPair | undefined> {
  const [cert, key] = await Promise.all([read(String(values[certFlag]), context), read(String(values[keyFlag]), context)])
  if (cert === undefined || key === undefined) return undefined
  try {
    new X509Certificate(cert)
  } catch {
    throw new UsageError([`--${certFlag} ${values[certFlag]} holds no certificate`])
  }
  return { cert, key }
}

const together = [
  ['tls-cert-file', 'tls-private-key-file'],
  ['kubelet-client-certificate', 'kubelet-client-key'],
  ['proxy-client-cert-file', 'proxy-client-key-file'],
] as const

function isRangeOfServices(text: string): boolean {
  const [first, second, ...more] = text.split(',').map((cidr) => parseCidr(cidr.trim()))
  return first !== undefined && more.length === 0 && (!text.includes(',') || (second !== undefined && second.family !== first.family))
}

const checks: readonly ((values: Values) => readonly string[])[] = [
  (values) => (values['data-dir'] === '' ? ['--data-dir must be specified'] : []),
  (values) => (values['secure-port'] < 0 || values['secure-port'] > 65_535 ? ['--secure-port must be between 0 and 65535, 0 for any free one'] : []),
  (values) =>
    (['bind-address', 'advertise-address'] as const).flatMap((name) =>
      values[name] === '' || isIP(values[name]) ? [] : [`--${name} ${values[name]} is no IP address`],
    ),
  (values) => (isRangeOfServices(values['service-cluster-ip-range']) ? [] : ['--service-cluster-ip-range must be a CIDR, or one of each address family']),
  (values) => together.flatMap(([cert, key]) => ((values[cert] === '') === (values[key] === '') ? [] : [`--${cert} and --${key} must be specified together`])),
]
