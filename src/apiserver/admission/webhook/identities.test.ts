import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { KubeconfigUser } from '#client/kubeconfig'
import { hostPortOf, namesFor, webhookIdentities } from './identities.ts'

const names = [
  { hostPort: 'a.b.svc:443', want: ['a.b.svc:443', '*.b.svc:443', '*.svc:443', 'a.b.svc', '*.b.svc', '*.svc', '*', 'me'] },
  { hostPort: 'a.b.svc:8443', want: ['a.b.svc:8443', '*.b.svc:8443', '*.svc:8443', '*', 'me'] },
  { hostPort: 'host:443', want: ['host:443', 'host', '*', 'me'] },
]
for (const { hostPort, want } of names) test(`ADM-02: users for ${hostPort}`, () => assert.deepEqual(namesFor(hostPort, 'me'), want))

test('ADM-02: without a current user the last one is *', () => assert.equal(namesFor('a:1', undefined).at(-1), '*'))

const urls = [
  { url: 'https://a.example.com/path', want: 'a.example.com:443' },
  { url: 'https://a.example.com:443', want: 'a.example.com:443' },
  { url: 'https://[::1]:8443/x', want: '[::1]:8443' },
  { url: '', want: ':443' },
]
for (const { url, want } of urls) test(`ADM-02: the server of ${url || 'nothing'}`, () => assert.equal(hostPortOf(url), want))

const deps = { clock: new VirtualClock(), readFile: async (file: string) => Buffer.from(`content of ${file}`) }
const config = (user: KubeconfigUser) => ({ users: [{ name: '*', user }] })

test('ADM-02 the user of a webhook has a token from a file, and impersonates another', async () => {
  const identityOf = await webhookIdentities(config({ tokenFile: 'f', as: 'jane' }), deps)
  assert.deepEqual((await identityOf('x:1')?.())?.headers, { authorization: 'Bearer content of f', 'impersonate-user': 'jane' })
})

test('ADM-02 a webhook without a user gets no credentials', async () => {
  const identityOf = await webhookIdentities({ users: [{ name: 'a:1', user: { token: 't' } }] }, deps)
  assert.equal(identityOf('b:1'), undefined)
})

const refused: readonly { readonly user: KubeconfigUser; readonly why: RegExp }[] = [
  { user: { token: 't', username: 'u', password: 'p' }, why: /^user "\*": username\/password or bearer token may be set, but not both$/ },
  { user: { 'auth-provider': {} }, why: /auth provider/ },
]
for (const { user, why } of refused) test(`ADM-02: refused: ${why}`, () => assert.rejects(webhookIdentities(config(user), deps), { message: why }))
