/** The certificate of servers on 127.0.0.1 (X18): what it is good for, and that clients which trust it alone connect. */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { connect, createServer } from 'node:tls'
import { localhostCertificate } from './localhostCertificate.ts'

const nowMs = Date.now()

test('X18 a certificate for 127.0.0.1 is signed by its own key, for servers at that address alone, and for the days that were asked for', () => {
  const { cert, key } = localhostCertificate('skiff-localhost', nowMs, 30)
  const found = new X509Certificate(cert)
  assert.equal(found.verify(found.publicKey), true)
  assert.equal(found.ca, false)
  assert.deepEqual([found.subject, found.issuer], ['CN=skiff-localhost', 'CN=skiff-localhost'])
  assert.equal(found.checkIP('127.0.0.1'), '127.0.0.1')
  assert.equal(found.checkIP('127.0.0.2'), undefined)
  assert.equal(found.checkHost('localhost'), undefined)
  assert.deepEqual(found.keyUsage, ['1.3.6.1.5.5.7.3.1'])
  const seconds = (text: string) => Math.floor(Date.parse(text) / 1000)
  assert.equal(seconds(found.validFrom), Math.floor((nowMs - 300_000) / 1000))
  assert.equal(seconds(found.validTo), Math.floor(nowMs / 1000) + 30 * 86_400)
  assert.match(key, /^-----BEGIN EC PRIVATE KEY-----/)
})

test('X18 a client that trusts the certificate of a server on 127.0.0.1 connects, and one that trusts another refuses it', async () => {
  const [own, other] = [localhostCertificate('a', nowMs, 1), localhostCertificate('a', nowMs, 1)]
  const server = createServer({ cert: own.cert, key: own.key }, (socket) => socket.end('hello'))
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const trusting = connect({ host: '127.0.0.1', port, ca: own.cert })
  const [data] = (await once(trusting, 'data')) as [Buffer]
  assert.equal(String(data), 'hello')
  await assert.rejects(once(connect({ host: '127.0.0.1', port, ca: other.cert }), 'secureConnect'), /self-signed certificate|signature/)
  server.close()
})
