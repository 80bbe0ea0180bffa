/**
 * Decides whether a description of a cluster can be trusted (L5, pure): its signature by the bootstrap token, and the public key of its certificate authority.
 * Upstream: kubeadm's discovery by token, util/pubkeypin, k8s.io/cluster-bootstrap/token/jws (v1.36).
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { parseYaml } from '#api/machinery/yaml'
import { messageOf } from '#base/messageOf'
import { certificateBlocks } from '#base/pem'
import type { BootstrapToken } from '#cli/bootstrapToken'
import { CommandError } from '#cli/exitCodes'
import { publicKeyHash } from '#cli/publicKeyHash'
import { detachedSignature } from '#controllers/bootstrap/signer'

export interface TrustedCluster {
  readonly server: string
  /** PEM. */
  readonly ca: string
}

/** @throws CommandError usage */
export function parseToken(text: string): BootstrapToken {
  const [, id, secret] = /^([a-z0-9]{6})\.([a-z0-9]{16})$/.exec(text) ?? []
  // The text is not shown: it may be a secret with a typo in it.
  if (id === undefined || secret === undefined) throw new CommandError('usage', '--token: expected 6 characters, a dot and 16 characters of a-z and 0-9')
  return { id, secret }
}

/** Accepted authorities: those whose public key has one of these SHA-256 hashes (hexadecimal), or any (--discovery-token-unsafe-skip-ca-verification). */
export type AcceptedAuthorities = { readonly publicKeyHashes: readonly [string, ...string[]] } | 'any'

/** @param pins values of --discovery-token-ca-cert-hash @throws CommandError usage when a pin is malformed, or there is none and verification is not skipped */
export function acceptedAuthorities(pins: readonly string[], skipsVerification: boolean): AcceptedAuthorities {
  const [first, ...others] = pins.map(parsePin)
  if (first !== undefined) return { publicKeyHashes: [first, ...others] }
  if (skipsVerification) return 'any'
  throw new CommandError(
    'usage',
    '--discovery-token-ca-cert-hash is missing: without it, another server that knows the token could pretend to be the cluster',
    { hint: 'skiff token create --print-join-command prints it; --discovery-token-unsafe-skip-ca-verification does without' },
  )
}

function parsePin(text: string): string {
  const [, hash] = /^sha256:([0-9a-f]{64})$/i.exec(text) ?? []
  if (hash === undefined) throw new CommandError('usage', `--discovery-token-ca-cert-hash ${text}: expected sha256: and 64 hexadecimal digits`)
  return hash.toLowerCase()
}

/** The description that a cluster-info ConfigMap holds, if the token has signed it. @throws CommandError */
export function signedDescription(data: Readonly<Record<string, string>>, { id, secret }: BootstrapToken): string {
  const { kubeconfig } = data
  if (!kubeconfig) throw new CommandError('unmetPrerequisite', 'the cluster has no description for machines that join (ConfigMap kube-public/cluster-info)')
  const signature = Object.hasOwn(data, `jws-kubeconfig-${id}`) ? data[`jws-kubeconfig-${id}`] : undefined
  if (!signature) {
    throw new CommandError('notFound', `the cluster does not know the token "${id}": it has expired, or belongs to another cluster`, {
      hint: 'make a new one: skiff token create',
    })
  }
  if (!isSame(signature, detachedSignature(kubeconfig, id, secret))) {
    throw new CommandError('conflict', `the signature of the cluster's description does not fit token "${id}": this server cannot be trusted`, {
      hint: 'check the second half of the token, and the address',
    })
  }
  return kubeconfig
}

function isSame(a: string, b: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(hash(a), hash(b))
}

/**
 * The server of a signed description and its authorities that are accepted. Others are left out: a server that knows the token could sign a description which
 * names its own authority next to the cluster's.
 * @throws CommandError conflict when no authority is left
 */
export function trustedCluster(kubeconfig: string, accepted: AcceptedAuthorities): TrustedCluster {
  const { server, authorities } = clusterOf(kubeconfig)
  const trusted = accepted === 'any' ? authorities : authorities.filter(({ hash }) => accepted.publicKeyHashes.includes(hash))
  if (trusted.length === 0) {
    const found = authorities.map(({ hash }) => `sha256:${hash}`).join(', ')
    throw new CommandError('conflict', `the cluster's authority has another public key than --discovery-token-ca-cert-hash names: ${found}`, {
      hint: 'take the hash from the cluster itself: skiff token create --print-join-command',
    })
  }
  return { server, ca: trusted.map(({ certificate }) => `${certificate}\n`).join('') }
}

interface DescribedCluster {
  readonly server: string
  /** At least one. */
  readonly authorities: readonly { readonly certificate: string; readonly hash: string }[]
}

function clusterOf(kubeconfig: string): DescribedCluster {
  try {
    const { clusters } = parseYaml(kubeconfig) as { clusters: readonly { cluster: { server: string; 'certificate-authority-data': string } }[] }
    const { server, 'certificate-authority-data': ca } = clusters[0]?.cluster ?? {}
    const { protocol, href } = new URL(server ?? '')
    if (protocol !== 'https:') throw new Error(`${href} is not an https URL`)
    const authorities = certificateBlocks(Buffer.from(ca ?? '', 'base64').toString()).map((certificate) => ({ certificate, hash: publicKeyHash(certificate) }))
    if (authorities.length === 0) throw new Error('it names no certificate authority')
    return { server: href.replace(/\/$/, ''), authorities }
  } catch (error) {
    throw new CommandError('internal', `the cluster's description cannot be used: ${messageOf(error)}`, { cause: error })
  }
}
