/** The ciphers against values that others made: Python's cryptography, and NaCl's own test. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cbcTransformer, extendedNonceGcmTransformer, gcmTransformer } from './aes.ts'
import { secretboxTransformer } from './secretbox.ts'
import type { TransformedValue, ValueTransformer } from './transformer.ts'

const context = { key: '/registry/secrets/default/one', resource: 'secrets' }
const elsewhere = { ...context, key: '/registry/secrets/default/two' }
const message = Buffer.from('{"kind":"Secret"}')
const bytes = (from: number, count: number) => Buffer.from(Array.from({ length: count }, (_, at) => from + at))
const hex = (text: string) => Buffer.from(text, 'hex')
const read = (transformer: ValueTransformer, data: Uint8Array, at = context) => {
  const { data: plain, stale } = transformer.fromStorage(data, at) as TransformedValue
  return { text: Buffer.from(plain).toString(), stale }
}

const made: { name: string; transformer: ValueTransformer; value: string }[] = [
  {
    name: 'aesgcm-128',
    transformer: gcmTransformer(bytes(0, 16)),
    value: '6465666768696a6b6c6d6e6f614025ccb5669ac0b96d3273f4af5fce4da11ddf3c3a3c3e22654952aa4fbb7e59',
  },
  {
    name: 'aesgcm-192',
    transformer: gcmTransformer(bytes(0, 24)),
    value: '6465666768696a6b6c6d6e6f924ad0153ccb2c02f18287628897ef9ca0385c35e70304840437594bc77c184693',
  },
  {
    name: 'aesgcm-256',
    transformer: gcmTransformer(bytes(0, 32)),
    value: '6465666768696a6b6c6d6e6f3339b50f178d74a41c313a8ba8001edf3f47f3b27602cb8d4d01c72e32ddf68ba9',
  },
  {
    name: 'aescbc-128',
    transformer: cbcTransformer(bytes(0, 16)),
    value: '32333435363738393a3b3c3d3e3f40416642858cb3de75631df184d0cd132cb8887492fc5ebe555d18165bae2ff653fe',
  },
  {
    name: 'aescbc-192',
    transformer: cbcTransformer(bytes(0, 24)),
    value: '32333435363738393a3b3c3d3e3f4041e415ce4c22e85aef4bc5362495d3bdf602a961b241e555568e1e42aba070ad69',
  },
  {
    name: 'aescbc-256',
    transformer: cbcTransformer(bytes(0, 32)),
    value: '32333435363738393a3b3c3d3e3f4041fe278d2125d1dc5fa65eaa846976314baab26d254bf5db43e503ad1a58f266fe',
  },
  {
    name: 'a key derived from a seed',
    transformer: extendedNonceGcmTransformer(bytes(0, 32)),
    value:
      'c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e76465666768696a6b6c6d6e6f58d2a087ea7a0b714eca1496fd9c3ce2b482f42a9259d8a3b54476eb334286925a',
  },
]

for (const { name, transformer, value } of made) {
  test(`${name}: reads what others wrote, and its own, which is new each time`, () => {
    assert.deepEqual(read(transformer, hex(value)), { text: message.toString(), stale: false })
    const own = transformer.toStorage(message, context)
    assert.deepEqual(read(transformer, own), { text: message.toString(), stale: false })
    assert.equal(own.length, hex(value).length)
    assert.notDeepEqual(transformer.toStorage(message, context), own)
  })
}

test("secretbox: NaCl's own test, and its own values", () => {
  const key = hex('1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389')
  const nonce = hex('69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37')
  const plain =
    'be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d45e6c61296cdc3c01233561f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde048977eb48f59ffd4924ca1c60902e52f0a089bc76897040e082f937763848645e0705'
  const sealed =
    'f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186ac0dfc17c98dce87b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74e355a5'
  const transformer = secretboxTransformer(key)
  const { data } = transformer.fromStorage(Buffer.concat([nonce, hex(sealed)]), context) as TransformedValue
  assert.equal(Buffer.from(data).toString('hex'), plain)
  const own = transformer.toStorage(message, context)
  assert.deepEqual(read(transformer, own), { text: message.toString(), stale: false })
  assert.equal(own.length, message.length + 40)
})

const refused: { name: string; read(): unknown; why: RegExp }[] = [
  { name: 'GCM under another key', read: () => read(gcmTransformer(bytes(1, 32)), hex(made[2]?.value ?? '')), why: /^cipher: message authentication failed$/ },
  { name: 'GCM in another place', read: () => read(gcmTransformer(bytes(0, 32)), hex(made[2]?.value ?? ''), elsewhere), why: /^cipher: message auth/ },
  { name: 'GCM cut short', read: () => read(gcmTransformer(bytes(0, 32)), bytes(0, 11)), why: /^the stored data was shorter than the required size$/ },
  { name: 'GCM without a tag', read: () => read(gcmTransformer(bytes(0, 32)), bytes(0, 20)), why: /^cipher: message auth/ },
  { name: 'CBC cut short', read: () => read(cbcTransformer(bytes(0, 32)), bytes(0, 15)), why: /^the stored data was shorter than/ },
  {
    name: 'CBC in no whole blocks',
    read: () => read(cbcTransformer(bytes(0, 32)), bytes(0, 33)),
    why: /^the stored data is not a multiple of the block size$/,
  },
  { name: 'CBC without a block', read: () => read(cbcTransformer(bytes(0, 32)), bytes(0, 16)), why: /^invalid PKCS7 data \(empty or not padded\)$/ },
  { name: 'CBC under another key', read: () => read(cbcTransformer(bytes(1, 32)), hex(made[5]?.value ?? '')), why: /^invalid (PKCS7 data|padding)/ },
  {
    name: 'a seed in another place',
    read: () => read(extendedNonceGcmTransformer(bytes(0, 32)), hex(made[6]?.value ?? ''), elsewhere),
    why: /^cipher: message/,
  },
  { name: 'a seed too short', read: () => extendedNonceGcmTransformer(bytes(0, 31)), why: /^invalid seed length 31 used for key generation$/ },
  { name: 'a box changed', read: () => read(secretboxTransformer(bytes(0, 32)), bytes(0, 60)), why: /^output array was not large enough for encryption$/ },
  { name: 'a box cut short', read: () => read(secretboxTransformer(bytes(0, 32)), bytes(0, 39)), why: /^the stored data was shorter than/ },
]
for (const one of refused) test(`refused: ${one.name}`, () => assert.throws(one.read, (error: Error) => one.why.test(error.message)))
