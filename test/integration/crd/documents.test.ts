/** Custom resources in discovery and in OpenAPI, as soon as they are there and no longer than they are. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { rawHttp } from '../api/rawHttp.ts'
import { type Any, crdPath, definition, establish, group, plain, until, version } from './support.ts'

let api: TestApiServer
let listener: TestListener
before(async () => {
  api = await startTestApiServer()
  listener = await api.listen()
})
after(() => api.close())

const schema: JSONSchemaProps = {
  type: 'object',
  description: 'A thing to look up.',
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      required: ['name', 'maybe'],
      properties: {
        name: { type: 'string', description: 'What it is called.', pattern: '^[a-z]+$', default: 'x' },
        maybe: { type: 'object', nullable: true, properties: { a: { type: 'string' } } },
        port: { 'x-kubernetes-int-or-string': true },
        open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { a: { type: 'string' } } },
        inner: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { spec: { type: 'object' } } },
        list: { type: 'array', items: { type: 'integer' }, 'x-kubernetes-list-type': 'set' },
      },
      oneOf: [{ required: ['name'] }, { required: ['port'] }],
    },
  },
}
const body = definition(
  'things',
  'Thing',
  [version('v1', schema, { subresources: { status: {} }, selectableFields: [{ jsonPath: '.spec.name' }] }), version('v1alpha1', schema, { storage: false })],
  { names: { plural: 'things', kind: 'Thing', shortNames: ['th'], categories: ['all'] } },
)
const path = `/openapi/v3/apis/${group}/v1`
const name = 'com.example.v1.Thing'
const objectMeta = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'

async function read(address: string, accept = 'application/json'): Promise<{ status: number; etag: string; value: Any }> {
  const answer = await rawHttp(listener, { path: address, headers: { accept } })
  const text = answer.body.toString('utf8')
  return { status: answer.status, etag: String(answer.headers.etag), value: answer.status === 200 ? JSON.parse(text) : text }
}

test('CRD-05 discovery, plain and aggregated, lists a resource once it is served', async () => {
  const early = await read('/apis', 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList')
  assert.ok(!early.value.items.some((item: Any) => item.metadata.name === group))
  await establish(api.client, body)
  const { value: list } = await read(`/apis/${group}/v1`)
  assert.deepEqual(list.resources, [
    {
      name: 'things',
      singularName: 'thing',
      namespaced: true,
      kind: 'Thing',
      verbs: ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'],
      shortNames: ['th'],
      categories: ['all'],
      storageVersionHash: list.resources[0].storageVersionHash,
    },
    { name: 'things/status', singularName: '', namespaced: true, kind: 'Thing', verbs: ['get', 'patch', 'update'] },
  ])
  const { value: one } = await read(`/apis/${group}`)
  assert.deepEqual([one.versions.map((entry: Any) => entry.version), one.preferredVersion.version], [['v1', 'v1alpha1'], 'v1'])
  const late = await read('/apis', 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList')
  assert.notEqual(late.etag, early.etag)
  const found = late.value.items.find((item: Any) => item.metadata.name === group)
  assert.deepEqual(
    found.versions.map((entry: Any) => [entry.version, entry.freshness, entry.resources[0].resource, entry.resources[0].responseKind.kind]),
    [
      ['v1', 'Current', 'things', 'Thing'],
      ['v1alpha1', 'Current', 'things', 'Thing'],
    ],
  )
})

test("CRD-05 OpenAPI v3 has the definition's schema", async () => {
  const { value: index } = await read('/openapi/v3')
  assert.match(index.paths[`apis/${group}/v1`].serverRelativeURL, /^\/openapi\/v3\/apis\/example\.com\/v1\?hash=[0-9A-F]+$/)
  const { value: document } = await read(path)
  const { [name]: thing, [`${name}List`]: list, ...others } = document.components.schemas
  assert.ok(others[objectMeta])
  assert.deepEqual(thing.properties.spec, {
    type: 'object',
    required: ['name', 'maybe'],
    properties: {
      name: { type: 'string', description: 'What it is called.', pattern: '^[a-z]+$', default: 'x' },
      maybe: { type: 'object', nullable: true, properties: { a: { type: 'string' } } },
      port: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
      open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { a: { type: 'string' } } },
      inner: {
        type: 'object',
        'x-kubernetes-embedded-resource': true,
        required: ['kind', 'apiVersion'],
        properties: {
          spec: { type: 'object' },
          apiVersion: { type: 'string' },
          kind: { type: 'string' },
          metadata: { allOf: [{ $ref: `#/components/schemas/${objectMeta}` }] },
        },
      },
      list: { type: 'array', items: { type: 'integer' }, 'x-kubernetes-list-type': 'set' },
    },
    oneOf: [{ required: ['name'] }, { required: ['port'] }],
  })
  assert.deepEqual(
    [thing.description, thing.required, thing['x-kubernetes-group-version-kind'], thing['x-kubernetes-selectable-fields']],
    ['A thing to look up.', ['spec'], [{ group, kind: 'Thing', version: 'v1' }], [{ fieldPath: 'spec.name' }]],
  )
  assert.deepEqual([list.required, list.properties.items.items], [['items'], { $ref: `#/components/schemas/${name}` }])
  assert.deepEqual(Object.keys(document.paths), [
    `/apis/${group}/v1/namespaces/{namespace}/things`,
    `/apis/${group}/v1/namespaces/{namespace}/things/{name}`,
    `/apis/${group}/v1/namespaces/{namespace}/things/{name}/status`,
    `/apis/${group}/v1/things`,
  ])
  const { patch, post } = {
    ...document.paths[`/apis/${group}/v1/namespaces/{namespace}/things/{name}`],
    ...document.paths[`/apis/${group}/v1/namespaces/{namespace}/things`],
  }
  assert.deepEqual(Object.keys(patch.requestBody.content), ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml'])
  assert.deepEqual([post.operationId, Object.keys(post.requestBody.content)], ['createExampleComV1NamespacedThing', ['application/json', 'application/yaml']])
})

test("CRD-05 OpenAPI v2 omits parts of schemas that kubectl's parser rejects", async () => {
  const { value: document } = await read('/openapi/v2')
  assert.deepEqual(document.definitions[name].properties.spec, {
    type: 'object',
    required: ['name'],
    properties: {
      name: { type: 'string', description: 'What it is called.', pattern: '^[a-z]+$', default: 'x' },
      maybe: {},
      port: { 'x-kubernetes-int-or-string': true },
      open: { 'x-kubernetes-preserve-unknown-fields': true },
      inner: {
        type: 'object',
        'x-kubernetes-embedded-resource': true,
        required: ['kind', 'apiVersion'],
        properties: { spec: { type: 'object' }, apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: { $ref: `#/definitions/${objectMeta}` } },
      },
      list: { type: 'array', items: { type: 'integer' }, 'x-kubernetes-list-type': 'set' },
    },
  })
  assert.ok(document.paths[`/apis/${group}/v1/things`])
})

test('CRD-05 a changed definition changes only the documents that contain it', async () => {
  const before = (await read('/openapi/v3')).value.paths
  const crd = await plain(api.client).request('GET', `${crdPath}/things.${group}`)
  const changed = structuredClone(crd)
  changed.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.added = { type: 'string' }
  await plain(api.client).request('PUT', `${crdPath}/things.${group}`, changed)
  const after = await until('the change', async () => {
    const { paths } = (await read('/openapi/v3')).value
    return paths[`apis/${group}/v1`].serverRelativeURL !== before[`apis/${group}/v1`].serverRelativeURL && paths
  })
  assert.equal(after['apis/apps/v1'].serverRelativeURL, before['apis/apps/v1'].serverRelativeURL)
  assert.deepEqual((await read(path)).value.components.schemas[name].properties.spec.properties.added, { type: 'string' })
  await plain(api.client).request('DELETE', `${crdPath}/things.${group}`)
  await until('the end', async () => (await read(path)).status === 404)
  assert.equal((await read('/openapi/v3')).value.paths[`apis/${group}/v1`], undefined)
  assert.equal((await read('/openapi/v2')).value.definitions[name], undefined)
  assert.equal((await read(`/apis/${group}`)).status, 404)
})
