/** ETC-24: every call by every kind of caller. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { etcdProto } from '#grpc/proto/etcd'
import { loadService } from '#grpc/protoMessage'
import { type Caller, createWorld, tokenTtlMs } from '#testing/etcdUsers'
import { guarded } from './guard.ts'

const bytes = (text: string) => Buffer.from(text)
const none = bytes('')
const noOps = { requestRange: null, requestPut: null, requestDeleteRange: null, requestTxn: null }
const range = (key: string, rangeEnd = '') => ({
  ...{ key: bytes(key), rangeEnd: bytes(rangeEnd), limit: 0, revision: 0, sortOrder: 'NONE', sortTarget: 'KEY', keysOnly: false, countOnly: false },
  ...{ minModRevision: 0, maxModRevision: 0, minCreateRevision: 0, maxCreateRevision: 0 },
})
const put = (key: string, more: object = {}) => ({ key: bytes(key), value: none, lease: '0', prevKv: false, ignoreValue: false, ignoreLease: false, ...more })
const remove = (key: string, more: object = {}) => ({ key: bytes(key), rangeEnd: none, prevKv: false, ...more })
const compare = (key: string, rangeEnd = '') => ({ result: 'EQUAL', target: 'VERSION', key: bytes(key), rangeEnd: bytes(rangeEnd), version: 0 })
const transaction = (parts: object) => ({ compare: [], success: [], failure: [], ...parts })
const within = (request: object) => transaction({ success: [{ ...noOps, requestTxn: request }] })
const watch = (key: string, rangeEnd = '') => ({
  createRequest: {
    key: bytes(key),
    rangeEnd: bytes(rangeEnd),
    startRevision: 0,
    progressNotify: false,
    filters: [],
    prevKv: false,
    watchId: 0,
    fragment: false,
  },
  cancelRequest: null,
  progressRequest: null,
})

/** Users of the tests, each with what it may do. */
const users = { reader: ['read:r'], writer: ['write:w'], both: ['readwrite:b'], ranger: ['readwrite:d:f'], nobody: [] }
type UserName = keyof typeof users | 'root'

/** The users who may make the call; all others are refused with 'permission denied'. */
const calls: readonly (readonly [name: string, method: string, request: object, allowed: readonly UserName[]])[] = [
  ['reads a key', 'KV.Range', range('r'), ['reader', 'root']],
  ['reads a key that others may write', 'KV.Range', range('w'), ['root']],
  ['reads a range', 'KV.Range', range('d', 'e'), ['ranger', 'root']],
  ['reads beyond a range', 'KV.Range', range('d', 'g'), ['root']],
  ['reads all keys', 'KV.Range', range('\0', '\0'), ['root']],
  ['reads from a key on', 'KV.Range', range('r', '\0'), ['root']],
  ['writes a key', 'KV.Put', put('w'), ['writer', 'root']],
  ['writes a key that others may read', 'KV.Put', put('r'), ['root']],
  ['writes a key and reads what was there', 'KV.Put', put('w', { prevKv: true }), ['root']],
  ['writes a key and reads what was there, with both rights', 'KV.Put', put('b', { prevKv: true }), ['both', 'root']],
  ['deletes a key', 'KV.DeleteRange', remove('w'), ['writer', 'root']],
  ['deletes a key that it may read', 'KV.DeleteRange', remove('r'), ['root']],
  ['deletes a key and reads what was there', 'KV.DeleteRange', remove('w', { prevKv: true }), ['root']],
  ['deletes all keys', 'KV.DeleteRange', remove('\0', { rangeEnd: bytes('\0') }), ['root']],
  ['does nothing in a transaction', 'KV.Txn', transaction({}), ['reader', 'writer', 'both', 'ranger', 'nobody', 'root']],
  ['compares a key', 'KV.Txn', transaction({ compare: [compare('r')] }), ['reader', 'root']],
  ['compares a key that it may only write', 'KV.Txn', transaction({ compare: [compare('w')] }), ['root']],
  ['reads in a transaction', 'KV.Txn', transaction({ success: [{ ...noOps, requestRange: range('r') }] }), ['reader', 'root']],
  ['reads in the branch that is not chosen', 'KV.Txn', transaction({ failure: [{ ...noOps, requestRange: range('r') }] }), ['reader', 'root']],
  ['writes in a transaction', 'KV.Txn', transaction({ success: [{ ...noOps, requestPut: put('w') }] }), ['writer', 'root']],
  ['writes in a transaction and reads what was there', 'KV.Txn', transaction({ success: [{ ...noOps, requestPut: put('w', { prevKv: true }) }] }), ['root']],
  ['deletes in a transaction', 'KV.Txn', transaction({ failure: [{ ...noOps, requestDeleteRange: remove('w') }] }), ['writer', 'root']],
  [
    'deletes in a transaction and reads what was there',
    'KV.Txn',
    transaction({ success: [{ ...noOps, requestDeleteRange: remove('w', { prevKv: true }) }] }),
    ['root'],
  ],
  ['compares a range', 'KV.Txn', transaction({ compare: [compare('d', 'e')] }), ['ranger', 'root']],
  ['compares beyond a range', 'KV.Txn', transaction({ compare: [compare('d', 'g')] }), ['root']],
  ['compares in a nested transaction', 'KV.Txn', within(transaction({ compare: [compare('r')] })), ['reader', 'root']],
  ['reads in a nested transaction', 'KV.Txn', within(within(transaction({ failure: [{ ...noOps, requestRange: range('r') }] }))), ['reader', 'root']],
  ['writes in a nested transaction', 'KV.Txn', within(transaction({ success: [{ ...noOps, requestPut: put('w') }] })), ['writer', 'root']],
  ['deletes in a nested transaction', 'KV.Txn', within(transaction({ failure: [{ ...noOps, requestDeleteRange: remove('w') }] })), ['writer', 'root']],
  [
    'attaches a key to a lease in a nested transaction',
    'KV.Txn',
    within(transaction({ failure: [{ ...noOps, requestPut: put('b', { lease: '7' }) }] })),
    ['root'],
  ],
  ['watches a key', 'Watch.Watch', watch('r'), ['reader', 'root']],
  ['watches from the first key on', 'Watch.Watch', watch('', '\0'), ['root']],
  ['watches from a key on', 'Watch.Watch', watch('r', '\0'), ['root']],
  ['compacts', 'KV.Compact', { revision: 1 }, ['root']],
  ['grants a lease', 'Lease.LeaseGrant', { id: '0', ttl: 60 }, ['reader', 'writer', 'both', 'ranger', 'nobody', 'root']],
  ['keeps a lease of a key alive', 'Lease.LeaseKeepAlive', { id: '7' }, ['writer', 'root']],
  ['attaches a key to a lease of another key', 'KV.Put', put('b', { lease: '7' }), ['root']],
  ['attaches a key to a lease in a transaction', 'KV.Txn', transaction({ success: [{ ...noOps, requestPut: put('b', { lease: '7' }) }] }), ['root']],
  ['asks for the time of a lease', 'Lease.LeaseTimeToLive', { id: '7', keys: false }, ['reader', 'writer', 'both', 'ranger', 'nobody', 'root']],
  ['asks for the keys of a lease', 'Lease.LeaseTimeToLive', { id: '7', keys: true }, ['root']],
  ['lists leases', 'Lease.LeaseLeases', {}, ['root']],
  ['reads the status', 'Maintenance.Status', {}, ['reader', 'writer', 'both', 'ranger', 'nobody', 'root']],
  ['reads alarms', 'Maintenance.Alarm', { action: 'GET', memberId: 0, alarm: 'NOALARM' }, ['reader', 'writer', 'both', 'ranger', 'nobody', 'root']],
  ['raises an alarm', 'Maintenance.Alarm', { action: 'ACTIVATE', memberId: 0, alarm: 'CORRUPT' }, ['root']],
  ['disarms an alarm', 'Maintenance.Alarm', { action: 'DEACTIVATE', memberId: 0, alarm: 'NOALARM' }, ['root']],
  ['sends an unknown action about alarms', 'Maintenance.Alarm', { action: 9, memberId: 0, alarm: 'NOALARM' }, ['root']],
  ['defragments', 'Maintenance.Defragment', {}, ['root']],
  ['asks for the hash', 'Maintenance.Hash', {}, ['root']],
  ['asks for the hash of the keys', 'Maintenance.HashKV', { revision: 0 }, ['root']],
  ['takes a snapshot', 'Maintenance.Snapshot', {}, ['root']],
  ['lists members', 'Cluster.MemberList', {}, ['reader', 'writer', 'both', 'ranger', 'nobody', 'root']],
  ['asks whether users are needed', 'Auth.AuthStatus', {}, ['root']],
  ['enables', 'Auth.AuthEnable', {}, ['root']],
  ['adds a user', 'Auth.UserAdd', { name: 'new', password: 'x', options: null }, ['root']],
  ['lists users', 'Auth.UserList', {}, ['root']],
  ['looks at itself', 'Auth.UserGet', { name: 'reader' }, ['reader', 'root']],
  ['changes a password', 'Auth.UserChangePassword', { name: 'new', password: 'y' }, ['root']],
  ['grants a role', 'Auth.UserGrantRole', { name: 'new', role: 'root' }, ['root']],
  ['revokes a role', 'Auth.UserRevokeRole', { name: 'new', role: 'root' }, ['root']],
  ['deletes a user', 'Auth.UserDelete', { name: 'new' }, ['root']],
  ['adds a role', 'Auth.RoleAdd', { name: 'new' }, ['root']],
  ['lists roles', 'Auth.RoleList', {}, ['root']],
  ['looks at its role', 'Auth.RoleGet', { name: 'read:r' }, ['reader', 'root']],
  ['grants a permission', 'Auth.RoleGrantPermission', { name: 'new', perm: { permType: 'READ', key: bytes('a') } }, ['root']],
  ['revokes a permission', 'Auth.RoleRevokePermission', { name: 'new', key: bytes('a'), rangeEnd: none }, ['root']],
  ['deletes a role', 'Auth.RoleDelete', { name: 'new' }, ['root']],
  ['ends a lease of a key', 'Lease.LeaseRevoke', { id: '7' }, ['writer', 'root']],
  ['disables', 'Auth.AuthDisable', {}, ['root']],
]

async function guardedWorld() {
  const world = createWorld()
  await world.store.grantLease(3600, 7)
  await world.store.transact({ compare: [], success: [{ type: 'put', key: 'w', value: none, lease: 7 }] })
  await world.enable(users)
  const tokens: Record<string, string> = {}
  for (const name of [...Object.keys(users), 'root']) tokens[name] = await world.login(name, name)
  return { ...world, tokens }
}

const outcome = (answer: unknown) => (typeof answer === 'string' ? answer.replace('etcdserver: ', '') : 'allowed')
const order: readonly UserName[] = ['nobody', 'reader', 'writer', 'both', 'ranger', 'root']

for (const [name, method, request, allowed] of calls)
  test(`ETC-24 a user ${name}: allowed for ${allowed.join(', ')}`, async () => {
    for (const user of order) {
      // One world for each: a call that is allowed has an effect.
      const { call, tokens, enable: _, ...world } = await guardedWorld()
      if (/"new"/.test(JSON.stringify(request)) && !/Add$/.test(method)) {
        const root = { token: tokens.root }
        await world.auth.addUser(() => {}, 'new', 'x', false)
        await world.auth.grantRole(() => {}, 'new', 'root')
        await call('Auth.RoleAdd', { name: 'new' }, root)
        await call('Auth.RoleGrantPermission', { name: 'new', perm: { permType: 'READ', key: bytes('a') } }, root)
        if (method === 'Auth.UserGrantRole') await world.auth.revokeRole(() => {}, 'new', 'root')
      }
      const got = outcome(await call(method, request, { token: tokens[user] }))
      assert.equal(got, allowed.includes(user) ? 'allowed' : 'permission denied', user)
    }
  })

const strangers: readonly (readonly [name: string, caller: (tokens: Readonly<Record<string, string>>) => Caller, refusal: string])[] = [
  ['nobody', () => ({}), 'user name is empty'],
  ['a client with an invented token', () => ({ token: 'abcdefghijklmnop.1' }), 'invalid auth token'],
  ['a client with an empty certificate name', () => ({ commonName: '' }), 'user name is empty'],
  ["the HTTP gateway with root's name in its certificate", () => ({ commonName: 'root', 'grpcgateway-accept': '*/*' }), 'user name is empty'],
  ["a client with root's certificate and an invented token", () => ({ commonName: 'root', token: 'x.1' }), 'invalid auth token'],
]

for (const [name, callerOf, refusal] of strangers)
  test(`ETC-24 ${name} is refused every call but logging in`, async () => {
    const { call, tokens } = await guardedWorld()
    for (const [title, method, request] of calls) {
      const wanted = title === 'does nothing in a transaction' && refusal === 'user name is empty' ? 'allowed' : refusal
      assert.equal(outcome(await call(method, request, callerOf(tokens))), wanted, title)
    }
    assert.equal(outcome(await call('Auth.Authenticate', { name: 'reader', password: 'reader' }, callerOf(tokens))), 'allowed')
  })

test('ETC-24 a token that was not used for its time is refused every call', async () => {
  const { call, tokens, clock } = await guardedWorld()
  await clock.advance(tokenTtlMs)
  for (const [title, method, request] of calls) assert.equal(outcome(await call(method, request, { token: tokens.root })), 'invalid auth token', title)
})

test('ETC-24 the common name of a certificate is a user, where that is wanted; a token counts first', async () => {
  const { call, tokens } = await guardedWorld()
  assert.equal(outcome(await call('KV.Range', range('r'), { commonName: 'reader' })), 'allowed')
  assert.equal(outcome(await call('KV.Range', range('r'), { commonName: 'stranger' })), 'permission denied')
  assert.equal(outcome(await call('KV.Compact', { revision: 1 }, { commonName: 'stranger' })), 'user name not found')
  assert.equal(outcome(await call('KV.Range', range('r'), { commonName: 'reader', token: tokens.writer })), 'permission denied')
  assert.equal(outcome(await call('KV.Range', range('r'), { authorization: `Bearer ${tokens.reader}` })), 'allowed')
  const unnamed = createWorld({ namesInCertificates: false })
  await unnamed.enable(users)
  assert.equal(outcome(await unnamed.call('KV.Range', range('r'), { commonName: 'root' })), 'user name is empty')
})

test('ETC-24 nested transactions deeper than the limit of operations are refused to each user before any permission is looked up', async () => {
  const { call, tokens } = await guardedWorld()
  const nestedTo = (depth: number) => {
    let nested = transaction({})
    for (let level = 0; level < depth; level++) nested = within(nested)
    return nested
  }
  for (const user of ['nobody', 'root']) {
    assert.equal(outcome(await call('KV.Txn', nestedTo(128), { token: tokens[user] })), 'allowed', user)
    for (const depth of [129, 20_000])
      assert.equal(outcome(await call('KV.Txn', nestedTo(depth), { token: tokens[user] })), 'too many operations in txn request', user)
  }
})

test('ETC-24 a transaction looks at the keys of each lease once, and at none when it has too many operations', async () => {
  const { call, tokens, store } = await guardedWorld()
  let looks = 0
  const keysOf = store.leaseKeys.bind(store)
  store.leaseKeys = (id) => {
    looks++
    return keysOf(id)
  }
  const puts = (count: number) =>
    transaction({ success: Array.from({ length: count }, (_, at) => ({ ...noOps, requestPut: put(`d${at}`, { lease: at % 2 ? '7' : '8' }) })) })
  assert.equal(outcome(await call('KV.Txn', puts(129), { token: tokens.ranger })), 'too many operations in txn request')
  assert.equal(looks, 0)
  await store.transact({ compare: [], success: [{ type: 'delete', from: 'w' }] })
  await call('KV.Txn', puts(128), { token: tokens.ranger })
  assert.equal(looks, 2)
})

test('ETC-24 while no users are needed, no rule looks at a request', async () => {
  const { methods } = guarded({ auth: { isEnabled: false } } as never, 'KV', { methods: { Range: () => ({ kvs: [] }) } })
  assert.deepEqual(await methods?.Range?.({} as never, {} as never), { kvs: [] })
})

test('ETC-24 a permission that is revoked ends reads and new watches, and a watch that runs continues', async () => {
  const { call, tokens, services, store } = await guardedWorld()
  const stop = new AbortController()
  const events: object[] = []
  const running = services
    .find(({ service }) => service.endsWith('Watch'))
    ?.streams?.Watch?.({
      client: { metadata: (name: string) => (name === 'token' ? tokens.reader : undefined), commonName: () => undefined },
      requests: (async function* () {
        yield watch('r')
      })(),
      signal: stop.signal,
      send: (message: { readonly events?: readonly object[] }) => void events.push(...(message.events ?? [])),
      queuedBytes: 0,
      drained: async () => {},
    } as never)
  await new Promise((resolve) => setImmediate(resolve))
  await call('Auth.RoleRevokePermission', { name: 'read:r', key: bytes('r'), rangeEnd: none }, { token: tokens.root })
  assert.equal(outcome(await call('KV.Range', range('r'), { token: tokens.reader })), 'permission denied')
  assert.equal(outcome(await call('Watch.Watch', watch('r'), { token: tokens.reader })), 'permission denied')
  await store.transact({ compare: [], success: [{ type: 'put', key: 'r', value: none }] })
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(events.length, 1)
  stop.abort()
  await running
})

test('ETC-24 a put that keeps the value is checked, read and written in one turn', async () => {
  const { call, tokens, auth, store } = await guardedWorld()
  const keeping = call('KV.Put', put('w', { ignoreValue: true }), { token: tokens.writer })
  // The permission ends after the call was made and before it is answered.
  await Promise.all([auth.revokePermission(() => {}, 'write:w', 'w', ''), keeping])
  assert.equal(outcome(await keeping), 'allowed')
  assert.equal(outcome(await call('KV.Put', put('w', { ignoreValue: true }), { token: tokens.writer })), 'permission denied')
  assert.equal((await store.range('w')).kvs[0]?.version, 2)
})

test('ETC-24 a change of users by one who loses the root role meanwhile is refused', async () => {
  const { call, tokens } = await guardedWorld()
  await call('Auth.UserGrantRole', { name: 'both', role: 'root' }, { token: tokens.root })
  const [, added] = await Promise.all([
    call('Auth.UserRevokeRole', { name: 'both', role: 'root' }, { token: tokens.root }),
    call('Auth.UserAdd', { name: 'new', password: 'x', options: null }, { token: tokens.both }),
  ])
  assert.equal(outcome(added), 'permission denied')
})

for (const method of ['Hash', 'HashKV', 'Defragment', 'Snapshot'])
  test(`ETC-24 the call ${method} of one who loses the root role while it waits for its turn is refused`, async () => {
    const { call, tokens, store } = await guardedWorld()
    await call('Auth.UserGrantRole', { name: 'both', role: 'root' }, { token: tokens.root })
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const take = store.snapshot.bind(store)
    store.snapshot = () => held.then(take)
    const first = call('Maintenance.Hash', {}, { token: tokens.root })
    const waiting = call(`Maintenance.${method}`, { revision: 0 }, { token: tokens.both })
    await call('Auth.UserRevokeRole', { name: 'both', role: 'root' }, { token: tokens.root })
    release()
    assert.deepEqual([outcome(await first), outcome(await waiting)], ['allowed', 'permission denied'])
  })

test('ETC-24 a service with a method that has no rule is not served', () => {
  for (const name of ['Other', 'constructor'])
    assert.throws(() => guarded({} as never, 'KV', { methods: { [name]: () => ({}) } }), { message: `no rule says which user may call KV.${name}` })
})

test('ETC-24 every method that is served is among the calls of this test', () => {
  const { services } = createWorld()
  const served = services.flatMap(({ service, methods = {}, streams = {} }) =>
    [...Object.keys(methods), ...Object.keys(streams)].map((name) => `${service.split('.')[1]}.${name}`),
  )
  const tested = new Set(calls.map(([, method]) => method))
  assert.deepEqual(
    served.filter((method) => !tested.has(method)),
    ['Auth.Authenticate'],
  )
  assert.equal(loadService(etcdProto, 'etcdserverpb.Auth').size, 17)
})
