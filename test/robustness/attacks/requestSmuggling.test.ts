/**
 * HTTP/1.1 requests that two servers could parse differently: contradictory lengths, obfuscated encodings, odd line ends. The bytes after such a
 * request are not parsed as a further request: the first answer is the last, or there is none.
 * Tests for HTTP/2 are in test/integration/http2/rules.test.ts.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { exchange, statusesOf } from '../fuzz/rawConnection.ts'

let api: TestApiServer
let server: TestListener
before(async () => {
  api = await startTestApiServer()
  server = await api.listen()
})
after(() => api.close())

/** A smuggled request, which the server must not parse. It has no credential: if parsed, it causes a further answer of 401. */
const hidden = 'GET /version HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n'
/** The server must end the connection, not the test. */
const neverDone = 99
const path = '/api/v1/namespaces/default/configmaps'
const object = '{"metadata":{"generateName":"a"}}'
const length = `content-length: ${object.length}`
const chunk = `${object.length.toString(16)}\r\n${object}\r\n`

async function statuses(lines: readonly string[], body: string): Promise<number[]> {
  const head = [`POST ${path} HTTP/1.1`, 'host: a', `authorization: Bearer ${server.token}`, 'content-type: application/json', ...lines].join('\r\n')
  const bytes = Buffer.from(`${head}\r\n\r\n${body}`, 'latin1')
  return statusesOf(
    'http/1.1',
    await exchange({ port: server.port, ca: server.ca }, { protocol: 'http/1.1', first: bytes, answers: neverDone, last: Buffer.alloc(0) }, 20_000),
  )
}

/** [what is sent, headers, body, the answers]. */
const cases: readonly (readonly [string, readonly string[], string, readonly number[]])[] = [
  ['a good request before another', [length], object + hidden, [201, 401]],
  ['a good one in chunks', ['transfer-encoding: chunked'], `${chunk}0\r\n\r\n${hidden}`, [201, 401]],
  ['an extension of a chunk', ['transfer-encoding: chunked'], `${chunk.replace('\r\n', ';a=b\r\n')}0\r\n\r\n${hidden}`, [201, 401]],
  ['trailers', ['transfer-encoding: chunked'], `${chunk}0\r\nx: y\r\n\r\n${hidden}`, [201, 401]],
  ['a length in a trailer', ['transfer-encoding: chunked'], `${chunk}0\r\ncontent-length: 3\r\n\r\n${hidden}`, [400]],
  ['a length before chunks', [length, 'transfer-encoding: chunked'], `0\r\n\r\n${hidden}`, [400]],
  ['chunks before a length', ['transfer-encoding: chunked', 'content-length: 4'], `${chunk}0\r\n\r\n${hidden}`, [400]],
  ['two lengths', ['content-length: 0', length], hidden, [400]],
  ['the same length twice', [length, length], object + hidden, [400]],
  ['lengths in a list', ['content-length: 0, 33'], hidden, [400]],
  ['a length with a sign', ['content-length: +0'], hidden, [400]],
  ['a negative length', ['content-length: -1'], hidden, [400]],
  ['a length in hexadecimal', ['content-length: 0x21'], object + hidden, [400]],
  ['a length that overflows', ['content-length: 18446744073709551617'], hidden, [400]],
  ['a length with a space before the colon', ['content-length : 0'], hidden, [400]],
  ['chunks with a space before the colon', ['transfer-encoding : chunked', length], `0\r\n\r\n${hidden}`, [400]],
  ['chunks after a tab of another kind', ['transfer-encoding: \x0bchunked'], `0\r\n\r\n${hidden}`, [400]],
  ['something like chunks', ['transfer-encoding: xchunked'], `0\r\n\r\n${hidden}`, [400]],
  ['chunks that are not last', ['transfer-encoding: chunked, identity'], `0\r\n\r\n${hidden}`, [400]],
  ['chunks twice', ['transfer-encoding: chunked', 'transfer-encoding: identity'], `0\r\n\r\n${hidden}`, [400]],
  ['a folded encoding', ['transfer-encoding:', ' chunked', length], `0\r\n\r\n${hidden}`, [400]],
  ['a folded header', ['x: y', ' content-length: 5', length], object + hidden, [400]],
  ['a header that ends in a line feed', [`x: y\ncontent-length: 0`], hidden, [400]],
  ['a header that ends in a carriage return', [`x: y\rcontent-length: 0`], hidden, [400]],
  ['NUL in a header', ['x: \x00y', length], object + hidden, [400]],
  ['a chunk size in a sign', ['transfer-encoding: chunked'], `+${chunk}0\r\n\r\n${hidden}`, [400]],
  ['a chunk size with 0x', ['transfer-encoding: chunked'], `0x${chunk}0\r\n\r\n${hidden}`, [400]],
  ['a chunk size that overflows', ['transfer-encoding: chunked'], `1${'0'.repeat(16)}${chunk}0\r\n\r\n${hidden}`, [400]],
  ['a chunk longer than it says', ['transfer-encoding: chunked'], `1\r\n${object}\r\n0\r\n\r\n${hidden}`, [400]],
  ['a chunk size before a line feed', ['transfer-encoding: chunked'], `${chunk.replace('\r\n', '\n')}0\r\n\r\n${hidden}`, [400]],
  ['an extension without end', ['transfer-encoding: chunked'], `1;${'a'.repeat(100_000)}\r\n${hidden}`, [400]],
  ['two hosts', ['host: b', length], object + hidden, [400]],
  ['headers without end', [`x: ${'y'.repeat(600_000)}`, length], object, [431]],
]
for (const [name, lines, body, want] of cases) {
  test(`API-02 ${name}: ${want}`, { timeout: 30_000 }, async () => assert.deepEqual(await statuses(lines, body), want))
}

test('API-02 an upgrade to HTTP/2 in the clear is not heard', { timeout: 30_000 }, async () => {
  const upgrade = ['connection: upgrade, http2-settings', 'upgrade: h2c', 'http2-settings: AAMAAABkAAQAAP__']
  const answers = await statuses(upgrade, hidden)
  assert.equal(answers.includes(101), false)
})
