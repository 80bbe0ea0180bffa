/** Authorities that sign certificate requests (L5): one for all signers, or one for each. Upstream: pkg/controller/certificates/signer/config (v1.36). */
import type { ClusterSigning } from '#controllers/certificates/signing'
import { duration, type FlagValues, text, UsageError } from '../../apiserver/options/flags.ts'
import { type Followed, pairOf, readFollowed } from '../../apiserver/options/namedFiles.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'

/** By the flags' infix, the signer. */
const signers = {
  'kubelet-serving': 'kubernetes.io/kubelet-serving',
  'kubelet-client': 'kubernetes.io/kube-apiserver-client-kubelet',
  'kube-apiserver-client': 'kubernetes.io/kube-apiserver-client',
  'legacy-unknown': 'kubernetes.io/legacy-unknown',
} as const

const yearMs = 365 * 24 * 3_600_000

const certUsage = 'Who signs all certificate requests of the built-in signers'
const flags = {
  'cluster-signing-cert-file': text(certUsage),
  'cluster-signing-duration': duration('How long a certificate lives at most', yearMs),
  'cluster-signing-key-file': text('Its private key'),
  'cluster-signing-kube-apiserver-client-cert-file': text(`Who signs those of ${signers['kube-apiserver-client']}; the general flags then must not be set`),
  'cluster-signing-kube-apiserver-client-key-file': text('Its private key'),
  'cluster-signing-kubelet-client-cert-file': text(`Who signs those of ${signers['kubelet-client']}; the general flags then must not be set`),
  'cluster-signing-kubelet-client-key-file': text('Its private key'),
  'cluster-signing-kubelet-serving-cert-file': text(`Who signs those of ${signers['kubelet-serving']}; the general flags then must not be set`),
  'cluster-signing-kubelet-serving-key-file': text('Its private key'),
  'cluster-signing-legacy-unknown-cert-file': text(`Who signs those of ${signers['legacy-unknown']}; the general flags then must not be set`),
  'cluster-signing-legacy-unknown-key-file': text('Its private key'),
} as const

type Values = FlagValues<typeof flags>
type Infix = keyof typeof signers
const infixes = Object.keys(signers) as readonly Infix[]

export interface SigningSettings {
  /** Absent: nothing is signed. */
  readonly signing: ClusterSigning | undefined
  readonly durationMs: number
  /** They are read again when they change. */
  readonly files: readonly Followed<unknown>[]
}

export const signing = optionGroup({
  name: 'Certificate signing',
  flags,
  async settings(values, context): Promise<SigningSettings> {
    const faults = faultsOf(values)
    if (faults.length > 0) throw new UsageError(faults)
    const pair = (cert: string, key: string) => readFollowed([cert, key], context, pairOf)
    const general = await pair(values['cluster-signing-cert-file'], values['cluster-signing-key-file'])
    const own = new Map<string, Awaited<ReturnType<typeof pair>>>()
    for (const infix of infixes) own.set(signers[infix], await pair(...filesOf(values, infix)))
    const files = [general, ...own.values()]
    const durationMs = values['cluster-signing-duration']
    if (files.every(({ value }) => value === undefined)) return { signing: undefined, durationMs, files: [] }
    return { files, durationMs, signing: { durationMs, authorityOf: (signer) => general.value ?? own.get(signer)?.value } }
  },
})

function filesOf(values: Values, infix: Infix): [cert: string, key: string] {
  return [values[`cluster-signing-${infix}-cert-file`], values[`cluster-signing-${infix}-key-file`]]
}

function faultsOf(values: Values): string[] {
  const general = [values['cluster-signing-cert-file'], values['cluster-signing-key-file']]
  const own = infixes.filter((infix) => filesOf(values, infix).some((file) => file !== ''))
  const half = own.filter((infix) => filesOf(values, infix).includes(''))
  return [
    ...(values['cluster-signing-duration'] <= 0 ? ['--cluster-signing-duration must be greater than zero'] : []),
    ...half.map((infix) => `--cluster-signing-${infix}-cert-file and --cluster-signing-${infix}-key-file must be specified together`),
    ...(general.filter((file) => file !== '').length === 1 ? ['--cluster-signing-cert-file and --cluster-signing-key-file must be specified together'] : []),
    ...(own.length > 0 && !general.includes('') ? ['cannot specify default and per controller certs at the same time'] : []),
  ]
}
