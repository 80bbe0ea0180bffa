/**
 * Backends that redirect: a kubelet, an extension API server. The server follows none, since it would show its certificates elsewhere, and passes
 * no redirect of an extension server on, since the client would show its own credentials there.
 */
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { connect } from 'node:tls'
import { nodes, pods } from '#client/builtIn'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { testCertificates } from '#testing/testCertificates'
import { base64, type Certificates, certificates, condition, register } from '../../integration/aggregation/extension.ts'
import { rawHttp } from '../../integration/api/rawHttp.ts'

const group = '/apis/wardle.example.com/v1alpha1'
const servers: Server[] = []
let elsewhere: { readonly port: number; readonly asked: string[] }
let made: Certificates

/** Asked anything, it remembers. */
async function listen(tls: { cert: string; key: string }, answer: (url: string) => { status: number; headers: Record<string, string> } | undefined) {
  const asked: string[] = []
  const server = createServer(tls, (request, response) => {
    asked.push(request.url ?? '')
    const { status, headers } = answer(request.url ?? '') ?? { status: 200, headers: { 'content-type': 'application/json' } }
    response.writeHead(status, headers).end('{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"wardle.example.com/v1alpha1","resources":[]}')
  })
  server.on('upgrade', (request, socket) => {
    asked.push(request.url ?? '')
    const { status, headers } = answer(request.url ?? '') ?? { status: 404, headers: {} }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.end(`HTTP/1.1 ${status} Redirect\r\n${lines.join('')}content-length: 0\r\n\r\n`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  servers.push(server)
  return { port: (server.address() as AddressInfo).port, asked }
}

before(async () => {
  made = await certificates()
  elsewhere = await listen(await testCertificates(), () => undefined)
})
after(() => {
  for (const server of servers) {
    server.close()
    server.closeAllConnections()
  }
})

/** What an upgrade is answered with, up to the end of the connection. */
function upgrade({ port, token }: TestListener, path: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () =>
      socket.write(
        `POST ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\ncontent-length: 0\r\n\r\n`,
      ),
    )
    let text = ''
    const timer = setTimeout(() => socket.destroy(), 5_000)
    socket.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
      if (text.includes('\r\n\r\n')) socket.end()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(text)
    })
  })
}

test('API-24 CVE-2018-1002102 CVE-2020-8559 a kubelet that redirects sends the server nowhere, for plain requests and for upgrades', {
  timeout: 60_000,
}, async () => {
  const redirecting = await listen(await testCertificates(), () => ({ status: 302, headers: { location: `https://127.0.0.1:${elsewhere.port}/stolen` } }))
  const api = await startTestApiServer({ kubelet: await testCertificates() })
  try {
    const listener = await api.listen()
    const status = { addresses: [{ type: 'InternalIP', address: '127.0.0.1' }], daemonEndpoints: { kubeletEndpoint: { Port: redirecting.port } } }
    await api.client.of(nodes).create({ metadata: { name: 'n' }, spec: {}, status })
    await api.client.of(pods).create({ metadata: { namespace: 'default', name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } })
    await api.client.of(pods).createSubresource({ namespace: 'default', name: 'p' }, 'binding', { target: { kind: 'Node', name: 'n' } })
    const pod = '/api/v1/namespaces/default/pods/p'
    await rawHttp(listener, { path: `${pod}/log` })
    for (const subresource of ['exec?command=a&stdout=1', 'attach?stdout=1', 'portforward?ports=1']) {
      const answer = await upgrade(listener, `${pod}/${subresource}`)
      assert.doesNotMatch(answer, /^HTTP\/1\.1 [123]|location/i)
    }
    assert.ok(redirecting.asked.length >= 4, redirecting.asked.join())
    assert.deepEqual(elsewhere.asked, [])
  } finally {
    await api.close()
  }
})

async function extension(
  rejectForwardingRedirects: boolean,
  use: (api: TestApiServer, listener: TestListener, asked: string[]) => Promise<void>,
): Promise<void> {
  const server = await listen(made.serving, (url) => {
    const code = Number(/to-(\d+)/.exec(url)?.[1] ?? 0)
    if (code === 0) return undefined
    return { status: code, headers: url.includes('without') ? {} : { location: `https://127.0.0.1:${elsewhere.port}/stolen` } }
  })
  const api = await startTestApiServer({ config: { proxyClient: made.proxyClient, rejectForwardingRedirects } })
  try {
    const listener = await api.listen()
    await register(api, server.port, { caBundle: base64(made.servingCa.cert) })
    await condition(api, 'Passed')
    await use(api, listener, server.asked)
  } finally {
    await api.close()
  }
}

test('API-28 CVE-2022-3172 no client is redirected by an extension API server', { timeout: 60_000 }, async () => {
  await extension(true, async (_api, listener) => {
    for (const code of [300, 301, 302, 303, 305, 307, 308]) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const answer = await rawHttp(listener, { method, path: `${group}/to-${code}` })
        assert.equal(answer.status, 502)
        assert.equal(answer.headers.location, undefined)
        assert.equal(answer.body.toString(), 'the backend attempted to redirect this request, which is not permitted')
      }
    }
    assert.doesNotMatch(await upgrade(listener, `${group}/to-302`), /location|^HTTP\/1\.1 3/i)
    assert.equal((await rawHttp(listener, { path: `${group}/to-304-without` })).status, 304, 'not modified is no redirect')
    assert.deepEqual(elsewhere.asked, [])
  })
})

test('API-28 redirects of extension API servers are passed on only where the flag allows it', { timeout: 60_000 }, async () => {
  await extension(false, async (_api, listener) => {
    const { status, headers } = await rawHttp(listener, { path: `${group}/to-302` })
    assert.deepEqual([status, headers.location], [302, `https://127.0.0.1:${elsewhere.port}/stolen`])
    assert.deepEqual(elsewhere.asked, [])
  })
})
