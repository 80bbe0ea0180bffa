/** What the server does on the wire, over HTTP/1.1: codes, headers, media types, bad input, who may what. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import test, { after, before } from 'node:test'
import { gunzipSync } from 'node:zlib'
import type { Authorizer } from '#apiserver/authz/authorizer'
import type { UserInfo } from '#apiserver/core/request'
import { configMaps } from '#client/builtIn'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { type RawRequest, rawHttp } from './rawHttp.ts'

let api: TestApiServer
let listener: TestListener

const users: Readonly<Record<string, UserInfo>> = {
  admin: { name: 'admin', groups: ['system:masters', 'system:authenticated'] },
  jane: { name: 'jane', groups: ['dev', 'system:authenticated'] },
}

/** Jane reads pods in one namespace, and may be impersonated; admins do everything. */
const authorizer: Authorizer = {
  name: 'test',
  authorize: ({ user, verb, resource, namespace }) => {
    if (user.groups.includes('system:masters')) return { decision: 'allow', reason: '' }
    return verb === 'list' && resource === 'pods' && namespace === 'dev' ? { decision: 'allow', reason: '' } : { decision: 'noOpinion', reason: '' }
  },
}

before(async () => {
  api = await startTestApiServer({
    deps: () => ({
      authenticators: [
        {
          name: 'test',
          authenticate: (request) => {
            const token = String(request.headers.authorization ?? '').replace('Bearer ', '')
            const user = users[token]
            if (user) return { decision: 'authenticated', user }
            return token === ''
              ? { decision: 'authenticated', user: { name: 'system:anonymous', groups: ['system:unauthenticated'] } }
              : { decision: 'rejected', reason: 'unknown' }
          },
        },
      ],
      authorizers: [authorizer],
    }),
  })
  listener = await api.listen()
})
after(() => api.close())

const as = (token: string, request: Omit<RawRequest, 'token'>) => rawHttp(listener, { ...request, token })
const json = (body: Buffer) => JSON.parse(body.toString())

const refusals = [
  { name: 'a bad token', token: 'wrong', path: '/api/v1/pods', want: [401, 'Unauthorized', 'Unauthorized'] },
  {
    name: 'a request without credentials',
    token: '',
    path: '/api/v1/pods',
    want: [403, 'Forbidden', 'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" at the cluster scope'],
  },
  {
    name: 'the wrong namespace',
    token: 'jane',
    path: '/api/v1/namespaces/other/pods',
    want: [403, 'Forbidden', 'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "other"'],
  },
  {
    name: 'a named subresource',
    token: 'jane',
    path: '/apis/apps/v1/namespaces/dev/deployments/d/scale',
    want: [
      403,
      'Forbidden',
      'deployments.apps "d" is forbidden: User "jane" cannot get resource "deployments/scale" in API group "apps" in the namespace "dev"',
    ],
  },
  { name: 'a path', token: 'jane', path: '/metrics', want: [403, 'Forbidden', 'forbidden: User "jane" cannot get path "/metrics"'] },
]
for (const { name, token, path, want } of refusals) {
  test(`API-02 ${name} is refused with upstream's code and words`, async () => {
    const { status, body } = await as(token, { path })
    const { kind, reason, message } = json(body)
    assert.deepEqual([kind, status, reason, message], ['Status', ...want])
  })
}

test('API-02 a user with the right to impersonate acts as the other user, and one without is refused', async () => {
  const allowed = await as('admin', { path: '/api/v1/namespaces/dev/pods', headers: { 'impersonate-user': 'jane' } })
  const beyond = await as('admin', { path: '/api/v1/namespaces/other/pods', headers: { 'impersonate-user': 'jane' } })
  const forbidden = await as('jane', { path: '/api/v1/namespaces/dev/pods', headers: { 'impersonate-user': 'admin' } })
  assert.deepEqual([allowed.status, beyond.status, forbidden.status], [200, 403, 403])
  const message = 'pods is forbidden: User "jane" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "dev"'
  assert.equal(json(forbidden.body).message, message)
})

test('every answer names its audit id and may not be cached', async () => {
  const { headers } = await as('admin', { path: '/api/v1/namespaces/default', headers: { 'audit-id': 'mine' } })
  assert.deepEqual([headers['audit-id'], headers['cache-control'], headers['content-type']], ['mine', 'no-cache, private', 'application/json'])
})

const media = [
  { name: 'YAML', accept: 'application/yaml', status: 200, type: 'application/yaml' },
  { name: 'protobuf alone', accept: 'application/vnd.kubernetes.protobuf', status: 200, type: 'application/vnd.kubernetes.protobuf' },
  { name: 'either', accept: 'application/vnd.kubernetes.protobuf,application/json', status: 200, type: 'application/vnd.kubernetes.protobuf' },
  { name: 'a weighted list', accept: 'text/html;q=0.9,application/yaml;q=0.5', status: 200, type: 'application/yaml' },
  { name: 'nothing we have', accept: 'text/html', status: 406, type: 'application/json' },
]
for (const { name, accept, status, type } of media) {
  test(`API-16 Accept: ${name}`, async () => {
    const answer = await as('admin', { path: '/api/v1/namespaces/default', headers: { accept } })
    assert.deepEqual([answer.status, answer.headers['content-type']], [status, type])
  })
}

test('API-16 YAML is read, and big answers are compressed for those who accept it', async () => {
  const path = '/api/v1/namespaces/default/configmaps'
  const body = `metadata:\n  name: big\ndata:\n  a: ${'x'.repeat(200_000)}\n`
  const created = await as('admin', { method: 'POST', path, headers: { 'content-type': 'application/yaml' }, body })
  assert.equal(created.status, 201)
  const zipped = await as('admin', { path: `${path}/big`, headers: { 'accept-encoding': 'gzip' } })
  assert.deepEqual([zipped.headers['content-encoding'], json(gunzipSync(zipped.body)).data.a.length], ['gzip', 200_000])
  const plain = await as('admin', { path: `${path}/big` })
  assert.deepEqual([plain.headers['content-encoding'], json(plain.body).data.a.length], [undefined, 200_000])
})

const post = { method: 'POST', path: '/api/v1/namespaces/default/configmaps', headers: { 'content-type': 'application/json' } }
const bad: readonly { name: string; request: RawRequest; status: number }[] = [
  { name: 'too large a body', request: { ...post, body: `{"data":{"a":"${'x'.repeat(3 * 1024 * 1024)}"}}` }, status: 413 },
  { name: 'half a JSON', request: { ...post, body: '{"metadata":' }, status: 400 },
  { name: 'an array', request: { ...post, body: '[]' }, status: 400 },
  { name: 'no body', request: { ...post, body: '' }, status: 400 },
  { name: 'another media type', request: { ...post, headers: { 'content-type': 'text/plain' }, body: 'x' }, status: 415 },
  { name: 'protobuf that is none', request: { ...post, headers: { 'content-type': 'application/vnd.kubernetes.protobuf' }, body: 'k8s\0xx' }, status: 400 },
  { name: 'numbers where text belongs', request: { ...post, body: '{"metadata":{"name":7}}' }, status: 400 },
  { name: 'a prototype', request: { ...post, body: '{"metadata":{"name":"p"},"__proto__":{"a":1}}' }, status: 201 },
  { name: 'bad percent-encoding', request: { path: '/api/v1/namespaces/%zz' }, status: 400 },
  { name: 'a climbing path', request: { path: '/api/v1/namespaces/%2e%2e/secrets' }, status: 400 },
  { name: 'an unknown group', request: { path: '/apis/nothing.example.com/v1/things' }, status: 404 },
  { name: 'more below a subresource', request: { path: '/api/v1/namespaces/default/status/more' }, status: 404 },
  { name: 'an unknown path', request: { path: '/nothing' }, status: 404 },
  { name: 'a method that is not served', request: { method: 'DELETE', path: '/api/v1/namespaces' }, status: 405 },
  { name: 'a create in no namespace', request: { ...post, path: '/api/v1/configmaps', body: '{"metadata":{"name":"x"}}' }, status: 405 },
  { name: 'a delete in all namespaces', request: { method: 'DELETE', path: '/api/v1/configmaps' }, status: 405 },
  { name: 'a bad resourceVersion', request: { path: '/api/v1/pods?resourceVersion=x' }, status: 400 },
  { name: 'a bad continue token', request: { path: '/api/v1/pods?limit=1&continue=x' }, status: 400 },
  { name: 'a bad selector', request: { path: '/api/v1/pods?labelSelector=a%20in' }, status: 400 },
]
for (const { name, request, status } of bad) {
  test(`bad input is answered, never a failure of the server: ${name}`, async () => {
    assert.equal((await as('admin', request)).status, status)
    assert.equal((await as('admin', { path: '/livez' })).status, 200)
  })
}

const unreadable = (why: string, summary: string) => `the object provided is unrecognized (must be of type ConfigMap): ${why} (${summary})`
const noKind = (why: string) => `couldn't get version/kind; json parse error: ${why}`
const typeMeta = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
const badMagic = 'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]'
const unrecognized: readonly { name: string; body: string; type?: string; message: string }[] = [
  { name: 'half a JSON', body: '{"metadata":', message: unreadable(noKind('unexpected end of JSON input'), '{"metadata":') },
  {
    name: 'a long text that begins like JSON',
    body: `{"metadata":{"name":"x"},"data":oops}`,
    message: unreadable(noKind("invalid character 'o' looking for beginning of value"), '{"metadata":{"name":"x"},"data ...'),
  },
  { name: 'a text', body: 'hello', message: unreadable(noKind("invalid character 'h' looking for beginning of value"), '68656c6c6f') },
  { name: 'an array', body: '[]', message: unreadable(noKind(`json: cannot unmarshal array into Go value of type ${typeMeta}`), '5b5d') },
  {
    name: 'a kind that is no text',
    body: '{"kind":7}',
    message: unreadable(noKind('json: cannot unmarshal number into Go struct field .kind of type string'), '{"kind":7}'),
  },
  { name: 'no body', body: '', message: unreadable(noKind('unexpected end of JSON input'), '<empty>') },
  {
    name: 'a scalar in YAML',
    body: 'hello',
    type: 'application/yaml',
    message: unreadable(noKind(`json: cannot unmarshal string into Go value of type ${typeMeta}`), '68656c6c6f'),
  },
  { name: 'protobuf without its magic', body: 'x', type: 'application/vnd.kubernetes.protobuf', message: unreadable(badMagic, '78') },
  { name: 'an empty protobuf', body: '', type: 'application/vnd.kubernetes.protobuf', message: unreadable('empty data', '<empty>') },
]
for (const { name, body, type = 'application/json', message } of unrecognized) {
  test(`API-13 a body that cannot be read is refused in upstream's words: ${name}`, async () => {
    const answer = await as('admin', { ...post, headers: { 'content-type': type }, body })
    assert.deepEqual([answer.status, json(answer.body).message], [400, message])
  })
}

test('API-13 a null as the body is an object without fields', async () => {
  const answer = await as('admin', { ...post, body: 'null' })
  assert.equal(answer.status, 422)
  assert.match(json(answer.body).message, /name or generateName is required/)
})

const unserved = [
  { name: 'an unknown resource', path: '/api/v1/nope', isStatus: true },
  { name: 'an unknown namespaced resource', path: '/apis/apps/v1/namespaces/default/nope/x', isStatus: true },
  { name: 'an unknown version of a built-in group', path: '/apis/apps/v9/deployments', isStatus: true },
  { name: 'an unknown version of the core group', path: '/api/v9', isStatus: true },
  { name: 'an unknown subresource', path: '/api/v1/namespaces/default/configmaps/x/nope', isStatus: true },
  { name: 'a namespaced resource without its namespace', path: '/api/v1/pods/x', isStatus: true },
  { name: 'a cluster-scoped resource in a namespace', path: '/api/v1/namespaces/default/nodes', isStatus: true },
  { name: 'an unknown group', path: '/apis/nothing.example.com/v1/things', isStatus: false },
  { name: 'an unknown path', path: '/nothing', isStatus: false },
]
for (const { name, path, isStatus } of unserved) {
  test(`API-01 ${name} is answered with 404 and ${isStatus ? 'a Status' : 'a text'}`, async () => {
    const { status, headers, body } = await as('admin', { path })
    assert.equal(status, 404)
    if (!isStatus) {
      assert.deepEqual([headers['content-type'], body.toString()], ['text/plain; charset=utf-8', '404 page not found\n'])
      return
    }
    const message = 'the server could not find the requested resource'
    const want = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason: 'NotFound', details: {}, code: 404 }
    assert.deepEqual([headers['content-type'], json(body)], ['application/json', want])
  })
}

test('a connection that speaks no TLS is closed, and others are still served', async () => {
  await new Promise<void>((resolve) => {
    const socket = connect(listener.port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\n\r\n'))
    socket.on('error', () => resolve())
    socket.on('close', () => resolve())
  })
  assert.equal((await as('admin', { path: '/readyz' })).body.toString(), 'ok')
})

test('API-14 discovery is served plain and aggregated', async () => {
  const core = json((await as('admin', { path: '/api/v1' })).body)
  assert.ok(core.resources.some((one: { name: string; shortNames?: string[] }) => one.name === 'pods' && one.shortNames?.includes('po')))
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'
  const aggregated = await as('admin', { path: '/apis', headers: { accept } })
  assert.equal(json(aggregated.body).kind, 'APIGroupDiscoveryList')
  const etag = String(aggregated.headers.etag)
  const same = await as('admin', { path: '/apis', headers: { accept, 'if-none-match': etag } })
  assert.deepEqual([same.status, same.body.length], [304, 0])
})

test('API-15 OpenAPI v2 and v3 are served, and v3 by its hash', async () => {
  const v2 = json((await as('admin', { path: '/openapi/v2' })).body)
  assert.ok(v2.definitions['io.k8s.api.core.v1.Pod'])
  const index = json((await as('admin', { path: '/openapi/v3' })).body)
  const document = await as('admin', { path: index.paths['apis/apps/v1'].serverRelativeURL })
  assert.ok(json(document.body).components.schemas['io.k8s.api.apps.v1.Deployment'])
  assert.equal(document.headers['cache-control'], 'public, immutable')
})

test('API-32 /version names the release, the build, the runtime and the platform', async () => {
  const { major, minor, gitVersion, ...rest } = json((await as('admin', { path: '/version' })).body)
  assert.deepEqual([major, minor, /^v1\.36\./.test(gitVersion)], ['1', '36', true])
  const { goVersion, compiler, platform, buildDate } = rest
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch
  assert.deepEqual([goVersion, compiler, platform], [`node${process.versions.node}`, 'v8', `linux/${architecture}`])
  assert.match(buildDate, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
})

test('/readyz?verbose lists each check', async () => {
  const verbose = (await as('admin', { path: '/readyz?verbose' })).body.toString()
  assert.match(verbose, /^\[\+\]ping ok\n.*\n?readyz check passed\n$/s)
  assert.deepEqual([(await as('admin', { path: '/livez/ping' })).status, (await as('admin', { path: '/livez/none' })).status], [200, 404])
})

test('API-31 warnings travel in headers', async () => {
  const { headers } = await as('admin', { ...post, body: '{"metadata":{"name":"w"},"odd":1}' })
  assert.equal(headers.warning, '299 - "unknown field \\"odd\\""')
})

test('a watch over HTTP/1.1 sends events as lines', async () => {
  const path = '/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=1&resourceVersion='
  const list = await api.client.of(configMaps).list({ namespace: 'default' })
  const watching = as('admin', { path: path + list.metadata.resourceVersion })
  await api.client.of(configMaps).create({ metadata: { namespace: 'default', name: 'seen' } })
  const lines = (await watching).body.toString().trimEnd().split('\n')
  assert.deepEqual(
    lines.map((line) => [JSON.parse(line).type, JSON.parse(line).object.metadata.name]),
    [['ADDED', 'seen']],
  )
})

test('a server that stops ends its watches and is gone at once', async () => {
  const other = await startTestApiServer()
  const watched = await other.listen()
  const watching = rawHttp(watched, { path: '/api/v1/pods?watch=1' })
  await new Promise((resolve) => setImmediate(resolve))
  while (!(await rawHttp(watched, { path: '/livez' })).status);
  const startedMs = performance.now()
  await other.close()
  const took = performance.now() - startedMs
  assert.deepEqual([(await watching).status, took < 1_500], [200, true])
})
