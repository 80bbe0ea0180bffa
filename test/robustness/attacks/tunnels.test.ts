/**
 * Upgrade requests against every path that hands a request on: nodes, pods, services, exec, attach, port-forward and an aggregated API, with a backend
 * that refuses and keeps its connection. Were the connections joined, the client's next request would reach the backend with this server's
 * certificate and whatever identity it claims (CVE-2018-1002105).
 */
import assert from 'node:assert/strict'
import { connect as connectHttp2, constants } from 'node:http2'
import test, { after, before } from 'node:test'
import { connect } from 'node:tls'
import { apiServices, endpointSlices, nodes, pods, services } from '#client/builtIn'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { testCertificates } from '#testing/testCertificates'
import { eventually } from '../../integration/controllers/cluster.ts'
import { hostAddress, type SwitchingBackend, startSwitchingBackend, type Upgraded } from './switchingBackend.ts'

const skip = hostAddress === undefined && 'this host has no address but loopback'
const namespace = 'default'
const core = `/api/v1/namespaces/${namespace}`

let backend: SwitchingBackend
let api: TestApiServer
let listener: TestListener

before(async () => {
  if (skip) return
  backend = await startSwitchingBackend(await testCertificates())
  api = await startTestApiServer({ config: { proxyClient: await testCertificates('CN=front-proxy-client') } })
  listener = await api.listen()
  await backends()
})
after(async () => {
  if (skip) return
  await api.close()
  await backend.close()
})

/** A node, a pod, a service and an extension server; all of them are the backend. */
async function backends(): Promise<void> {
  const { port } = backend
  const ip = hostAddress ?? ''
  const status = { addresses: [{ type: 'InternalIP', address: ip }], daemonEndpoints: { kubeletEndpoint: { Port: port } } }
  await api.client.of(nodes).create({ metadata: { name: 'n' }, spec: {}, status })
  const name = { namespace, name: 'p' }
  await api.client.of(pods).create({ metadata: name, spec: { containers: [{ name: 'c', image: 'x' }] } })
  await api.client.of(pods).createSubresource(name, 'binding', { target: { kind: 'Node', name: 'n' } })
  await api.client.of(pods).patch(name, 'merge', { status: { podIP: ip, podIPs: [{ ip }] } }, { subresource: 'status' })
  await api.client.of(services).create({ metadata: { namespace, name: 's' }, spec: { ports: [{ name: 'web', port: 443 }] } })
  await api.client.of(endpointSlices).create({
    metadata: { namespace, name: 's-1', labels: { 'kubernetes.io/service-name': 's' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [ip], targetRef: { kind: 'Pod', namespace, name: 'p' } }],
    ports: [{ name: 'web', port }],
  })
  const spec = { group: 'e.example.com', version: 'v1', groupPriorityMinimum: 1000, versionPriority: 15, insecureSkipTLSVerify: true }
  await api.client.of(apiServices).create({ metadata: { name: 'v1.e.example.com' }, spec: { ...spec, service: { namespace, name: 's' } } })
  await eventually(async () => {
    const conditions = (await api.client.of(apiServices).get({ name: 'v1.e.example.com' })).status?.conditions
    assert.equal(conditions?.find(({ type }) => type === 'Available')?.status, 'True')
  }, 20_000)
}

const paths = {
  'nodes/proxy': () => '/api/v1/nodes/n/proxy/x',
  'pods/proxy': () => `${core}/pods/https:p:${backend.port}/proxy/x`,
  'services/proxy': () => `${core}/services/https:s:web/proxy/x`,
  'pods/exec': () => `${core}/pods/p/exec?command=id&stdout=true`,
  'pods/attach': () => `${core}/pods/p/attach?stdout=true`,
  'pods/portforward': () => `${core}/pods/p/portforward?ports=80`,
  'an aggregated API': () => '/apis/e.example.com/v1',
}
const everyPath = Object.keys(paths) as (keyof typeof paths)[]
const protocols = ['websocket', 'SPDY/3.1'] as const

const second = 'GET /apis/e.example.com/v1/secrets HTTP/1.1\r\nHost: x\r\nX-Remote-User: root\r\nX-Remote-Group: system:masters\r\n\r\n'
const json = '{"message":"no"}'
const refusal = (status: string) => `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`

interface Sent {
  readonly path: string
  readonly protocol: string
  readonly method?: string
  readonly headers?: readonly string[]
  /** In the same write as the head. */
  readonly pipelined?: string
  /** Written once this much of an answer is there. */
  readonly next?: { readonly after: RegExp; readonly bytes: string }
  readonly until?: RegExp
}

/** All bytes received until the server closes the connection, or `until` is there. */
function send({ path, protocol, method = 'GET', headers = [], pipelined = '', next, until }: Sent): Promise<string> {
  return new Promise((resolve, reject) => {
    const head = [`${method} ${path} HTTP/1.1`, 'Host: x', 'Connection: Upgrade', `Upgrade: ${protocol}`, `Authorization: Bearer ${listener.token}`, ...headers]
    const options = { host: '127.0.0.1', port: listener.port, ca: listener.ca, ALPNProtocols: ['http/1.1'], allowHalfOpen: true }
    const socket = connect(options, () => {
      socket.write(`${head.join('\r\n')}\r\n\r\n${pipelined}`)
    })
    let received = ''
    let waiting = next
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      if (waiting?.after.test(received)) {
        socket.write(waiting.bytes)
        waiting = undefined
      }
      if (until?.test(received)) socket.destroy()
    })
    // The attacker keeps the connection open.
    socket.on('end', () => socket.write(second, () => socket.end()))
    socket.on('error', () => {})
    socket.on('close', () => resolve(received))
    setTimeout(() => reject(new Error(`the connection is still open after ${received}`)), 20_000).unref()
  })
}

async function lastUpgrade(): Promise<Upgraded> {
  const found = backend.upgrades.at(-1) ?? assert.fail('the backend was not asked')
  await eventually(async () => assert.ok(found.closed, 'the connection to the backend is still open'))
  return found
}

for (const path of everyPath) {
  for (const protocol of protocols) {
    test(`API-29 ${path} forwards a refused ${protocol} upgrade and closes both connections: no second request reaches the backend`, { skip }, async () => {
      for (const status of ['400 Bad Request', '403 Forbidden', '406 Not Acceptable', '500 Internal Server Error', '503 Service Unavailable']) {
        backend.answer(refusal(status))
        const received = await send({ path: paths[path](), protocol, next: { after: /"no"}$/, bytes: second } })
        assert.ok(received.startsWith(`HTTP/1.1 ${status.slice(0, 3)} `), received)
        assert.match(received, /\r\nconnection: close\r\n/i)
        assert.equal(received.split('HTTP/1.1 ').length, 2, `one answer: ${received}`)
        assert.ok(received.endsWith(`\r\n\r\n${json}`), received)
        assert.equal((await lastUpgrade()).behind, '', status)
      }
    })
  }

  test(`API-29 ${path} holds back what a client pipelines behind an upgrade request until the backend has switched`, { skip }, async () => {
    // Requests that pass through the same server meanwhile: it has had every chance to send the bytes on.
    const chances = async () => {
      for (let i = 0; i < 5; i++) await api.client.of(pods).get({ namespace, name: 'p' })
    }
    backend.answer(refusal('403 Forbidden'), chances)
    await send({ path: paths[path](), protocol: 'websocket', pipelined: second })
    assert.equal((await lastUpgrade()).behind, '')
    backend.answer('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello', chances)
    const received = await send({ path: paths[path](), protocol: 'websocket', pipelined: 'ping', until: /hello$/ })
    assert.match(received, /^HTTP\/1\.1 101 /)
    const { early, behind } = await lastUpgrade()
    assert.deepEqual({ early, behind }, { early: '', behind: 'ping' })
  })

  test(`API-29 ${path} takes only a 101 that names the protocol asked for`, { skip }, async () => {
    const answers = {
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n':
        /backend tried to switch protocol \\"h2c\\" when \\"websocket\\" was requested/,
      'HTTP/1.1 101 Switching Protocols\r\n\r\n': /invalid upgrade response: status code 101/,
      'HTTP/1.1 100 Continue\r\n\r\n': /invalid upgrade response: status code 100/,
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok': /invalid upgrade response: status code 200/,
      'HTTP/1.1 302 Found\r\nLocation: https://elsewhere/\r\nContent-Length: 0\r\n\r\n': /invalid upgrade response: status code 302/,
      'HTTP/1.1 200 OK\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n': /invalid upgrade response: status code 200/,
      'no HTTP at all\r\n\r\n': /error reading the upgrade response/,
    }
    for (const [answer, message] of Object.entries(answers)) {
      backend.answer(answer)
      const received = await send({ path: paths[path](), protocol: 'websocket', pipelined: second, next: { after: /}\s*$/, bytes: second } })
      assert.match(received, /^HTTP\/1\.1 500 /, answer)
      assert.match(received, message)
      assert.equal(received.split('HTTP/1.1 ').length, 2, `one answer: ${received}`)
      assert.equal((await lastUpgrade()).behind, '', answer)
    }
  })

  test(`API-29 ${path} refuses an upgrade request with a body, before it asks the backend`, { skip }, async () => {
    for (const header of ['Content-Length: 5', 'Transfer-Encoding: chunked']) {
      const before = backend.upgrades.length
      const received = await send({ path: paths[path](), protocol: 'websocket', method: 'POST', headers: [header], pipelined: 'hello' })
      assert.match(received, /^HTTP\/1\.1 400 /)
      assert.equal(backend.upgrades.length, before)
    }
  })
}

test('API-29 a refusal larger than a megabyte or sent in endless chunks is not passed on', { skip }, async () => {
  const size = 3 * 1024 * 1024
  const endless = `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`
  for (const answer of [
    `HTTP/1.1 403 Forbidden\r\nContent-Length: ${size}\r\n\r\n${'x'.repeat(size)}`,
    `HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n${endless}`,
    `HTTP/1.1 403 Forbidden\r\nX: ${'x'.repeat(size)}`,
  ]) {
    backend.answer(answer)
    const received = await send({ path: paths['pods/proxy'](), protocol: 'websocket' })
    assert.match(received, /^HTTP\/1\.1 500 [\s\S]*error reading the upgrade response/)
    assert.equal((await lastUpgrade()).behind, '')
  }
})

test('API-29 a refusal is rewritten as an ordinary answer: headers of the backend’s connection and of other origins stay behind', { skip }, async () => {
  backend.answer(
    'HTTP/1.1 403 Forbidden\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nAccess-Control-Allow-Origin: *\r\nX-Kept: yes\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n',
  )
  const received = await send({ path: paths['services/proxy'](), protocol: 'websocket' })
  assert.match(received, /^HTTP\/1\.1 403 Forbidden\r\n[\s\S]*\r\n\r\nno$/)
  assert.match(received, /\r\nx-kept: yes\r\n/i)
  assert.match(received, /\r\ncontent-length: 2\r\n/i)
  assert.doesNotMatch(received, /x-hop|keep-alive|access-control|chunked/i)
})

test('API-29 after a tunnel has ended its connection carries no further request', { skip }, async () => {
  backend.answer('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  const received = send({ path: paths['pods/proxy'](), protocol: 'websocket' })
  await eventually(async () => assert.ok(backend.upgrades.at(-1)?.closed === false))
  backend.closeUpgraded()
  assert.equal((await received).split('HTTP/1.1 ').length, 2, 'the answer to the second request')
})

test('API-29 HTTP/2 carries no upgrade: neither its headers nor an extended CONNECT reaches a backend', { skip }, async () => {
  const before = backend.upgrades.length
  const session = connectHttp2(listener.url, { ca: listener.ca })
  session.on('error', () => {})
  const authorization = `Bearer ${listener.token}`
  try {
    for (const path of everyPath) {
      const call = session.request({ ':path': paths[path](), ':method': 'CONNECT', ':protocol': 'websocket', ':scheme': 'https', authorization } as never)
      const code = await new Promise<number>((resolve) => call.on('error', () => {}).on('close', () => resolve(call.rstCode ?? 0)))
      assert.equal(code, constants.NGHTTP2_PROTOCOL_ERROR, path)
    }
  } finally {
    session.destroy()
  }
  assert.equal(backend.upgrades.length, before)
})
