/** A self-signed certificate for 127.0.0.1 and localhost, created for each test run. */
import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'

/** `name`: the distinguished name of who shows it; it is its own certificate authority. `hosts`: more names that it answers to, also URIs. */
export async function testCertificates(name = 'CN=test-apiserver', hosts: readonly string[] = [], validDays = 30): Promise<{ cert: string; key: string }> {
  const crypto = webcrypto as unknown as Parameters<typeof x509.cryptoProvider.set>[0]
  x509.cryptoProvider.set(crypto)
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const dayMs = 86_400_000
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name,
    notBefore: new Date(Date.now() - dayMs),
    notAfter: new Date(Date.now() + validDays * dayMs),
    signingAlgorithm: algorithm,
    keys: keys as never,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.SubjectAlternativeNameExtension([
        { type: 'ip', value: '127.0.0.1' },
        { type: 'dns', value: 'localhost' },
        ...hosts.map((value) => ({ type: value.includes('://') ? ('url' as const) : ('dns' as const), value })),
      ]),
    ],
  })
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64')
  const key = `-----BEGIN PRIVATE KEY-----\n${pkcs8.match(/.{1,64}/g)?.join('\n')}\n-----END PRIVATE KEY-----\n`
  return { cert: certificate.toString('pem'), key }
}
