/** Integers that no double holds, in custom resources and in free-form parts of others: each answer has the digits that the client wrote. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import type { Unstructured } from '#api/machinery/meta'
import { createClient } from '#client/clientOverTransport'
import { createHttpTransport } from '#client/httpTransport'
import { createMemoryStore } from '#store/drivers/memory'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { lastingStore } from '#testing/changedStore'
import { realClock } from '#testing/realClock'
import { rawHttp, rawLines } from '../api/rawHttp.ts'
import { definition, establish, group, until, version } from './support.ts'

const long = '9007199254740993'
const most = '9223372036854775807'
const least = '-9223372036854775808'

const integer: JSONSchemaProps = { type: 'integer', format: 'int64' }
const schema: JSONSchemaProps = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      'x-kubernetes-preserve-unknown-fields': true,
      'x-kubernetes-validations': [{ rule: `!has(self.checked) || self.checked == ${long}` }],
      properties: {
        count: integer,
        checked: integer,
        limited: { ...integer, maximum: 9_000_000_000_000_000 },
        ratio: { type: 'number' },
        ids: { type: 'array', 'x-kubernetes-list-type': 'set', items: integer },
        filled: { type: 'object', properties: { by: integer } },
      },
    },
  },
}
const columns = [{ name: 'Count', type: 'integer', jsonPath: '.spec.count' }]
const ledgers = definition('ledgers', 'Ledger', [version('v1', schema, { additionalPrinterColumns: columns })])
const path = `/apis/${group}/v1/namespaces/default/ledgers`

let api: TestApiServer
let listener: TestListener
const store = createMemoryStore({ clock: realClock })

async function start(): Promise<void> {
  api = await startTestApiServer({ store: lastingStore(store) })
  listener = await api.listen()
}

before(async () => {
  await start()
  await establish(api.client, ledgers)
})
after(async () => {
  await api.close()
  await store.close()
})

async function send(method: string, at: string, body?: string, type = 'application/json', accept = 'application/json'): Promise<string> {
  const answer = await rawHttp(listener, { method, path: at, headers: { 'content-type': type, accept }, ...(body === undefined ? {} : { body }) })
  const text = answer.body.toString()
  assert.ok(answer.status < 300, text)
  return text
}

const ledger = (name: string, spec: string) => `{"apiVersion":"${group}/v1","kind":"Ledger","metadata":{"name":"${name}"},"spec":${spec}}`
/** The JSON text of a field in an answer. */
const specOf = (text: string) => /"spec":(\{.*?\})[,}\n]/.exec(text)?.[1]

test('CRD-01 int64 values keep their digits in the answer to a create, in reads, lists, watches and tables', async () => {
  const spec = `{"count":${long},"free":[${most},${least}],"ratio":1.5}`
  assert.equal(specOf(await send('POST', path, ledger('kept', spec))), spec)
  assert.equal(specOf(await send('GET', `${path}/kept`)), spec)
  assert.ok((await send('GET', path)).includes(spec))
  const [event = ''] = await rawLines(listener, { path: `${path}?watch=true&resourceVersion=0` }, 1)
  assert.ok(event.includes(spec), event)
  assert.match(await send('GET', `${path}/kept?pretty=true`), new RegExp(`"count": ${long},`))
  const table = await send('GET', path, undefined, 'application/json', 'application/json;as=Table;v=v1;g=meta.k8s.io')
  assert.match(table, new RegExp(`"cells":\\["kept",${long}\\]`))
})

test('CRD-01 an update with the digits of an answer is no change, and one with the next integer is', async () => {
  const made = await send('POST', path, ledger('compared', `{"count":${long}}`))
  assert.equal(await send('PUT', `${path}/compared`, made), made)
  const changed = await send('PUT', `${path}/compared`, made.replace(long, '9007199254740992'))
  assert.match(changed, /"count":9007199254740992/)
  assert.match(changed, /"generation":2/)
})

const patches = [
  { name: 'a merge patch', type: 'application/merge-patch+json', body: `{"spec":{"count":${most}}}` },
  {
    name: 'a JSON patch',
    type: 'application/json-patch+json',
    body: `[{"op":"test","path":"/spec/count","value":${long}},{"op":"replace","path":"/spec/count","value":${most}}]`,
  },
  { name: 'an apply of YAML', type: 'application/apply-patch+yaml', body: `apiVersion: ${group}/v1\nkind: Ledger\nspec:\n  count: ${most}\n`, force: true },
  { name: 'an apply of JSON', type: 'application/apply-patch+yaml', body: ledger('patched', `{"count":${most}}`), force: true },
]
for (const [at, { name, type, body, force }] of patches.entries()) {
  test(`CRD-01 ${name} keeps the digits of an int64`, async () => {
    await send('POST', path, ledger(`patched-${at}`, `{"count":${long}}`))
    const query = force ? '?fieldManager=test&force=true' : ''
    const text = await send('PATCH', `${path}/patched-${at}${query}`, body.replace('"patched"', `"patched-${at}"`), type)
    assert.equal(specOf(text), `{"count":${most}}`)
  })
}

test('API-16 YAML keeps the digits of an int64, and so does an answer in YAML', async () => {
  const body = `apiVersion: ${group}/v1\nkind: Ledger\nmetadata:\n  name: yaml\nspec:\n  count: ${long}\n  free: 0x20000000000001\n`
  const text = await send('POST', path, body, 'application/yaml', 'application/yaml')
  assert.match(text, new RegExp(`count: ${long}\\n  free: 9007199254740993\\n`))
})

test('API-11 applied sets name int64 items exactly, and the apply of another manager adds its own', async () => {
  const applied = (manager: string, ids: string) =>
    send('PATCH', `${path}/sets?fieldManager=${manager}`, ledger('sets', `{"ids":[${ids}]}`), 'application/apply-patch+yaml')
  assert.match(await applied('one', long), new RegExp(`"v:${long}"`))
  assert.equal(specOf(await applied('two', '9007199254740992')), `{"ids":[${long},9007199254740992]}`)
})

test('CRD-02 rules and bounds compare int64 values exactly', async () => {
  await send('POST', path, ledger('checked', `{"checked":${long}}`))
  const refusedWith = async (spec: string) => {
    const { status, body } = await rawHttp(listener, {
      method: 'POST',
      path,
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: ledger('refused', spec),
    })
    return [status, (JSON.parse(body.toString()) as { message: string }).message]
  }
  const [status, message] = await refusedWith('{"checked":9007199254740992}')
  assert.equal(status, 422)
  assert.match(String(message), /failed rule/)
  assert.deepEqual(await refusedWith(`{"limited":${long}}`), [
    422,
    `Ledger.${group} "refused" is invalid: spec.limited: Invalid value: ${long}: spec.limited in body should be less than or equal to 9000000000000000`,
  ])
  const [, beyond] = await refusedWith('{"count":9223372036854775808}')
  assert.match(String(beyond), /spec\.count in body must be of type int(eger|64)/)
})

test('API-16 a number beyond int64 in a free-form field is a float, as upstream, and one beyond float64 is refused by name', async () => {
  const text = await send('POST', path, ledger('floats', '{"free":[9223372036854775808,1e20,1e21]}'))
  assert.equal(specOf(text), '{"free":[9223372036854775808,100000000000000000000,1e+21]}'.replace('9223372036854775808', '9223372036854776000'))
  const body = ledger('infinite', '{"free":[1,1e400]}')
  const answer = await rawHttp(listener, { method: 'POST', path, headers: { 'content-type': 'application/json', accept: 'application/json' }, body })
  const { message } = JSON.parse(answer.body.toString()) as { message: string }
  assert.deepEqual(
    [answer.status, message],
    [
      400,
      'Ledger in version "v1" cannot be handled as a Ledger: json: cannot unmarshal number into Go value of type float64: spec.free[1] is beyond its range',
    ],
  )
})

test('API-01 a free-form part of a built-in kind keeps the digits of an int64', async () => {
  const revisions = '/apis/apps/v1/namespaces/default/controllerrevisions'
  const text = await send('POST', revisions, `{"metadata":{"name":"free"},"revision":1,"data":{"n":${long}}}`)
  assert.ok(text.includes(`"data":{"n":${long}}`), text)
  assert.ok((await send('GET', `${revisions}/free`)).includes(`"data":{"n":${long}}`))
})

test('API-01 an int64 field of a built-in kind that components compute with refuses what no double holds, by name', async () => {
  const pod = `{"metadata":{"name":"p"},"spec":{"terminationGracePeriodSeconds":${long},"containers":[{"name":"c","image":"i"}]}}`
  const answer = await rawHttp(listener, {
    method: 'POST',
    path: '/api/v1/namespaces/default/pods',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: pod,
  })
  assert.equal(answer.status, 400)
  assert.match(
    answer.body.toString(),
    new RegExp(`cannot unmarshal number ${long} into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64`),
  )
})

test('CRD-05 OpenAPI shows a default that no double holds in all of its forms, and objects get it', async () => {
  const spec: JSONSchemaProps = { type: 'object', properties: { n: { ...integer, default: 'N' as unknown as JSONSchemaProps } } }
  const body = JSON.stringify(definition('defaulted', 'Defaulted', [version('v1', { type: 'object', properties: { spec } })])).replace('"N"', long)
  await send('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', body)
  const at = `/apis/${group}/v1/namespaces/default/defaulted`
  await until('a served kind', async () => (await rawHttp(listener, { path: at })).status === 200)
  const made = await send('POST', at, `{"apiVersion":"${group}/v1","kind":"Defaulted","metadata":{"name":"d"},"spec":{}}`)
  assert.equal(specOf(made), `{"n":${long}}`)
  const shows = (text: string) => text.includes(`"default":${long}`)
  await until('OpenAPI v3 with the default', async () => shows(await send('GET', `/openapi/v3/apis/${group}/v1`)))
  await until('OpenAPI v2 with the default', async () => shows(await send('GET', '/openapi/v2')))
  const protobuf = await send('GET', '/openapi/v2', undefined, 'application/json', 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf')
  assert.ok(protobuf.includes(long))
})

test('CGO-06 a client with exactIntegers lists, watches and updates custom resources with all digits', async () => {
  const { url, ca, token } = listener
  const transport = createHttpTransport({ server: url, tls: { ca }, bearerToken: token, clock: realClock, exactIntegers: true })
  const stop = new AbortController()
  try {
    const ledgersOf = createClient(transport).of<Unstructured>({ group, version: 'v1', resource: 'ledgers', kind: 'Ledger', namespaced: true })
    const { items, metadata } = await ledgersOf.list({ namespace: 'default', fieldSelector: 'metadata.name=kept' })
    const kept = items[0] as Unstructured
    assert.equal((kept.spec as { count: unknown }).count, BigInt(long))
    const { resourceVersion } = metadata
    const updated = await ledgersOf.update({ ...kept, metadata: { ...kept.metadata, labels: { updated: 'yes' } } })
    assert.deepEqual(updated.spec, kept.spec)
    for await (const [event] of ledgersOf.watch({ namespace: 'default', resourceVersion: resourceVersion as string, signal: stop.signal })) {
      assert.deepEqual(event?.object.spec, kept.spec)
      break
    }
  } finally {
    stop.abort()
    await transport.close()
  }
})

test('CRD-01 a server that reads int64 values from the store answers with their digits', async () => {
  await api.close()
  await start()
  assert.equal(specOf(await send('GET', `${path}/kept`)), `{"count":${long},"free":[${most},${least}],"ratio":1.5}`)
  const patched = await send('PATCH', `${path}/kept`, '{"metadata":{"labels":{"a":"b"}}}', 'application/merge-patch+json')
  assert.equal(specOf(patched), `{"count":${long},"free":[${most},${least}],"ratio":1.5}`)
})
