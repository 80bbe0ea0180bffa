import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromJSON, type ServiceDefinition } from '@grpc/proto-loader'
import { criProto } from './proto/cri.ts'
import { devicePluginProto } from './proto/devicePlugin.ts'
import { draHealthProto, draProtos } from './proto/dra.ts'
import { externalJwtProto } from './proto/externalJwt.ts'
import { kmsProto } from './proto/kms.ts'
import { pluginRegistrationProto } from './proto/pluginRegistration.ts'
import { podResourcesProto } from './proto/podResources.ts'
import { loadService } from './protoMessage.ts'
import { parseProto } from './protoText.ts'

const text = `package p;
  enum Mode { OFF = 0; ON = 1; }
  message Inner { string name = 1; int64 value = 2; }
  message All {
    string text = 1; bytes data = 2; bool flag = 3; int32 small = 4; int64 large = 5; uint32 count = 6; uint64 total = 7; Mode mode = 8; Inner inner = 9;
    repeated string words = 10; repeated int64 numbers = 11; repeated Inner inners = 12; map<string, string> labels = 13; map<string, Inner> by_name = 14;
    repeated Mode modes = 2000;
  }
  service Things { rpc Do(All) returns (All); }`
/** The other implementation, as the reference. */
const reference = (fromJSON(parseProto(text) as never, { longs: Number, enums: String, defaults: true, bytes: Buffer })['p.Things'] as ServiceDefinition).Do!
const codec = loadService(text, 'p.Things').get('Do')!.request

const cases = [
  { name: 'nothing', message: {} },
  { name: 'text beyond ASCII', message: { text: 'grüß – 漢字 🚢' } },
  { name: 'bytes of every value', message: { data: Buffer.from(Array.from({ length: 256 }, (_, index) => index)) } },
  { name: 'numbers below zero', message: { small: -1, large: -1_000_000_007 } },
  { name: 'the smallest and the largest of 32 bits', message: { small: -(2 ** 31), count: 2 ** 32 - 1 } },
  { name: 'the largest exact numbers', message: { large: Number.MAX_SAFE_INTEGER, total: Number.MAX_SAFE_INTEGER } },
  { name: 'the smallest exact number', message: { large: Number.MIN_SAFE_INTEGER } },
  { name: 'numbers of one to eight bytes', message: { numbers: Array.from({ length: 53 }, (_, bit) => 2 ** bit - 1) } },
  { name: 'messages within', message: { inner: { name: 'a', value: 5 }, inners: [{ name: 'b', value: -5 }, {}] } },
  { name: 'lists and maps', message: { words: ['a', '', 'c'], labels: { a: 'b', '': 'c' }, byName: { x: { value: 7 } }, modes: ['ON', 'OFF'] } },
  { name: 'more than a buffer', message: { words: Array.from({ length: 500 }, (_, index) => `word ${index}`), mode: 'ON', flag: true } },
]
for (const { name, message } of cases) {
  test(`what is written is read by another implementation, and the other way round: ${name}`, () => {
    const want = reference.requestDeserialize(reference.requestSerialize(message))
    assert.deepEqual(reference.requestDeserialize(codec.encode(message)), want)
    assert.deepEqual(codec.decode(reference.requestSerialize(message)), JSON.parse(JSON.stringify(want), revived))
    assert.deepEqual(codec.decode(codec.encode(message)), JSON.parse(JSON.stringify(want), revived))
  })
}

/** A plain object with Buffers, as the codec makes it. */
function revived(_: string, value: unknown): unknown {
  return (value as { type?: string } | null)?.type === 'Buffer' ? Buffer.from((value as { data: number[] }).data) : value
}

test('unknown fields are skipped', () => {
  const smaller = loadService('package p; message Few { string text = 1; } service Things { rpc Do(Few) returns (Few); }', 'p.Things').get('Do')!.request
  const message = { text: 'a', large: -1, inner: { name: 'b' }, numbers: [1, 2] }
  assert.deepEqual(smaller.decode(codec.encode(message)), { text: 'a' })
  const fixed = Buffer.from([0x09, 1, 2, 3, 4, 5, 6, 7, 8, 0x15, 1, 2, 3, 4, 0x0a, 1, 0x61])
  assert.deepEqual(smaller.decode(fixed), { text: 'a' })
})

test('what a number cannot say is refused, or cut as Go would', () => {
  assert.deepEqual((codec.decode(codec.encode({ large: 1.9, small: -1.9 })) as { large: number; small: number }).large, 1)
  assert.throws(() => codec.encode({ large: Number.NaN }), /All\.large: wants a number/)
  assert.throws(() => codec.encode({ mode: 'MAYBE' }), /All\.mode: wants one of OFF, ON, not "MAYBE"/)
  assert.throws(() => codec.encode({ inner: { name: 5 } }), /All\.inner: Inner\.name: wants a string, not 5/)
})

for (const [name, bytes] of [
  ['within a number', [0x28, 0x80]],
  ['within a string', [0x0a, 5, 0x61]],
  ['after a tag', [0x28]],
] as const) {
  test(`a message that ends ${name} is refused`, () => {
    assert.throws(() => codec.decode(Buffer.from(bytes)), /the message ends/)
  })
}

test('all our descriptions load', () => {
  const services = [
    [criProto, 'runtime.v1.RuntimeService', 'RunPodSandbox'],
    [criProto, 'runtime.v1.ImageService', 'PullImage'],
    [devicePluginProto, 'v1beta1.DevicePlugin', 'Allocate'],
    [draProtos.v1, 'k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin', 'NodePrepareResources'],
    [draHealthProto, 'v1alpha1.DRAResourceHealth', 'NodeWatchResources'],
    [externalJwtProto, 'v1.ExternalJWTSigner', 'Sign'],
    [kmsProto, 'v2.KeyManagementService', 'Encrypt'],
    [pluginRegistrationProto, 'pluginregistration.Registration', 'GetInfo'],
    [podResourcesProto, 'v1.PodResourcesLister', 'List'],
  ] as const
  for (const [proto, service, method] of services) {
    for (const { request, response } of loadService(proto, service).values()) {
      request.decode(Buffer.alloc(0))
      response.decode(Buffer.alloc(0))
    }
    assert.equal(loadService(proto, service).get(method)?.path, `/${service}/${method}`)
  }
  assert.throws(() => loadService(kmsProto, 'v2.Nothing'), /has no v2\.Nothing/)
})
