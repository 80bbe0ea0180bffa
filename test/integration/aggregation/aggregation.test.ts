/** An extension API server in its own process behind the aggregation layer: requests, identity, discovery, OpenAPI, its going and coming. */
import assert from 'node:assert/strict'
import { request as httpsRequest } from 'node:https'
import test, { after, before } from 'node:test'
import { connect } from 'node:tls'
import { apiServices } from '#client/builtIn'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { testKubectl, withoutKubectl } from '../../support/kubectl.ts'
import { rawHttp } from '../api/rawHttp.ts'
import { eventually } from '../controllers/cluster.ts'
import {
  apiServiceName,
  base64,
  type Certificates,
  certificates,
  condition,
  flunders,
  groupPath,
  register,
  type SampleServer,
  startSampleServer,
} from './extension.ts'

let made: Certificates
let sample: SampleServer
let api: TestApiServer
let listener: TestListener

before(async () => {
  made = await certificates()
  sample = await startSampleServer(made)
  api = await startTestApiServer({ config: { proxyClient: made.proxyClient } })
  listener = await api.listen()
  await register(api, sample.port, { caBundle: base64(made.servingCa.cert) })
  assert.deepEqual(await condition(api, 'Passed'), { status: 'True', message: 'all checks passed' })
})
after(async () => {
  await sample.stop()
  await api.close()
})

const get = async (path: string, headers: Record<string, string> = {}) => {
  const answer = await rawHttp(listener, { path, headers })
  return { status: answer.status, body: JSON.parse(answer.body.toString()) }
}
const aggregatedDiscovery = async () => {
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  const { body } = await get('/apis', { accept })
  return body.items.find((item: { metadata: { name: string } }) => item.metadata.name === 'wardle.example.com')?.versions[0]
}

test('API-28 requests below the group-version go to the extension server, and its refusals are returned', async () => {
  const body = JSON.stringify({ metadata: { name: 'a' } })
  const created = await rawHttp(listener, { method: 'POST', path: flunders, body, headers: { 'content-type': 'application/json' } })
  assert.deepEqual([created.status, JSON.parse(created.body.toString()).metadata.annotations], [201, { user: 'test-admin' }])
  assert.equal((await get(`${flunders}/a`)).body.metadata.name, 'a')
  assert.deepEqual(await get(`${flunders}/none`), {
    status: 404,
    body: { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', message: 'sample: NotFound', code: 404 },
  })
})

test('API-28 the extension server gets the authenticated user, and no identity header of the client', async () => {
  const forged = { 'x-remote-user': 'root', 'x-remote-group': 'forged', 'x-remote-uid': 'forged', 'x-remote-extra-scopes': 'forged' }
  const { headers } = (await get(`${flunders}/whoami`, forged)).body
  assert.deepEqual(headers['x-remote-user'], ['test-admin'])
  assert.deepEqual(headers['x-remote-group'], ['system:masters', 'system:authenticated'])
  for (const name of ['x-remote-uid', 'x-remote-extra-scopes', 'authorization']) assert.equal(headers[name], undefined, name)
  const user = { name: 'jürgen', uid: '7', groups: ['dev'], extra: { 'example.org/a b': ['x', 'y'] } }
  const seen = (await api.clientAs(user).transport.request({ method: 'GET', path: `${flunders}/whoami` })).body as { headers: Record<string, string[]> }
  const utf8 = (text: string | undefined) => Buffer.from(text ?? '', 'latin1').toString()
  assert.equal(utf8(seen.headers['x-remote-user']?.[0]), 'jürgen')
  assert.deepEqual([seen.headers['x-remote-uid'], seen.headers['x-remote-extra-example.org%2Fa%20b'.toLowerCase()]], [['7'], ['x', 'y']])
  const bad = api.clientAs({ ...user, name: 'a\r\nx-remote-group: system:masters' }).transport.request({ method: 'GET', path: `${flunders}/whoami` })
  await assert.rejects(bad, { reason: 'BadRequest' })
})

test('API-28 watches stream through, for clients outside and in this process', async () => {
  const stop = new AbortController()
  const inside = api.client.transport.watch({ method: 'GET', path: flunders }, stop.signal)[Symbol.asyncIterator]()
  await inside.next()
  const names: string[] = []
  await new Promise<void>((resolve, reject) => {
    const headers = { authorization: `Bearer ${listener.token}` }
    const call = httpsRequest({ host: '127.0.0.1', port: listener.port, ca: listener.ca, path: `${flunders}?watch=true`, headers, agent: false })
    call.on('error', reject).end()
    call.on('response', (response) => {
      response.on('data', (chunk) => {
        for (const line of String(chunk).trim().split('\n')) names.push(JSON.parse(line).object.metadata.name)
        if (names.at(-1) === 'b') {
          call.destroy()
          resolve()
        } else void api.client.transport.request({ method: 'POST', path: flunders, body: { metadata: { name: 'b' } } }).catch(reject)
      })
      response.on('error', () => undefined)
    })
  })
  assert.deepEqual(names, ['a', 'b'])
  const { value } = await inside.next()
  const [event] = value ?? []
  assert.equal(event?.type, 'ADDED')
  assert.equal((event.object as { metadata: { name: string } }).metadata.name, 'b')
  stop.abort()
  await inside.return?.(undefined)
})

test('API-28 upgrades are tunnelled with the identity of their user', async () => {
  const received = await new Promise<string>((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: listener.port, ca: listener.ca, ALPNProtocols: ['http/1.1'] }, () => {
      const head = [
        `GET ${flunders}/a HTTP/1.1`,
        'Host: x',
        'Connection: Upgrade',
        'Upgrade: websocket',
        'X-Remote-User: root',
        `Authorization: Bearer ${listener.token}`,
      ]
      socket.write(`${head.join('\r\n')}\r\n\r\nping`)
    })
    let text = ''
    socket.on('error', reject).on('data', (chunk) => {
      text += chunk
      if (!text.endsWith('ping')) return
      socket.destroy()
      resolve(text)
    })
  })
  assert.ok(received.endsWith('\r\n\r\ntest-admin\nping'), received)
})

test('API-28 discovery shows the group and its resources, in both forms', async () => {
  const found = await eventually(async () => {
    const version = await aggregatedDiscovery()
    return version?.freshness === 'Current' && version
  })
  assert.deepEqual(
    found.resources.map((one: { resource: string; scope: string; shortNames: string[] }) => [one.resource, one.scope, one.shortNames]),
    [['flunders', 'Namespaced', ['fl']]],
  )
  const { body } = await get('/apis')
  assert.deepEqual(body.groups.find(({ name }: { name: string }) => name === 'wardle.example.com').preferredVersion, {
    groupVersion: 'wardle.example.com/v1alpha1',
    version: 'v1alpha1',
  })
  assert.equal((await get(groupPath)).body.resources[0].name, 'flunders')
})

test('API-28 OpenAPI has its paths, and of its definitions those that they need', async () => {
  const v2 = (await get('/openapi/v2')).body
  assert.ok(v2.paths[`${groupPath}/namespaces/{namespace}/flunders`].get)
  assert.deepEqual([v2.definitions['com.example.Flunder'].description, v2.definitions['com.example.Unused']], ['A flunder.', undefined])
  const key = 'apis/wardle.example.com/v1alpha1'
  const { serverRelativeURL } = (await get('/openapi/v3')).body.paths[key]
  assert.equal(serverRelativeURL, `/openapi/v3/${key}?hash=ABC`)
  assert.equal((await get(serverRelativeURL)).body.info.title, 'sample')
})

test('API-28 kubectl finds and lists the resource by its short name', { skip: withoutKubectl }, async () => {
  const kubectl = testKubectl(listener)
  assert.match((await kubectl.run('get fl -o name')).stdout, /^flunder.wardle.example.com\/a$/m)
  assert.match((await kubectl.run(`get apiservice ${apiServiceName} --no-headers`)).stdout, /^v1alpha1.wardle.example.com +default\/sample +True /)
  kubectl.remove()
})

test('API-28 a stopped server is unavailable and its discovery stale, until it is restarted', async () => {
  const { port } = sample
  await sample.stop()
  const first = await rawHttp(listener, { path: flunders })
  assert.equal(first.status, 503)
  const { status, message } = await condition(api, 'FailedDiscoveryCheck')
  assert.equal(status, 'False')
  assert.match(
    message,
    /^failing or missing response from https:\/\/localhost:\d+\/apis\/wardle\.example\.com\/v1alpha1: Get "https:.*: dial tcp .*: connect: connection refused$/,
  )
  const later = await rawHttp(listener, { path: flunders })
  assert.deepEqual([later.status, later.headers['content-type'], later.body.toString()], [503, 'text/plain; charset=utf-8', 'service unavailable\n'])
  const stale = await eventually(async () => {
    const version = await aggregatedDiscovery()
    return version.freshness === 'Stale' && version
  })
  assert.equal(stale.resources[0].resource, 'flunders')
  await assert.rejects(api.client.transport.request({ method: 'GET', path: flunders }), { reason: 'ServiceUnavailable' })
  sample = await startSampleServer(made, { port })
  assert.equal((await condition(api, 'Passed')).status, 'True')
  await eventually(async () => (await aggregatedDiscovery()).freshness === 'Current')
  assert.equal((await get(flunders)).body.kind, 'FlunderList')
})

test('API-28 the certificate must be signed by the bundle and name the service, unless insecureSkipTLSVerify is set', async () => {
  const patch = (spec: object) => api.client.of(apiServices).patch({ name: apiServiceName }, 'merge', { spec })
  await patch({ caBundle: base64(made.proxyCa.cert) })
  assert.match((await condition(api, 'FailedDiscoveryCheck')).message, /x509: certificate signed by unknown authority$/)
  await patch({ caBundle: null, insecureSkipTLSVerify: true })
  await condition(api, 'Passed')
  await patch({ caBundle: base64(made.servingCa.cert), insecureSkipTLSVerify: false, service: { name: 'other' } })
  assert.equal((await condition(api, 'ServiceNotFound')).message, 'service/other in "default" is not present')
  await patch({ service: { name: 'sample' } })
  await condition(api, 'Passed')
})

test('API-28 a server without aggregated discovery is described by its plain one; without its APIService it is gone', async () => {
  const plain = await startSampleServer(made, { aggregated: false })
  await api.client.of(apiServices).patch({ name: apiServiceName }, 'merge', { spec: { service: { port: plain.port } } })
  await condition(api, 'Passed')
  await sample.stop()
  sample = plain
  await eventually(async () => (await aggregatedDiscovery())?.resources?.[0]?.shortNames?.[0] === 'fl')
  await api.client.of(apiServices).delete({ name: apiServiceName })
  await eventually(async () => (await aggregatedDiscovery()) === undefined)
  assert.equal((await rawHttp(listener, { path: flunders })).status, 404)
})
