/**
 * The proxy subresources, with real servers behind them: methods, paths, links, streams, upgrades, headers, and where they do not lead.
 * Loopback addresses are refused, so the backends listen on an address of this host.
 */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { createServer as createTlsServer, request as httpsRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Duplex } from 'node:stream'
import test, { after, before } from 'node:test'
import { connect } from 'node:tls'
import { gunzipSync, gzipSync } from 'node:zlib'
import { endpointSlices, nodes, pods, services } from '#client/builtIn'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { testCertificates } from '#testing/testCertificates'
import { type RawAnswer, type RawRequest, rawHttp } from './rawHttp.ts'

const address = Object.values(networkInterfaces())
  .flatMap((list) => list ?? [])
  .find((one) => one.family === 'IPv4' && !one.internal)?.address

let api: TestApiServer
let listener: TestListener
const servers: ReturnType<typeof createServer>[] = []
let port = 0
let tlsPort = 0

/** Emits the connections of backends that do not answer. */
const silent = new EventEmitter()

const page =
  '<html><!-- <a href="/no"> --><a class=x href="/next?a=b">n</a><img src=/i.png><a href="http://elsewhere/x">e</a><a href="rel">r</a><script>"<a href=\'/js\'>"</script></html>'

function answer(request: IncomingMessage, response: ServerResponse): void {
  const url = request.url ?? ''
  if (url.startsWith('/page')) {
    const packed = url.endsWith('gzip')
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...(packed ? { 'content-encoding': 'gzip' } : {}) })
    response.end(packed ? gzipSync(page) : page)
  } else if (url.startsWith('/redirect')) response.writeHead(302, { location: new URLSearchParams(url.split('?')[1]).get('to') ?? '' }).end()
  else if (url === '/headers') {
    response.setHeader('access-control-allow-origin', '*')
    response.setHeader('connection', 'x-hop')
    response.setHeader('x-hop', '1')
    response.end(JSON.stringify(request.headers))
  } else if (url === '/echo') request.pipe(response.writeHead(200, { 'x-from': 'backend' }))
  else if (url === '/nothing') response.writeHead(204).end()
  else if (url.startsWith('/raw?')) request.socket.end(decodeURIComponent(url.slice('/raw?'.length)))
  else response.writeHead(203).end(`${request.method} ${url}`)
}

async function start(server: ReturnType<typeof createServer>): Promise<number> {
  server.on('upgrade', (request, socket, head) => {
    if (request.url === '/refuses') {
      socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno')
      return
    }
    if (request.url === '/silent') {
      silent.emit('arrived', socket)
      return
    }
    if (request.url === '/ignores') {
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
      return
    }
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${request.headers.upgrade}\r\n\r\n${request.url}\n`)
    socket.write(head)
    socket.pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, address, resolve))
  servers.push(server)
  return (server.address() as AddressInfo).port
}

async function runningPod(name: string, ip: string): Promise<void> {
  const containers = [{ name: 'c', image: 'x', ports: [{ containerPort: port }] }]
  await api.client.of(pods).create({ metadata: { namespace: 'default', name }, spec: { containers } })
  await api.client.of(pods).createSubresource({ namespace: 'default', name }, 'binding', { target: { kind: 'Node', name: 'n1' } })
  await api.client.of(pods).patch({ namespace: 'default', name }, 'merge', { status: { podIP: ip, podIPs: [{ ip }] } }, { subresource: 'status' })
}

async function service(name: string, target: string, ip = address): Promise<void> {
  await api.client.of(services).create({ metadata: { namespace: 'default', name }, spec: { ports: [{ name: 'web', port: 80 }] } })
  await api.client.of(endpointSlices).create({
    metadata: { namespace: 'default', name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    endpoints: [
      { addresses: [ip ?? ''], conditions: { ready: true }, targetRef: { kind: 'Pod', namespace: 'default', name: target } },
      { addresses: ['192.0.2.77'], conditions: { ready: false }, targetRef: { kind: 'Pod', namespace: 'default', name: target } },
    ],
    ports: [{ name: 'web', port }],
  })
}

const get = (path: string, more: Partial<RawRequest> = {}): Promise<RawAnswer> => rawHttp(listener, { path, ...more })
const text = async (path: string, more: Partial<RawRequest> = {}) => (await get(path, more)).body.toString()
const refusal = async (path: string) => {
  const { status, body } = await get(path)
  return `${status} ${JSON.parse(body.toString()).message}`
}
const pod = '/api/v1/namespaces/default/pods/p/proxy'
const svc = (name: string) => `/api/v1/namespaces/default/services/${name}/proxy`

const skip = address === undefined && 'this host has no address but loopback'

before(async () => {
  if (skip) return
  port = await start(createServer(answer))
  tlsPort = await start(createTlsServer(await testCertificates(), answer) as unknown as ReturnType<typeof createServer>)
  api = await startTestApiServer()
  listener = await api.listen()
  await api.client.of(nodes).create({ metadata: { name: 'n1' }, spec: {}, status: { addresses: [{ type: 'InternalIP', address: address ?? '' }] } })
  await api.client.of(nodes).create({ metadata: { name: 'local' }, spec: {}, status: { addresses: [{ type: 'InternalIP', address: '127.0.0.1' }] } })
  await runningPod('p', address ?? '')
  await runningPod('local', '127.0.0.1')
  await service('s', 'p')
  await service('stranger', 'p', '192.0.2.9')
})
after(async () => {
  if (skip) return
  await api.close()
  for (const server of servers) server.close()
})

test('API-29 every method reaches a pod, with its path and query as they were sent', { skip }, async () => {
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    assert.equal(await text(`${pod}/a%20b%3Fc//d/?x=1&y=%20+z&flag`, { method }), `${method} /a%20b%3Fc//d/?x=1&y=%20+z&flag`)
  }
  assert.equal((await get(`${pod}/x`, { method: 'HEAD' })).status, 203)
  assert.equal((await get(`${pod}/x`, { method: 'TRACE' })).status, 405)
  assert.equal((await get(`${pod}/nothing`)).status, 204)
})

test('API-29 the bare path moves to the one with a slash, for reads only', { skip }, async () => {
  const moved = await get(`${pod}?a=b`)
  assert.deepEqual([moved.status, moved.headers.location], [301, `${pod}/?a=b`])
  assert.equal(await text(pod, { method: 'POST' }), 'POST /')
  assert.equal(await text(`${pod}/`), 'GET /')
})

test('API-29 scheme, name and port are taken from the name, for pods, nodes and services', { skip }, async () => {
  assert.equal(await text(`/api/v1/namespaces/default/pods/p:${port}/proxy/x`), 'GET /x')
  assert.equal(await text(`/api/v1/namespaces/default/pods/https:p:${tlsPort}/proxy/x`), 'GET /x')
  assert.equal(await text(`/api/v1/nodes/http:n1:${port}/proxy/x?a=b`), 'GET /x?a=b')
  assert.equal(await text(`/api/v1/nodes/https:n1:${tlsPort}/proxy/x`), 'GET /x')
  for (const name of ['s:web', 's:80', 'http:s:web', ':s:80']) assert.equal(await text(`${svc(name)}/x`), 'GET /x', name)
})

test('API-29 what cannot be located is refused in upstream words', { skip }, async () => {
  assert.equal(await refusal('/api/v1/namespaces/default/pods/ftp:p:1/proxy/'), '400 invalid pod request "ftp:p:1"')
  assert.equal(await refusal('/api/v1/nodes/a:b:c:d/proxy/'), '400 invalid node request "a:b:c:d"')
  assert.equal(await refusal('/api/v1/nodes/none/proxy/'), '404 nodes "none" not found')
  assert.equal(await refusal('/api/v1/namespaces/default/pods/none/proxy/'), '404 pods "none" not found')
  assert.equal(await refusal(`${svc('none')}/`), '404 endpoints "none" not found')
  assert.equal(await refusal(`${svc('none:80')}/`), '404 services "none" not found')
  assert.equal(await refusal(`${svc('s:81')}/`), '503 no service port 81 found for service "s"')
  assert.equal(await refusal(`${svc('s')}/`), '503 no endpoints available for service "s"')
  assert.equal(await refusal(`${svc('s:other')}/`), '503 no endpoints available for service "s:other"')
  assert.equal(
    await refusal('/api/v1/namespaces/default/pods/p:1/proxy/'),
    `503 error trying to reach service: dial tcp ${address}:1: connect: connection refused`,
  )
})

test('API-29 nothing leads to loopback addresses, or to endpoints that are no pod of the namespace', { skip }, async () => {
  assert.equal(await refusal('/api/v1/nodes/local/proxy/'), '400 address not allowed')
  assert.equal(await refusal(`/api/v1/nodes/local:${port}/proxy/`), '400 address not allowed')
  assert.equal(await refusal('/api/v1/namespaces/default/pods/local/proxy/'), '400 address not allowed')
  assert.equal(await refusal(`${svc('stranger:web')}/`), '503 no endpoints available for service "stranger:web"')
})

test('API-29 links of a page and redirects lead through the proxy', { skip }, async () => {
  const wanted = page.replace('"/next', `"${pod}/next`).replace('=/i.png', `=${pod}/i.png`)
  assert.equal(await text(`${pod}/page`), wanted)
  const packed = await get(`${pod}/page?gzip`, { headers: { 'accept-encoding': 'gzip' } })
  assert.equal(gunzipSync(packed.body).toString(), wanted)
  const to = async (link: string) => (await get(`${pod}/redirect?to=${encodeURIComponent(link)}`)).headers.location
  assert.equal(await to('/login/'), `${pod}/login/`)
  assert.equal(await to(`http://${address}:${port}/x?y#z`), `${pod}/x?y#z`)
  assert.equal(await to('http://elsewhere/x'), 'http://elsewhere/x')
  assert.equal(await to('sub/x'), 'sub/x')
})

test('API-29 the proxy removes credentials, identity headers and hop-by-hop headers from requests, and hop-by-hop headers from answers', { skip }, async () => {
  const sent = {
    'x-remote-user': 'root',
    'x-remote-group': 'system:masters',
    'x-remote-extra-a': 'b',
    'x-forwarded-for': '9.9.9.9',
    connection: 'x-private',
    'x-private': 'p',
  }
  const { headers, body } = await get(`${pod}/headers`, { headers: { ...sent, 'x-kept': 'yes', host: 'localhost:1234' } })
  const seen = JSON.parse(body.toString())
  for (const name of ['authorization', 'x-remote-user', 'x-remote-group', 'x-remote-extra-a', 'x-private']) assert.equal(seen[name], undefined, name)
  assert.deepEqual(
    [seen['x-kept'], seen.host, seen['x-forwarded-for'], seen['x-forwarded-uri']],
    ['yes', 'localhost:1234', '9.9.9.9, 127.0.0.1', `${pod}/headers`],
  )
  assert.deepEqual([headers['access-control-allow-origin'], headers['x-hop']], [undefined, undefined])
})

test('API-29 bodies stream in both directions, over HTTP/1.1', { skip }, async () => {
  const call = httpsRequest({
    ...{ host: '127.0.0.1', port: listener.port, ca: listener.ca, agent: false, method: 'POST', path: `${pod}/echo` },
    headers: { authorization: `Bearer ${listener.token}`, 'transfer-encoding': 'chunked' },
  })
  const chunks: string[] = []
  call.write('first')
  const response = await new Promise<IncomingMessage>((resolve, reject) => call.on('response', resolve).on('error', reject))
  for await (const chunk of response) {
    chunks.push(String(chunk))
    // The second part is sent only after the first one was echoed.
    if (chunks.length === 1) call.end('second')
  }
  assert.deepEqual([response.headers['x-from'], chunks], ['backend', ['first', 'second']])
})

test('API-29 bodies stream in both directions, over HTTP/2, and bodiless answers end', { skip }, async () => {
  const session = connectHttp2(listener.url, { ca: listener.ca })
  const call = (headers: Record<string, string>) => session.request({ authorization: `Bearer ${listener.token}`, ...headers })
  try {
    const echo = call({ ':method': 'POST', ':path': `${pod}/echo` })
    echo.write('first')
    const chunks: string[] = []
    for await (const chunk of echo) {
      chunks.push(String(chunk))
      if (chunks.length === 1) echo.end('second')
    }
    assert.deepEqual(chunks, ['first', 'second'])
    for (const headers of [{ ':path': `${pod}/nothing` }, { ':path': `${pod}/x`, ':method': 'HEAD' }]) {
      const bodiless = call(headers as Record<string, string>)
      let length = 0
      for await (const chunk of bodiless) length += (chunk as Buffer).length
      assert.equal(length, 0)
    }
  } finally {
    session.close()
  }
})

const oddAnswers = [
  { name: 'the status 000', raw: 'HTTP/1.1 000 Odd\r\ncontent-length: 2\r\n\r\nno', want: 502 },
  { name: 'the status 099', raw: 'HTTP/1.1 099 Odd\r\ncontent-length: 2\r\n\r\nno', want: 502 },
  { name: 'the status 204 and a body', raw: 'HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello', want: 204 },
  { name: 'the status 204 and chunks', raw: 'HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n', want: 204 },
]
for (const { name, raw, want } of oddAnswers) {
  test(`API-29 a backend that answers with ${name} does not break the client's connection`, { skip }, async () => {
    const path = `${pod}/raw?${encodeURIComponent(raw)}`
    const answered = await rawHttp(listener, { path })
    assert.deepEqual([answered.status, answered.headers['content-length']], [want, want === 204 ? undefined : String(answered.body.length)])
    const session = connectHttp2(listener.url, { ca: listener.ca })
    const statusOf = async (target: string) => {
      const call = session.request({ authorization: `Bearer ${listener.token}`, ':path': target })
      const [headers] = await once(call, 'response')
      for await (const _ of call);
      return headers[':status'] as number
    }
    try {
      assert.equal(await statusOf(path), want)
      assert.equal(await statusOf(`${pod}/nothing`), 204)
    } finally {
      session.close()
    }
  })
}

test('API-29 upgrades are tunnelled after the backend agreed, whatever the protocol', { skip }, async () => {
  for (const protocol of ['websocket', 'SPDY/3.1']) {
    const answer = await upgrade(`${svc('s:web')}/socket?x=y`, protocol, 'ping')
    assert.match(answer, new RegExp(`^HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n`))
    assert.ok(answer.endsWith('\r\n\r\n/socket?x=y\nping'), answer)
  }
})

test('API-29 a failed upgrade is answered with the reason', { skip }, async () => {
  assert.match(await upgrade(`${pod}/refuses`, 'websocket', ''), /^HTTP\/1.1 403 Forbidden\r\n[\s\S]*\r\n\r\nno$/)
  assert.match(await upgrade(`${pod}/ignores`, 'websocket', ''), /^HTTP\/1.1 500 [\s\S]*"message":"invalid upgrade response: status code 200"/)
  assert.match(
    await upgrade('/api/v1/namespaces/default/pods/p:1/proxy/', 'websocket', ''),
    /^HTTP\/1.1 500 [\s\S]*"message":"error dialing backend: dial tcp [^ ]+:1: connect: connection refused"/,
  )
  assert.match(await upgrade('/api/v1/namespaces/default/pods/p/nothing', 'websocket', ''), /^HTTP\/1.1 404 Not Found/)
})

test('API-29 the connection to a backend ends, the client leaves before the backend answers', { skip, timeout: 20_000 }, async () => {
  const arrived = once(silent, 'arrived') as Promise<[Duplex]>
  const client = connect({ host: '127.0.0.1', port: listener.port, ca: listener.ca, ALPNProtocols: ['http/1.1'] })
  const head = [`GET ${pod}/silent HTTP/1.1`, 'Host: x', 'Connection: Upgrade', 'Upgrade: x', `Authorization: Bearer ${listener.token}`]
  client.write(`${head.join('\r\n')}\r\n\r\n`)
  const [backend] = await arrived
  const ended = once(backend.resume(), 'end')
  client.destroy()
  await ended
  backend.destroy()
})

/** All bytes received after an upgrade request, until `bytes` were echoed or the connection ends. */
function upgrade(path: string, protocol: string, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: listener.port, ca: listener.ca, ALPNProtocols: ['http/1.1'] }, () => {
      const head = [`GET ${path} HTTP/1.1`, 'Host: x', 'Connection: Upgrade', `Upgrade: ${protocol}`, `Authorization: Bearer ${listener.token}`]
      socket.write(`${head.join('\r\n')}\r\n\r\n${bytes}`)
    })
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk.toString()
      if (bytes !== '' && received.endsWith(bytes)) socket.destroy()
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(received))
  })
}
