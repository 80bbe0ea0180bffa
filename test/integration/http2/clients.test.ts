/** HTTP/2 with clients that were written by others: node's and curl's. Whatever they send arrives, and whatever is answered arrives there. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type ClientHttp2Session, connect, constants } from 'node:http2'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import test, { after, before } from 'node:test'
import { promisify } from 'node:util'
import type { Answer } from '#apiserver/core/answer'
import type { ServerRequest } from '#apiserver/core/request'
import { seededRandom } from '#base/random'
import { startServer, type TestServer } from './peer.ts'

const mostBytes = 8 * 1024 * 1024
let server: TestServer
/** Whether the request for /hold was cancelled. */
let held: Promise<unknown> = Promise.resolve()
let session: ClientHttp2Session

before(async () => {
  server = await startServer(answer)
  session = connect(server.url, { ca: server.ca })
})
after(async () => {
  session.destroy()
  await server.close()
})

async function answer(request: ServerRequest): Promise<Answer> {
  const { headers, path: asked, query } = request
  if (asked === '/headers') return { type: 'value', status: 200, value: headers }
  if (asked === '/repeat') {
    const given = JSON.parse(String(headers['x-wanted'])) as Record<string, string>
    return { type: 'bytes', status: 200, contentType: 'text/plain', bytes: Buffer.from('x'), headers: given }
  }
  if (asked === '/pass' && request.body) return { type: 'stream', status: 200, headers: {}, body: request.body }
  if (asked === '/size') return { type: 'bytes', status: 200, contentType: 'text/plain', bytes: Buffer.alloc(Number(query.get('bytes')), 'y') }
  if (asked === '/stream') return { type: 'stream', status: 200, headers: {}, body: Readable.from(Array.from({ length: 1_000 }, (_, line) => `${line}\n`)) }
  if (asked === '/hold') {
    held = once(request.cancellation.signal, 'abort')
    await held
  }
  const body = await request.readBody(Number(query.get('limit') ?? mostBytes))
  return { type: 'bytes', status: 200, contentType: 'text/plain', bytes: body.type === 'bytes' ? body.bytes : Buffer.alloc(0) }
}

async function call(target: string, headers: Record<string, string | string[]> = {}, pieces: readonly Buffer[] = [], on = session) {
  const stream = on.request({ ':path': target, ':method': pieces.length > 0 ? 'POST' : 'GET', ...headers }, { endStream: pieces.length === 0 })
  const answered = once(stream, 'response') as Promise<[Record<string, string | string[]>]>
  answered.catch(() => undefined)
  for (const piece of pieces) stream.write(piece)
  stream.end()
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  const [answerHeaders] = await answered
  return { headers: answerHeaders, status: Number(answerHeaders[':status']), body: Buffer.concat(chunks) }
}

test('random headers arrive as they were sent, block after block', async () => {
  const random = seededRandom(3)
  const letters = 'abcdefghijklmnopqrstuvwxyz0123456789-_'
  const characters = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).filter((one) => /[\x21-\x7e\xa0-\xff]/.test(one))
  const text = (from: readonly string[] | string, length: number) => Array.from({ length }, () => from[random.int(from.length)]).join('')
  const names = Array.from({ length: 60 }, () => `x-${text(letters, 1 + random.int(30))}`)
  const values = Array.from({ length: 40 }, () => text(characters, random.int(120)))
  for (let round = 0; round < 300; round++) {
    const sent: Record<string, string> = { authorization: `Bearer ${text(letters, 20 + random.int(1_000))}`, 'user-agent': text(letters, 10) }
    for (let count = random.int(25); count > 0; count--)
      sent[names[random.int(names.length)] ?? ''] = random.int(3) > 0 ? (values[random.int(values.length)] ?? '') : text(characters, random.int(300))
    const { body } = await call('/headers', sent)
    assert.deepEqual(JSON.parse(body.toString()), { host: new URL(server.url).host, ...sent })
  }
})

test('random headers of answers arrive', async () => {
  const random = seededRandom(4)
  const text = (length: number) => Array.from({ length }, () => String.fromCharCode(0x21 + random.int(0x5e))).join('')
  for (let round = 0; round < 200; round++) {
    const wanted: Record<string, string> = {}
    for (let count = random.int(12); count > 0; count--) wanted[`x-${random.int(20)}`] = text(random.int(200))
    const { headers } = await call('/repeat', { 'x-wanted': JSON.stringify(wanted) })
    for (const [name, value] of Object.entries(wanted)) assert.equal(headers[name], value)
    assert.ok(Math.abs(Date.parse(String(headers.date)) - Date.now()) < 60_000)
  }
})

test('an answer whose headers do not fit into one frame', async () => {
  const long = 'v'.repeat(20_000)
  const own = connect(server.url, { ca: server.ca, settings: { maxHeaderListSize: 1 << 20 } })
  const { headers } = await call('/repeat', { 'x-wanted': JSON.stringify({ 'x-long': long }) }, [], own)
  assert.equal(headers['x-long'], long)
  own.destroy()
})

test('repeated headers: joined, the first one, or each for itself', async () => {
  const sent = { 'x-a': ['1', '2'], cookie: ['a=b', 'c=d'], 'impersonate-group': ['one', 'two, three'], 'x-remote-group': ['one'], accept: ['a/b', 'c/d'] }
  const { body } = await call('/headers', sent)
  const { host: _, ...got } = JSON.parse(body.toString())
  assert.deepEqual(got, {
    'x-a': '1, 2',
    cookie: 'a=b; c=d',
    'impersonate-group': ['one', 'two, three'],
    'x-remote-group': ['one'],
    accept: 'a/b, c/d',
  })
})

test('header names that JavaScript gives a meaning are headers like others', async () => {
  const { body } = await call('/headers', { constructor: 'a', tostring: 'b', __proto__: 'c' } as never)
  const { host: _, ...got } = JSON.parse(body.toString())
  assert.deepEqual(got, { constructor: 'a', tostring: 'b' })
})

test('bodies of every size are echoed unchanged, however they are split', async () => {
  const random = seededRandom(5)
  for (const size of [1, 9, 16_383, 16_384, 16_385, 100_000, 1_048_576, 5_000_000]) {
    const body = Buffer.from(Array.from({ length: size }, (_, at) => (at * 31 + size) & 0xff))
    const pieces: Buffer[] = []
    for (let at = 0; at < size; ) {
      const length = 1 + random.int(size > 10_000 ? 200_000 : 5)
      pieces.push(body.subarray(at, at + length))
      at += length
    }
    for (const target of ['/echo', '/pass']) assert.ok((await call(target, {}, pieces)).body.equals(body), `${target} ${size}`)
  }
})

test('many at once on one connection, each gets its own', async () => {
  const answers = await Promise.all(Array.from({ length: 500 }, (_, index) => call('/echo', {}, [Buffer.from(`body ${index} ${'z'.repeat(index * 10)}`)])))
  assert.deepEqual(
    answers.map(({ body }) => body.toString().split(' ')[1]),
    answers.map((_, index) => String(index)),
  )
})

test('a large answer, a streamed one, and those that have none', async () => {
  assert.equal((await call('/size?bytes=20000000')).body.length, 20_000_000)
  assert.equal((await call('/stream')).body.toString().split('\n').length, 1_001)
  assert.equal((await call('/size?bytes=0')).body.length, 0)
  const head = session.request({ ':path': '/size?bytes=7', ':method': 'HEAD' })
  const [headers] = await once(head, 'response')
  assert.deepEqual([headers['content-length'], head.readableLength], ['7', 0])
  head.resume()
  await once(head, 'close')
})

test('a body that is too large is refused while it is sent, and the connection stays open', async () => {
  const pieces = Array.from({ length: 40 }, () => Buffer.alloc(100_000))
  for (const headers of [{}, { 'content-length': '4000000' }]) {
    const { status, body } = await call('/echo?limit=1000', headers, pieces)
    assert.equal(status, 413)
    assert.equal(JSON.parse(body.toString()).reason, 'RequestEntityTooLarge')
  }
  assert.equal((await call('/echo', {}, [Buffer.from('a')])).body.toString(), 'a')
})

test('a body that is not wanted does not keep its answer back', async () => {
  const stream = session.request({ ':path': '/size?bytes=3', ':method': 'POST' })
  stream.write('some')
  const [headers] = await once(stream, 'response')
  assert.equal(headers[':status'], 200)
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  assert.deepEqual([Buffer.concat(chunks).toString(), stream.rstCode], ['yyy', constants.NGHTTP2_NO_ERROR])
})

test('a reset cancels the work, and so does a connection that breaks', async () => {
  const reset = session.request({ ':path': '/hold' })
  reset.on('error', () => undefined)
  await call('/size?bytes=1')
  reset.close(constants.NGHTTP2_CANCEL)
  await held
  const own = connect(server.url, { ca: server.ca })
  own.request({ ':path': '/hold' }).on('error', () => undefined)
  await call('/size?bytes=1', {}, [], own)
  own.destroy()
  await held
})

test('an idle connection gets GOAWAY', async () => {
  const idle = await startServer(answer, 50)
  const own = connect(idle.url, { ca: idle.ca })
  await call('/size?bytes=1', {}, [], own)
  const [code] = await once(own, 'goaway')
  assert.equal(code, constants.NGHTTP2_NO_ERROR)
  if (!own.destroyed) await once(own, 'close')
  await idle.close()
})

test('curl speaks with it, with a body that is larger than a window', async (t) => {
  const run = promisify(execFile)
  const { stdout: version } = await run('curl', ['--version']).catch(() => ({ stdout: '' }))
  if (!version.includes('HTTP2')) return t.skip('no curl that speaks HTTP/2')
  const dir = mkdtempSync(path.join(tmpdir(), 'skiff-http2-'))
  t.after(() => rmSync(dir, { recursive: true }))
  writeFileSync(path.join(dir, 'ca.crt'), server.ca)
  writeFileSync(path.join(dir, 'body'), Buffer.alloc(3_000_000, 'c'))
  const curl = (...args: string[]) =>
    run('curl', ['-s', '--http2', '--cacert', path.join(dir, 'ca.crt'), '-w', ' %{http_version} %{http_code}', ...args], { maxBuffer: 1 << 24 })
  const echoed = await curl('--data-binary', `@${path.join(dir, 'body')}`, `${server.url}/echo`)
  assert.equal(echoed.stdout, `${'c'.repeat(3_000_000)} 2 200`)
  assert.equal((await curl(`${server.url}/size?bytes=5`, '-H', 'Host: other')).stdout, 'yyyyy 2 200')
})
