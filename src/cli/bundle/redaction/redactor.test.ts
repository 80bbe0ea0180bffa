import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '#base/random'
import type { PastObject } from '../../past/objects.ts'
import { KnownValues, replacement } from './knownValues.ts'
import { createRedactor } from './redactor.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const object = (kind: string, members: Record<string, unknown>): PastObject =>
  ({ apiVersion: 'v1', kind, metadata: { name: 'one', namespace: 'shop' }, ...members }) as unknown as PastObject
const secret = (data: Readonly<Record<string, string>>, metadata = {}) =>
  object('Secret', {
    metadata: { name: 'door', namespace: 'shop', ...metadata },
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, base64(value)])),
  })

function redactorThatKnows(...secrets: readonly PastObject[]) {
  const redactor = createRedactor()
  for (const one of secrets) redactor.learn(one)
  return redactor
}

test('X18 a Secret keeps its keys, and neither values nor the last applied configuration', () => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"code":"b3BlbiBzZXNhbWU="}}', note: 'open sesame' }
  const given = { ...secret({ code: 'open sesame', pin: '1' }, { annotations }), stringData: { more: 'x' } }
  assert.deepEqual(createRedactor().object(given), {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'door', namespace: 'shop', annotations: { note: '***' } },
    data: { code: 'Kioq', pin: 'Kioq' },
    stringData: { more: '***' },
  })
})

const pem = '-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq\nqq0uNxYVzRbXW0yZ\n-----END RSA PRIVATE KEY-----\n'
const token = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW06c2EifQ.c2lnbmF0dXJl'

for (const [what, value, text, want] of [
  ['as it is', 'hunter2hunter2', 'login with hunter2hunter2 failed', 'login with *** failed'],
  ['in base64', 'hunter2hunter2', `got ${base64('hunter2hunter2')}!`, 'got ***!'],
  ['encoded for a URL', 'a b&c/d=e', 'GET /?x=a%20b%26c%2Fd%3De', 'GET /?x=***'],
  ['escaped for JSON', 'say "hi" now', String.raw`{"m":"say \"hi\" now"}`, '{"m":"***"}'],
  ['without the newline at its end', 'hunter2hunter2\n', 'x hunter2hunter2 y', 'x *** y'],
  ['as a setting of a file', 'db:\n  password: s3cr3t-value\n  host: db.shop\n', 'connecting with s3cr3t-value to db.shop', 'connecting with *** to db.shop'],
  ['as a line of a key', pem, 'dump: MIIEpAIBAAKCAQEA7bq', 'dump: ***'],
] as const) {
  test(`X18 a value of a Secret is replaced in texts ${what}`, () => assert.equal(redactorThatKnows(secret({ value })).text(text), want))
}

for (const [what, text, want] of [
  ['a token of a service account', `got ${token} here`, 'got *** here'],
  ['a private key', `key:\n${pem}rest`, 'key:\n***\nrest'],
  ['a private key in base64', `client: ${base64(pem)}`, 'client: ***'],
  ['a bootstrap token', 'join with abcdef.0123456789abcdef', 'join with ***'],
  ['a header', 'Authorization: Bearer abc.def-ghi', 'Authorization: Bearer ***'],
  ['a password in a URL', 'postgres://app:s3cr3t@db:5432/x', 'postgres://app:***@db:5432/x'],
  ['a password by its name', 'DB_PASSWORD=s3cr3t user=app', 'DB_PASSWORD=*** user=app'],
  ['a password in JSON within JSON', String.raw`{"m":"{\"password\": \"s3cr3t\"}"}`, String.raw`{"m":"{\"password\": \"***\"}"}`],
  ['a key in a kubeconfig', 'client-key-data: LS0tAAAA', 'client-key-data: ***'],
] as const) {
  test(`X18 ${what} is replaced without being known`, () => assert.equal(createRedactor().text(text), want))
}

for (const text of [
  'secretName: web-tls, tokenExpirationSeconds: 3607',
  `certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJ${'A'.repeat(60)}`,
  'Started container web in pod shop/web-7887448d46-kwvjd on node lab-node-1',
  'image: registry.k8s.io/coredns/coredns:v1.11.1',
]) {
  test(`X18 a text without secrets stays as it is: ${text.slice(0, 40)}`, () => assert.equal(createRedactor().text(text), text))
}

test('X18 other objects lose known values and variables that are named like secrets; names stay', () => {
  const redactor = redactorThatKnows(secret({ value: 'hunter2hunter2' }))
  const env = [
    { name: 'API_TOKEN', value: 'plain' },
    { name: 'COLOR', value: 'blue' },
    { name: 'URL', value: 'http://x/?k=hunter2hunter2' },
    { name: 'FROM', valueFrom: { secretKeyRef: { name: 'door', key: 'password' } } },
  ]
  const given = object('Pod', {
    metadata: { name: 'hunter2hunter2', annotations: { password: 'x', note: 'plain' } },
    spec: { containers: [{ name: 'main', env, args: ['--p', 'hunter2hunter2'] }] },
  })
  assert.deepEqual(redactor.object(given), {
    ...given,
    metadata: { name: 'hunter2hunter2', annotations: { password: '***', note: 'plain' } },
    spec: {
      containers: [
        { name: 'main', env: [{ name: 'API_TOKEN', value: '***' }, env[1], { name: 'URL', value: 'http://x/?k=***' }, env[3]], args: ['--p', '***'] },
      ],
    },
  })
})

for (const [what, given, path] of [
  ['an entry of a table whose value is a list', object('ConfigMap', { data: { 'api-tokens': '["abc123"]' } }), ['data', 'api-tokens']],
  ['an entry of a table whose value is an object', object('ConfigMap', { data: { credentials: '{"user":"app","pw":"s3"}' } }), ['data', 'credentials']],
  ['a variable whose value comes before its name', object('App', { spec: { env: [{ value: 'plain', name: 'DB_PASSWORD' }] } }), ['spec', 'env', '0', 'value']],
] as const) {
  test(`X18 the only secret of an object is masked: ${what}`, () => {
    const at = path.reduce((value: unknown, key) => (value as Record<string, unknown>)[key], createRedactor().object(given))
    assert.equal(at, '***')
  })
}

test('X18 an object without secrets is the same object', () => {
  const given = object('ConfigMap', { data: { color: 'blue' } })
  assert.equal(redactorThatKnows(secret({ value: 'hunter2hunter2' })).object(given), given)
})

test('X18 a known value is replaced in members with the name of an identity that are data or belong to a custom resource', () => {
  const redactor = redactorThatKnows(secret({ password: 'hunter2hunter2' }))
  const told = { name: 'hunter2hunter2' }
  const map = redactor.object(object('ConfigMap', { data: told }))
  const custom = redactor.object(object('Database', { apiVersion: 'example.com/v1', spec: { login: told, secretRef: told } }))
  const pod = redactor.object(object('Pod', { spec: { containers: [told] } }))
  assert.deepEqual(map.data, { name: '***' })
  assert.deepEqual(custom.spec, { login: { name: '***' }, secretRef: told })
  assert.deepEqual(pod.spec, { containers: [told] })
  assert.deepEqual(custom.metadata, { name: 'one', namespace: 'shop' })
})

test('X18 public parts of Secrets and short words are not searched', () => {
  const redactor = redactorThatKnows(secret({ 'ca.crt': 'certificate', namespace: 'kube-system', mode: 'on' }))
  assert.equal(redactor.text('certificate of kube-system is on'), 'certificate of kube-system is on')
})

test('X18 many known values are found, the longest first', () => {
  const known = new KnownValues()
  for (let at = 0; at < 5_000; at++) known.add(`value-${at}-of-many`)
  known.add('value-17-of-many-more')
  assert.equal(known.replace('a value-4999-of-many b value-17-of-many-more c value-5000-of-many'), 'a *** b *** c value-5000-of-many')
})

test('X18 of values that begin with each other the longest one that stands in the text is found, as a search of all of them finds it', () => {
  const random = seededRandom(7)
  const word = (length: number) => Array.from({ length }, () => (random.next() < 0.7 ? 'a' : 'b')).join('')
  for (let round = 0; round < 200; round++) {
    const values = Array.from({ length: 30 }, () => word(6 + random.int(12)))
    const known = new KnownValues()
    for (const value of values) known.add(value)
    const text = word(120)
    assert.equal(known.replace(text), replacedOneByOne(text, values), `${values} in ${text}`)
  }
})

function replacedOneByOne(text: string, values: readonly string[]): string {
  const longestFirst = values.toSorted((one, other) => other.length - one.length)
  let result = ''
  for (let at = 0; at < text.length; ) {
    const found = longestFirst.find((value) => text.startsWith(value, at))
    result += found === undefined ? text[at] : replacement
    at += found?.length ?? 1
  }
  return result
}

test('X18 values that have their beginning in common with each other and with the text do not multiply the time', { timeout: 60_000 }, () => {
  const known = new KnownValues()
  for (let at = 0; at < 4_000; at++) known.add(`${'a'.repeat(40)}${at}`)
  for (let length = 100; length < 2_000; length++) known.add(`${'a'.repeat(length)}b`)
  known.add('a'.repeat(60_000))
  assert.equal(known.replace('a'.repeat(50_000)), 'a'.repeat(50_000))
})
