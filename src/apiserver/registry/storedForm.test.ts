import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInResource } from '#api/discovery/resources'
import { strategyFor } from '#api/kinds/index'
import type { KubeObject } from '#api/machinery/meta'
import { encodeProtobuf, isProtobuf, protobufMediaType } from '#api/protobuf/envelope'
import { encodeStored } from '../core/watch/cacheEntry.ts'
import { UnreadableValue } from '../core/watch/unreadableValue.ts'
import { identityTransformer, prefixTransformers } from '../encryption/transformer.ts'
import { type StorageMediaType, storedFormOf } from './storedForm.ts'
import { StoredValues } from './storedValues.ts'

function formOf(group: string, version: string, resource: string, mediaType: StorageMediaType = protobufMediaType) {
  const facts = builtInResource(group, version, resource)
  assert.ok(facts?.storage)
  return storedFormOf({ storage: facts.storage, kind: facts.kind, convert: strategyFor(facts.storage.group, facts.kind)?.convert }, mediaType)
}

const parsed = (value: Uint8Array) => JSON.parse(Buffer.from(value).toString()) as KubeObject
const asMade = (value: object) => value as unknown as KubeObject
const encoded = (form: ReturnType<typeof formOf>, object: object) => form.encode(asMade(structuredClone(object)), encodeStored(asMade(structuredClone(object))))

const column = { name: 'Size', type: 'integer', jsonPath: '.spec.size' }
const schema = { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object' } } } }
const definition = (versions: readonly object[], conversion: object = { strategy: 'None' }) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.example.com' },
  spec: { group: 'example.com', names: { plural: 'things', kind: 'Thing' }, scope: 'Namespaced', versions, conversion },
  status: { conditions: [], storedVersions: ['v1'] },
})

test('ETC-02 a definition is stored as v1beta1 JSON, with what its versions share in its spec', () => {
  const form = formOf('apiextensions.k8s.io', 'v1', 'customresourcedefinitions')
  const shared = { schema, subresources: { status: {} } }
  const made = definition([
    { name: 'v1', served: true, storage: true, ...shared, additionalPrinterColumns: [column] },
    { name: 'v2', served: true, storage: false, ...shared },
  ])
  const value = encoded(form, made)
  const { apiVersion, spec } = parsed(value) as unknown as { apiVersion: string; spec: object }
  assert.equal(apiVersion, 'apiextensions.k8s.io/v1beta1')
  assert.deepEqual(spec, {
    group: 'example.com',
    names: { plural: 'things', kind: 'Thing' },
    scope: 'Namespaced',
    version: 'v1',
    versions: [
      { name: 'v1', served: true, storage: true, additionalPrinterColumns: [{ name: 'Size', type: 'integer', JSONPath: '.spec.size' }] },
      { name: 'v2', served: true, storage: false },
    ],
    validation: schema,
    subresources: { status: {} },
    conversion: { strategy: 'None' },
    preserveUnknownFields: false,
  })
  assert.deepEqual(parsed(form.decode(value)), made)
})

test('ETC-02 a definition with a conversion webhook, and columns that all versions share, is the same after it was stored', () => {
  const form = formOf('apiextensions.k8s.io', 'v1', 'customresourcedefinitions')
  const webhook = { clientConfig: { url: 'https://example.com/' }, conversionReviewVersions: ['v1'] }
  const version = { name: 'v1', served: true, storage: true, schema, additionalPrinterColumns: [column], selectableFields: [{ jsonPath: '.spec.size' }] }
  const made = definition([version], { strategy: 'Webhook', webhook })
  const value = encoded(form, made)
  const { spec } = parsed(value) as unknown as { spec: Record<string, unknown> }
  assert.deepEqual(spec.conversion, { strategy: 'Webhook', webhookClientConfig: { url: 'https://example.com/' }, conversionReviewVersions: ['v1'] })
  assert.deepEqual(spec.selectableFields, [{ jsonPath: '.spec.size' }])
  assert.deepEqual(parsed(form.decode(value)), made)
})

test('ETC-02 a definition that was stored as v1beta1 has the defaults of v1beta1', () => {
  const form = formOf('apiextensions.k8s.io', 'v1', 'customresourcedefinitions')
  const old = { kind: 'CustomResourceDefinition', apiVersion: 'apiextensions.k8s.io/v1beta1', metadata: { name: 'a.b' }, spec: { group: 'b', version: 'v1' } }
  const { apiVersion, spec } = parsed(form.decode(Buffer.from(JSON.stringify(old)))) as unknown as { apiVersion: string; spec: object }
  assert.equal(apiVersion, 'apiextensions.k8s.io/v1')
  assert.deepEqual(spec, {
    group: 'b',
    scope: 'Namespaced',
    preserveUnknownFields: true,
    versions: [{ name: 'v1', served: true, storage: true }],
    conversion: { strategy: 'None' },
  })
})

test('ETC-02 APIServices are JSON, other kinds what --storage-media-type says', () => {
  const service = { apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', metadata: { name: 'v1.b' }, spec: {} }
  assert.deepEqual(parsed(encoded(formOf('apiregistration.k8s.io', 'v1', 'apiservices'), service)), service)
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', resourceVersion: '7' }, data: { k: 'v' } }
  const plain = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { k: 'v' } }
  const protobuf = encoded(formOf('', 'v1', 'configmaps'), map)
  assert.equal(Buffer.from(protobuf).toString('hex'), '6b3873000a0f0a0276311209436f6e6669674d6170' + '120d0a030a016112060a016b120176' + '1a002200')
  assert.deepEqual(parsed(encoded(formOf('', 'v1', 'configmaps', 'application/json'), map)), plain)
  assert.equal(
    Buffer.from(encoded(formOf('', 'v1', 'configmaps', 'application/yaml'), map)).toString(),
    'apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\nmetadata:\n  name: a\n',
  )
})

test('ETC-02 an autoscaler that is stored as autoscaling/v1 is held as autoscaling/v2', () => {
  const spec = { maxReplicas: 3, scaleTargetRef: { kind: 'Deployment', name: 'd' }, targetCPUUtilizationPercentage: 50 }
  const old = { apiVersion: 'autoscaling/v1', kind: 'HorizontalPodAutoscaler', metadata: { name: 'h' }, spec }
  const held = parsed(formOf('autoscaling', 'v2', 'horizontalpodautoscalers').decode(Buffer.from(JSON.stringify(old)))) as unknown as {
    apiVersion: string
    spec: { metrics: unknown }
  }
  assert.equal(held.apiVersion, 'autoscaling/v2')
  assert.deepEqual(held.spec.metrics, [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } }])
})

test('ETC-02 a value in another form, or of another version, is written again', () => {
  const form = formOf('', 'v1', 'configmaps')
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } }
  assert.deepEqual(
    [encoded(form, object), Buffer.from(JSON.stringify(object)), encodeStored(asMade(object))].map((value) => form.isCurrent(value)),
    [true, false, false],
  )
  const definitions = formOf('apiextensions.k8s.io', 'v1', 'customresourcedefinitions')
  const made = definition([])
  assert.deepEqual(
    [encoded(definitions, made), encodeStored(asMade(made))].map((value) => definitions.isCurrent(value)),
    [true, false],
  )
})

test('ETC-02 with YAML as the media type, only a large value may be JSON: an unchanged one is not written again', () => {
  const form = formOf('', 'v1', 'configmaps', 'application/yaml')
  const sized = (bytes: number) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { k: 'v'.repeat(bytes) } })
  const [small, large] = [sized(10), sized(64 * 1024)]
  assert.deepEqual(
    [encoded(form, small), encoded(form, large), encodeStored(asMade(small)), encoded(formOf('', 'v1', 'configmaps'), large)].map((value) =>
      form.isCurrent(value),
    ),
    [true, true, false, false],
  )
})

test('ETC-02 a damaged value is reported without its content', () => {
  const values = new StoredValues('secrets', undefined, formOf('', 'v1', 'secrets'))
  for (const [text, want] of [
    ['{"data":hunter2', 'the value is no JSON'],
    ['hunter2: [', 'the value is no YAML'],
    ['hunter2', 'the value is no object'],
    ['', 'the value is no object'],
  ] as const) {
    const read = values.read('/registry/secrets/a/b', Buffer.from(text))
    assert.ok(read instanceof UnreadableValue && read.isDamaged, text)
    assert.equal(read.error.message, want)
  }
  const unknown = { apiVersion: 'apiextensions.k8s.io/v3', kind: 'CustomResourceDefinition', metadata: { name: 'a' } }
  assert.throws(
    () => formOf('apiextensions.k8s.io', 'v1', 'customresourcedefinitions').decode(Buffer.from(JSON.stringify(unknown))),
    /no kind "CustomResourceDefinition" is registered for version "apiextensions.k8s.io\/v3"/,
  )
})

test('ETC-02 with encryption, the protobuf form is what is encrypted', async () => {
  const prefix = 'k8s:enc:test:'
  const transformer = prefixTransformers(
    'none',
    [
      {
        prefix,
        transformer: {
          fromStorage: (data) => ({ data: data.map((byte) => byte ^ 1), stale: false }),
          toStorage: (data) => data.map((byte) => byte ^ 1),
        },
      },
      { prefix: '', transformer: identityTransformer },
    ],
    () => () => {},
  )
  const form = formOf('', 'v1', 'secrets')
  const values = new StoredValues('secrets', transformer, form)
  const object = asMade({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' }, data: { k: 'AAEC' } })
  const value = values.write('/registry/secrets/a/b', encodeStored(object), object)
  assert.equal(Buffer.from(value.subarray(0, prefix.length)).toString(), prefix)
  const plain = value.subarray(prefix.length).map((byte) => byte ^ 1)
  assert.ok(isProtobuf(plain))
  assert.deepEqual(await values.read('/registry/secrets/a/b', value), Buffer.from(plain))
  assert.equal(await values.isStale('/registry/secrets/a/b', value), false)
  const schemaless = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' } }
  assert.equal(await values.isStale('/registry/secrets/a/b', encodeProtobuf(schemaless, {} as never)), true)
})
