import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configsOfSecrets, hashOf, lookUpCredentials, matchesImage } from './keyring.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const secret = (auths: unknown, name = 's') => ({
  metadata: { uid: 'u', namespace: 'n', name },
  type: 'kubernetes.io/dockerconfigjson',
  data: { '.dockerconfigjson': base64(JSON.stringify({ auths })) },
})
const names = (image: string, auths: Readonly<Record<string, { username: string }>>) =>
  lookUpCredentials(image, configsOfSecrets([secret(auths)]))
    .map(({ auth }) => auth.username)
    .join(' ')

const patterns = [
  ['registry.example', 'registry.example/team/app', true],
  ['registry.example/team', 'registry.example/team/app', true],
  ['registry.example/other', 'registry.example/team/app', false],
  ['*.example', 'registry.example/app', true],
  ['*.example', 'a.registry.example/app', false],
  ['*.*.example', 'a.registry.example/app', true],
  ['reg*.example', 'registry.example/app', true],
  ['registry.example:5000', 'registry.example/app', false],
  ['registry.example', 'registry.example:5000/app', false],
  ['*.example:5000/a', 'registry.example:5000/app', true],
  ['', 'registry.example/app', false],
] as const
for (const [pattern, repository, want] of patterns) {
  test(`KUB-10 the pattern "${pattern}" and ${repository}`, () => assert.equal(matchesImage(pattern, repository), want))
}

const lookups = [
  { name: 'the more specific path first', image: 'r.example/team/app:1', auths: { 'r.example': 'all', 'https://r.example/team': 'team' }, want: 'team all' },
  { name: 'another registry has none', image: 'other.example/app', auths: { 'r.example': 'all' }, want: '' },
  { name: 'Docker Hub by its old address', image: 'nginx', auths: { 'https://index.docker.io/v1/': 'hub' }, want: 'hub' },
  { name: 'Docker Hub by its name', image: 'team/app', auths: { 'docker.io': 'hub', 'docker.io/team': 'team' }, want: 'team hub' },
  { name: 'the address of its API', image: 'r.example/app', auths: { 'https://r.example/v2/': 'all' }, want: 'all' },
]
for (const { name, image, auths, want } of lookups) {
  const entries = Object.fromEntries(Object.entries(auths).map(([location, username]) => [location, { username, password: 'p' }]))
  test(`KUB-10 credentials: ${name}`, () => assert.equal(names(image, entries), want))
}

test('KUB-10 both kinds of pull secrets are read, any other is none; the auth field wins', () => {
  const auth = base64('me:secret:with:colons')
  const legacy = { metadata: { name: 'l' }, type: 'kubernetes.io/dockercfg', data: { '.dockercfg': base64(JSON.stringify({ 'r.example': { auth } })) } }
  const opaque = { ...legacy, type: 'Opaque' }
  const modern = secret({ 'r.example': { username: 'other', password: 'other', auth } })
  const found = lookUpCredentials('r.example/app', configsOfSecrets([legacy, opaque, modern]))
  assert.deepEqual(
    found.map(({ auth: { username, password } }) => [username, password]),
    [
      ['me', 'secret:with:colons'],
      ['me', 'secret:with:colons'],
    ],
  )
  assert.deepEqual(found[1]?.source, { secret: { uid: 'u', namespace: 'n', name: 's' } })
  assert.equal(hashOf(found[0]?.auth ?? {}), hashOf(found[1]?.auth ?? {}))
})

test('KUB-10 a secret without a Docker configuration is reported without its content', () => {
  const broken = { ...secret({}), data: { '.dockerconfigjson': base64('hunter2') } }
  assert.throws(() => configsOfSecrets([broken]), { message: 'pull secret n/s: its Docker configuration is not JSON' })
  assert.throws(() => configsOfSecrets([secret({ r: { auth: base64('nocolon') } })]), {
    message: 'pull secret n/s: unable to parse auth field, must be formatted as base64(username:password)',
  })
})
