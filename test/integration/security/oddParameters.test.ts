/** Numbers in query parameters that are none, or too large, are refused at once (API-02), and which rules see a POST to `bindings` (ADM-06). Over the wire. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { TestApiServer, TestListener } from '#testing/apiServer'
import { type HttpsAnswer, httpsCall } from '../../support/httpsCall.ts'
import { openSsl } from '../../support/openssl.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

const ssl = openSsl()
const configMaps = '/api/v1/namespaces/default/configmaps'
const digits = '9'.repeat(400)

let api: TestApiServer
let server: TestListener

function call(method: string, path: string, body?: unknown): Promise<HttpsAnswer> {
  return httpsCall(server, path, { method, body, headers: { authorization: 'Bearer admin', 'content-type': 'application/json' } })
}

before(async () => {
  api = await startServerWithFlags([`--token-auth-file=${ssl.file('tokens.csv', 'admin,admin,a,system:masters\n')}`])
  server = await api.listen()
  assert.equal((await call('POST', configMaps, { metadata: { name: 'a' } })).status, 201)
})
after(async () => {
  await api.close()
  ssl.remove()
})

const range = (text: string) => `strconv.ParseUint: parsing "${text}": value out of range`
const cases: readonly (readonly [name: string, method: string, query: string, message: string])[] = [
  ['a grace period that is no number', 'DELETE', '/a?gracePeriodSeconds=abc', 'strconv.ParseInt: parsing "abc": invalid syntax'],
  ['a grace period of 400 digits', 'DELETE', `/a?gracePeriodSeconds=${digits}`, `strconv.ParseInt: parsing "${digits}": value out of range`],
  ['a grace period of a collection that is no number', 'DELETE', '?gracePeriodSeconds=1e3', 'strconv.ParseInt: parsing "1e3": invalid syntax'],
  ['a limit of 400 digits', 'GET', `?limit=${digits}`, `strconv.ParseInt: parsing "${digits}": value out of range`],
  ['a resourceVersion of 400 digits at a list', 'GET', `?resourceVersion=${digits}`, `resourceVersion: Invalid value: "${digits}": ${range(digits)}`],
  ['a resourceVersion of 400 digits at a get', 'GET', `/a?resourceVersion=${digits}`, `resourceVersion: Invalid value: "${digits}": ${range(digits)}`],
  ['a resourceVersion of 400 digits at a watch', 'GET', `?watch=1&resourceVersion=${digits}`, `resourceVersion: Invalid value: "${digits}": ${range(digits)}`],
]
for (const [name, method, query, message] of cases) {
  test(`API-02 a request is refused at once, it has ${name}`, async () => {
    const { status, json } = await call(method, `${configMaps}${query}`)
    assert.deepEqual([status, json.message], [400, message])
    assert.equal((await call('GET', `${configMaps}/a`)).status, 200)
  })
}

test('ADM-06 a POST to bindings is admitted as bindings, and a POST to the subresource as pods/binding', async () => {
  const group = '/apis/admissionregistration.k8s.io/v1'
  const rule = (resource: string) => ({ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: [resource] })
  for (const [name, resource] of [
    ['collection', 'bindings'],
    ['subresource', 'pods/binding'],
  ] as const) {
    const spec = { matchConstraints: { resourceRules: [rule(resource)] }, validations: [{ expression: 'false', message: `refused as ${resource}` }] }
    assert.equal((await call('POST', `${group}/validatingadmissionpolicies`, { metadata: { name }, spec })).status, 201)
    const binding = { metadata: { name }, spec: { policyName: name, validationActions: ['Deny'] } }
    assert.equal((await call('POST', `${group}/validatingadmissionpolicybindings`, binding)).status, 201)
  }
  const body = { metadata: { name: 'p' }, target: { kind: 'Node', name: 'n' } }
  const messageAt = async (path: string) => (await call('POST', `/api/v1/namespaces/default/${path}`, body)).json.message
  assert.match(await messageAt('bindings'), /refused as bindings$/)
  assert.match(await messageAt('pods/p/binding'), /refused as pods\/binding$/)
})
