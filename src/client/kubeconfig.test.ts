import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { type Kubeconfig, type KubeconfigUser, resolveKubeconfig } from './kubeconfig.ts'

const clock = new VirtualClock()
const files: Record<string, string> = { 'ca.pem': 'CA', 'key.pem': 'KEY', token: 'one\n' }
const deps = { clock, readFile: async (path: string) => Buffer.from(files[path] ?? '') }
const config = (user: KubeconfigUser): Kubeconfig => ({
  'current-context': 'a',
  contexts: [
    { name: 'a', context: { cluster: 'c', user: 'u', namespace: 'n' } },
    { name: 'lost', context: { cluster: 'nowhere', user: 'u' } },
  ],
  clusters: [{ name: 'c', cluster: { server: 'https://x:1', 'certificate-authority': 'ca.pem' } }],
  users: [{ name: 'u', user }],
})

test('AUN-10 certificates are inline or in files, and the context has the namespace', async () => {
  const user = { 'client-certificate-data': Buffer.from('CERT').toString('base64'), 'client-key': 'key.pem' }
  const { namespace, transport } = await resolveKubeconfig(config(user), deps)
  assert.equal(namespace, 'n')
  assert.deepEqual([transport.tls?.ca, transport.tls?.cert, transport.tls?.key].map(String), ['CA', 'CERT', 'KEY'])
})

test('AUN-10 a token file is read again after a minute', async () => {
  const { transport } = await resolveKubeconfig(config({ tokenFile: 'token' }), deps)
  const token = transport.bearerToken as () => Promise<string>
  assert.equal(await token(), 'one')
  files.token = 'two'
  assert.equal(await token(), 'one')
  await clock.advance(60_000)
  assert.equal(await token(), 'two')
})

test('AUN-10 a token file goes before a token, which holds while the file cannot be read', async () => {
  let there = false
  const readFile = async (path: string) => (there || path !== 'f' ? Buffer.from('file') : Promise.reject(new Error('gone')))
  const tokenOf = async (user: KubeconfigUser) => (await resolveKubeconfig(config(user), { clock, readFile })).transport.bearerToken as () => Promise<string>
  const token = await tokenOf({ token: 'own', tokenFile: 'f' })
  const alone = await tokenOf({ tokenFile: 'f' })
  assert.equal(await token(), 'own')
  await assert.rejects(alone(), /gone/)
  there = true
  assert.deepEqual([await token(), await alone()], ['file', 'file'])
  there = false
  await clock.advance(60_000)
  assert.equal(await token(), 'file')
})

test('AUN-10 the impersonation of a kubeconfig is used with all its fields', async () => {
  const user = { as: 'jane', 'as-uid': '7', 'as-groups': ['a', 'b'], 'as-user-extra': { scopes: ['x'] } }
  const { transport } = await resolveKubeconfig(config(user), deps)
  assert.deepEqual(transport.impersonate, { user: 'jane', uid: '7', groups: ['a', 'b'], extra: { scopes: ['x'] } })
})

test('AUN-10 a user that is named takes the place of the context’s', async () => {
  const two: Kubeconfig = { ...config({ token: 'own' }), users: [...(config({ token: 'own' }).users ?? []), { name: 'other', user: { token: 'theirs' } }] }
  assert.equal((await resolveKubeconfig(two, deps, { user: 'other' })).transport.bearerToken, 'theirs')
  await assert.rejects(resolveKubeconfig(two, deps, { user: 'missing' }), /auth info "missing" does not exist/)
})

const refused: { name: string; context?: string; user: KubeconfigUser; want: RegExp }[] = [
  { name: 'an unknown context', context: 'b', user: {}, want: /context "b" does not exist/ },
  { name: 'an unknown cluster', context: 'lost', user: {}, want: /cluster "nowhere"/ },
  { name: 'a credential plugin', user: { exec: { command: 'login' } }, want: /credential plugin/ },
]
for (const { name, context, user, want } of refused)
  test(`AUN-10 refuses ${name}`, () => assert.rejects(resolveKubeconfig(config(user), deps, { context }), want))
