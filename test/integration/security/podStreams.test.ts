/**
 * A WebSocket opens with GET, which is the verb `get`; what it does in a pod is a `create` all the same, so both are asked for (AUZ-01). Over the wire.
 * Upstream: AuthorizePodWebsocketUpgradeCreatePermission (v1.36).
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { TestApiServer, TestListener } from '#testing/apiServer'
import { httpsCall } from '../../support/httpsCall.ts'
import { openSsl } from '../../support/openssl.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

const ssl = openSsl()
const group = 'rbac.authorization.k8s.io'
const streams = ['exec', 'attach', 'portforward']

let api: TestApiServer
let server: TestListener

async function statusOf(who: string, method: string, path: string, body?: unknown): Promise<number> {
  return (await httpsCall(server, path, { method, body, headers: { authorization: `Bearer ${who}`, 'content-type': 'application/json' } })).status
}

before(async () => {
  api = await startServerWithFlags([`--token-auth-file=${ssl.file('tokens.csv', 'admin,admin,a,system:masters\nget,get,g\nboth,both,b\n')}`])
  server = await api.listen()
  const base = `/apis/${group}/v1/namespaces/default`
  const resources = streams.map((stream) => `pods/${stream}`)
  for (const [name, verbs] of [
    ['get', ['get']],
    ['both', ['get', 'create']],
  ] as const) {
    assert.equal(await statusOf('admin', 'POST', `${base}/roles`, { metadata: { name }, rules: [{ apiGroups: [''], resources, verbs }] }), 201)
    const subjects = [{ kind: 'User', apiGroup: group, name }]
    const binding = { metadata: { name }, roleRef: { apiGroup: group, kind: 'Role', name }, subjects }
    assert.equal(await statusOf('admin', 'POST', `${base}/rolebindings`, binding), 201)
  }
})
after(async () => {
  await api.close()
  ssl.remove()
})

for (const stream of streams) {
  const path = `/api/v1/namespaces/default/pods/missing/${stream}?command=id&stdout=1`
  test(`AUZ-01 GET of pods/${stream} is refused, the user holds get and not create`, async () => {
    assert.deepEqual([await statusOf('get', 'GET', path), await statusOf('get', 'POST', path)], [403, 403])
  })
  test(`AUZ-01 GET of pods/${stream} looks for the pod, the user holds get and create`, async () => {
    assert.deepEqual([await statusOf('both', 'GET', path), await statusOf('both', 'POST', path)], [404, 404])
  })
}
