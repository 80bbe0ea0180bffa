import 'reflect-metadata'
import assert from 'node:assert/strict'
import { webcrypto } from 'node:crypto'
import { test } from 'node:test'
import * as x509 from '@peculiar/x509'
import { VirtualClock } from '#base/virtualClock'
import type { PeerCertificate, ServerRequest } from '../core/request.ts'
import { x509Authenticator } from './x509.ts'

x509.cryptoProvider.set(webcrypto as unknown as Parameters<typeof x509.cryptoProvider.set>[0])
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const start = Date.parse('2026-01-01T00:00:00Z')

/** A certificate of one hour. */
async function certificate(subject: ConstructorParameters<typeof x509.Name>[0]): Promise<PeerCertificate> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const made = await x509.X509CertificateGenerator.createSelfSigned({
    name: subject as x509.JsonName,
    notBefore: new Date(start),
    notAfter: new Date(start + 3_600_000),
    signingAlgorithm: algorithm,
    keys: keys as unknown as x509.X509CertificateCreateSelfSignedParams['keys'] & object,
  } as x509.X509CertificateCreateSelfSignedParams)
  return { raw: new Uint8Array(made.rawData), verified: true }
}

const decide = async (peerCertificate: PeerCertificate | undefined, clock = new VirtualClock(start + 1000), authenticator = x509Authenticator(clock)) =>
  authenticator.authenticate({ peerCertificate } as unknown as ServerRequest)

test('AUN-02 the common name is the user, each organization a group', async () => {
  const peer = await certificate([{ O: ['dev'] }, { O: ['ops'] }, { CN: ['jane'] }])
  const result = await decide(peer)
  assert.ok(result?.decision === 'authenticated')
  assert.deepEqual([result.user.name, result.user.groups], ['jane', ['dev', 'ops', 'system:authenticated']])
  assert.match(result.user.extra?.['authentication.kubernetes.io/credential-id']?.[0] ?? '', /^X509SHA256=[0-9a-f]{64}$/)
})

test('AUN-02 expired while connected, foreign, nameless and absent certificates', async () => {
  const peer = await certificate([{ CN: ['jane'] }])
  const clock = new VirtualClock(start + 1000)
  const authenticator = x509Authenticator(clock)
  assert.equal((await decide(peer, clock, authenticator))?.decision, 'authenticated')
  await clock.advance(3_600_000)
  assert.equal((await decide(peer, clock, authenticator))?.decision, 'rejected')
  assert.deepEqual(await decide({ ...peer, verified: false, verifyError: 'self-signed certificate' }), {
    decision: 'rejected',
    reason: 'x509: self-signed certificate',
  })
  assert.equal(await decide(await certificate([{ O: ['dev'] }])), undefined)
  assert.equal(await decide(undefined), undefined)
})
