/** ETC-05: what a transaction does to the store, by the messages of its requests and answers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWorld } from '#testing/etcdUsers'

const bytes = (text: string) => Buffer.from(text)
const noOps = { requestRange: null, requestPut: null, requestDeleteRange: null, requestTxn: null }
const put = (key: string, value: string, more: object = {}) => ({
  ...noOps,
  requestPut: { key: bytes(key), value: bytes(value), lease: '0', prevKv: false, ignoreValue: false, ignoreLease: false, ...more },
})
const keep = (key: string, more: object = {}) => put(key, '', { ignoreValue: true, ...more })
const remove = (key: string, rangeEnd = '') => ({ ...noOps, requestDeleteRange: { key: bytes(key), rangeEnd: bytes(rangeEnd), prevKv: false } })
const exists = (key: string, rangeEnd = '') => ({ result: 'GREATER', target: 'VERSION', key: bytes(key), rangeEnd: bytes(rangeEnd), version: 0 })
const transaction = (parts: object) => ({ compare: [], success: [], failure: [], ...parts })
const nested = (parts: object) => ({ ...noOps, requestTxn: transaction(parts) })

interface Answer {
  readonly succeeded: boolean
  readonly responses: readonly { readonly responseTxn?: Answer }[]
}

const outcome = (answer: unknown) => (typeof answer === 'string' ? answer.replace('etcdserver: ', '') : 'carried out')

test('ETC-05 the compares of a nested transaction do not see what the transaction around it writes', async () => {
  const { call, store } = createWorld()
  const inner = nested({ compare: [exists('a')], success: [put('seen', '1')], failure: [put('unseen', '1')] })
  const answer = (await call<Answer>('KV.Txn', transaction({ success: [put('a', '1'), inner] }))) as Answer
  assert.equal(answer.succeeded, true)
  assert.equal(answer.responses[1]?.responseTxn?.succeeded, false)
  const { kvs } = await store.range('\0', '\0')
  assert.deepEqual(
    kvs.map(({ key, modRevision }) => [key, modRevision]),
    [
      ['a', 2],
      ['unseen', 2],
    ],
  )
})

test('ETC-05 a put keeps the value that an earlier put wrote, although that one is not durable yet', async () => {
  const { call, store } = createWorld()
  const writing = store.transact({ compare: [], success: [{ type: 'put', key: 'a', value: bytes('new') }] })
  const keeping = call('KV.Txn', transaction({ compare: [exists('a')], success: [keep('a')] }))
  assert.equal(outcome(await keeping), 'carried out')
  await writing
  const [found] = (await store.range('a')).kvs
  assert.deepEqual([String(Buffer.from(found?.value ?? [])), found?.version], ['new', 2])
})

test('ETC-05 a transaction that keeps the value of no key changes nothing', async () => {
  const { call, store } = createWorld()
  assert.equal(outcome(await call('KV.Txn', transaction({ success: [put('a', '1'), nested({ success: [keep('none')] })] }))), 'key not found')
  assert.equal(store.latestRevision(), 1)
})

/** Each with its outcome in etcd. */
const rules: readonly (readonly [what: string, operations: readonly object[], outcome: string])[] = [
  ['a key twice', [put('a', '1'), put('a', '2')], 'duplicate key given in txn request'],
  ['a key here and in a nested transaction', [put('a', '1'), nested({ failure: [put('a', '2')] })], 'duplicate key given in txn request'],
  ['a key in both branches of a nested transaction', [nested({ success: [put('a', '1')], failure: [put('a', '2')] })], 'carried out'],
  ['a key in two nested transactions', [nested({ success: [put('a', '1')] }), nested({ success: [put('a', '1')] })], 'duplicate key given in txn request'],
  ['and deletes a key', [put('b', '1'), remove('a', 'c')], 'duplicate key given in txn request'],
  ['a key that a nested transaction deletes', [nested({ success: [remove('a')] }), put('a', '1')], 'duplicate key given in txn request'],
  ['a key in a nested transaction and deletes it in a later one', [nested({ success: [put('a', '1')] }), nested({ success: [remove('a')] })], 'carried out'],
  ['a key and deletes all from it on', [remove('a', '\0'), put('a', '1')], 'carried out'],
  ['no key', [put('', '1')], 'key is not provided'],
  ['a value that it also keeps', [put('a', '1', { ignoreValue: true })], 'value is provided'],
  ['a lease that it also keeps', [put('a', '1', { ignoreLease: true, lease: '7' })], 'lease is provided'],
  ['a lease that does not exist', [nested({ success: [put('a', '1', { lease: '7' })] })], 'requested lease not found'],
  ['an operation without content', [noOps], 'key not found'],
]

for (const [what, operations, wanted] of rules)
  test(`ETC-05 the outcome of a transaction that puts ${what}: ${wanted}`, async () => {
    const { call } = createWorld()
    assert.equal(outcome(await call('KV.Txn', transaction({ success: operations }))), wanted)
    assert.equal(outcome(await call('KV.Txn', transaction({ compare: [exists('none')], failure: operations }))), wanted)
  })

test('ETC-05 a put after a deletion of all keys in its transaction has no previous value', async () => {
  const { call, store } = createWorld()
  await store.transact({ compare: [], success: [{ type: 'put', key: 'a', value: bytes('old') }] })
  const answer = await call<{ readonly responses: readonly object[] }>(
    'KV.Txn',
    transaction({ success: [remove('a', '\0'), put('a', 'new', { prevKv: true })] }),
  )
  assert.deepEqual((answer as { readonly responses: readonly object[] }).responses[1], { responsePut: { header: { revision: 3 } } })
})

const many = (count: number, one: object) => Array.from({ length: count }, () => one)
const one = remove('a')

/** Lists of operations around a limit of 128 for a list and 2,048 for all, each with its outcome. */
const counts: readonly (readonly [what: string, operations: readonly object[], isCarriedOut: boolean])[] = [
  ['128 operations', many(128, one), true],
  ['129 operations', many(129, one), false],
  ['64 transactions, one of 64 operations', [nested({ success: many(64, one) }), ...many(63, one)], true],
  ['64 transactions, one of 65 operations', [nested({ success: many(65, one) }), ...many(63, one)], false],
  ['2,048 operations in 32 transactions', [...many(31, nested({ success: many(63, one) })), nested({ success: many(63, one) })], true],
  ['2,049 operations in 32 transactions', [...many(31, nested({ success: many(63, one) })), nested({ success: many(64, one) })], false],
]

for (const [what, operations, isCarriedOut] of counts)
  test(`ETC-24 a transaction of ${what} is ${isCarriedOut ? 'carried out' : 'refused'}`, async () => {
    const { call } = createWorld()
    assert.equal(outcome(await call('KV.Txn', transaction({ success: operations }))), isCarriedOut ? 'carried out' : 'too many operations in txn request')
  })

test('ETC-24 a transaction whose ranges answer with more than 64 MiB together is refused, and changes nothing', async () => {
  const { call, store } = createWorld()
  await store.transact({ compare: [], success: [{ type: 'put', key: 'large', value: Buffer.alloc(1 << 20) }] })
  const range = {
    ...{ key: bytes('large'), rangeEnd: bytes(''), limit: 0, revision: 0, sortOrder: 'NONE', sortTarget: 'KEY', keysOnly: false, countOnly: false },
    ...{ minModRevision: 0, maxModRevision: 0, minCreateRevision: 0, maxCreateRevision: 0 },
  }
  const reading = (count: number) => transaction({ success: [put('a', '1'), ...many(count, { ...noOps, requestRange: range })] })
  assert.equal(outcome(await call('KV.Txn', reading(64))), 'skiff: the answers of a transaction have at most 67108864 bytes together')
  assert.equal(store.latestRevision(), 2)
  assert.equal(outcome(await call('KV.Txn', reading(50))), 'carried out')
})
