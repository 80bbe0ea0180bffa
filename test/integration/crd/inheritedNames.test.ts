/** CRD-01: names that every object of the language inherits are ordinary names of fields, in every mechanism that looks a name up. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { rawHttp } from '../api/rawHttp.ts'
import { crdPath, until } from './support.ts'

const names = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf', 'isPrototypeOf'] as const
type Name = (typeof names)[number]

/** An object with an own member of that name, as JSON: an object literal would set the prototype. */
const member = (name: string, value: unknown) => `{${JSON.stringify(name)}:${JSON.stringify(value)}}`
/** How CEL escapes a name with two underscores. */
const inRules = (name: string) => name.replaceAll('__', '__underscores__')

let api: TestApiServer
let listener: TestListener
let made = 0

before(async () => {
  api = await startTestApiServer()
  listener = await api.listen()
  const spec = {
    type: 'object',
    // In place of the properties, whose names an object literal cannot hold.
    properties: 'PROPERTIES',
    'x-kubernetes-validations': names.map((name) => ({ rule: `!has(self.${inRules(name)}) || self.${inRules(name)} != 'refused'`, message: `no ${name}` })),
  }
  const free = { type: 'object', properties: { known: { type: 'string' } } }
  const map = { type: 'object', additionalProperties: { type: 'integer' } }
  const withDefaults = { type: 'object', properties: 'DEFAULTS' }
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'odds.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'odds', singular: 'odd', kind: 'Odd', listKind: 'OddList' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec, free, map, withDefaults } } },
          additionalPrinterColumns: names.map((name) => ({ name: `c-${name}`, type: 'string', jsonPath: `.spec.${name}` })),
          selectableFields: names.map((name) => ({ jsonPath: `.spec.${name}` })),
        },
      ],
    },
  }
  const properties = (schema: object) => `{${names.map((name) => `${JSON.stringify(name)}:${JSON.stringify(schema)}`).join(',')}}`
  const text = JSON.stringify(definition)
    .replace('"PROPERTIES"', properties({ type: 'string' }))
    .replace('"DEFAULTS"', properties({ type: 'string', default: 'given' }))
  const { status, body } = await call('POST', crdPath, text)
  assert.equal(status, 201, body)
  await until('the definition to be served', async () => (await call('GET', odds, undefined)).status === 200)
})
after(() => api.close())

const odds = '/apis/example.com/v1/namespaces/default/odds'

async function call(method: string, path: string, body?: string, contentType = 'application/json', accept = 'application/json') {
  const answer = await rawHttp(listener, { method, path, headers: { 'content-type': contentType, accept }, ...(body === undefined ? {} : { body }) })
  return { status: answer.status, body: answer.body.toString() }
}

/** Creates an object with these fields, given as JSON. */
async function create(fields: Readonly<Record<string, string>>, query = '') {
  const metadata = { name: `o${made++}` }
  const members = Object.entries(fields).map(([field, json]) => `,${JSON.stringify(field)}:${json}`)
  const answer = await call('POST', `${odds}${query}`, `{"apiVersion":"example.com/v1","kind":"Odd","metadata":${JSON.stringify(metadata)}${members.join('')}}`)
  return { ...answer, path: `${odds}/${metadata.name}` }
}

/** The own member of an object in an answer. */
function read(body: string, field: string, name: string): unknown {
  const object = (JSON.parse(body) as Readonly<Record<string, object | undefined>>)[field]
  return object && Object.hasOwn(object, name) ? (object as Readonly<Record<string, unknown>>)[name] : undefined
}

const merge = 'application/merge-patch+json'

const mechanisms: Readonly<Record<string, (name: Name) => Promise<void>>> = {
  async 'is decoded, stored and read'(name) {
    const { status, body, path } = await create({ spec: member(name, 'kept'), map: member(name, 7) })
    assert.equal(status, 201, body)
    const { body: again } = await call('GET', path)
    assert.deepEqual([read(again, 'spec', name), read(again, 'map', name)], ['kept', 7])
  },
  async 'is pruned where the schema does not have it'(name) {
    const { status, body } = await create({ free: member(name, 'unknown') })
    assert.deepEqual([status, read(body, 'free', name)], [201, undefined])
  },
  async 'is refused as unknown by strict validation'(name) {
    const { status, body } = await create({ free: member(name, 'unknown') }, '?fieldValidation=Strict')
    assert.equal(status, 400)
    assert.ok(JSON.parse(body).message.includes(`unknown field "free.${name}"`), body)
  },
  async 'gets its default'(name) {
    const { status, body } = await create({ withDefaults: '{}' })
    assert.deepEqual([status, read(body, 'withDefaults', name)], [201, 'given'])
  },
  async 'is validated by its type'(name) {
    const { status, body } = await create({ spec: member(name, 7) })
    assert.equal(status, 422, body)
    assert.ok(JSON.parse(body).message.includes(`spec.${name}: Invalid value: "integer": spec.${name} in body must be of type string`), body)
    assert.equal((await create({ map: member(name, 'text') })).status, 422)
  },
  async 'is seen by rules'(name) {
    const { status, body } = await create({ spec: member(name, 'refused') })
    assert.equal(status, 422, body)
    assert.ok(JSON.parse(body).message.includes(`no ${name}`), body)
    assert.equal((await create({ spec: '{}' })).status, 201)
  },
  async 'is applied, owned and removed by its applier'(name) {
    const metadata = { name: `applied-${names.indexOf(name)}` }
    const path = `${odds}/${metadata.name}`
    const apply = (json: string) =>
      call(
        'PATCH',
        `${path}?fieldManager=a`,
        `{"apiVersion":"example.com/v1","kind":"Odd","metadata":${JSON.stringify(metadata)},"spec":${json},"map":${json.replace('"one"', '1')}}`,
        'application/apply-patch+yaml',
      )
    const { status, body } = await apply(member(name, 'one'))
    assert.equal(status, 201, body)
    const [entry] = JSON.parse(body).metadata.managedFields
    for (const field of ['f:spec', 'f:map']) assert.ok(Object.hasOwn(entry.fieldsV1[field], `f:${name}`), body)
    const { body: emptied } = await apply('{}')
    assert.deepEqual([read(emptied, 'spec', name), read(emptied, 'map', name)], [undefined, undefined])
  },
  async 'is set and removed by a merge patch and a JSON patch'(name) {
    const { path } = await create({ spec: '{}' })
    const set = await call('PATCH', path, `{"spec":${member(name, 'merged')}}`, merge)
    assert.deepEqual([set.status, read(set.body, 'spec', name)], [200, 'merged'], set.body)
    const unset = await call('PATCH', path, `{"spec":${member(name, null)}}`, merge)
    assert.deepEqual([unset.status, read(unset.body, 'spec', name)], [200, undefined])
    const added = await call('PATCH', path, JSON.stringify([{ op: 'add', path: `/spec/${name}`, value: 'added' }]), 'application/json-patch+json')
    assert.deepEqual([added.status, read(added.body, 'spec', name)], [200, 'added'], added.body)
    const removed = await call('PATCH', path, JSON.stringify([{ op: 'remove', path: `/spec/${name}` }]), 'application/json-patch+json')
    assert.deepEqual([removed.status, read(removed.body, 'spec', name)], [200, undefined], removed.body)
    assert.equal((await call('PATCH', path, JSON.stringify([{ op: 'remove', path: `/spec/${name}` }]), 'application/json-patch+json')).status, 422)
  },
  async 'is shown in a column'(name) {
    const { path } = await create({ spec: member(name, 'shown') })
    const { body } = await call('GET', path, undefined, 'application/json', 'application/json;as=Table;g=meta.k8s.io;v=v1')
    const { columnDefinitions, rows } = JSON.parse(body)
    const cells = Object.fromEntries(columnDefinitions.map((column: { name: string }, at: number) => [column.name, rows[0].cells[at]]))
    for (const other of names) assert.equal(cells[`c-${other}`], other === name ? 'shown' : null, other)
  },
  async 'is selected by'(name) {
    const { path } = await create({ spec: member(name, `chosen-${name}`) })
    const { status, body } = await call('GET', `${odds}?fieldSelector=spec.${name}%3Dchosen-${name}`)
    assert.equal(status, 200, body)
    assert.deepEqual(
      JSON.parse(body).items.map(({ metadata }: { metadata: { name: string } }) => `${odds}/${metadata.name}`),
      [path],
    )
  },
  async 'is in both OpenAPI documents'(name) {
    const v3 = JSON.parse((await call('GET', '/openapi/v3/apis/example.com/v1')).body).components.schemas
    const v2 = JSON.parse((await call('GET', '/openapi/v2')).body).definitions
    for (const document of [v2, v3]) {
      const { spec, withDefaults } = document['com.example.v1.Odd'].properties
      assert.ok(Object.hasOwn(spec.properties, name))
      assert.deepEqual(Object.getOwnPropertyDescriptor(withDefaults.properties, name)?.value, { type: 'string', default: 'given' })
    }
  },
}

for (const [mechanism, check] of Object.entries(mechanisms)) {
  for (const name of names) test(`CRD-01 a field called ${name} ${mechanism}`, () => check(name))
}
