/**
 * What a further control plane needs of a cluster's secrets (L5, pure): authorities, keys and the client certificate for etcd, sealed in a Secret.
 * Upstream: kubeadm's phases/copycerts (v1.36), whose names of entries these are.
 */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { certificateBlocks } from '#base/pem'
import { CommandError } from '#cli/exitCodes'
import { publicKeyHash } from '#cli/publicKeyHash'
import type { KeyPair } from '../pki/certificates.ts'
import { sealed, unsealed } from './certificateKey.ts'

export const certificatesSecret = 'kubeadm-certs'

export interface SharedCertificates {
  readonly ca: KeyPair
  readonly frontProxyCa: KeyPair
  /** PEM. */
  readonly serviceAccountKey: string
  readonly etcd: EtcdClientFiles
}

/** PEM; empty where etcd asks for none. */
export interface EtcdClientFiles {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

type Named = Readonly<Record<string, string>>

/** The files of etcd's client, which are there where etcd asks for certificates. */
export const etcdFiles = { ca: 'external-etcd-ca.crt', cert: 'external-etcd.crt', key: 'external-etcd.key' } as const

/** What is shared, by the names of its files. */
export function sharedFiles({ ca, frontProxyCa, serviceAccountKey, etcd }: SharedCertificates): Named {
  return {
    'ca.crt': ca.cert,
    'ca.key': ca.key,
    'front-proxy-ca.crt': frontProxyCa.cert,
    'front-proxy-ca.key': frontProxyCa.key,
    'sa.key': serviceAccountKey,
    'sa.pub': publicKeyOf(serviceAccountKey),
    [etcdFiles.ca]: etcd.ca,
    [etcdFiles.cert]: etcd.cert,
    [etcdFiles.key]: etcd.key,
  }
}

/** The entries of the Secret, in base64. An empty one stays empty, as upstream. */
export function sealedEntries(shared: SharedCertificates, key: Buffer): Named {
  const sealedText = (text: string) => (text === '' ? '' : sealed(Buffer.from(text), key).toString('base64'))
  return Object.fromEntries(Object.entries(sharedFiles(shared)).map(([name, text]) => [name, sealedText(text)]))
}

/** Whether one of the authorities has the key of the certificate. @param authorities PEM */
export function isAmong(authorities: string, certificate: string): boolean {
  return certificateBlocks(authorities).some((authority) => publicKeyHash(authority) === publicKeyHash(certificate))
}

function publicKeyOf(privateKey: string): string {
  return createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString()
}

/**
 * @param trusted PEM of the authorities that discovery accepts
 * @throws CommandError conflict for another key, or an authority that is not the trusted one
 */
export function unsealedEntries(entries: Named, key: Buffer, trusted: string): SharedCertificates {
  const text = (name: string) => unsealedText(entries, name, key)
  const pair = (name: string) => pairOf(name, required(name, text(`${name}.crt`), 'crt'), required(name, text(`${name}.key`), 'key'))
  const ca = pair('ca')
  if (!isAmong(trusted, ca.cert)) {
    throw new CommandError('conflict', `the Secret ${certificatesSecret} holds another authority than that of the cluster: it cannot be trusted`, {
      hint: 'upload it again on a control plane: skiff certs upload',
    })
  }
  return {
    ca,
    frontProxyCa: pair('front-proxy-ca'),
    serviceAccountKey: required('sa', text('sa.key'), 'key'),
    etcd: { ca: text(etcdFiles.ca), cert: text(etcdFiles.cert), key: text(etcdFiles.key) },
  }
}

function unsealedText(entries: Named, name: string, key: Buffer): string {
  const content = Buffer.from(Object.hasOwn(entries, name) ? (entries[name] ?? '') : '', 'base64')
  if (content.length === 0) return ''
  const plain = unsealed(content, key)
  if (plain) return plain.toString()
  throw new CommandError('conflict', `the certificate key does not open the Secret ${certificatesSecret}`, {
    hint: 'each upload has its own key: take the one that the last skiff certs upload printed',
  })
}

function required(name: string, text: string, ending: string): string {
  if (text !== '') return text
  throw new CommandError('unmetPrerequisite', `the Secret ${certificatesSecret} has no ${name}.${ending}`, {
    hint: 'upload it again on a control plane: skiff certs upload',
  })
}

function pairOf(name: string, cert: string, key: string): KeyPair {
  if (belongTogether(cert, key)) {
    if (createPrivateKey(key).asymmetricKeyDetails?.namedCurve === 'prime256v1') return { cert, key }
    throw new CommandError('unmetPrerequisite', `the key ${name}.key of the cluster is not ECDSA P-256, with which alone Skiff signs certificates`)
  }
  throw new CommandError('conflict', `the Secret ${certificatesSecret} holds ${name}.crt and ${name}.key, which do not belong together`)
}

function belongTogether(cert: string, key: string): boolean {
  try {
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}
