import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { ensureEtcdPki, withLiveCertificates } from './etcdPki.ts'
import { ensurePki } from './pki.ts'

const day = 86_400_000
const now = Date.parse('2026-01-01T00:00:00Z')

test('ETC-19 etcd has an authority of its own, which the cluster’s clients are not signed by, and members are servers and clients', async () => {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-etcd-pki-'))
  const [pki, { ca, server, client }] = [await ensurePki(dir, [], now), await ensureEtcdPki(path.join(dir, 'etcd'), now)]
  const isSigned = (cert: string) => new X509Certificate(cert).verify(new X509Certificate(ca.cert).publicKey)
  assert.deepEqual([server.cert, client.cert, pki.admin.cert, pki.apiserverKubeletClient.cert].map(isSigned), [true, true, false, false])
  assert.deepEqual(new X509Certificate(server.cert).keyUsage, ['1.3.6.1.5.5.7.3.2', '1.3.6.1.5.5.7.3.1'])
  assert.equal(new X509Certificate(server.cert).checkIP('127.0.0.1'), '127.0.0.1')
  for (const file of ['ca.key', 'server.key', 'apiserver-etcd-client.key']) assert.equal((await fs.stat(path.join(dir, 'etcd', file))).mode & 0o777, 0o600)
  await fs.rm(dir, { recursive: true })
})

test('ETC-19 connections to etcd show the certificate that was renewed since the start', async () => {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-etcd-pki-'))
  let current = await ensureEtcdPki(dir, now)
  const settings = { endpoints: ['https://127.0.0.1:1'], prefix: '/registry', tls: { cert: 'of the flag' }, mediaType: 'application/json' } as const
  assert.equal(
    withLiveCertificates(settings, () => undefined),
    settings,
  )
  const found = withLiveCertificates(settings, () => current)
  const first = found?.tls.cert
  assert.equal(first, current.client.cert)
  current = await ensureEtcdPki(dir, now + 300 * day)
  assert.notEqual(current.client.cert, first)
  assert.equal(found?.tls.cert, current.client.cert)
  await fs.rm(dir, { recursive: true })
})
