/**
 * Decides whether a description of a cluster can be trusted (L5, pure): its signature by the bootstrap token, and the public key of its certificate authority.
 * Upstream: kubeadm's discovery by token, util/pubkeypin, k8s.io/cluster-bootstrap/token/jws (v1.36).
 */
import { createHash, timingSafeEqual, X509Certificate } from 'node:crypto'
import { parseYaml } from '#api/machinery/yaml'
import { messageOf } from '#base/messageOf'
import { CommandError } from '#cli/exitCodes'
import { detachedSignature } from '#controllers/bootstrap/signer'

export interface BootstrapToken {
  readonly id: string
  readonly secret: string
}

export interface TrustedCluster {
  readonly server: string
  /** PEM. */
  readonly ca: string
}

/** @throws CommandError usage */
export function parseToken(text: string): BootstrapToken {
  const [, id, secret] = /^([a-z0-9]{6})\.([a-z0-9]{16})$/.exec(text) ?? []
  // The text is not shown: it may be a secret with a slip in it.
  if (id === undefined || secret === undefined) throw new CommandError('usage', '--token: expected 6 characters, a dot and 16 characters of a-z and 0-9')
  return { id, secret }
}

/** The hexadecimal hashes, in lower case. @throws CommandError usage */
export function parsePins(texts: readonly string[]): readonly string[] {
  return texts.map((text) => {
    const [, hash] = /^sha256:([0-9a-f]{64})$/i.exec(text) ?? []
    if (hash === undefined) throw new CommandError('usage', `--discovery-token-ca-cert-hash ${text}: expected sha256: and 64 hexadecimal digits`)
    return hash.toLowerCase()
  })
}

/** SHA-256 of the certificate's SubjectPublicKeyInfo, in hexadecimal. */
export function publicKeyHash(certificate: X509Certificate): string {
  return createHash('sha256')
    .update(certificate.publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')
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

/** The server and authority of a signed description. @param pins empty: any authority is accepted @throws CommandError conflict for another authority */
export function trustedCluster(kubeconfig: string, pins: readonly string[]): TrustedCluster {
  const { server, ca } = clusterOf(kubeconfig)
  const certificates = ca.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? []
  const hashes = certificates.map((pem) => publicKeyHash(new X509Certificate(pem)))
  if (pins.length > 0 && !hashes.some((hash) => pins.includes(hash))) {
    const found = hashes.map((hash) => `sha256:${hash}`).join(', ') || 'none'
    throw new CommandError('conflict', `the cluster's authority has another public key than --discovery-token-ca-cert-hash names: ${found}`, {
      hint: 'take the hash from the cluster itself: skiff token create --print-join-command',
    })
  }
  return { server, ca }
}

function clusterOf(kubeconfig: string): TrustedCluster {
  try {
    const { clusters } = parseYaml(kubeconfig) as { clusters: readonly { cluster: { server: string; 'certificate-authority-data': string } }[] }
    const [first] = clusters
    const { protocol, href } = new URL(first?.cluster.server ?? '')
    if (protocol !== 'https:') throw new Error(`${href} is no https URL`)
    return { server: href.replace(/\/$/, ''), ca: Buffer.from(first?.cluster['certificate-authority-data'] ?? '', 'base64').toString() }
  } catch (error) {
    throw new CommandError('internal', `the cluster's description cannot be used: ${messageOf(error)}`, { cause: error })
  }
}
