import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { parseGroupVersion } from '../machinery/meta.ts'
import { schemaFor } from '../schema/builtIn.ts'
import type { Schema } from '../schema/schema.ts'
import { decodeMessage, ProtobufError } from './decode.ts'
import { encodeMessage } from './encode.ts'
import { decodeProtobuf, encodeProtobuf, encodeWatchFrame, openEnvelope, partialObjectMetadataSchema, protobufListPieces } from './envelope.ts'

function schemaOf(apiVersion: string, kind: string): Schema | undefined {
  const { group, version } = parseGroupVersion(apiVersion)
  return schemaFor(group, version, kind)
}
function known(apiVersion: string, kind: string): Schema {
  const schema = schemaOf(apiVersion, kind)
  assert.ok(schema)
  return schema
}

test('API-16 a small object has the bytes that upstream writes', () => {
  const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a' }, data: { k: 'v' } }
  // k8s\0, Unknown{typeMeta{v1, ConfigMap}, raw{metadata{name a}, data{k: v}}, '', ''}
  const want = '6b387300' + '0a0f0a0276311209436f6e6669674d6170' + '120d' + '0a030a0161' + '12060a016b120176' + '1a00' + '2200'
  assert.equal(Buffer.from(encodeProtobuf(object, known('v1', 'ConfigMap'))).toString('hex'), want)
  assert.deepEqual(decodeProtobuf(Buffer.from(want, 'hex'), schemaOf), object)
})

const objects: readonly { apiVersion: string; kind: string; [field: string]: unknown }[] = [
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'p',
      creationTimestamp: '2024-02-29T12:00:00Z',
      labels: { a: '1', b: '' },
      managedFields: [{ manager: 'm', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': {} } }],
    },
    spec: {
      containers: [{ name: 'c', resources: { limits: { cpu: '500m' } }, livenessProbe: { httpGet: { path: '/', port: 'web' }, initialDelaySeconds: 3 } }],
      volumes: [
        { name: 'v', emptyDir: { sizeLimit: '1Gi' } },
        { name: 's', secret: { secretName: 'x', defaultMode: 420 } },
      ],
      hostNetwork: true,
      terminationGracePeriodSeconds: 0,
      priority: -5,
    },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'd' },
    spec: { replicas: 0, template: { metadata: {}, spec: { containers: [{ name: 'c', resources: {} }] } }, strategy: {} },
  },
  {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'l' },
    spec: { renewTime: '2004-01-01T01:01:01.000002Z', leaseDurationSeconds: 15 },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 's' },
    spec: {
      ports: [
        { port: 80, targetPort: 8080 },
        { port: 81, targetPort: 'x' },
      ],
      type: 'ClusterIP',
    },
  },
  { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data: { a: 'AAEC/w==' }, type: 'Opaque' },
  { apiVersion: 'apps/v1', kind: 'ControllerRevision', metadata: { name: 'r' }, data: { spec: [1, null, 'x'] }, revision: 3 },
  {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    metadata: {},
    spec: {},
    status: { user: { username: 'u', groups: ['g'], extra: { k: ['v', 'w'] } } },
  },
  {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'f' },
    spec: {
      group: 'g',
      names: { plural: 'fs', kind: 'F' },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: false,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              default: { a: [1] },
              properties: {
                a: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
                b: { additionalProperties: false, maximum: 1.5 },
              },
            },
          },
        },
      ],
    },
    status: { conditions: null, acceptedNames: { plural: '', kind: '' }, storedVersions: null },
  },
  { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0, preconditions: { uid: 'u' }, propagationPolicy: 'Foreground' },
  {
    apiVersion: 'v1',
    kind: 'Status',
    metadata: {},
    status: 'Failure',
    message: 'm',
    reason: 'NotFound',
    details: { name: 'n', causes: [{ message: 'x' }] },
    code: 404,
  },
]
for (const object of objects) {
  test(`API-16 ${object.kind} goes through protobuf and comes back`, () => {
    const want = JSON.parse(JSON.stringify(object), (_key, value: unknown) => (value === null ? undefined : value)) as {
      status?: unknown
      spec?: { data?: unknown }
    }
    const got = decodeProtobuf(encodeProtobuf(object, known(object.apiVersion, object.kind)), schemaOf) as typeof want
    if (object.kind === 'ControllerRevision') assert.deepEqual(got, object)
    else if (object.kind === 'CustomResourceDefinition') assert.deepEqual({ ...got, status: undefined }, { ...want, status: undefined })
    else assert.deepEqual(got, want)
  })
}

test('zero values are dropped unless the field is a pointer or never omitted', () => {
  const spec = new BinaryWriter()
  spec.tag(1, WireType.Varint).int32(0).tag(5, WireType.Varint).int32(0).tag(7, WireType.Varint).bool(false)
  const writer = new BinaryWriter()
  writer.tag(2, WireType.LengthDelimited).bytes(spec.finish())
  assert.deepEqual(decodeMessage(writer.finish(), known('apps/v1', 'Deployment')), { spec: { replicas: 0 } })
})

test('API-16 an integer that no double holds is refused with its digits and its field', () => {
  const spec = new BinaryWriter()
  spec.tag(4, WireType.Varint).int64('9007199254740993')
  const writer = new BinaryWriter()
  writer.tag(2, WireType.LengthDelimited).bytes(spec.finish())
  const message = 'the integer 9007199254740993 of field terminationGracePeriodSeconds is out of range'
  assert.throws(() => decodeMessage(writer.finish(), known('v1', 'Pod')), new ProtobufError(message))
})

test('API-16 a free-form part keeps the digits of an int64', () => {
  const revision = { apiVersion: 'apps/v1', kind: 'ControllerRevision', metadata: {}, revision: 1, data: { n: 9007199254740993n } }
  assert.deepEqual(decodeProtobuf(encodeProtobuf(revision, known('apps/v1', 'ControllerRevision')), schemaOf), revision)
})

test('unknown field numbers are skipped, broken input is refused', () => {
  const writer = new BinaryWriter()
  writer.tag(999, WireType.LengthDelimited).string('future').tag(2, WireType.LengthDelimited).fork().tag(1, WireType.LengthDelimited).string('k').join()
  assert.deepEqual(decodeMessage(writer.finish(), known('v1', 'ConfigMap')), { data: { k: '' } })
  assert.throws(() => decodeMessage(Uint8Array.of(0x0a, 0x7f, 1), known('v1', 'ConfigMap')), ProtobufError)
  assert.throws(() => openEnvelope(Buffer.from('{}')), /expected prefix \[107 56 115 0\]/)
  assert.throws(
    () => decodeProtobuf(encodeProtobuf({ apiVersion: 'x/v1', kind: 'Y' }, known('v1', 'ConfigMap')), schemaOf),
    /no kind "Y" is registered for version "x\/v1"/,
  )
})

test('API-08 a watch frame is a length, a type and an object', () => {
  assert.equal(Buffer.from(encodeWatchFrame('ADDED', Uint8Array.of(7))).toString('hex'), '0000000c' + '0a054144444544' + '12030a0107')
})

test('API-17 partial metadata has the shape of the objects', () => {
  const list = { apiVersion: 'meta.k8s.io/v1', kind: 'PartialObjectMetadataList', metadata: { resourceVersion: '5' }, items: [{ metadata: { name: 'a' } }] }
  const schema = partialObjectMetadataSchema(true)
  assert.deepEqual(
    decodeProtobuf(encodeProtobuf(list, schema), () => schema),
    list,
  )
})

test('API-16 a list from the messages of its items has the bytes of the list as a whole, whatever their length', () => {
  const items = [0, 110, 111, 16_362, 16_363, 2_097_200].map((length) => ({
    metadata: { name: `of-${length}` },
    data: { k: 'x'.repeat(length) },
  }))
  const metadata = { resourceVersion: '7' }
  const list = { apiVersion: 'v1', kind: 'ConfigMapList', metadata, items }
  const messages = items.map((item) => encodeMessage(item, known('v1', 'ConfigMap')))
  assert.deepEqual(
    messages.map(({ length }) => length),
    [15, 127, 128, 16_383, 16_384, 2_097_227],
  )
  const pieces = protobufListPieces(list, metadata, messages, known('v1', 'ConfigMapList'))
  assert.ok(Buffer.concat(pieces).equals(encodeProtobuf(list, known('v1', 'ConfigMapList'))))
})
