/** ADM-02, API-28, AUN-04: which certificates of webhooks, extension servers and issuers are trusted, over TLS, with chains that openssl made. */
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { createHttpGet } from '#apiserver/authn/oidc/httpGet'
import { dial, sendRequest } from '#apiserver/backends/connect'
import { dialErrorText } from '#apiserver/backends/dialError'
import { postText } from '#apiserver/webhooks/webhookClient'
import { realClock } from '#testing/realClock'
import { type Certificate, type CertificateOptions, openSsl } from '../../support/openssl.ts'

const ssl = openSsl()
const stop = new AbortController()
const servers: Server[] = []
after(() => {
  stop.abort()
  for (const server of servers) server.close()
  ssl.remove()
})

const server: CertificateOptions = { subject: '/CN=server', usage: 'serverAuth', names: 'IP:127.0.0.1' }
const root = ssl.authority('root')
const intermediate = ssl.sign(root, { subject: '/CN=intermediate', isAuthority: true })
const leaf = ssl.sign(intermediate, server)
const nameless = ssl.sign(root, { subject: '/', isAuthority: true })
const namelessServer: CertificateOptions = { ...server, subject: '/' }
const ofNameless = (more: Partial<CertificateOptions> = {}) => ssl.sign(nameless, { ...namelessServer, ...more })
/** What a tenant may write into the bundle of a webhook. */
const noCertificate = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
const own = ssl.authority('')
const past = { from: '20200101000000Z', to: '20200201000000Z' }

const unknown = 'tls: failed to verify certificate: x509: certificate signed by unknown authority'

interface Case {
  readonly name: string
  readonly shown: Certificate
  /** Sent by the server after its own certificate. */
  readonly chain?: string
  readonly bundle: string
  /** Absent: trusted. */
  readonly error?: string | RegExp
}

const cases: readonly Case[] = [
  { name: 'signed by the root of the bundle through a chain', shown: leaf, chain: intermediate.cert, bundle: root.cert },
  { name: 'signed by an intermediate authority that is alone in the bundle', shown: leaf, bundle: intermediate.cert },
  { name: 'sent with that intermediate authority', shown: leaf, chain: intermediate.cert, bundle: intermediate.cert },
  { name: 'that is itself the bundle', shown: leaf, bundle: leaf.cert },
  { name: 'of an authority that the bundle does not have', shown: leaf, bundle: nameless.cert, error: unknown },
  { name: 'without a subject, signed by an authority without a subject', shown: ofNameless(), bundle: nameless.cert },
  {
    name: 'without a subject, signed by another authority without a subject',
    shown: ofNameless(),
    bundle: ssl.sign(root, { subject: '/', isAuthority: true }).cert,
    error: unknown,
  },
  {
    name: 'without a subject, signed by an authority after a block that is no certificate',
    shown: ofNameless(),
    bundle: `${noCertificate}${nameless.cert}`,
  },
  { name: 'that signed itself, with a block in the bundle that is no certificate', shown: own, bundle: `${root.cert}${noCertificate}`, error: unknown },
  {
    name: 'without a subject that has expired',
    shown: ofNameless(past),
    bundle: nameless.cert,
    error: /x509: certificate (has expired or is not yet valid|signed by unknown authority)$/,
  },
  {
    name: 'without a subject that is for clients',
    shown: ofNameless({ usage: 'clientAuth' }),
    bundle: nameless.cert,
    error: /x509: certificate (signed by unknown authority|specifies an incompatible key usage)$/,
  },
  { name: 'without a subject, signed over SHA-1', shown: ofNameless({ digest: 'sha1' }), bundle: nameless.cert, error: unknown },
  {
    name: 'without a subject that names another server',
    shown: ofNameless({ names: 'IP:127.0.0.2' }),
    bundle: nameless.cert,
    error: /127\.0\.0\.1.*127\.0\.0\.2/s,
  },
]

async function listen({ cert, key }: Certificate, chain = ''): Promise<number> {
  const listener = createServer({ cert: `${cert}${chain}`, key, ciphers: 'DEFAULT@SECLEVEL=0' }, (_, answer) => answer.end('{}'))
  listener.on('tlsClientError', () => undefined)
  servers.push(listener.unref())
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  return (listener.address() as AddressInfo).port
}

const backendOf = (port: number, bundle: string) => ({ host: '127.0.0.1', port, path: '/', hostHeader: 'x', headers: {}, tls: { ca: Buffer.from(bundle) } })

/** The ways to call a server; each returns the error's text. */
const ways: Readonly<Record<string, (port: number, bundle: string) => Promise<string | undefined>>> = {
  async webhook(port, ca) {
    return textOf(postText({ url: `https://127.0.0.1:${port}/x`, ca }, '{}', { clock: realClock, timeoutMs: 10_000 }))
  },
  async 'extension server'(port, bundle) {
    const backend = backendOf(port, bundle)
    const sent = sendRequest({ method: 'GET', path: '/', headers: {}, remoteAddress: '', cancellation: { signal: stop.signal } }, backend)
    return textOf(
      sent.then((answer) => answer.resume()),
      (error) => dialErrorText(error, backend),
    )
  },
  async 'extension server that upgrades'(port, bundle) {
    return textOf(dial(backendOf(port, bundle), stop.signal).then((socket) => socket.destroy()))
  },
  async issuer(port, bundle) {
    const error = await textOf(createHttpGet(bundle, realClock, stop.signal)(`https://127.0.0.1:${port}/`))
    // Errors of issuers are in the words of Node.
    return error && (/self-signed|unable to|too weak/.test(error) ? unknown : error)
  },
}

function textOf(call: Promise<unknown>, words = (error: Error) => error.message): Promise<string | undefined> {
  return call.then(() => undefined, words)
}

for (const [way, call] of Object.entries(ways)) {
  for (const { name, shown, chain, bundle, error } of cases) {
    test(`${way === 'webhook' ? 'ADM-02' : way === 'issuer' ? 'AUN-04' : 'API-28'} ${way}: a certificate ${name} is ${error ? 'refused' : 'trusted'}`, async () => {
      const found = await call(await listen(shown, chain), bundle)
      if (error === undefined) assert.equal(found, undefined)
      else if (typeof error === 'string') assert.ok(found?.endsWith(error), found)
      else if (way !== 'issuer') assert.match(found ?? '', error)
      else assert.ok(found)
    })
  }
}
