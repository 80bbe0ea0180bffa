/** Names that two definitions claim, and edge cases of definitions and objects. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { refused } from '../../support/refused.ts'
import { type Any, crdPath, definition, establish, group, object, type Plain, plain, until, version } from './support.ts'

let api: TestApiServer
let client: Plain
before(async () => {
  api = await startTestApiServer()
  client = plain(api.client)
})
after(() => api.close())

const schema = {
  type: 'object',
  properties: {
    spec: { type: 'object', properties: { a: { type: 'string' }, n: { type: 'integer' } } },
    status: { type: 'object', properties: { b: { type: 'string' } } },
  },
}
const condition = (crd: Any, type: string) => crd.status.conditions?.find((one: Any) => one.type === type)
const reach = (name: string, type: string, status: string) =>
  until(`${type}=${status} of ${name}`, async () => {
    const crd = await client.request('GET', `${crdPath}/${name}.${group}`)
    return condition(crd, type)?.status === status && crd
  })

test('CRD-01 a name that is taken keeps a definition waiting until it is free', async () => {
  await establish(api.client, definition('firsts', 'Same', [version('v1', schema)], { scope: 'Cluster' }))
  await client.request('POST', crdPath, definition('seconds', 'Same', [version('v1', schema)], { scope: 'Cluster' }))
  const waiting = await reach('seconds', 'NamesAccepted', 'False')
  const { reason, message } = condition(waiting, 'NamesAccepted')
  assert.deepEqual([reason, message], ['ListKindConflict', '"SameList" is already in use'])
  assert.deepEqual([condition(waiting, 'Established').status, condition(waiting, 'Established').reason], ['False', 'NotAccepted'])
  assert.deepEqual(waiting.status.acceptedNames, { plural: 'seconds', kind: '' })
  assert.equal(await client.isGone(`/apis/${group}/v1/seconds`), true)
  await client.request('DELETE', `${crdPath}/firsts.${group}`)
  await reach('seconds', 'Established', 'True')
  await client.request('POST', `/apis/${group}/v1/seconds`, object('Same', 'a', {}))
})

test('CRD-03 without a status endpoint the status is content like any other', async () => {
  await establish(api.client, definition('plains', 'Plain', [version('v1', schema)], { scope: 'Cluster' }))
  const path = `/apis/${group}/v1/plains`
  const made = await client.request('POST', path, { ...object('Plain', 'a', {}), status: { b: 'x' } })
  assert.deepEqual([made.status, made.metadata.generation], [{ b: 'x' }, 1])
  const changed = await client.request('PUT', `${path}/a`, { ...made, status: { b: 'y' } })
  assert.equal(changed.metadata.generation, 2)
  const labelled = await client.request('PUT', `${path}/a`, { ...changed, metadata: { ...changed.metadata, labels: { x: 'y' } } })
  assert.equal(labelled.metadata.generation, 2)
  assert.equal(await client.isGone(`${path}/a/status`), true)
  assert.equal((await refused(client.request('PUT', `${path}/new`, object('Plain', 'new', {})))).code, 404)
  const applied = await client.request('PATCH', `${path}/new?fieldManager=me`, object('Plain', 'new', { a: 'b' }), {
    contentType: 'application/apply-patch+yaml',
  })
  assert.deepEqual([applied.spec, applied.metadata.generation], [{ a: 'b' }, 1])
  const wrong = await refused(
    client.request('PATCH', `${path}/new?fieldManager=me`, object('Plain', 'new', { n: 'x' }), { contentType: 'application/apply-patch+yaml' }),
  )
  assert.ok(wrong.code < 500, wrong.message)
  const unknown = await refused(
    client.request('PATCH', `${path}/new?fieldManager=me`, object('Plain', 'new', { z: 'x' }), { contentType: 'application/apply-patch+yaml' }),
  )
  assert.match(unknown.message, /\.spec\.z: field not declared in schema/)
})

test('CRD-01 unknown fields are warned of, and pruned', async () => {
  const answer = await api.client.transport.request({
    method: 'POST',
    path: `/apis/${group}/v1/plains`,
    body: { ...object('Plain', 'w', { a: 'b', z: 1 }), more: 2 },
  })
  assert.deepEqual([...answer.warnings].sort(), ['unknown field "more"', 'unknown field "spec.z"'])
  assert.deepEqual((answer.body as Any).spec, { a: 'b' })
})

test('CRD-06 a finalizer of no domain is warned of', async () => {
  const body = { ...object('Plain', 'f', {}), metadata: { name: 'f', finalizers: ['hold'] } }
  const { warnings } = await api.client.transport.request({ method: 'POST', path: `/apis/${group}/v1/plains`, body })
  assert.deepEqual(warnings, [
    'metadata.finalizers: "hold": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers',
  ])
})

test('CRD-01 a changed schema closes watches, and applies to later requests', async () => {
  const path = `/apis/${group}/v1/plains`
  const crd = await client.request('GET', `${crdPath}/plains.${group}`)
  const changed = structuredClone(crd)
  changed.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.d = { type: 'string', default: 'late' }
  const stop = new AbortController()
  let batches = 0
  for await (const batch of api.client.transport.watch({ method: 'GET', path }, stop.signal)) {
    batches += batch.length
    if (batches === batch.length) await client.request('PUT', `${crdPath}/plains.${group}`, changed)
  }
  assert.ok(batches > 0, 'the watch ended by itself')
  const read = await client.request('GET', `${path}/a`)
  assert.equal(read.spec.d, 'late')
  assert.deepEqual(
    (await client.request('GET', path)).items.map((item: Any) => item.spec?.d),
    ['late', 'late', 'late', 'late'],
  )
})

test('CRD-01 a definition of a built-in resource is not served in its place', async () => {
  const body = {
    metadata: { name: 'ingresses.networking.k8s.io', annotations: { 'api-approved.kubernetes.io': 'unapproved, a test' } },
    spec: { group: 'networking.k8s.io', scope: 'Namespaced', names: { plural: 'ingresses', kind: 'Ingress' }, versions: [version('v1', schema)] },
  }
  await client.request('POST', crdPath, body)
  await until('its conditions', async () =>
    condition(await client.request('GET', `${crdPath}/ingresses.networking.k8s.io`), 'KubernetesAPIApprovalPolicyConformant'),
  )
  const { kind, items } = await client.request('GET', '/apis/networking.k8s.io/v1/namespaces/default/ingresses')
  assert.deepEqual([kind, items], ['IngressList', []])
  await client.request('DELETE', `${crdPath}/ingresses.networking.k8s.io`)
  await until('its end', () => client.isGone(`${crdPath}/ingresses.networking.k8s.io`))
})
