import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { ensureNodeCertificates, ensurePki } from './pki.ts'

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
