/** Requests as bytes, of which some are wrong: request lines, headers, chunks and frames that no client library would send. */
import { encodeRequestHead } from '../../../bench/tools/hpack.ts'
import type { Chance } from './chance.ts'

const lines = [
  ...['GET /api/v1/pods HTTP/1.1', 'GET /livez HTTP/1.1', 'POST /api/v1/namespaces/default/configmaps HTTP/1.1', 'OPTIONS * HTTP/1.1', 'GET /api HTTP/1.0'],
  ...['GET http://x/api HTTP/1.1', 'CONNECT x:443 HTTP/1.1', 'PRI * HTTP/2.0', 'GET  /api HTTP/1.1', 'GET /api', 'get /api HTTP/1.1', ' GET /api HTTP/1.1'],
  ...['GET /%ff HTTP/1.1', 'GET /api/v1/../secrets HTTP/1.1', 'GET /\u0000 HTTP/1.1', 'GET /é HTTP/1.1', 'DELETE /api/v1/namespaces/default/pods/x HTTP/9.9'],
]
const headers = [
  ...['content-length: 0', 'content-length: 5', 'content-length: -1', 'content-length: 5, 6', 'content-length: 99999999999999999999'],
  ...['transfer-encoding: chunked', 'transfer-encoding: gzip, chunked', 'transfer-encoding : chunked', 'connection: upgrade', 'upgrade: websocket'],
  ...['connection: close', 'expect: 100-continue', 'expect: x', 'upgrade: h2c', 'http2-settings: AAMAAABkAAQAAP__', 'content-type: application/json'],
  ...[
    'host: a',
    'host: b',
    ': x',
    'no-colon',
    'x\u0000y: z',
    ' folded',
    `long: ${'x'.repeat(20_000)}`,
    'authorization: Basic %%%',
    'cookie: ;;;',
    'te: trailers',
  ],
]
const bodies = ['', 'hello', '{"metadata":{"name":"x"}}', '5\r\nhello\r\n0\r\n\r\n', 'zz\r\n', 'ffffffffffffffff\r\n', '0\r\nx: y\r\n\r\n', '\u0000\u0001']

/** One HTTP/1.1 request, perhaps followed by another; some of its bytes may be changed. */
export function malformedHttp1(chance: Chance, token: string | undefined): Buffer {
  const chosen = Array.from({ length: chance.int(4) }, () => chance.pick(headers))
  const head = [chance.pick(lines), 'host: 127.0.0.1', ...bearer(token), ...chosen]
  const newline = chance.once(12) ? '\n' : '\r\n'
  const text = `${head.join(newline)}${newline}${newline}${chance.pick(bodies)}`
  return changeBytes(Buffer.from(chance.once(8) ? text + text : text, 'latin1'), chance)
}

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
/** SETTINGS without a dynamic table, so that statuses can be read; then an acknowledgement. */
const settings = Buffer.concat([frame(4, 0, 0, Buffer.from([0, 1, 0, 0, 0, 0])), frame(4, 1, 0, Buffer.alloc(0))])

interface WellFormed {
  readonly method: string
  readonly path: string
  readonly body?: string | undefined
}

/** What a client asks that means no harm. */
function wellFormed(chance: Chance): WellFormed {
  const name = `flood-${chance.int(200)}`
  const path = '/api/v1/namespaces/default/configmaps'
  const body = JSON.stringify({ metadata: { name }, data: { a: String(chance.int(1_000)) } })
  return chance.pick<WellFormed>([
    { method: 'GET', path: `${path}/${name}` },
    { method: 'GET', path: `${path}?limit=2` },
    { method: 'GET', path: '/apis/apps/v1/deployments' },
    { method: 'DELETE', path: `${path}/${name}` },
    { method: 'POST', path, body },
    { method: 'PUT', path: `${path}/${name}`, body },
  ])
}

/** Requests as they should be, one after the other. */
export function wellFormedHttp1(chance: Chance, token: string | undefined, count: number): Buffer {
  const texts = Array.from({ length: count }, () => {
    const { method, path, body } = wellFormed(chance)
    const about = body === undefined ? [] : ['content-type: application/json', `content-length: ${body.length}`]
    return [`${method} ${path} HTTP/1.1`, 'host: 127.0.0.1', ...bearer(token), ...about, '', body ?? ''].join('\r\n')
  })
  return Buffer.from(texts.join(''), 'latin1')
}

/** A connection's beginning, and requests as they should be. */
export function wellFormedHttp2(chance: Chance, token: string | undefined, count: number): Buffer {
  const frames = Array.from({ length: count }, (_, i) => {
    const { method, path, body } = wellFormed(chance)
    const more = token ? { authorization: `Bearer ${token}` } : {}
    const contentType = body === undefined ? undefined : 'application/json'
    const block = encodeRequestHead({ method, path, authority: 'a', accept: 'application/json', contentType, contentLength: body?.length, more })
    const head = frame(1, body === undefined ? 5 : 4, i * 2 + 1, block)
    return body === undefined ? head : Buffer.concat([head, frame(0, 1, i * 2 + 1, Buffer.from(body))])
  })
  return Buffer.concat([preface, settings, ...frames])
}

function bearer(token: string | undefined): string[] {
  return token ? [`authorization: Bearer ${token}`] : []
}

/** A request and frames that may make no sense, after `before` well-formed requests; without any, a connection's beginning too. */
export function malformedHttp2(chance: Chance, token: string | undefined, before: number): Buffer {
  const path = chance.pick(['/api/v1/pods', '/livez', '/%zz', '*', '/api/v1/namespaces/default/configmaps', '', 'x', '/a b'])
  const more = {
    ...(token ? { authorization: `Bearer ${token}` } : {}),
    ...(chance.once(4) ? { [chance.pick(['connection', 'X-Upper', ':odd', 'te', 'host'])]: 'x' } : {}),
  }
  const method = chance.pick(['GET', 'GET', 'POST', 'CONNECT', '', 'x y'])
  const block = encodeRequestHead({ method, path, authority: 'a', accept: 'application/json', more })
  const next = before * 2 + 1
  const frames = [frame(1, chance.pick([5, 4, 1, 0, 0x2d]), chance.pick([next, next, next, 0, 2]), changeBytes(block, chance, 6))]
  for (let count = chance.int(4); count > 0; count--) frames.push(randomFrame(chance))
  if (before > 0) return Buffer.concat(frames)
  return Buffer.concat([chance.once(15) ? changeBytes(preface, chance) : preface, chance.once(15) ? Buffer.alloc(0) : settings, ...frames])
}

function randomFrame(chance: Chance): Buffer {
  const payload = Buffer.from(Array.from({ length: chance.pick([0, 1, 4, 5, 6, 8, 17, 300]) }, () => chance.int(256)))
  return frame(chance.int(12), chance.int(256), chance.pick([0, 1, 1, 1, 2, 3, 0x7fff_ffff]), payload)
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** Now and then some bytes changed, lost or doubled. */
function changeBytes(bytes: Buffer, chance: Chance, times = 2): Buffer {
  if (!chance.once(times) || bytes.length === 0) return bytes
  const at = chance.int(bytes.length)
  const change = chance.int(4)
  if (change === 0) return bytes.subarray(0, at)
  if (change === 1) return Buffer.concat([bytes.subarray(0, at), bytes.subarray(Math.max(0, at - 8))])
  const copy = Buffer.from(bytes)
  for (let count = 1 + chance.int(3); count > 0; count--) copy[chance.int(copy.length)] = chance.int(256)
  return copy
}
