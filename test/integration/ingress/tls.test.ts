/** TLS through the proxy: HTTP/2, certificates, and the end of both listeners. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import { after, test } from 'node:test'
import tls from 'node:tls'
import { errorCode } from '#apiserver/server/http2/errors'
import { rstStreamFrame } from '#apiserver/server/http2/frames'
import { createCertificateReader } from '#ingress/proxy/certificates'
import { realClock as clock } from '#testing/realClock'
import { testCertificates } from '#testing/testCertificates'
import { get as getFields, headers, hello } from '../http2/peer.ts'
import { echo, ends, get, host, proxyTo, serverOf, textOf } from './fixture.ts'

after(async () => {
  await Promise.all(ends.map((end) => end()))
})

const trusting = { rejectUnauthorized: false }

test('ING-02 an HTTP/2 client gets what an HTTP/1.1 client gets, many requests over one connection', async () => {
  const { port } = await serverOf(echo)
  const { proxy, backend } = await proxyTo([port])
  const session = http2.connect(`https://${host}:${proxy.httpsPort}`, trusting)
  ends.push(() => session.destroy())
  const ask = async (index: number) => {
    const stream = session.request({ ':method': 'POST', ':path': `/${index}?x`, ':authority': 'a.test', 'x-forwarded-for': '6.6.6.6', cookie: ['a=1', 'b=2'] })
    stream.end(`body ${index}`)
    const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
    return { status: Number(headers[':status']), ...JSON.parse(await textOf(stream)) }
  }
  const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => ask(i)))
  for (const [i, { status, url, body, headers, method }] of answers.entries()) {
    assert.deepEqual([status, url, body, method], [200, `/${i}?x`, `body ${i}`, 'POST'])
    assert.deepEqual([headers.host, headers['x-forwarded-for'], headers['x-forwarded-proto'], headers['x-forwarded-port']], ['a.test', host, 'https', '443'])
    assert.equal(headers.cookie, 'a=1; b=2')
  }
  assert.equal(backend.inFlight, 0)
})

test('ING-02 an HTTP/2 stream is reset when the backend’s answer ends early', async () => {
  const { port } = await serverOf((_request, response) => {
    response.writeHead(200, { 'content-length': 1000 })
    response.write('half', () => response.destroy())
  })
  const { proxy } = await proxyTo([port])
  const session = http2.connect(`https://${host}:${proxy.httpsPort}`, trusting)
  ends.push(() => session.destroy())
  const stream = session.request({ ':path': '/' })
  await assert.rejects(textOf(stream), /NGHTTP2_INTERNAL_ERROR/)
})

test('ING-02 HTTP/2 streams whose client takes no answer end and free their places in flight, while the client keeps the connection busy', {
  timeout: 20_000,
}, async () => {
  const { port } = await serverOf((_request, response) => response.end('answer'))
  const { proxy, backend } = await proxyTo([port], { idleTimeoutMs: 300 })
  const session = http2.connect(`https://${host}:${proxy.httpsPort}`, { ...trusting, settings: { initialWindowSize: 0 } })
  const pings = setInterval(() => session.ping(() => {}), 50)
  ends.push(() => session.destroy())
  const ask = async () => {
    const stream = session.request({ ':path': '/' })
    const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
    return { status: headers[':status'], end: textOf(stream) }
  }
  const answers = await Promise.all(Array.from({ length: 20 }, ask))
  assert.equal(backend.inFlight, 20)
  for (const { status, end } of answers) {
    assert.equal(status, 200)
    await assert.rejects(end, /NGHTTP2_INTERNAL_ERROR/)
  }
  clearInterval(pings)
  assert.equal(backend.inFlight, 0)
})

test('ING-02 HTTP/2 streams that the client resets at once are not sent on, and the next one is', async ({ mock }) => {
  let reached = () => {}
  const answered = new Promise<void>((resolve) => {
    reached = resolve
  })
  const { port } = await serverOf((_request, response) => {
    response.end('answer')
    reached()
  })
  const { proxy, backend } = await proxyTo([port])
  const picks = mock.method(backend, 'pick')
  const socket = tls.connect({ host, port: proxy.httpsPort, ...trusting, ALPNProtocols: ['h2'] })
  ends.push(() => socket.destroy())
  const reset = Array.from({ length: 300 }, (_, i) => [headers(2 * i + 1, getFields('/')), rstStreamFrame(2 * i + 1, errorCode.cancel)]).flat()
  socket.write(Buffer.concat([hello(), ...reset, headers(2 * reset.length + 1, getFields('/'))]))
  await answered
  assert.equal(picks.mock.callCount(), 1)
})

async function namePresented(port: number, servername?: string): Promise<string> {
  const socket = tls.connect({ host, port, ...trusting, ...(servername ? { servername } : {}) })
  await once(socket, 'secureConnect')
  const { CN } = socket.getPeerCertificate().subject
  socket.destroy()
  return String(CN)
}

test('ING-02 the certificate follows the server name and changes without a new listener; open connections stay', async () => {
  const { port } = await serverOf(echo)
  const { proxy, contexts } = await proxyTo([port])
  const secret = async (name: string) => {
    const { cert, key } = await testCertificates(`CN=${name}`)
    const data = { 'tls.crt': Buffer.from(cert).toString('base64'), 'tls.key': Buffer.from(key).toString('base64') }
    return { apiVersion: 'v1', kind: 'Secret', metadata: { name }, type: 'kubernetes.io/tls', data }
  }
  const reader = createCertificateReader()
  const { context, problem } = reader.load(await secret('one'))
  assert.equal(problem, undefined)
  contexts.set('a.test', context as tls.SecureContext)
  assert.equal(await namePresented(proxy.httpsPort, 'a.test'), 'one')
  assert.equal(await namePresented(proxy.httpsPort, 'b.test'), 'default')
  assert.equal(await namePresented(proxy.httpsPort), 'default')
  const agent = new https.Agent({ keepAlive: true, ...trusting, servername: 'a.test' })
  ends.push(() => agent.destroy())
  const ask = () => get(proxy.httpsPort, { agent, protocol: 'https:' })
  assert.equal((await ask()).status, 200)
  contexts.set('a.test', reader.load(await secret('two')).context as tls.SecureContext)
  assert.equal(await namePresented(proxy.httpsPort, 'a.test'), 'two')
  assert.equal((await ask()).status, 200)
})

const pem = <T extends 'spki' | 'pkcs8'>(type: T) => ({ type, format: 'pem' }) as const

test('ING-02 a Secret that holds no certificate with its key is a problem', async () => {
  const [one, two] = await Promise.all([testCertificates('CN=one'), testCertificates('CN=two')])
  const encoded = (text: string) => Buffer.from(text).toString('base64')
  const secret = (data: Record<string, string>, type = 'kubernetes.io/tls') => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, type, data })
  const { privateKey: largeKey } = generateKeyPairSync('rsa', { modulusLength: 4608, publicKeyEncoding: pem('spki'), privateKeyEncoding: pem('pkcs8') })
  const cases = [
    { secret: secret({ 'tls.crt': encoded(one.cert), 'tls.key': encoded(two.key) }), want: /does not belong/ },
    { secret: secret({ 'tls.crt': encoded('x'), 'tls.key': encoded(two.key) }), want: /cannot be read/ },
    { secret: secret({}), want: /cannot be read/ },
    { secret: secret({ 'tls.crt': encoded(one.cert), 'tls.key': encoded(one.key) }, 'Opaque'), want: /its type is not/ },
    { secret: secret({ 'tls.crt': encoded(one.cert), 'tls.key': encoded(largeKey) }), want: /more than 4096 bits/ },
    { secret: secret({ 'tls.crt': 'A'.repeat(200_000), 'tls.key': '' }), want: /too large/ },
  ]
  for (const { secret: one_, want } of cases) assert.match(createCertificateReader().load(one_).problem ?? '', want)
})

test('ING-02 a stop lets requests in flight end, tells clients that the connection ends, and takes no new connection', async () => {
  const { port } = await serverOf((_request, response) => void setTimeout(() => response.end('late'), 300))
  const { proxy } = await proxyTo([port])
  const first = get(proxy.httpPort, { agent: new http.Agent({ keepAlive: true }) })
  const session = http2.connect(`https://${host}:${proxy.httpsPort}`, trusting)
  const stream = session.request({ ':path': '/' })
  const second = textOf(stream)
  const goaway = once(session, 'close')
  await clock.sleep(100)
  const closed = proxy.close()
  await clock.sleep(20)
  await assert.rejects(get(proxy.httpPort), /ECONNREFUSED|ECONNRESET/)
  const { status, body, headers } = await first
  assert.deepEqual([status, body, headers.connection], [200, 'late', 'close'])
  assert.equal(await second, 'late')
  await goaway
  await closed
})
