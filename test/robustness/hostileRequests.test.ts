/**
 * Requests that are legal in size but made to hurt: names that JavaScript gives a meaning, and bodies whose handling could grow with the square of
 * their size. Each is answered below 500, soon, and changes what it names only.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { type RawAnswer, rawHttp } from '../integration/api/rawHttp.ts'
import { definition, establish, version } from '../integration/crd/support.ts'

const configMaps = '/api/v1/namespaces/default/configmaps'
const pods = '/api/v1/namespaces/default/pods'
const strategicMerge = 'application/strategic-merge-patch+json'
/** Many times what they take; the square of their sizes would take minutes. */
const withinMs = 10_000

let server: TestApiServer
let listener: TestListener

before(async () => {
  server = await startTestApiServer()
  listener = await server.listen()
})
after(() => server.close())

function send(method: string, path: string, body: string, contentType = 'application/json'): Promise<RawAnswer> {
  return rawHttp(listener, { method, path, body, headers: { 'content-type': contentType } })
}

const configMap = (name: string, more: string) => `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${name}"},${more}}`
const text = ({ body }: RawAnswer) => body.toString()
const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index))

test('API-11 __proto__ is a key like any other, in bodies and in every kind of patch', async () => {
  const path = `${configMaps}/keys`
  const dataAfter = async (answer: Promise<RawAnswer>) => {
    const { status, body } = await answer
    assert.ok(status < 300, body.toString())
    assert.doesNotMatch(body.toString(), /polluted/)
    return JSON.stringify(JSON.parse(body.toString()).data)
  }
  const hostile = '"__proto__":{"polluted":1}'
  const created = send('POST', configMaps, configMap('keys', `"data":{"__proto__":"a","toString":"b"},${hostile}`))
  assert.equal(await dataAfter(created), '{"__proto__":"a","toString":"b"}')
  for (const type of ['application/merge-patch+json', strategicMerge]) {
    const patched = send('PATCH', path, `{${hostile},"data":{"__proto__":"${type}","valueOf":"c"}}`, type)
    assert.equal(await dataAfter(patched), `{"__proto__":"${type}","toString":"b","valueOf":"c"}`)
  }
  const operations = '[{"op":"add","path":"/data/__proto__","value":"d"},{"op":"copy","from":"/data/toString","path":"/data/constructor"}]'
  const patched = send('PATCH', path, operations, 'application/json-patch+json')
  assert.equal(await dataAfter(patched), '{"__proto__":"d","toString":"b","valueOf":"c","constructor":"b"}')
  const applied = send(
    'PATCH',
    `${path}?fieldManager=a&force=true`,
    configMap('keys', '"data":{"__proto__":"e","isPrototypeOf":"f"}'),
    'application/apply-patch+yaml',
  )
  assert.equal(await dataAfter(applied), '{"__proto__":"e","toString":"b","valueOf":"c","constructor":"b","isPrototypeOf":"f"}')
  const again = send('PATCH', `${path}?fieldManager=a&force=true`, configMap('keys', '"data":{"x":"y"}'), 'application/apply-patch+yaml')
  assert.equal(await dataAfter(again), '{"toString":"b","valueOf":"c","constructor":"b","x":"y"}')
  assert.equal(Object.hasOwn(Object.prototype, 'polluted'), false)
})

test('API-13 a body of unknown and duplicate fields is warned of a hundred times at most', { timeout: withinMs }, async () => {
  const unknown = many(150_000, (index) => `"z${index}":1`).join()
  const answers = [
    await send('POST', configMaps, configMap('unknown', unknown)),
    await send('POST', configMaps, configMap('duplicates', `"data":{${'"a":"",'.repeat(150_000)}"a":""}`)),
  ]
  assert.deepEqual(
    answers.map(({ status }) => status),
    [201, 201],
  )
  const strict = await send('POST', `${configMaps}?fieldValidation=Strict`, configMap('strict', unknown))
  assert.equal(strict.status, 400)
  assert.equal(text(strict).match(/unknown field/g)?.length, 100)
})

test('API-04 a refusal lists the first thousand of many faults', { timeout: withinMs }, async () => {
  const keys = many(20_000, (index) => `"a/${index}":""`).join()
  const answer = await send('POST', configMaps, configMap('faults', `"data":{${keys}}`))
  assert.equal(answer.status, 422)
  const { message, details } = JSON.parse(text(answer))
  assert.equal(details.causes.length, 1_000)
  assert.match(message, /, and 19000 more errors\]$/)
})

test('API-04 more faults than the stack holds are a refusal, not a failure', { timeout: withinMs }, async () => {
  const labels = many(150_000, (index) => `"/${index}":""`).join()
  const answer = await send('POST', configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"labels","labels":{${labels}}}}`)
  assert.ok(answer.status === 413 || answer.status === 422, text(answer).slice(0, 300))
})

test('API-11 strategic merge of long lists takes time in proportion', { timeout: withinMs }, async () => {
  const env = many(20_000, (index) => ({ name: `e${index}`, value: 'x' }))
  const order = env.map(({ name }) => ({ name })).reverse()
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'long' }, spec: { containers: [{ name: 'a', image: 'b', env }] } }
  assert.equal((await send('POST', pods, JSON.stringify(pod))).status, 201)
  const patch = (container: object) =>
    send('PATCH', `${pods}/long?dryRun=All`, JSON.stringify({ spec: { containers: [{ name: 'a', ...container }] } }), strategicMerge)
  assert.equal((await patch({ env })).status, 200)
  // Merged well, but a pod's environment is fixed.
  assert.equal((await patch({ $retainKeys: [...many(20_000, String), 'name', 'image'] })).status, 422)
  assert.equal((await patch({ '$setElementOrder/env': order })).status, 422)
  assert.equal((await patch({ env: order.map((item) => ({ ...item, $patch: 'delete' })) })).status, 422)
  const finalizers = many(50_000, (index) => `a.b/${index}`)
  const owned = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'owned', finalizers } }
  assert.equal((await send('POST', configMaps, JSON.stringify(owned))).status, 201)
  for (const [key, left] of [
    ['finalizers', 50_000],
    ['$deleteFromPrimitiveList/finalizers', 0],
  ] as const) {
    const answer = await send('PATCH', `${configMaps}/owned?dryRun=All`, JSON.stringify({ metadata: { [key]: finalizers } }), strategicMerge)
    assert.equal(JSON.parse(text(answer)).metadata.finalizers?.length ?? 0, left)
  }
})

test('CRD-01 a small object whose defaults would make it huge is refused', { timeout: withinMs }, async () => {
  const item = { type: 'object', properties: { note: { type: 'string', default: 'x'.repeat(1_000) } } }
  const schema = { type: 'object', properties: { spec: { type: 'array', items: item } } }
  await establish(server.client, definition('growths', 'Growth', [version('v1', schema)]))
  const body = (name: string, items: number) =>
    JSON.stringify({ apiVersion: 'example.com/v1', kind: 'Growth', metadata: { name }, spec: many(items, () => ({})) })
  const create = (name: string, items: number) => send('POST', '/apis/example.com/v1/namespaces/default/growths', body(name, items))
  assert.deepEqual([(await create('small', 1_000)).status, (await create('large', 5_000)).status, (await create('huge', 800_000)).status], [201, 413, 413])
})

test('API-02 an object that grows beyond what the store takes is refused', { timeout: withinMs }, async () => {
  const containers = many(20_000, (index) => ({ name: `a${index}`, image: 'b' }))
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'grown' }, spec: { containers } }
  const answer = await send('POST', pods, JSON.stringify(pod))
  assert.equal(answer.status, 413)
  assert.match(text(answer), /etcdserver: request is too large/)
})

test('API-11 JSON patches cannot nest an object deeper than a body may be', { timeout: withinMs }, async () => {
  const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  await establish(server.client, definition('depths', 'Depth', [version('v1', schema)]))
  const path = '/apis/example.com/v1/namespaces/default/depths'
  assert.equal((await send('POST', path, '{"apiVersion":"example.com/v1","kind":"Depth","metadata":{"name":"a"},"spec":{}}')).status, 201)
  const deepen = (at: number) => {
    const operations = JSON.stringify([{ op: 'add', path: `/spec${'/a'.repeat(at)}`, value: 0 }]).replace(':0}', `:${'{"a":'.repeat(900)}{}${'}'.repeat(900)}}`)
    return send('PATCH', `${path}/a`, operations, 'application/json-patch+json')
  }
  assert.equal((await deepen(1)).status, 200)
  assert.equal((await deepen(900)).status, 413)
})

test('API-11 thousands of managers are folded in time in proportion', { timeout: withinMs }, async () => {
  const entry = (index: number) => ({ manager: `m${index}`, operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { [`f:x${index}`]: {} } })
  const managed = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'managed', managedFields: many(20_000, entry) } }
  const answer = await send('POST', configMaps, JSON.stringify(managed))
  assert.equal(answer.status, 201, text(answer).slice(0, 300))
})

test('API-02 a body with too many objects is refused before they are validated', { timeout: withinMs }, async () => {
  const containers = `[${many(900_000, () => '{}').join(',')}]`
  const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":${containers}}}`
  const attempts = [
    send('POST', pods, pod),
    send('POST', pods, pod, 'application/yaml'),
    send('PATCH', `${pods}/p?fieldManager=a`, pod, 'application/apply-patch+yaml'),
    send('PATCH', `${configMaps}/keys`, `{"x":${containers}}`, 'application/merge-patch+json'),
  ]
  for (const attempt of attempts) {
    const { status, body } = await attempt
    assert.deepEqual([status, /more than 100000 objects and lists/.test(body.toString())], [413, true], body.toString().slice(0, 300))
  }
})
