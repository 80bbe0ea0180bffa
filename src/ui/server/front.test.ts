/** The front against the attacks that it is made for (ARC-16), over real connections: the server behind it records what arrives. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import http, { type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { VirtualClock } from '#base/virtualClock'
import { createHttpTransport } from '#client/httpTransport'
import { type Front, startFront } from './front.ts'
import { codeLifeMs, idleMs, lifeMs } from './sessions.ts'

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

interface Call {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

interface Fault {
  readonly kind: 'Status'
  readonly code: number
  readonly reason: string
  readonly message?: string
}

const down: Fault = { kind: 'Status', code: 503, reason: 'ServiceUnavailable' }
const refused: Fault = { kind: 'Status', code: 401, reason: 'Unauthorized' }

/** A cluster that knows the token `jane` and, by its own header, the user who started the front. */
async function startServer() {
  const seen: { readonly url: string; readonly headers: IncomingHttpHeaders }[] = []
  /** The answer to everything, while it is set. */
  const cluster: { fault?: Fault | undefined } = {}
  const server = http.createServer((request, response) => {
    seen.push({ url: request.url ?? '', headers: request.headers })
    request.resume()
    if (cluster.fault) return response.writeHead(cluster.fault.code, { 'content-type': 'application/json' }).end(JSON.stringify(cluster.fault))
    const { authorization } = request.headers
    const username = { 'Bearer admin': 'kubernetes-admin', 'Bearer jane': 'jane' }[authorization ?? '']
    if (!username) return response.writeHead(401, { 'content-type': 'application/json' }).end('{"kind":"Status","reason":"Unauthorized","code":401}')
    if (request.url?.endsWith('/selfsubjectreviews')) {
      return response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ status: { userInfo: { username, groups: ['g'] } } }))
    }
    if (request.url?.includes('watch=1')) return response.writeHead(200, { 'content-type': 'application/json' }).write('{}\n')
    return response.writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'a=b', 'access-control-allow-origin': '*', warning: '299 - "w"' }).end('<b>')
  })
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => (offered.has('v5.channel.k8s.io') ? 'v5.channel.k8s.io' : false) })
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    seen.push({ url: request.url ?? '', headers: request.headers })
    if (cluster.fault) {
      const text = JSON.stringify(cluster.fault)
      return socket.end(`HTTP/1.1 ${cluster.fault.code} No\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`)
    }
    sockets.handleUpgrade(request, socket, head, (connection) => connection.on('message', (data) => connection.send(`echo ${data}`)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url, seen, cluster, close }
}

/** A front over such a server for the tests of one block, and requests to it. */
function useFront() {
  const clock = new VirtualClock()
  let server: Awaited<ReturnType<typeof startServer>>
  let front: Front
  let directory: string

  before(async () => {
    server = await startServer()
    directory = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-ui-'))
    await fs.writeFile(path.join(directory, 'index.html'), '<!doctype html>')
    await fs.writeFile(path.join(directory, 'app-ABCDEFGH.js'), 'x')
    const transportAs = (bearerToken: string) => createHttpTransport({ server: server.url, bearerToken, clock })
    front = await startFront({
      ...{ clock, port: 0, assets: directory, cluster: { name: 'c', server: server.url, namespace: 'default' } },
      ...{ transport: transportAs('admin'), transportAs },
      computed: { '/front/why': async (query, { user }) => ({ asked: query.get('name'), user }) },
    })
  })

  after(async () => {
    await front.close()
    server.close()
    await fs.rm(directory, { recursive: true })
  })

  const origin = () => `http://127.0.0.1:${front.port}`
  const code = () => front.newUrl().split('#code=')[1] ?? ''

  async function call(target: string, { method = 'GET', headers = {}, body }: Call = {}): Promise<Answer> {
    const request = http.request({ host: '127.0.0.1', port: front.port, path: target, method, headers })
    request.end(body)
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    const parts: Buffer[] = []
    for await (const part of answer) parts.push(part as Buffer)
    return { status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(parts).toString() }
  }

  const post = (target: string, value: object, headers: Readonly<Record<string, string>> = {}) =>
    call(target, { method: 'POST', headers: { origin: origin(), 'content-type': 'application/json', ...headers }, body: JSON.stringify(value) })

  /** The headers of a page that has logged in. */
  async function loggedIn(how: object = { code: code() }) {
    const answer = await post('/front/login', how)
    assert.equal(answer.status, 200, answer.text)
    const [cookie = ''] = answer.headers['set-cookie']?.[0]?.split(';') ?? []
    return { cookie, 'x-skiff-key': (JSON.parse(answer.text) as { key: string }).key, origin: origin() }
  }

  function socketTo(target: string, protocols: readonly string[], headers: Readonly<Record<string, string>>) {
    return new WebSocket(`ws://127.0.0.1:${front.port}${target}`, [...protocols], { headers })
  }

  const requestsSeen = () => server.seen
  const failWith = (fault: Fault | undefined) => {
    server.cluster.fault = fault
  }
  return { clock, requestsSeen, failWith, port: () => front.port, origin, code, call, post, loggedIn, socketTo }
}

describe('logins of skiff ui', () => {
  const { clock, requestsSeen, failWith, port, code, call, post, loggedIn } = useFront()

  test('ARC-16 the page’s files need no login, and forbid inline scripts, frames and other origins', async () => {
    const { status, headers } = await call('/')
    assert.equal(status, 200)
    assert.match(String(headers['content-security-policy']), /default-src 'none'; script-src 'self';.*frame-ancestors 'none'/)
    assert.doesNotMatch(String(headers['content-security-policy']), /script-src[^;]*unsafe/)
    assert.deepEqual([headers['x-content-type-options'], headers['x-frame-options'], headers['referrer-policy']], ['nosniff', 'DENY', 'no-referrer'])
    assert.match(String((await call('/app-ABCDEFGH.js')).headers['cache-control']), /immutable/)
  })

  test('ARC-16 a code logs in once, by a cookie that scripts cannot read', async () => {
    const once = code()
    const first = await post('/front/login', { code: once })
    assert.match(String(first.headers['set-cookie']), /^skiff-ui-\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=86400$/)
    assert.equal((JSON.parse(first.text) as { user: string }).user, 'kubernetes-admin')
    assert.equal((await post('/front/login', { code: once })).status, 401)
  })

  test('ARC-16 one of two logins with the same code at the same time succeeds', async () => {
    const mine = code()
    const answers = await Promise.all([post('/front/login', { code: mine }), post('/front/login', { code: mine })])
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401])
  })

  test('ARC-16 a code stays valid when the cluster does not answer the login', async () => {
    const mine = code()
    failWith(down)
    const failed = await post('/front/login', { code: mine })
    failWith(undefined)
    assert.equal(failed.status, 503, failed.text)
    assert.equal((await post('/front/login', { code: mine })).status, 200)
  })

  for (const [name, how, message] of [
    ['code', () => ({ code: code() }), /the credentials of the user who started skiff ui/],
    ['token', () => ({ token: 'jane' }), /this token/],
  ] as const) {
    test(`ARC-16 a login by ${name} that the cluster refuses names the credentials that it refuses`, async () => {
      failWith(refused)
      const { status, text } = await post('/front/login', how())
      failWith(undefined)
      assert.equal(status, 401)
      assert.match(text, message)
    })
  }

  test('ARC-16 the front answers 404 to a path of its own that it does not know', async () => {
    const headers = await loggedIn()
    requestsSeen().length = 0
    assert.equal((await call('/front/other', { headers })).status, 404)
    assert.deepEqual(requestsSeen(), [])
  })

  test('ARC-16 a code ends unused after fifteen minutes', async () => {
    const old = code()
    await clock.advance(codeLifeMs)
    assert.equal((await post('/front/login', { code: old })).status, 401)
  })

  test('ARC-16 a bearer token logs in as its user, and one that the cluster does not know is refused', async () => {
    const headers = await loggedIn({ token: 'jane' })
    assert.equal((JSON.parse((await call('/front/session', { headers })).text) as { user: string }).user, 'jane')
    assert.equal(requestsSeen().at(-1)?.headers.authorization, 'Bearer jane')
    for (const token of ['nobody', 'a\r\nimpersonate-user: b', '']) assert.equal((await post('/front/login', { token })).status, 401, token)
  })

  test('ARC-16 a session ends when it was not used for two hours, after a day, and by logging out', async () => {
    const [idle, old, out] = [await loggedIn(), await loggedIn(), await loggedIn()]
    assert.equal((await call('/front/logout', { method: 'POST', headers: out })).status, 204)
    assert.equal((await call('/version', { headers: out })).status, 401)
    for (let ms = 0; ms < lifeMs - idleMs; ms += idleMs / 2) {
      await clock.advance(idleMs / 2)
      assert.equal((await call('/version', { headers: old })).status, 200)
    }
    assert.equal((await call('/version', { headers: idle })).status, 401)
    await clock.advance(idleMs - 1)
    assert.equal((await call('/version', { headers: old })).status, 200)
    await clock.advance(1)
    assert.equal((await call('/version', { headers: old })).status, 401)
  })

  test('ARC-16 beyond 16 sessions the least recently used one ends', async () => {
    const [first, second] = [await loggedIn(), await loggedIn()]
    assert.equal((await call('/version', { headers: first })).status, 200)
    for (let more = 0; more < 15; more++) await loggedIn()
    assert.equal((await call('/version', { headers: second })).status, 401)
    assert.equal((await call('/version', { headers: first })).status, 200)
  })

  test('ARC-16 a watch ends with its session', async () => {
    const headers = await loggedIn()
    const request = http.get({ host: '127.0.0.1', port: port(), path: '/api/v1/pods?watch=1', headers })
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    await once(answer, 'data')
    answer.on('error', () => {})
    const ended = new Promise((resolve) => answer.once('close', resolve))
    await call('/front/logout', { method: 'POST', headers })
    await ended
  })
})

describe('attacks on skiff ui', () => {
  const { requestsSeen, origin, code, call, post, loggedIn } = useFront()

  const attacks: readonly { readonly name: string; readonly target?: string; readonly change: Call; readonly status: number }[] = [
    { name: 'a name that was rebound to this address', change: { headers: { host: 'evil.example:80' } }, status: 403 },
    { name: 'the right name with another port', change: { headers: { host: '127.0.0.1:1' } }, status: 403 },
    { name: 'another origin', change: { headers: { origin: 'http://evil.example' } }, status: 403 },
    { name: 'the origin of a sandboxed frame', change: { headers: { origin: 'null' } }, status: 403 },
    { name: 'another port of this host as origin', change: { headers: { origin: 'http://127.0.0.1:1' } }, status: 403 },
    { name: 'a request that the browser marks as cross-site', change: { headers: { 'sec-fetch-site': 'cross-site' } }, status: 403 },
    { name: 'a request of another port, which browsers call same-site', change: { headers: { 'sec-fetch-site': 'same-site' } }, status: 403 },
    { name: 'a link of another site to the API', change: { headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' } }, status: 403 },
    { name: 'no cookie', change: { headers: { cookie: '' } }, status: 401 },
    { name: 'the cookie without the key, as another port of this host gets it', change: { headers: { 'x-skiff-key': '' } }, status: 401 },
    { name: 'the key of another session', change: { headers: { 'x-skiff-key': 'a'.repeat(43) } }, status: 401 },
    { name: 'a write without the key', change: { method: 'POST', headers: { 'x-skiff-key': '' } }, status: 401 },
    { name: 'the content of a pod', target: '/api/v1/namespaces/a/pods/b/proxy/index.html', change: {}, status: 403 },
    { name: 'the content of a Service', target: '/api/v1/namespaces/a/services/b:80/proxy', change: {}, status: 403 },
    { name: 'a node’s port', target: '/api/v1/nodes/n/proxy/run', change: {}, status: 403 },
    { name: 'dots that lead to a pod’s content', target: '/api/v1/x/../namespaces/a/pods/b/proxy/', change: {}, status: 400 },
    { name: 'an encoded letter', target: '/api/v1/nodes/n/prox%79/metrics', change: {}, status: 400 },
    { name: 'an encoded letter of the resource', target: '/api/v1/%6eodes/n/proxy/pods', change: {}, status: 400 },
    { name: 'encoded dots', target: '/api/v1/x/%2E%2e/namespaces', change: {}, status: 400 },
    { name: 'an encoded slash', target: '/api/v1/namespaces/a/pods/b%2fproxy', change: {}, status: 400 },
    { name: 'an empty segment', target: '/api//v1/pods', change: {}, status: 400 },
    { name: 'the URL of another server', target: 'http://evil.example/api', change: {}, status: 400 },
    { name: 'a path that is not the API’s', target: '/configz', change: {}, status: 404 },
    { name: 'a file outside of the page’s folder', target: '/etc/passwd', change: {}, status: 404 },
  ]
  for (const { name, target = '/api/v1/pods', change, status } of attacks) {
    test(`ARC-16 the front refuses ${name}`, async () => {
      const headers = await loggedIn()
      requestsSeen().length = 0
      const found = await call(target, { ...change, headers: { ...headers, ...change.headers } })
      assert.equal(found.status, status, found.text)
      assert.deepEqual(requestsSeen(), [], 'nothing has reached the server')
    })
  }

  for (const [name, headers] of [
    ['without an origin', { origin: undefined }],
    ['of another origin', { origin: 'http://evil.example' }],
    ['as a form sends it', { 'content-type': 'text/plain' }],
  ] as const) {
    test(`ARC-16 a login ${name} is refused, and the code stays good`, async () => {
      const mine = code()
      const sent = Object.fromEntries(
        Object.entries({ origin: origin(), 'content-type': 'application/json', ...headers }).filter(
          (entry): entry is [string, string] => entry[1] !== undefined,
        ),
      )
      const refused = await call('/front/login', { method: 'POST', headers: sent, body: JSON.stringify({ code: mine }) })
      assert.ok([403, 415].includes(refused.status), refused.text)
      assert.equal((await post('/front/login', { code: mine })).status, 200)
    })
  }
})

describe('requests that skiff ui passes on', () => {
  const { requestsSeen, origin, call, loggedIn, socketTo } = useFront()

  test('ARC-16 a write without an origin is refused', async () => {
    const { origin: _, ...headers } = await loggedIn()
    assert.equal((await call('/api/v1/pods', { method: 'DELETE', headers })).status, 403)
  })

  test('ARC-16 headers that name another user do not reach the server', async () => {
    const headers = await loggedIn()
    const forged = {
      authorization: 'Bearer jane',
      'impersonate-user': 'root',
      'x-remote-user': 'root',
      'x-forwarded-for': '1.2.3.4',
      connection: 'x-remote-user',
    }
    assert.equal((await call('/api/v1/pods', { headers: { ...headers, ...forged } })).status, 200)
    const { host: _, connection: __, ...arrived } = requestsSeen().at(-1)?.headers ?? {}
    assert.deepEqual(arrived, { authorization: 'Bearer admin', 'user-agent': 'skiff-ui' })
  })

  test('ARC-16 an API answer carries no cookie, allows no other origin and cannot render as a page', async () => {
    const { headers, text } = await call('/api/v1/pods', { headers: await loggedIn() })
    assert.equal(text, '<b>')
    assert.deepEqual([headers['set-cookie'], headers['access-control-allow-origin'], headers.warning], [undefined, undefined, '299 - "w"'])
    assert.match(String(headers['content-security-policy']), /default-src 'none'.*sandbox/)
    assert.equal(headers['cache-control'], 'no-store')
  })

  test('ARC-16 a body beyond the bound is refused', async () => {
    const { status } = await call('/api/v1/pods', { method: 'POST', headers: await loggedIn(), body: 'x'.repeat(8 * 2 ** 20 + 1) })
    assert.equal(status, 413)
  })

  test('ARC-16 answers that the front computes are made as the user of the session', async () => {
    const headers = await loggedIn({ token: 'jane' })
    assert.deepEqual(JSON.parse((await call('/front/why?name=a', { headers })).text), { asked: 'a', user: 'jane' })
    assert.equal((await call('/front/why?name=a')).status, 401)
    assert.equal((await call('/front/why', { method: 'POST', headers })).status, 405)
  })

  test('ARC-16 a WebSocket is passed on with the session’s credentials, and its key is not', async () => {
    const { cookie, 'x-skiff-key': key } = await loggedIn()
    const socket = socketTo('/api/v1/namespaces/a/pods/b/exec', ['v5.channel.k8s.io', 'skiff.ui', `skiff.ui.key.${key}`], {
      ...{ cookie, origin: origin(), authorization: 'Bearer jane', 'impersonate-user': 'root' },
    })
    await once(socket, 'open')
    socket.send('hello')
    const [message] = await once(socket, 'message')
    assert.equal(String(message), 'echo hello')
    assert.equal(socket.protocol, 'v5.channel.k8s.io')
    const headers = requestsSeen().at(-1)?.headers ?? {}
    assert.deepEqual([headers.authorization, headers['impersonate-user'], headers.cookie], ['Bearer admin', undefined, undefined])
    assert.equal(headers['sec-websocket-protocol'], 'v5.channel.k8s.io')
    const closed = once(socket, 'close')
    await call('/front/logout', { method: 'POST', headers: { cookie, 'x-skiff-key': key, origin: origin() } })
    await closed
  })

  test('ARC-16 a WebSocket without a protocol of the API gets the front’s own, and rows where it asks for them', async () => {
    const { cookie, 'x-skiff-key': key } = await loggedIn()
    const socket = socketTo('/api/v1/pods?watch=1', ['skiff.ui', 'skiff.ui.table', `skiff.ui.key.${key}`], { cookie, origin: origin() })
    await once(socket, 'open')
    assert.equal(socket.protocol, 'skiff.ui')
    const headers = requestsSeen().at(-1)?.headers ?? {}
    assert.deepEqual([headers['sec-websocket-protocol'], headers.accept], [undefined, 'application/json;as=Table;v=v1;g=meta.k8s.io'])
    socket.terminate()
  })

  for (const [name, target, change, status] of [
    ['of another origin', '/api/v1/pods?watch=1', { origin: 'http://evil.example' }, 403],
    ['for a rebound name', '/api/v1/pods?watch=1', { host: 'evil.example' }, 403],
    ['with the cookie alone', '/api/v1/pods?watch=1', { key: 'x' }, 401],
    ['to a pod’s content', '/api/v1/namespaces/a/pods/b/proxy/', {}, 403],
    ['outside of the API', '/', {}, 404],
  ] as const) {
    test(`ARC-16 the front refuses a WebSocket ${name}`, async () => {
      const { cookie, 'x-skiff-key': key } = await loggedIn()
      const { key: sentKey = key, ...headers }: { key?: string; origin?: string; host?: string } = change
      requestsSeen().length = 0
      const socket = socketTo(target, ['skiff.ui', `skiff.ui.key.${sentKey}`], { cookie, origin: origin(), ...headers })
      const [error] = await once(socket, 'error')
      assert.match(String(error), new RegExp(`${status}`))
      assert.deepEqual(requestsSeen(), [])
    })
  }
})

describe('WebSockets that the server refuses', () => {
  const { failWith, origin, loggedIn, socketTo } = useFront()
  after(() => failWith(undefined))

  test('ARC-16 an exec that the server refuses ends with the server’s Status, as the outcome of its command', { timeout: 20_000 }, async () => {
    const { cookie, 'x-skiff-key': key } = await loggedIn()
    const message = 'pods "b" is forbidden: User "jane" cannot create resource "pods/exec"'
    failWith({ kind: 'Status', code: 403, reason: 'Forbidden', message })
    const socket = socketTo('/api/v1/namespaces/a/pods/b/exec', ['v5.channel.k8s.io', 'skiff.ui', `skiff.ui.key.${key}`], { cookie, origin: origin() })
    const closed = once(socket, 'close')
    const [data] = (await once(socket, 'message')) as [Buffer]
    failWith(undefined)
    assert.equal(data[0], 3, 'the channel of the outcome')
    const { code, reason, message: told } = JSON.parse(data.toString('utf8', 1)) as Fault
    assert.deepEqual({ code, reason, told }, { code: 403, reason: 'Forbidden', told: message })
    assert.equal((await closed)[0], 1000)
  })

  test('ARC-16 a watch that the server refuses is refused with the code of its answer', async () => {
    const { cookie, 'x-skiff-key': key } = await loggedIn()
    failWith(down)
    const [error] = await once(socketTo('/api/v1/pods?watch=1', ['skiff.ui', `skiff.ui.key.${key}`], { cookie, origin: origin() }), 'error')
    failWith(undefined)
    assert.match(String(error), /503/)
  })
})
