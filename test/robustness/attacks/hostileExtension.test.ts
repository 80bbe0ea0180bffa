/**
 * An extension API server that answers with documents of the wrong shape, too deep, too many or too long, and with redirects: its documents must
 * not break discovery and OpenAPI for other clients, nor may a redirect lead a client's credentials elsewhere.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { createServer, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import test, { after, before } from 'node:test'
import { apiServices, services } from '#client/builtIn'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { testCertificates } from '#testing/testCertificates'
import { rawHttp } from '../../integration/api/rawHttp.ts'
import { eventually } from '../../integration/controllers/cluster.ts'

const group = 'e.example.com'
const name = `v1.${group}`
const discoveryType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
let api: TestApiServer
let listener: TestListener
let port = 0
let answers: (path: string, response: ServerResponse) => void = () => {}
const server = createTlsServer(await testCertificates(), (request, response) => answers(request.url ?? '', response)) as unknown as ReturnType<
  typeof createServer
>

before(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
  api = await startTestApiServer()
  listener = await api.listen()
  await api.client.of(services).create({ metadata: { namespace: 'default', name: 's' }, spec: { type: 'ExternalName', externalName: 'localhost' } })
})
after(async () => {
  await api.close()
  server.closeAllConnections()
  server.close()
})

interface Documents {
  readonly resources?: unknown
  readonly openApi?: string
}

/** Registers the server again, so that its documents are fetched; resolves after that. */
async function register({ resources, openApi = '{}' }: Documents): Promise<void> {
  let asked = 0
  answers = (path, response) => {
    if (path === '/apis' && resources !== undefined) {
      response.writeHead(200, { 'content-type': discoveryType })
      response.end(JSON.stringify({ items: [{ metadata: { name: group }, versions: [{ version: 'v1', resources }] }] }))
    } else if (path === '/openapi/v2') response.writeHead(200, { 'content-type': 'application/json' }).end(openApi)
    else if (path === `/apis/${group}/v1`) response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    else response.writeHead(404).end()
    if (path === '/openapi/v2') asked++
  }
  await api.client
    .of(apiServices)
    .delete({ name })
    .catch(() => undefined)
  const spec = { group, version: 'v1', groupPriorityMinimum: 1000, versionPriority: 15, insecureSkipTLSVerify: true }
  await api.client.of(apiServices).create({ metadata: { name }, spec: { ...spec, service: { namespace: 'default', name: 's', port } } })
  await eventually(async () => {
    await api.client.of(apiServices).get({ name })
    assert.ok(asked > 0)
  }, 20_000)
}

const get = async (path: string, accept: string) => {
  const startedMs = performance.now()
  const answer = await rawHttp(listener, { path, headers: { accept } })
  return { status: answer.status, text: answer.body.toString(), ms: performance.now() - startedMs }
}
const good = { resource: 'things', responseKind: { kind: 'Thing' }, scope: 'Namespaced', verbs: ['get'] }
const hostileResources: readonly (readonly [name: string, resources: unknown])[] = [
  [
    'numbers and lists for texts',
    [good, { resource: 5 }, { resource: ['x'] }, { resource: 'a', verbs: 'get', shortNames: {}, categories: 7, responseKind: 'x' }],
  ],
  ['null and texts for objects', [good, null, 'x', 1, { resource: 'b', subresources: [null, 'x', { subresource: {} }] }]],
  ['names of prototypes and paths', [good, { resource: '__proto__' }, { resource: '../x' }, { resource: 'a\u001b[2Jb\r\n' }, { resource: 'constructor' }]],
  ['a hundred thousand resources', [good, ...Array.from({ length: 100_000 }, (_, i) => ({ resource: `r${i}`, verbs: ['get'] }))]],
  ['words without end', [good, { resource: 'c', verbs: Array.from({ length: 100_000 }, () => 'get'), shortNames: ['x'.repeat(100_000)] }]],
]
for (const [what, resources] of hostileResources) {
  test(`API-28 an extension server whose discovery has ${what} does not spoil discovery`, async () => {
    await register({ resources })
    await eventually(async () => {
      const { status, text } = await get('/apis', discoveryType)
      assert.equal(status, 200)
      const found = (JSON.parse(text).items as { metadata: { name: string }; versions: { resources: { resource: string }[] }[] }[]).find(
        ({ metadata }) => metadata.name === group,
      )
      const resources = found?.versions[0]?.resources ?? []
      assert.ok(resources.some(({ resource }) => resource === 'things'))
      assert.ok(resources.length <= 5_000 && text.length < 4_000_000, `${resources.length} resources, ${text.length} bytes`)
      for (const { resource } of resources) assert.match(resource, /^[A-Za-z0-9][A-Za-z0-9_.:-]*$/)
    }, 20_000)
    assert.equal((await get(`/apis/${group}/v1`, 'application/json')).status, 200)
  })
}

const path = `/apis/${group}/v1/things`
const hostileOpenApi: readonly (readonly [name: string, document: string])[] = [
  ['nests a million deep', `{"paths":{"${path}":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}}}`],
  ['has no objects', JSON.stringify({ paths: { [path]: 5 }, definitions: 'x' })],
  [
    'has definitions of every type',
    JSON.stringify({ paths: { [path]: { get: [1, 2].map((i) => ({ $ref: `#/definitions/D${i}` })) } }, definitions: { D1: 5, D2: null } }),
  ],
  [
    'refers to prototypes',
    `{"paths":{"${path}":{"get":{"$ref":"#/definitions/__proto__"},"put":{"$ref":"#/definitions/constructor"}}},"definitions":{"__proto__":{"x":1}}}`,
  ],
  ['has schemas of the wrong types', JSON.stringify({ paths: { [path]: { get: { parameters: 'x', responses: [null] } } } })],
  ['is no JSON', '{'],
]
for (const [what, openApi] of hostileOpenApi) {
  test(`API-28 an extension server whose OpenAPI document ${what} does not spoil the document of the API server`, async () => {
    await register({ resources: [good], openApi })
    for (const accept of ['application/json', 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf']) {
      const { status, text } = await get('/openapi/v2', accept)
      assert.equal(status, 200, accept)
      assert.ok(text.includes('/api/v1/namespaces/{namespace}/pods'), accept)
    }
  })
}

test('API-28 a redirect of an extension server is answered with 502, since a client could send its credentials along', async () => {
  await register({ resources: [good] })
  await eventually(async () => assert.equal((await get(`/apis/${group}/v1/things`, '*/*')).status, 404), 20_000)
  const before = answers
  answers = (url, response) => {
    if (url.startsWith(`${path}/redirect`)) response.writeHead(Number(url.slice(-3)), { location: 'https://attacker.example/' }).end('see there')
    else if (url === `${path}/unchanged`) response.writeHead(304).end()
    else before(url, response)
  }
  for (const status of [301, 302, 303, 307, 308]) {
    const answer = await rawHttp(listener, { path: `${path}/redirect${status}` })
    assert.deepEqual(
      [answer.status, answer.headers.location, answer.body.toString()],
      [502, undefined, 'the backend attempted to redirect this request, which is not permitted'],
    )
  }
  assert.equal((await rawHttp(listener, { path: `${path}/unchanged` })).status, 304)
})
