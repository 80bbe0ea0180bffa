/** What travels to a further control plane: it opens with its own key alone, and only the authority that discovery accepts is taken. */
import assert from 'node:assert/strict'
import { KeyObject } from 'node:crypto'
import { test } from 'node:test'
import type { CommandError } from '#cli/exitCodes'
import { createAuthority, createSigningKey, type KeyPair, x509Library } from '../pki/certificates.ts'
import { parseCertificateKey, sealed, unsealed } from './certificateKey.ts'
import { sealedEntries, unsealedEntries } from './sharedCertificates.ts'

const nowMs = Date.now()
const key = parseCertificateKey('0f'.repeat(32))
const otherKey = parseCertificateKey('f0'.repeat(32))
const [ca, frontProxyCa, foreign] = await Promise.all(['kubernetes', 'front-proxy-ca', 'kubernetes'].map((name) => createAuthority(name, nowMs, 1)))
const serviceAccountKey = await createSigningKey()
assert.ok(ca && frontProxyCa && foreign)
const pki = { ca, frontProxyCa, serviceAccountKey }
const noEtcd = { ca: '', cert: '', key: '' }
const refusedWith = (exit: CommandError['exit'], message: RegExp) => (error: CommandError) => error.exit === exit && message.test(error.message)

test('HA-01 sealed certificates open with their key, whole, the empty ones of etcd included', () => {
  const entries = sealedEntries({ ...pki, etcd: noEtcd }, key)
  assert.deepEqual(Object.keys(entries).sort(), [
    'ca.crt',
    'ca.key',
    'external-etcd-ca.crt',
    'external-etcd.crt',
    'external-etcd.key',
    'front-proxy-ca.crt',
    'front-proxy-ca.key',
    'sa.key',
    'sa.pub',
  ])
  assert.deepEqual(unsealedEntries(entries, key, ca.cert), { ca, frontProxyCa, serviceAccountKey, etcd: noEtcd })
  const withEtcd = sealedEntries({ ...pki, etcd: { ca: foreign.cert, ...foreign } }, key)
  assert.deepEqual(unsealedEntries(withEtcd, key, ca.cert).etcd, { ca: foreign.cert, ...foreign })
})

test('HA-01 sealed certificates show nothing of a key, and two uploads of one key differ', () => {
  const [first, second] = [sealedEntries({ ...pki, etcd: noEtcd }, key), sealedEntries({ ...pki, etcd: noEtcd }, key)]
  assert.notEqual(first['ca.key'], second['ca.key'])
  for (const name of ['ca.key', 'sa.key', 'front-proxy-ca.key'])
    assert.ok(
      !Buffer.from(first[name] ?? '', 'base64')
        .toString('latin1')
        .includes('PRIVATE KEY'),
      name,
    )
})

test('HA-01 a sealed entry has kubeadm’s form: a nonce of 12 bytes, the content by AES-256-GCM, a tag of 16', () => {
  // Test case 14 of the specification of GCM: key, nonce and content are zero.
  const entry = Buffer.from(`${'00'.repeat(12)}cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919`, 'hex')
  assert.deepEqual(unsealed(entry, Buffer.alloc(32)), Buffer.alloc(16))
  assert.equal(sealed(Buffer.alloc(16), Buffer.alloc(32)).length, entry.length)
  assert.equal(unsealed(entry.subarray(0, 27), Buffer.alloc(32)), undefined)
})

const refusals = [
  { name: 'another key', entries: sealedEntries({ ...pki, etcd: noEtcd }, key), key: otherKey, exit: 'conflict', message: /the certificate key does not open/ },
  {
    name: 'one changed bit',
    entries: { ...sealedEntries({ ...pki, etcd: noEtcd }, key), 'ca.key': flipped(sealedEntries({ ...pki, etcd: noEtcd }, key)['ca.key'] ?? '') },
    key,
    exit: 'conflict',
    message: /the certificate key does not open/,
  },
  {
    name: 'a foreign authority',
    entries: sealedEntries({ ...pki, etcd: noEtcd, ca: foreign }, key),
    key,
    exit: 'conflict',
    message: /holds another authority than that of the cluster/,
  },
  {
    name: 'the key of another authority',
    entries: sealedEntries({ ...pki, etcd: noEtcd, ca: { cert: ca.cert, key: foreign.key } }, key),
    key,
    exit: 'conflict',
    message: /ca\.crt and ca\.key, which do not belong together/,
  },
  {
    name: 'no key of the authority',
    entries: { ...sealedEntries({ ...pki, etcd: noEtcd }, key), 'ca.key': '' },
    key,
    exit: 'unmetPrerequisite',
    message: /has no ca\.key/,
  },
] as const
for (const { name, entries, key: given, exit, message } of refusals) {
  test(`HA-01 sealed certificates are refused for ${name}`, () => {
    assert.throws(() => unsealedEntries(entries, given, ca.cert), refusedWith(exit, message))
  })
}

function flipped(base64: string): string {
  const bytes = Buffer.from(base64, 'base64')
  bytes[20] = (bytes[20] ?? 0) ^ 1
  return bytes.toString('base64')
}

for (const text of ['', 'abc', 'g'.repeat(64), '0'.repeat(63), '0'.repeat(65)]) {
  test(`HA-01 "${text.slice(0, 8)}…", ${text.length} characters, is no certificate key, and is not repeated`, () => {
    assert.throws(() => parseCertificateKey(text), refusedWith('usage', /^--certificate-key: expected 64 hexadecimal digits$/))
  })
}

test('HA-01 an authority with an RSA key is refused: Skiff could not sign with it', async () => {
  const rsa = await rsaAuthority()
  assert.throws(
    () => unsealedEntries(sealedEntries({ ...pki, etcd: noEtcd, ca: rsa }, key), key, rsa.cert),
    refusedWith('unmetPrerequisite', /is not ECDSA P-256/),
  )
})

async function rsaAuthority(): Promise<KeyPair> {
  const x509 = await x509Library()
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) }
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({ name: 'CN=kubernetes', signingAlgorithm: algorithm, keys })
  return { cert: certificate.toString('pem'), key: KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString() }
}
