import assert from 'node:assert/strict'
import { test } from 'node:test'
import { corsChanges, preflightOf } from './cors.ts'
import type { Cors } from './route.ts'

const base: Cors = {
  origins: ['https://a.test', 'https://*.b.test'],
  methods: ['GET'],
  headers: ['x-1'],
  exposed: ['*'],
  withCredentials: true,
  maxAgeSeconds: 5,
}

function preflight(cors: Cors, origin: string | undefined, more: Record<string, string> = { 'access-control-request-method': 'PUT' }) {
  const headers = { ...(origin === undefined ? {} : { origin }), ...more }
  const found = preflightOf(cors, { host: '', path: '/', url: '/', method: 'OPTIONS', headers })
  return found && Object.fromEntries(found)
}

test('ING-05 a preflight request of an allowed origin is answered with what the filter allows', () => {
  assert.deepEqual(preflight(base, 'https://a.test', { 'access-control-request-method': 'GET', 'access-control-request-headers': 'x-2' }), {
    'Access-Control-Allow-Origin': 'https://a.test',
    Vary: 'Origin',
    'Access-Control-Allow-Credentials': 'true',
    'Access-Control-Allow-Methods': 'GET',
    'Access-Control-Allow-Headers': 'x-1',
    'Access-Control-Max-Age': '5',
  })
})

test('ING-05 wildcards allow what the client asks for', () => {
  const answer = preflight({ ...base, methods: ['*'], headers: ['*'], withCredentials: false }, 'https://x.y.b.test')
  assert.deepEqual(
    [answer?.['Access-Control-Allow-Methods'], answer?.['Access-Control-Allow-Headers'], answer?.['Access-Control-Expose-Headers']],
    ['PUT', undefined, '*'],
  )
})

for (const origin of ['https://c.test', 'http://a.test', 'https://b.test', 'https://evil.test/.b.test', 'https://evil.test:443.b.test', 'https://u@x.b.test']) {
  test(`ING-05 the origin ${origin} is not allowed`, () => {
    assert.deepEqual(preflight(base, origin), { Vary: 'Origin' })
  })
}

test('ING-05 only OPTIONS with an origin and a method is a preflight request', () => {
  assert.equal(preflight(base, undefined), undefined)
  assert.equal(preflight(base, 'https://a.test', {}), undefined)
})

test('ING-05 the backend’s own headers about origins are dropped', () => {
  const { set, remove } = corsChanges(base, { host: '', path: '/', url: '/', method: 'GET', headers: { origin: 'https://c.test' } })
  assert.deepEqual([set, remove.has('access-control-allow-origin')], [[], true])
})
