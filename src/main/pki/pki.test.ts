import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { createAuthority, issueCertificate, renewAuthority } from './certificates.ts'
import { ensureNodeCertificates, ensurePki, forgetLeaves, readCertificates } from './pki.ts'

const now = Date.parse('2026-01-01T00:00:00Z')
const day = 86_400_000

async function inTemporary(fn: (dir: string) => Promise<void>): Promise<void> {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-pki-'))
  try {
    await fn(dir)
  } finally {
    await fs.rm(dir, { recursive: true, force: true })
  }
}

test('a second start reads what the first one made; private keys are 0600', () =>
  inTemporary(async (dir) => {
    const first = await ensurePki(dir, ['localhost', '127.0.0.1'], now)
    const second = await ensurePki(dir, ['localhost', '127.0.0.1'], now + day)
    assert.deepEqual(second, first)
    for (const file of await fs.readdir(dir)) {
      const { mode } = await fs.stat(path.join(dir, file))
      assert.equal(mode & 0o777, file.endsWith('.key') ? 0o600 : 0o644, file)
    }
  }))

test('a damaged certificate is made again, and a damaged authority is named and stays as it is', () =>
  inTemporary(async (dir) => {
    const first = await ensurePki(dir, ['localhost'], now)
    const file = path.join(dir, 'admin.crt')
    for (const damaged of [first.admin.cert.slice(0, -20), `${first.admin.cert}x`.slice(200), 'text', '']) {
      await fs.writeFile(file, damaged)
      const { admin } = await ensurePki(dir, ['localhost'], now)
      assert.ok(new X509Certificate(admin.cert).verify(new X509Certificate(first.ca.cert).publicKey))
      assert.equal(await fs.readFile(file, 'utf8'), admin.cert)
    }
    for (const damaged of [first.ca.cert.slice(0, -20), '']) {
      await fs.writeFile(path.join(dir, 'ca.crt'), damaged)
      await assert.rejects(ensurePki(dir, ['localhost'], now), /the authority \S+ca\.\{crt,key\} is damaged \(.*\): put both files back from a copy$/)
      assert.equal(await fs.readFile(path.join(dir, 'ca.crt'), 'utf8'), damaged)
    }
    await fs.writeFile(path.join(dir, 'ca.crt'), first.ca.cert)
    await fs.rm(path.join(dir, 'ca.key'))
    await assert.rejects(ensurePki(dir, ['localhost'], now), /the authority \S+ca\.crt has no key in ca\.key: put it back from a copy$/)
  }))

test('certificates that several callers make at once are whole on the disk', () =>
  inTemporary(async (dir) => {
    const { ca } = await ensurePki(dir, ['localhost'], now)
    // Certificates of many lengths: the shorter one must not leave the end of the longer one.
    const hosts = Array.from({ length: 8 }, (_, i) => ['10.88.0.2', 'h'.repeat(20 * i + 1)])
    await Promise.all(hosts.map((names) => ensureNodeCertificates(path.join(dir, 'node'), ca, 'n1', names, now)))
    for (const name of ['kubelet', 'kubelet-client']) {
      const text = await fs.readFile(path.join(dir, 'node', `${name}.crt`), 'utf8')
      assert.match(text, /^-----BEGIN CERTIFICATE-----\n[^-]+-----END CERTIFICATE-----\n*$/)
      assert.match(new X509Certificate(text).subject, /CN=system:node:n1/)
    }
  }))

test('the chain verifies, the administrator is in system:masters, the serving certificate names its hosts', () =>
  inTemporary(async (dir) => {
    const pki = await ensurePki(dir, ['localhost', '127.0.0.1', '10.96.0.1'], now)
    const admin = new X509Certificate(pki.admin.cert)
    assert.ok(admin.verify(new X509Certificate(pki.ca.cert).publicKey))
    assert.match(admin.subject, /O=system:masters/)
    assert.match(admin.subject, /CN=kubernetes-admin/)
    const serving = new X509Certificate(pki.apiserver.cert)
    assert.equal(serving.checkHost('localhost'), 'localhost')
    assert.equal(serving.checkIP('10.96.0.1'), '10.96.0.1')
    const node = await ensureNodeCertificates(path.join(dir, 'node'), pki.ca, 'n1', ['10.88.0.2'], now)
    assert.match(new X509Certificate(node.client.cert).subject, /O=system:nodes\nCN=system:node:n1/)
  }))

test('certificates are renewed in time and when a host is missing; the authority stays', () =>
  inTemporary(async (dir) => {
    const first = await ensurePki(dir, ['localhost'], now)
    const later = await ensurePki(dir, ['localhost'], now + 300 * day)
    assert.equal(later.ca.cert, first.ca.cert)
    assert.notEqual(later.apiserver.cert, first.apiserver.cert)
    const moved = await ensurePki(dir, ['localhost', '10.0.0.1'], now + 300 * day)
    assert.notEqual(moved.apiserver.cert, later.apiserver.cert)
    assert.equal(moved.admin.cert, later.admin.cert)
  }))

test('an authority is renewed with its key: what it signed stays, and its older certificate vouches for what it signs now', () =>
  inTemporary(async (dir) => {
    const first = await ensurePki(dir, ['localhost'], now)
    const late = now + 7 * 365 * day
    const renewed = await ensurePki(dir, ['localhost'], late)
    assert.notEqual(renewed.ca.cert, first.ca.cert)
    assert.equal(renewed.ca.key, first.ca.key)
    assert.ok(Date.parse(new X509Certificate(renewed.ca.cert).validTo) > late + 9 * 365 * day)
    for (const [leaf, authority] of [
      [renewed.apiserver, first.ca],
      [first.apiserver, renewed.ca],
      [renewed.frontProxyClient, first.frontProxyCa],
    ] as const) {
      const parent = new X509Certificate(authority.cert)
      assert.ok(new X509Certificate(leaf.cert).checkIssued(parent) && new X509Certificate(leaf.cert).verify(parent.publicKey))
    }
  }))

test('a certificate that does not match its key is replaced', () =>
  inTemporary(async (dir) => {
    const first = await ensurePki(dir, ['localhost'], now)
    await fs.writeFile(path.join(dir, 'admin.key'), first.apiserver.key)
    const second = await ensurePki(dir, ['localhost'], now)
    assert.notEqual(second.admin.cert, first.admin.cert)
    assert.equal(second.apiserver.cert, first.apiserver.cert)
  }))

test('certificates are listed with their end and authority, and leaves can be replaced at once', () =>
  inTemporary(async (dir) => {
    assert.deepEqual(await readCertificates(path.join(dir, 'none')), [])
    const first = await ensurePki(dir, ['localhost'], now)
    const leaf = (name: string, authority = 'kubernetes') => ({ name, expiresMs: now + 365 * day, isAuthority: false, authority })
    const root = (name: string, authority: string) => ({ name, expiresMs: now + 3650 * day, isAuthority: true, authority })
    assert.deepEqual(await readCertificates(dir), [
      leaf('admin'),
      leaf('apiserver-kubelet-client'),
      leaf('apiserver'),
      root('ca', 'kubernetes'),
      root('front-proxy-ca', 'front-proxy-ca'),
      leaf('front-proxy-client', 'front-proxy-ca'),
    ])
    await forgetLeaves(dir)
    const second = await ensurePki(dir, ['localhost'], now)
    assert.equal(second.ca.cert, first.ca.cert)
    for (const name of ['apiserver', 'admin', 'frontProxyClient', 'apiserverKubeletClient'] as const) assert.notEqual(second[name].cert, first[name].cert)
  }))

test('EXP-07 private keys are SEC 1, and an authority whose key is PKCS #8 signs and is renewed', async () => {
  const authority = await createAuthority('kubernetes', now, 10)
  const older = { ...authority, key: createPrivateKey(authority.key).export({ type: 'pkcs8', format: 'pem' }).toString() }
  assert.match(older.key, /^-----BEGIN PRIVATE KEY-----\n/)
  const { cert, key } = await issueCertificate(older, { commonName: 'someone', usage: 'client', validDays: 1 }, now)
  assert.ok(new X509Certificate(cert).verify(new X509Certificate(authority.cert).publicKey))
  assert.ok(new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
  for (const pem of [authority.key, key, (await renewAuthority(older, now, 20)).key]) assert.match(pem, /^-----BEGIN EC PRIVATE KEY-----\n/)
})
