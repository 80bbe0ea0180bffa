import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import type { AddressInfo, Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { withoutNils } from '#api/schema/nils'
import type { Clock } from '#base/clock'
import { VirtualClock } from '#base/virtualClock'
import { createHttpTransport } from './httpTransport.ts'

const folder = mkdtempSync(join(tmpdir(), 'skiff-'))
execFileSync(
  'openssl',
  [
    ...'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -keyout k.pem -out c.pem'.split(' '),
    '-addext',
    'subjectAltName=IP:127.0.0.1',
  ],
  { cwd: folder, stdio: 'ignore' },
)
const [key, cert] = [readFileSync(join(folder, 'k.pem')), readFileSync(join(folder, 'c.pem'))]
rmSync(folder, { recursive: true })
const closers: (() => void)[] = []
after(() => {
  for (const close of closers) close()
})

type Handler = (request: http.IncomingMessage, answer: http.ServerResponse) => void
type Kind = 'http2' | 'https' | 'http'

async function serve(kind: Kind, handler: Handler, clock: Clock = new VirtualClock(), settings: http2.Settings = {}) {
  const h2handler = handler as unknown as (request: http2.Http2ServerRequest, answer: http2.Http2ServerResponse) => void
  const server: Server =
    kind === 'http'
      ? http.createServer(handler)
      : kind === 'https'
        ? https.createServer({ key, cert }, handler)
        : http2.createSecureServer({ key, cert, allowHTTP1: true, settings }, h2handler)
  const sockets = new Set<Socket>()
  server.on(kind === 'http' ? 'connection' : 'secureConnection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const transport = createHttpTransport({
    server: `${kind === 'http' ? 'http' : 'https'}://127.0.0.1:${port}`,
    tls: { ca: cert },
    bearerToken: async () => 'secret',
    clock,
  })
  closers.push(() => {
    void transport.close()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { transport, sockets, port }
}

const json = (answer: http.ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) => {
  answer.writeHead(status, { 'content-type': 'application/json', ...headers })
  answer.end(JSON.stringify(body))
}
const never = new AbortController().signal

for (const kind of ['http2', 'https', 'http'] as const) {
  test(`${kind}: calls carry the token, bodies and queries; answers are frozen and carry warnings`, async () => {
    const { transport, sockets } = await serve(kind, async (request, answer) => {
      const parts: Buffer[] = []
      for await (const part of request) parts.push(part)
      const { method, url, headers } = request
      json(
        answer,
        200,
        { method, url, token: headers.authorization, type: headers['content-type'], body: Buffer.concat(parts).toString() },
        { warning: '299 - "old \\"api\\""' },
      )
    })
    const { body, warnings } = await transport.request({ method: 'POST', path: '/api', query: { a: 'b c', no: undefined, l: ['1', '2'] }, body: { x: 1 } })
    assert.deepEqual(body, { method: 'POST', url: '/api?a=b+c&l=1&l=2', token: 'Bearer secret', type: 'application/json', body: '{"x":1}' })
    assert.equal(Object.isFrozen(body), true)
    assert.deepEqual(warnings, ['old "api"'])
    await Promise.all(Array.from({ length: 5 }, () => transport.request({ method: 'GET', path: '/api' })))
    if (kind === 'http2') assert.equal(sockets.size, 1, 'one session for all')
  })

  test(`${kind}: a watch gives batches, ends with the stream, and throws ERROR events`, async () => {
    const line = (type: string, name: string) => `${JSON.stringify({ type, object: { metadata: { name } } })}\n`
    const { transport } = await serve(kind, (request, answer) => {
      answer.writeHead(200, { 'content-type': 'application/json' })
      const text = line('ADDED', 'ä') + line('MODIFIED', 'b')
      const half = Buffer.from(text)
      answer.write(half.subarray(0, 40), () => {
        answer.write(half.subarray(40))
        const status = { kind: 'Status', reason: 'Expired', code: 410, message: 'too old resource version: 1 (2)' }
        answer.end(request.url?.includes('fail') ? `${JSON.stringify({ type: 'ERROR', object: status })}\n` : '')
      })
    })
    const seen: string[] = []
    for await (const batch of transport.watch({ method: 'GET', path: '/w' }, never))
      seen.push(...batch.map(({ type, object }) => `${type} ${object.metadata.name}`))
    assert.deepEqual(seen, ['ADDED ä', 'MODIFIED b'])
    const failing = async () => {
      for await (const batch of transport.watch({ method: 'GET', path: '/w', query: { fail: '1' } }, never)) seen.push(String(batch.length))
    }
    await assert.rejects(failing, (error) => isStatus(error, 'Expired'))
    assert.equal(seen.length, 3)
  })

  test(`${kind}: aborting cancels a call and a watch on the server too`, async () => {
    const closed: Promise<unknown>[] = []
    const arrived: (() => void)[] = []
    const { transport } = await serve(kind, (request, answer) => {
      closed.push(new Promise((resolve) => answer.once('close', resolve)))
      if (request.url?.includes('watch')) answer.write('\n')
      arrived.shift()?.()
    })
    for (const what of ['call', 'watch']) {
      const stopping = new AbortController()
      const there = new Promise<void>((resolve) => arrived.push(resolve))
      const reading = async () => {
        if (what === 'call') return void (await transport.request({ method: 'GET', path: '/c' }, stopping.signal))
        for await (const _ of transport.watch({ method: 'GET', path: '/w' }, stopping.signal));
      }
      const done = assert.rejects(reading, { message: 'enough' })
      await there
      stopping.abort(new Error('enough'))
      await done
    }
    await Promise.all(closed)
  })

  test(`${kind}: refusals are Status errors, also from something that is no API server`, async () => {
    const status = {
      kind: 'Status',
      apiVersion: 'v1',
      status: 'Failure',
      reason: 'AlreadyExists',
      code: 409,
      message: 'pods "a" already exists',
      details: { name: 'a' },
    }
    const { transport } = await serve(kind, (request, answer) => {
      if (request.url === '/status') return json(answer, 409, status)
      answer.writeHead(502, { 'content-type': 'text/plain' })
      answer.end('bad gateway')
    })
    await assert.rejects(transport.request({ method: 'GET', path: '/status' }), { reason: 'AlreadyExists', code: 409, message: 'pods "a" already exists' })
    await assert.rejects(transport.request({ method: 'GET', path: '/' }), { reason: '', code: 502, message: 'bad gateway' })
  })
}

test('CGO-06 a busy server is waited for as long as it asks', async () => {
  const slept: number[] = []
  const virtual = new VirtualClock()
  const clock: Clock = {
    now: () => virtual.now(),
    monotonicMs: () => virtual.monotonicMs(),
    timer: (ms, fn) => virtual.timer(ms, fn),
    sleep: async (ms) => void slept.push(ms),
    turn: () => virtual.turn(),
  }
  let calls = 0
  const { transport } = await serve(
    'http2',
    (_, answer) => (++calls < 3 ? json(answer, 429, {}, { 'retry-after': '2' }) : json(answer, 200, { ok: true })),
    clock,
  )
  assert.deepEqual((await transport.request({ method: 'POST', path: '/', body: {} })).body, { ok: true })
  assert.deepEqual(slept, [2000, 2000])
})

test('impersonation sends one header for each group and each extra value', async () => {
  let seen: string[] = []
  const { port } = await serve('http', (request, answer) => {
    seen = request.rawHeaders.filter((_, i) => /^impersonate-/i.test(request.rawHeaders[i - (i % 2)] ?? ''))
    json(answer, 200, {})
  })
  const impersonate = { user: 'jane', uid: '7', groups: ['a', 'b,c'], extra: { 'Example.com/scope': ['x', 'y'] } }
  const transport = createHttpTransport({ server: `http://127.0.0.1:${port}`, impersonate, clock: new VirtualClock() })
  closers.push(() => void transport.close())
  await transport.request({ method: 'GET', path: '/' }, never)
  const group = 'impersonate-group'
  const extra = 'impersonate-extra-example.com%2Fscope'
  assert.deepEqual(seen, ['impersonate-user', 'jane', 'impersonate-uid', '7', group, 'a', group, 'b,c', extra, 'x', extra, 'y'])
})

for (const { name, limit, first, sessions } of [
  { name: 'a limit known from before', limit: 10, first: true, sessions: 4 },
  { name: 'many at once before any session is there', limit: 100, first: false, sessions: 3 },
]) {
  test(`watches beyond a session's streams get sessions of their own: ${name}`, async () => {
    const serving = await serve(
      'http2',
      (request, answer) => {
        answer.writeHead(200, { 'content-type': 'application/json' })
        if (!request.url?.includes('watch=1')) answer.end('{}')
        else answer.write(`${JSON.stringify({ type: 'ADDED', object: { metadata: { name: 'a' } } })}\n`)
      },
      new VirtualClock(),
      { maxConcurrentStreams: limit },
    )
    const { transport, sockets } = serving
    if (first) await transport.request({ method: 'GET', path: '/first' }, never)
    const stop = new AbortController()
    const count = limit === 10 ? 35 : 250
    const watches = Array.from({ length: count }, () => transport.watch({ method: 'GET', path: '/watched' }, stop.signal))
    await Promise.all(watches.map((watch) => watch[Symbol.asyncIterator]().next()))
    assert.equal(sockets.size, sessions)
    stop.abort()
  })
}

test('a lost connection is replaced', async () => {
  const { transport, sockets } = await serve('http2', (_, answer) => json(answer, 200, {}))
  await transport.request({ method: 'GET', path: '/' })
  for (const socket of sockets) socket.destroy()
  assert.equal((await transport.request({ method: 'GET', path: '/' })).status, 200)
})

test('CGO-01 a peer that falls silent is noticed by pings within 25 s', async () => {
  const clock = new VirtualClock()
  const { transport, sockets } = await serve('http2', (_, answer) => answer.write('\n'), clock)
  const opened = { at: 0 }
  const failed = (async () => {
    for await (const _ of transport.watch({ method: 'GET', path: '/' }, never));
  })().then(
    () => assert.fail('the watch ended well'),
    () => clock.now(),
  )
  while (sockets.size === 0) await new Promise((resolve) => setImmediate(resolve))
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
  for (const socket of sockets) socket.pause()
  opened.at = clock.now()
  await clock.advance(25_000)
  assert.equal((await failed) - opened.at <= 25_000, true)
})

test('CGO-08 with tidy, answers, lists and watch events have the same objects as in process, without nulls', async () => {
  const type = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' }
  const role = { ...type, metadata: { name: 'a' }, rules: null }
  const answers: Record<string, unknown> = {
    '/one': role,
    '/all': { ...type, kind: 'ClusterRoleList', metadata: {}, items: [{ metadata: { name: 'a' }, rules: null }] },
    '/watched?watch=1': { type: 'ADDED', object: role },
  }
  const plain = await serve('http', (request, answer) => {
    answer.setHeader('content-type', 'application/json')
    answer.end(`${JSON.stringify(answers[request.url ?? ''])}\n`)
  })
  const tidied = createHttpTransport({ server: `http://127.0.0.1:${plain.port}`, tidy: withoutNils, clock: new VirtualClock() })
  closers.push(() => void tidied.close())
  const one = await tidied.request({ method: 'GET', path: '/one' })
  const all = await tidied.request({ method: 'GET', path: '/all' })
  assert.deepEqual([one.body, (all.body as { items: unknown }).items], [{ ...type, metadata: { name: 'a' } }, [{ metadata: { name: 'a' } }]])
  for await (const [event] of tidied.watch({ method: 'GET', path: '/watched' }, new AbortController().signal))
    assert.deepEqual(event?.object, { ...type, metadata: { name: 'a' } })
  assert.deepEqual((await plain.transport.request({ method: 'GET', path: '/one' })).body, role)
})
