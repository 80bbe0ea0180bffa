import assert from 'node:assert/strict'
import test from 'node:test'
import { RequestHead } from './requestHead.ts'

type Fields = readonly (readonly [string, string])[]
const start: Fields = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':authority', 'a:1'],
  [':path', '/b?c'],
]

function read(fields: Fields, mostBytes = 1_000): RequestHead {
  const head = new RequestHead(mostBytes)
  for (const [name, value] of fields) head.field(name, value, true)
  return head
}

const requests: readonly { name: string; fields: Fields; want: { method?: string; path?: string; headers: object; contentLength?: number } }[] = [
  { name: 'a request', fields: start, want: { headers: { host: 'a:1' } } },
  { name: 'headers, in order', fields: [...start, ['accept', 'b'], ['x', 'y']], want: { headers: { host: 'a:1', accept: 'b', x: 'y' } } },
  { name: 'repeated headers', fields: [...start, ['x', 'y'], ['x', ''], ['x', 'z']], want: { headers: { host: 'a:1', x: 'y, , z' } } },
  { name: 'of some the first', fields: [...start, ['authorization', 'y'], ['authorization', 'z']], want: { headers: { host: 'a:1', authorization: 'y' } } },
  { name: 'cookies', fields: [...start, ['cookie', 'a=b'], ['cookie', 'c=d']], want: { headers: { host: 'a:1', cookie: 'a=b; c=d' } } },
  {
    name: 'those that stand for themselves',
    fields: [...start, ['impersonate-group', 'a'], ['impersonate-group', 'b, c'], ['x-remote-extra-y', 'z']],
    want: { headers: { host: 'a:1', 'impersonate-group': ['a', 'b, c'], 'x-remote-extra-y': ['z'] } },
  },
  { name: 'a host without an authority', fields: [...start.filter(([name]) => name !== ':authority'), ['host', 'x']], want: { headers: { host: 'x' } } },
  { name: 'names of JavaScript', fields: [...start, ['constructor', 'x'], ['constructor', 'y']], want: { headers: { host: 'a:1', constructor: 'x, y' } } },
  { name: 'a body', fields: [...start, ['content-length', '012']], want: { headers: { host: 'a:1', 'content-length': '012' }, contentLength: 12 } },
  {
    name: 'CONNECT',
    fields: [
      [':method', 'CONNECT'],
      [':authority', 'a:1'],
    ],
    want: { method: 'CONNECT', path: '', headers: { host: 'a:1' } },
  },
]
for (const { name, fields, want } of requests)
  test(`the head of a request: ${name}`, () => {
    const head = read(fields)
    assert.ok(head.isRequest(false))
    const { method, path, headers, contentLength } = head
    assert.deepEqual({ method, path, headers: { ...headers }, contentLength }, { method: 'GET', path: '/b?c', contentLength: undefined, ...want })
  })

test('a request is malformed with a content-length and no body, or with an invalid field', () => {
  assert.equal(read([...start, ['content-length', '1']]).isRequest(true), false)
  assert.equal(read([...start, ['content-length', '0']]).isRequest(true), true)
  const head = read(start)
  head.field('x', 'y\n', false)
  assert.equal(head.isRequest(true), false)
})

test('fields beyond the limit are counted and dropped', () => {
  const head = read([...start, ...Array.from({ length: 100 }, (_, index) => [`x-${index}`, 'y'] as const)], 500)
  assert.ok(head.isTooLarge)
  assert.ok(Object.keys(head.headers).length < 15)
})
