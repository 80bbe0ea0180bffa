/** The front of `skiff ui` over the real API server (ARC-16, LRN-02): rights of each login, rows of a watch over a WebSocket, and the computed answers. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { WebSocket } from 'ws'
import { createSecurity } from '#apiserver/security'
import { seededRandom } from '#base/random'
import { pageAnswers } from '#cli/page/answers'
import { configMaps, pods, roleBindings, roles, serviceAccounts, services } from '#client/builtIn'
import { createHttpTransport } from '#client/httpTransport'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import type { PodTrace } from '#trace/hops'
import { type Front, startFront } from '#ui/server/front'
import { testServiceAccountKey } from '../controllers/cluster.ts'

let api: TestApiServer
let front: Front
let directory: string

before(async () => {
  api = await startTestApiServer({
    deps: ({ reader }) => {
      const security = createSecurity({ reader, clock: realClock, random: seededRandom(1), serviceAccountKey: testServiceAccountKey() })
      const users: Readonly<Record<string, string[]>> = { admin: ['system:masters', 'system:authenticated'], jane: ['system:authenticated'] }
      const authenticate = ({ headers }: { readonly headers: Readonly<Record<string, unknown>> }) => {
        const name = String(headers.authorization).replace('Bearer ', '')
        const groups = Object.hasOwn(users, name) ? users[name] : undefined
        return groups && { decision: 'authenticated' as const, user: { name, groups } }
      }
      return { ...security, authenticators: [{ name: 'test', authenticate }] }
    },
  })
  const { url, ca } = await api.listen()
  directory = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-page-'))
  await fs.writeFile(path.join(directory, 'index.html'), '')
  const transportAs = (bearerToken: string) => createHttpTransport({ server: url, tls: { ca }, bearerToken, clock: realClock })
  front = await startFront({
    ...{ clock: realClock, port: 0, assets: directory, cluster: { name: 'c', server: url, namespace: 'default' } },
    ...{ transport: transportAs('admin'), transportAs, computed: pageAnswers },
  })
  const rule = { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }
  await api.client.of(roles).create({ metadata: { namespace: 'default', name: 'reader' }, rules: [rule] })
  await api.client.of(roleBindings).create({
    ...{ metadata: { namespace: 'default', name: 'reader' }, roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' } },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'jane' }],
  })
  await api.client.of(configMaps).create({ metadata: { namespace: 'default', name: 'a' }, data: { x: '1' } })
  await api.client.of(configMaps).patch({ namespace: 'default', name: 'a' }, 'merge', { data: { x: '2' } })
  await api.client.of(services).create({ metadata: { namespace: 'default', name: 'lonely' }, spec: { selector: { app: 'lonely' }, ports: [{ port: 80 }] } })
})

after(async () => {
  await front.close()
  await api.close()
  await fs.rm(directory, { recursive: true })
})

const origin = () => `http://127.0.0.1:${front.port}`

async function login(how: object) {
  const answer = await fetch(`${origin()}/front/login`, {
    method: 'POST',
    headers: { origin: origin(), 'content-type': 'application/json' },
    body: JSON.stringify(how),
  })
  const text = await answer.text()
  assert.equal(answer.status, 200, text)
  const { key, user } = JSON.parse(text) as { key: string; user: string }
  const cookie = answer.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const get = async (target: string) => {
    const found = await fetch(`${origin()}${target}`, { headers: { cookie, 'x-skiff-key': key } })
    return { status: found.status, body: (await found.json()) as Record<string, never> }
  }
  return { key, user, cookie, get }
}

const asAdmin = () => login({ code: front.newUrl().split('#code=')[1] })

test('ARC-16 each login has the rights of its user, and the server’s refusals arrive as they are', async () => {
  const [admin, jane] = [await asAdmin(), await login({ token: 'jane' })]
  assert.deepEqual([admin.user, jane.user], ['admin', 'jane'])
  assert.equal((await admin.get('/api/v1/secrets')).status, 200)
  assert.equal((await jane.get('/api/v1/namespaces/default/configmaps')).status, 200)
  const refused = await jane.get('/api/v1/namespaces/default/secrets')
  assert.equal(refused.status, 403)
  assert.match(String(refused.body.message), /User "jane" cannot list resource "secrets"/)
})

test('ARC-16 a watch over a WebSocket gets changes as rows of the server’s table', async () => {
  const { key, cookie } = await asAdmin()
  const target = `ws://127.0.0.1:${front.port}/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0`
  const socket = new WebSocket(target, ['skiff.ui', 'skiff.ui.table', `skiff.ui.key.${key}`], { headers: { cookie, origin: origin() } })
  const [message] = await once(socket, 'message')
  const { type, object } = JSON.parse(String(message)) as {
    type: string
    object: { kind: string; columnDefinitions: { name: string }[]; rows: { cells: unknown[] }[] }
  }
  assert.deepEqual([type, object.kind, object.rows[0]?.cells.slice(0, 2)], ['ADDED', 'Table', ['a', 1]])
  socket.terminate()
})

test('ARC-16 a WebSocket that the server refuses gets the server’s code', async () => {
  const { key, cookie } = await login({ token: 'jane' })
  const socket = new WebSocket(`ws://127.0.0.1:${front.port}/api/v1/secrets?watch=1`, ['skiff.ui', `skiff.ui.key.${key}`], {
    headers: { cookie, origin: origin() },
  })
  const [error] = await once(socket, 'error')
  assert.match(String(error), /403/)
})

test('LRN-02 the history of an object is read with the rights of the page’s user', async () => {
  const target = '/front/history?group=&resource=configmaps&namespace=default&name=a'
  const { body } = await (await asAdmin()).get(target)
  const shown = body.shown as unknown as { type: string; changes: unknown[] }[]
  assert.deepEqual(
    shown.map(({ type, changes }) => [type, changes]),
    [
      ['updated', [{ path: 'data.x', from: '1', to: '2' }]],
      ['created', []],
    ],
  )
  assert.equal((await (await login({ token: 'jane' })).get(target)).status, 403)
})

for (const [query, status, want] of [
  ['kind=Namespace&name=default', 200, /"phase":"Active"/],
  ['kind=Namespace&name=none', 404, /namespaces \\"none\\" not found/],
  ['kind=access&user=jane&verb=list&resource=configmaps&namespace=default', 200, /"allowed":true.*reader/],
  ['kind=access&user=jane&verb=list&resource=secrets&namespace=default&name=', 200, /"allowed":false/],
  ['kind=access&user=jane', 400, /verb is missing/],
  ['kind=Unicorn&name=a', 400, /no answer for the kind Unicorn/],
  ['group=&resource=configmaps&namespace=default&name=a', 200, /"object":"ConfigMap default\/a".*"isSettled":true/],
  [
    'group=&resource=services&namespace=default&name=lonely',
    200,
    /its selector selects no pod that runs: app=lonely.*kubectl get pods --show-labels -n default/,
  ],
  ['group=apps&resource=deployments&namespace=default&name=none', 404, /there is no Deployment default\/none/],
  ['group=&resource=unicorns&namespace=default&name=a', 404, /the cluster lists no unicorns/],
  ['group=&resource=services&namespace=default', 400, /name is missing/],
] as const) {
  test(`ARC-16 why answers ${query} with ${status}`, async () => {
    const found = await (await asAdmin()).get(`/front/why?${query}`)
    assert.equal(found.status, status, JSON.stringify(found.body))
    assert.match(JSON.stringify(found.body), want)
  })
}

test('ARC-16 why explains an object only to a user who may read it', async () => {
  const { status, body } = await (await login({ token: 'jane' })).get('/front/why?group=&resource=services&namespace=default&name=lonely')
  assert.equal(status, 503)
  assert.match(JSON.stringify(body), /Service default\/lonely is not shown: you may not get services in the namespace default/)
  assert.doesNotMatch(JSON.stringify(body), /app=lonely/)
})

test('LRN-01 the page gets the hops of a pod as far as they are over, with the rights of its user', async () => {
  await api.client.of(serviceAccounts).create({ metadata: { namespace: 'default', name: 'default' } })
  await api.client.of(pods).create({ metadata: { namespace: 'default', name: 'web' }, spec: { containers: [{ name: 'c', image: 'web:1' }] } })
  const [admin, jane] = [await asAdmin(), await login({ token: 'jane' })]
  const { status, body } = await admin.get('/front/trace?namespace=default&name=web')
  const hops = (body as unknown as PodTrace).hops.map(({ name, source }) => `${name}: ${source}`)
  assert.deepEqual([status, hops.length, hops[6], hops[11]], [200, 12, 'storage: pod', 'runtime: none'])
  const refused = await jane.get('/front/trace?namespace=default&name=web')
  assert.equal(refused.status, 403)
  assert.match(String(refused.body.message), /User "jane" cannot get resource "pods"/)
  assert.deepEqual([(await admin.get('/front/trace?name=none')).status, (await admin.get('/front/trace')).status], [404, 400])
})
