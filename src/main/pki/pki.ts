/**
 * The cluster's keys and certificates on disk (L5), laid out as kubeadm does: made on the first start, renewed when they have less than a third
 * of their life left or lack a host name. Private keys are mode 0600. Upstream: kubeadm's certs phase.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { exists, makeDirectory, makePrivateFile, writeFileAtomic } from '#host/files'
import { type CertificateRequest, createAuthority, createSigningKey, issueCertificate, type KeyPair, renewAuthority } from './certificates.ts'

export interface Pki {
  /** Signs serving and client certificates of the cluster. */
  readonly ca: KeyPair
  readonly frontProxyCa: KeyPair
  readonly apiserver: KeyPair
  /** What the API server shows to kubelets. */
  readonly apiserverKubeletClient: KeyPair
  /** What the API server shows to aggregated servers. */
  readonly frontProxyClient: KeyPair
  /** The cluster administrator of the kubeconfig: group system:masters. */
  readonly admin: KeyPair
  /** PEM private key that signs ServiceAccount tokens. */
  readonly serviceAccountKey: string
}

/** The user as which the API server calls kubelets. It has no group: ClusterRole system:kubelet-api-admin grants it their API. */
export const kubeletClientUser = 'kube-apiserver-kubelet-client'

const authorityDays = 3650
const leafDays = 365

/** Loads the PKI from `dir`, making or renewing what is missing, too old or lacks one of `hosts`. */
export async function ensurePki(dir: string, hosts: readonly string[], nowMs: number): Promise<Pki> {
  await makeDirectory(dir, 0o700)
  const ca = await ensureAuthority(dir, 'ca', 'kubernetes', nowMs)
  const frontProxyCa = await ensureAuthority(dir, 'front-proxy-ca', 'front-proxy-ca', nowMs)
  const leaf = (name: string, by: KeyPair, request: Omit<CertificateRequest, 'validDays'>) => ensureLeaf(dir, name, by, request, nowMs)
  const [apiserver, apiserverKubeletClient, frontProxyClient, admin, serviceAccountKey] = await Promise.all([
    leaf('apiserver', ca, { commonName: 'kube-apiserver', usage: 'server', hosts }),
    leaf('apiserver-kubelet-client', ca, { commonName: kubeletClientUser, usage: 'client' }),
    leaf('front-proxy-client', frontProxyCa, { commonName: 'front-proxy-client', usage: 'client' }),
    leaf('admin', ca, { commonName: 'kubernetes-admin', organizations: ['system:masters'], usage: 'client' }),
    signingKey(dir),
  ])
  return { ca, frontProxyCa, apiserver, apiserverKubeletClient, frontProxyClient, admin, serviceAccountKey }
}

/** The kubelet's client and serving certificates of one node: identity system:node:<name>. */
export async function ensureNodeCertificates(dir: string, ca: KeyPair, nodeName: string, hosts: readonly string[], nowMs: number) {
  await makeDirectory(dir, 0o700)
  const [client, serving] = await Promise.all([
    ensureLeaf(dir, 'kubelet-client', ca, { commonName: `system:node:${nodeName}`, organizations: ['system:nodes'], usage: 'client' }, nowMs),
    ensureLeaf(dir, 'kubelet', ca, { commonName: `system:node:${nodeName}`, organizations: ['system:nodes'], usage: 'server', hosts }, nowMs),
  ])
  return { client, serving }
}

/** One more client identity signed by the cluster's authority, kept in `dir`. */
export async function ensureClientCertificate(dir: string, ca: KeyPair, name: string, commonName: string, organizations: readonly string[], nowMs: number) {
  return ensureLeaf(dir, name, ca, { commonName, organizations, usage: 'client' }, nowMs)
}

/** The authority in `dir`, made or renewed where it must be. @throws Error naming the files when they are damaged: what it signed has no other authority */
export async function ensureAuthority(dir: string, name: string, commonName: string, nowMs: number): Promise<KeyPair> {
  const found = await readPair(dir, name).catch((cause: Error) => {
    const files = path.join(dir, `${name}.{crt,key}`)
    throw new Error(`the authority ${files} is damaged (${cause.message}): put both files back from a copy`, { cause })
  })
  // The key is written first: a certificate without a key is not what a start that ended left.
  const isWithoutKey = !found && (await exists(path.join(dir, `${name}.crt`))) && !(await exists(path.join(dir, `${name}.key`)))
  if (isWithoutKey) throw new Error(`the authority ${path.join(dir, `${name}.crt`)} has no key in ${name}.key: put it back from a copy`)
  if (found && isFresh(found.cert, nowMs)) return found
  const made = found ? await renewAuthority(found, nowMs, authorityDays) : await createAuthority(commonName, nowMs, authorityDays)
  return writePair(dir, name, made)
}

/** A certificate of the authority for this request: the one in `dir` while it is right, else a new one, also where the files are damaged. */
export async function ensureLeaf(dir: string, name: string, by: KeyPair, request: Omit<CertificateRequest, 'validDays'>, nowMs: number): Promise<KeyPair> {
  const found = await readPair(dir, name).catch(unlessDamaged)
  if (found && isFresh(found.cert, nowMs) && isSignedBy(found.cert, by.cert) && names(found.cert, request) && covers(found.cert, request.hosts ?? []))
    return found
  return writePair(dir, name, await issueCertificate(by, { ...request, validDays: leafDays }, nowMs))
}

async function signingKey(dir: string): Promise<string> {
  const file = path.join(dir, 'sa.key')
  await makePrivateFile(file)
  const found = await readIfThere(file)
  if (found) return found
  const key = await createSigningKey()
  await writeFileAtomic(file, key, 0o600)
  return key
}

/** True while at least a third of the certificate's life is left. */
function isFresh(cert: string, nowMs: number): boolean {
  const { validFrom, validTo } = new X509Certificate(cert)
  const from = Date.parse(validFrom)
  const to = Date.parse(validTo)
  return nowMs >= from && to - nowMs > (to - from) / 3
}

function isSignedBy(cert: string, authorityCert: string): boolean {
  return new X509Certificate(cert).verify(new X509Certificate(authorityCert).publicKey)
}

/** A certificate that an earlier version made may name a user or groups with more rights. */
function names(cert: string, { commonName, organizations = [] }: Pick<CertificateRequest, 'commonName' | 'organizations'>): boolean {
  const attributes = new X509Certificate(cert).subject.split('\n')
  const wanted = [`CN=${commonName}`, ...organizations.map((organization) => `O=${organization}`)]
  return attributes.length === wanted.length && wanted.every((attribute) => attributes.includes(attribute))
}

function covers(cert: string, hosts: readonly string[]): boolean {
  const certificate = new X509Certificate(cert)
  return hosts.every((host) => certificate.checkHost(host) !== undefined || certificate.checkIP(host) !== undefined)
}

/** @throws an error of OpenSSL when a file is no certificate or no key */
async function readPair(dir: string, name: string): Promise<KeyPair | undefined> {
  const keyFile = path.join(dir, `${name}.key`)
  await makePrivateFile(keyFile)
  const [cert, key] = await Promise.all([readIfThere(path.join(dir, `${name}.crt`)), readIfThere(keyFile)])
  return cert !== undefined && key !== undefined && belongTogether(cert, key) ? { cert, key } : undefined
}

function unlessDamaged(error: NodeJS.ErrnoException): undefined {
  if (!error.code?.startsWith('ERR_OSSL')) throw error
}

/** Two processes that renew at once may leave a certificate with the key of another. */
function belongTogether(cert: string, key: string): boolean {
  return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))
}

/** Each file is written under another name and moved: neither a crash nor two writers at once leave half of one. */
async function writePair(dir: string, name: string, pair: KeyPair): Promise<KeyPair> {
  await writeFileAtomic(path.join(dir, `${name}.key`), pair.key, 0o600)
  await writeFileAtomic(path.join(dir, `${name}.crt`), pair.cert, 0o644)
  return pair
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await fs.readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

export interface CertificateStatus {
  /** File name without its ending: `apiserver`. */
  readonly name: string
  readonly expiresMs: number
  readonly isAuthority: boolean
  /** Common name of who signed it. */
  readonly authority: string
}

/** The certificates of a folder, by name. Empty when there is no such folder. */
export async function readCertificates(dir: string): Promise<CertificateStatus[]> {
  const files = (await fs.readdir(dir).catch(() => [] as string[])).filter((file) => file.endsWith('.crt')).sort()
  return Promise.all(
    files.map(async (file) => {
      const { validTo, ca, issuer } = new X509Certificate(await fs.readFile(path.join(dir, file)))
      const authority = /^CN=(.*)$/m.exec(issuer)?.[1] ?? issuer
      return { name: path.basename(file, '.crt'), expiresMs: Date.parse(validTo), isAuthority: ca, authority }
    }),
  )
}

/** Removes every certificate that is no authority's, so that the next ensurePki replaces it. */
export async function forgetLeaves(dir: string): Promise<void> {
  const leaves = (await readCertificates(dir)).filter(({ isAuthority }) => !isAuthority)
  await Promise.all(leaves.map(({ name }) => fs.rm(path.join(dir, `${name}.crt`), { force: true })))
}
