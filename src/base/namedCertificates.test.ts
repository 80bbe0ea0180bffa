import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import tls from 'node:tls'
import { preferNamedCertificates } from './namedCertificates.ts'

const dir = mkdtempSync(path.join(os.tmpdir(), 'skiff-named-'))
after(() => rmSync(dir, { recursive: true, force: true }))

function certificate(name: string, algorithm: string) {
  const [cert, key] = [path.join(dir, `${name}.crt`), path.join(dir, `${name}.key`)]
  const curve = algorithm === 'ec' ? ['-pkeyopt', 'ec_paramgen_curve:P-256'] : []
  execFileSync('openssl', ['req', '-x509', '-newkey', algorithm, ...curve, '-nodes', '-subj', `/CN=${name}`, '-keyout', key, '-out', cert, '-days', '2'], {
    stdio: 'ignore',
  })
  return { cert: readFileSync(cert), key: readFileSync(key) }
}

const kinds = ['ec', 'rsa:2048', 'ed25519']
const versions = ['TLSv1.2', 'TLSv1.3'] as const

for (const kind of kinds) {
  test(`SDR-07 ING-02 a TLS server shows a name's own certificate whatever the kind of its key, and the default one for other names: ${kind}`, async () => {
    const own = certificate('default', kind)
    const contexts = new Map(
      kinds.map((other) => [`${other.replace(':', '-')}.test`, tls.createSecureContext(certificate(`${other.replace(':', '-')}.test`, other))]),
    )
    const server = tls.createServer(
      {
        ...own,
        ...preferNamedCertificates(new X509Certificate(own.cert).publicKey.asymmetricKeyType, tls.DEFAULT_CIPHERS.split(':')),
        SNICallback: (name, done) => done(null, contexts.get(name)),
      },
      (socket) => socket.on('error', () => {}).end(),
    )
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const shown = async (servername: string, version: (typeof versions)[number]) => {
      const socket = tls.connect({ port, host: '127.0.0.1', servername, rejectUnauthorized: false, minVersion: version, maxVersion: version })
      await once(socket, 'secureConnect')
      socket.on('error', () => {})
      const { subject } = socket.getPeerCertificate()
      socket.destroy()
      return subject.CN
    }
    try {
      for (const version of versions) {
        for (const name of contexts.keys()) assert.equal(await shown(name, version), name, version)
        assert.equal(await shown('other.test', version), 'default', version)
      }
    } finally {
      server.close()
    }
  })
}
