/**
 * Keys and certificates of a cluster's own etcd (L5). It has an authority of its own: with the cluster's, every client that the API server knows could
 * read and write its objects. Upstream: kubeadm's certs phase, pki/etcd.
 */
import { makeDirectory } from '#host/files'
import type { EtcdSettings } from '../apiserver/options/storage.ts'
import type { KeyPair } from './certificates.ts'
import { live } from './livePki.ts'
import { ensureAuthority, ensureLeaf } from './pki.ts'

export interface EtcdPki {
  readonly ca: KeyPair
  /** The members' own, which are also each other's clients. */
  readonly server: KeyPair
  /** What the API server and the commands show. */
  readonly client: KeyPair
}

/** Loads them from `dir`, making or renewing what is missing or too old. */
export async function ensureEtcdPki(dir: string, nowMs: number): Promise<EtcdPki> {
  await makeDirectory(dir, 0o700)
  const ca = await ensureAuthority(dir, 'ca', 'etcd-ca', nowMs)
  const [server, client] = await Promise.all([
    ensureLeaf(dir, 'server', ca, { commonName: 'etcd', usage: 'both', hosts: ['localhost', '127.0.0.1'] }, nowMs),
    ensureLeaf(dir, 'apiserver-etcd-client', ca, { commonName: 'kube-apiserver-etcd-client', usage: 'client' }, nowMs),
  ])
  return { ca, server, client }
}

/** The settings with the newest certificates of the cluster's own etcd: each new connection shows them. Without such an etcd, as they are. */
export function withLiveCertificates(settings: EtcdSettings | undefined, current: () => EtcdPki | undefined): EtcdSettings | undefined {
  const first = current()
  if (!settings || !first) return settings
  const newest = () => current() ?? first
  return { ...settings, tls: live(() => ({ ca: newest().ca.cert, cert: newest().client.cert, key: newest().client.key })) }
}
