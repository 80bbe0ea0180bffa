import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { createWorld, plainPasswords, tokenTtlMs } from '#testing/etcdUsers'
import { AuthStore } from './authStore.ts'

type World = ReturnType<typeof createWorld>

/** Calls without users: what each answers, one after the other. */
const cases: readonly { readonly name: string; readonly calls: readonly (readonly [method: string, request: object, refusal?: string])[] }[] = [
  {
    name: 'a user is added once, by a name',
    calls: [
      ['UserAdd', { name: '', password: 'x' }, 'user name is empty'],
      ['UserAdd', { name: 'a', password: 'x' }],
      ['UserAdd', { name: 'a', password: 'x' }, 'user name already exists'],
      ['UserAdd', { name: 'a'.repeat(513), password: 'x' }, 'skiff: a name of a user or role has at most 512 bytes'],
      ['UserAdd', { name: 'b', password: 'x'.repeat(73) }, 'bcrypt: password length exceeds 72 bytes'],
    ],
  },
  {
    name: 'a user that does not exist is not changed',
    calls: [
      ['UserDelete', { name: 'a' }, 'user name not found'],
      ['UserGet', { name: 'a' }, 'user name not found'],
      ['UserChangePassword', { name: 'a', password: 'x' }, 'user name not found'],
      ['UserGrantRole', { name: 'a', role: 'r' }, 'user name not found'],
      ['UserRevokeRole', { name: 'a', role: 'r' }, 'user name not found'],
    ],
  },
  {
    name: 'a role is added once, by a name',
    calls: [
      ['RoleAdd', { name: '' }, 'role name is empty'],
      ['RoleAdd', { name: 'r' }],
      ['RoleAdd', { name: 'r' }, 'role name already exists'],
    ],
  },
  {
    name: 'a role that does not exist is not granted or changed, except root',
    calls: [
      ['UserAdd', { name: 'a', password: 'x' }],
      ['UserGrantRole', { name: 'a', role: 'r' }, 'role name not found'],
      ['UserGrantRole', { name: 'a', role: 'root' }],
      ['UserRevokeRole', { name: 'a', role: 'r' }, 'role is not granted to the user'],
      ['RoleDelete', { name: 'r' }, 'role name not found'],
      ['RoleGet', { name: 'r' }, 'role name not found'],
      ['RoleGrantPermission', { name: 'r', perm: { permType: 'READ', key: Buffer.from('a') } }, 'role name not found'],
      ['RoleRevokePermission', { name: 'r', key: Buffer.from('a'), rangeEnd: Buffer.alloc(0) }, 'role name not found'],
    ],
  },
  {
    name: 'a permission needs a key, and an end after it',
    calls: [
      ['RoleAdd', { name: 'r' }],
      ['RoleGrantPermission', { name: 'r', perm: null }, 'permission not given'],
      ['RoleGrantPermission', { name: 'r', perm: { permType: 7, key: Buffer.from('a') } }, 'skiff: the type of a permission is READ, WRITE or READWRITE'],
      ['RoleGrantPermission', { name: 'r', perm: { permType: 'READ' } }, 'invalid auth management'],
      ['RoleGrantPermission', { name: 'r', perm: { permType: 'READ', key: Buffer.from('b'), rangeEnd: Buffer.from('b') } }, 'invalid auth management'],
      ['RoleGrantPermission', { name: 'r', perm: { permType: 'READ', key: Buffer.from('b'), rangeEnd: Buffer.from('\0') } }],
      ['RoleRevokePermission', { name: 'r', key: Buffer.from('b'), rangeEnd: Buffer.alloc(0) }, 'permission is not granted to the role'],
      ['RoleRevokePermission', { name: 'r', key: Buffer.from('b'), rangeEnd: Buffer.from('\0') }],
    ],
  },
  {
    name: 'users are not needed before there is a root with its role',
    calls: [
      ['Authenticate', { name: 'a', password: 'x' }, 'authentication is not enabled'],
      ['AuthEnable', {}, 'root user does not exist'],
      ['UserAdd', { name: 'root', password: 'x' }],
      ['AuthEnable', {}, 'root user does not have root role'],
      ['UserGrantRole', { name: 'root', role: 'root' }],
      ['AuthDisable', {}],
      ['AuthEnable', {}],
      ['AuthDisable', {}, 'user name is empty'],
    ],
  },
]

for (const { name, calls } of cases)
  test(`ETC-24 ${name}`, async () => {
    const { call } = createWorld()
    for (const [method, request, wanted] of calls) {
      const answer = await call(`Auth.${method}`, request)
      const text = typeof answer === 'string' ? answer.replace('etcdserver: ', '') : undefined
      assert.equal(text, wanted, `${method} ${JSON.stringify(request)}`)
    }
  })

const statusOf = async ({ auth }: World) => ({ enabled: auth.isEnabled, revision: auth.revision })

test('ETC-24 each change raises the revision of users and roles by one, and one without effect does not', async () => {
  const world = createWorld()
  const { call } = world
  const revisions: number[] = []
  for (const [method, request] of [
    ['UserAdd', { name: 'root', password: 'x' }],
    ['UserGrantRole', { name: 'root', role: 'root' }],
    ['UserGrantRole', { name: 'root', role: 'root' }],
    ['RoleAdd', { name: 'r' }],
    ['RoleGrantPermission', { name: 'r', perm: { permType: 'READ', key: Buffer.from('a') } }],
    ['AuthDisable', {}],
    ['AuthEnable', {}],
    ['AuthEnable', {}],
  ] as const) {
    await call(`Auth.${method}`, request)
    revisions.push(world.auth.revision)
  }
  assert.deepEqual(revisions, [2, 3, 3, 4, 5, 5, 5, 5])
  const token = await world.login('root', 'x')
  await call('Auth.AuthDisable', {}, { token })
  assert.deepEqual(await statusOf(world), { enabled: false, revision: 6 })
  assert.equal(world.store.latestRevision(), 1, 'the keys have revisions of their own')
})

test('ETC-24 the root role has every key, and cannot be taken from root', async () => {
  const { call, enable, login } = createWorld()
  await enable({})
  const token = await login('root', 'root')
  const answer = (await call('Auth.RoleGet', { name: 'root' }, { token })) as { readonly perm: readonly object[] }
  assert.deepEqual(answer.perm, [{ permType: 'READWRITE', key: undefined, rangeEnd: Buffer.of(0) }])
  for (const [method, request] of [
    ['UserDelete', { name: 'root' }],
    ['RoleDelete', { name: 'root' }],
    ['UserRevokeRole', { name: 'root', role: 'root' }],
  ] as const)
    assert.equal(await call(`Auth.${method}`, request, { token }), 'etcdserver: invalid auth management')
})

test('ETC-24 permissions of a role are sorted by key, and granting one again changes its type', async () => {
  const { call } = createWorld()
  const grant = (permType: string, key: string, rangeEnd = '') =>
    call('Auth.RoleGrantPermission', { name: 'r', perm: { permType, key: Buffer.from(key), rangeEnd: Buffer.from(rangeEnd) } })
  await call('Auth.RoleAdd', { name: 'r' })
  await grant('READ', 'b')
  await grant('WRITE', 'c', 'd')
  await grant('READ', 'a')
  await grant('READWRITE', 'b')
  const { perm } = (await call('Auth.RoleGet', { name: 'r' })) as { readonly perm: readonly { readonly key: Buffer; readonly permType?: string }[] }
  assert.deepEqual(
    perm.map(({ key, permType = 'READ' }) => `${permType} ${key}`),
    ['READ a', 'READWRITE b', 'WRITE c'],
  )
})

test('ETC-24 a deleted role is taken from its users, and a new one of its name is not theirs', async () => {
  const { call, auth } = createWorld()
  await call('Auth.UserAdd', { name: 'a', password: 'x' })
  for (const role of ['r', 's']) {
    await call('Auth.RoleAdd', { name: role })
    await call('Auth.UserGrantRole', { name: 'a', role })
  }
  await call('Auth.RoleDelete', { name: 'r' })
  await call('Auth.RoleAdd', { name: 'r' })
  assert.deepEqual(auth.rolesOf('a'), ['s'])
})

test('ETC-24 a wrong password, an unknown user and a user without a password get no token', async () => {
  const { call, enable } = createWorld()
  await call('Auth.UserAdd', { name: 'cert', password: '', options: { noPassword: true } })
  await enable({ a: [] })
  const failed = 'etcdserver: authentication failed, invalid user ID or password'
  assert.equal(await call('Auth.Authenticate', { name: 'a', password: 'b' }), failed)
  assert.equal(await call('Auth.Authenticate', { name: 'b', password: 'b' }), failed)
  assert.match(String(await call('Auth.Authenticate', { name: 'cert', password: '' })), /password was given for no password user/)
})

test('ETC-24 a token is refused when the password changes, the user is deleted, or users are not needed for a while', async () => {
  const { call, enable, login } = createWorld()
  await enable({ a: ['read:k'], b: ['read:k'] })
  const root = { token: await login('root', 'root') }
  const read = (token: string) =>
    call('KV.Range', { key: Buffer.from('k'), rangeEnd: Buffer.alloc(0) }, { token }).then((answer) => (typeof answer === 'string' ? answer : 'ok'))
  const [a, b] = [await login('a', 'a'), await login('b', 'b')]
  assert.deepEqual([await read(a), await read(b)], ['ok', 'ok'])
  await call('Auth.UserChangePassword', { name: 'a', password: 'new' }, root)
  await call('Auth.UserDelete', { name: 'b' }, root)
  const refused = 'etcdserver: invalid auth token'
  assert.deepEqual([await read(a), await read(b)], [refused, refused])
  const again = await login('a', 'new')
  await call('Auth.AuthDisable', {}, root)
  assert.equal(await read('any.1'), 'ok')
  await call('Auth.AuthEnable', {})
  assert.equal(await read(again), refused)
})

test('ETC-24 the password is compared again when users or roles change meanwhile', async () => {
  let compared = 0
  const meanwhile: (() => Promise<unknown>)[] = []
  const passwords = {
    ...plainPasswords,
    matches: async (password: string, hash: string) => {
      compared++
      const isRight = await plainPasswords.matches(password, hash)
      await meanwhile.shift()?.()
      return isRight
    },
  }
  const { call, enable, login } = createWorld({ passwords })
  await enable({ a: [] })
  const token = await login('root', 'root')
  meanwhile.push(() => call('Auth.UserChangePassword', { name: 'a', password: 'new' }, { token }))
  assert.match(String(await call('Auth.Authenticate', { name: 'a', password: 'a' })), /authentication failed/)
  assert.equal(compared, 3)
})

test('ETC-24 users, roles and the need of them are there after a restart, tokens are not', async () => {
  const { store, enable, login } = createWorld()
  await enable({ a: ['read:k'] })
  const token = await login('a', 'a')
  const auth = new AuthStore({ store, clock: new VirtualClock(), passwords: plainPasswords, tokenTtlMs })
  assert.equal(auth.isEnabled, true)
  assert.deepEqual([auth.userNames(), auth.roleNames(), auth.rolesOf('a')], [['a', 'root'], ['read:k', 'root'], ['read:k']])
  assert.throws(() => auth.infoOfToken(token), /invalid auth token/)
  assert.doesNotThrow(() => auth.needRead(auth.infoOf('a'), 'k'))
  assert.throws(() => auth.needWrite(auth.infoOf('a'), 'k'), /permission denied/)
})

test('ETC-24 a change has no effect when it cannot be written', async () => {
  const { store, auth, call } = createWorld()
  await store.close()
  assert.equal(await call('Auth.UserAdd', { name: 'a', password: 'x' }), 'etcdserver: server stopped')
  assert.deepEqual([auth.userNames(), auth.revision], [[], 1])
})
