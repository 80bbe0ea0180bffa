import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCertificateRequest } from '#api/kinds/certificates/pkcs10'
import { ecdsaRequest, ed25519Request } from '#testing/testCertificateRequests'
import { signatureFault } from './requestSignature.ts'

for (const [name, base64, fault] of [
  ['ECDSA', ecdsaRequest, 'x509: ECDSA verification failure'],
  ['Ed25519', ed25519Request, 'x509: Ed25519 verification failure'],
] as const)
  test(`CTL-19 a certificate request is signed with its own key: ${name}`, () => {
    const parsed = parseCertificateRequest(base64)
    assert.ok(typeof parsed !== 'string')
    assert.equal(signatureFault(parsed), undefined)
    const signed = Uint8Array.from(parsed.signed)
    signed[signed.length - 1] = (signed.at(-1) ?? 0) ^ 1
    assert.equal(signatureFault({ ...parsed, signed }), fault)
    assert.equal(signatureFault({ ...parsed, algorithm: '1.2.3' }), 'x509: cannot verify signature: algorithm unimplemented')
    assert.equal(signatureFault({ ...parsed, publicKeyInfo: new Uint8Array(3) }), 'x509: failed to parse public key')
  })
