/** Keys of a key management service: values written under them, changed keys, and a service that is down. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import { decodeEncryptedObject, encodeEncryptedObject, encodeSource, sourceKey } from './encryptedObject.ts'
import { KmsProbe } from './kmsProbe.ts'
import type { KmsService } from './kmsService.ts'
import { kmsTransformer } from './kmsTransformer.ts'
import { encryptionMetrics } from './metrics.ts'
import type { TransformedValue } from './transformer.ts'

const context = { key: '/registry/secrets/a/b', resource: 'secrets' }
const plain = Buffer.from('{"kind":"Secret"}')

/** Encrypts by turning each bit over. */
function service() {
  const state = { keyId: '1', healthz: 'ok', version: 'v2', away: false, encryptsWith: undefined as string | undefined, decrypted: 0 }
  const flip = (bytes: Uint8Array) => bytes.map((byte) => byte ^ 0xff)
  const here = () => {
    if (state.away) throw Object.assign(new Error('rpc error: code = Unavailable desc = away'), { grpcStatus: 'Unavailable' })
  }
  const kms: KmsService = {
    async status() {
      here()
      return state
    },
    async encrypt(_uid, plaintext) {
      here()
      return { ciphertext: flip(plaintext), keyId: state.encryptsWith ?? state.keyId, annotations: new Map([['a.example', Buffer.from('x')]]) }
    },
    async decrypt(_uid, { ciphertext }) {
      here()
      state.decrypted++
      return flip(ciphertext)
    },
    close: () => undefined,
  }
  return { state, kms }
}

function setup(kms: KmsService, clock = new VirtualClock('2026-01-01T00:00:00Z')) {
  const deps = { service: kms, clock, log: noLog, metrics: encryptionMetrics(noMetrics, clock, ''), newUid: () => 'uid' }
  const probe = new KmsProbe('k', deps)
  return { clock, probe, transformer: kmsTransformer('k', { ...deps, currentKey: () => probe.currentKey() }) }
}

const text = ({ data, stale }: TransformedValue) => [Buffer.from(data).toString(), stale]

test("the message has upstream's fields", () => {
  const source = { keyId: 'k1', encryptedDekSource: Buffer.from('dek'), annotations: new Map([['a.b', Buffer.from('v')]]), sourceType: 1 }
  const bytes = encodeEncryptedObject(Buffer.from('data'), encodeSource(source))
  assert.equal(Buffer.from(bytes).toString('hex'), '0a0464617461' + '12026b31' + '1a0364656b' + '22080a03612e62120176' + '2801')
  const { annotations, ...rest } = decodeEncryptedObject(bytes)
  assert.deepEqual(
    [rest, [...annotations]],
    [
      { keyId: 'k1', encryptedDekSource: Buffer.from('dek'), sourceType: 1, encryptedData: Buffer.from('data') },
      [['a.b', new Uint8Array(Buffer.from('v'))]].map(([name, value]) => [name, Buffer.from(value as Uint8Array)]),
    ],
  )
  assert.notEqual(sourceKey(source), sourceKey({ ...source, annotations: new Map() }))
})

const badSources: [string, object, RegExp][] = [
  ['no data', { encryptedData: Buffer.of() }, /^Error: encrypted data is empty$/],
  ['an unknown source', { sourceType: 2 }, /^Error: unknown encryptedDEKSourceType: 2$/],
  ['no source', { encryptedDekSource: Buffer.of() }, /: encrypted DEK source is empty$/],
  ['a long source', { encryptedDekSource: Buffer.alloc(1025) }, /: encrypted DEK source is 1025 bytes, which exceeds the max size of 1024$/],
  ['no key id', { keyId: '' }, /^Error: failed to validate key id: keyID is empty$/],
  ['a long key id', { keyId: 'a'.repeat(1025) }, /keyID is 1025 bytes, which exceeds the max size of 1024$/],
  [
    'an annotation of one word',
    { annotations: new Map([['a', Buffer.of()]]) },
    /failed to validate annotations: .*should be a domain with at least two segments/,
  ],
  [
    'large annotations',
    { annotations: new Map([['a.b', Buffer.alloc(32 * 1024)]]) },
    /total size of annotations is 32771, which exceeds the max size of 32768$/,
  ],
]
for (const [name, change, why] of badSources) {
  test(`a message with ${name} is refused`, () => {
    const good = { keyId: 'k', encryptedDekSource: Buffer.from('d'), annotations: new Map<string, Buffer>(), sourceType: 1, encryptedData: Buffer.from('x') }
    const object = { ...good, ...change }
    assert.throws(() => decodeEncryptedObject(encodeEncryptedObject(object.encryptedData, encodeSource(object))), why)
  })
}

test('nothing is written or read before the service has answered', async () => {
  const { kms, state } = service()
  const { probe, transformer } = setup(kms)
  state.away = true
  const error = await probe.check()
  assert.equal(error?.message, 'failed to perform status section of the healthz check for KMS Provider k, error: rpc error: code = Unavailable desc = away')
  assert.throws(() => transformer.toStorage(plain, context), /^Error: got unexpected nil transformer$/)
})

test('writing does not call the service, and reading calls it once per key, also for concurrent reads', async () => {
  const { kms, state } = service()
  const first = setup(kms)
  assert.equal(await first.probe.check(), undefined)
  const values = Array.from({ length: 10 }, () => first.transformer.toStorage(plain, context))
  assert.deepEqual(text(first.transformer.fromStorage(values[0] as Uint8Array, context) as TransformedValue), [plain.toString(), false])
  assert.equal(state.decrypted, 0)
  const restarted = setup(kms)
  await restarted.probe.check()
  const read = await Promise.all(values.map((value) => restarted.transformer.fromStorage(value, context)))
  assert.deepEqual([...new Set(read.map((one) => text(one).join()))], [`${plain},false`])
  assert.equal(state.decrypted, 1)
  assert.ok(!(restarted.transformer.fromStorage(values[0] as Uint8Array, context) instanceof Promise))
})

test('a key that changed makes values stale; the new one writes', async () => {
  const { kms, state } = service()
  const { clock, probe, transformer } = setup(kms)
  await probe.check()
  const value = transformer.toStorage(plain, context)
  state.keyId = '2'
  assert.equal(await probe.check(), undefined, 'an answer holds for a while')
  assert.equal(probe.currentKey().keyId, '1')
  await clock.advance(20_000)
  await probe.check()
  assert.equal(probe.currentKey().keyId, '2')
  assert.deepEqual(text(await transformer.fromStorage(value, context)), [plain.toString(), true])
  assert.deepEqual(text(await transformer.fromStorage(transformer.toStorage(plain, context), context)), [plain.toString(), false])
})

test('while the service is down, cached keys still read values, and values are written for three minutes', async () => {
  const { kms, state } = service()
  const { clock, probe, transformer } = setup(kms)
  const stop = new AbortController()
  const running = probe.run(stop.signal)
  await clock.advance(0)
  state.away = true
  const value = transformer.toStorage(plain, context)
  await clock.advance(180_000)
  transformer.toStorage(plain, context)
  await clock.advance(1_000)
  assert.throws(
    () => transformer.toStorage(plain, context),
    /^Error: encryptedDEKSource with keyID hash "sha256:[0-9a-f]{64}" expired at 2026-01-01T00:03:00Z \(current time is 2026-01-01T00:03:01Z\)$/,
  )
  assert.deepEqual(text(await transformer.fromStorage(value, context)), [plain.toString(), false])
  state.away = false
  await clock.advance(10_000)
  transformer.toStorage(plain, context)
  stop.abort()
  await clock.advance(60_000)
  await running
})

const unwell: [string, Partial<ReturnType<typeof service>['state']>, RegExp][] = [
  ['that says so', { healthz: 'broken' }, /^kmsv2 Provider k is not healthy, error: got unexpected healthz status: broken$/],
  ['of another version', { version: 'v1' }, /expected KMSv2 API version v2, got v1$/],
  ['without a key', { keyId: '' }, /got invalid KMSv2 KeyID hash "": keyID is empty$/],
  [
    'that encrypts with another key than it says',
    { encryptsWith: '9' },
    /failed to rotate DEK uid="uid", useSeed=true, errState=got .*errGen=<nil>, statusKeyIDHash="sha/,
  ],
]
for (const [name, change, why] of unwell) {
  test(`a service ${name} is not well`, async () => {
    const { kms, state } = service()
    Object.assign(state, change)
    const error = await setup(kms).probe.check()
    assert.match(error?.message ?? '', why)
  })
}
