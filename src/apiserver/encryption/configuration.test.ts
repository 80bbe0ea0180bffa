/** Validation of an EncryptionConfiguration, with upstream's messages, and the transformers that it yields. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import { parseEncryptionConfiguration } from './encryption.ts'
import { encryptionMetrics } from './metrics.ts'
import { createProviders, type ProviderDeps } from './providers.ts'
import type { TransformedValue, ValueTransformer } from './transformer.ts'

const secret = (byte: number, length = 32) => Buffer.alloc(length, byte).toString('base64')
const key = (name: string, byte = 1, length = 32) => ({ name, secret: secret(byte, length) })
const identity = { identity: {} }
const file = (...resources: { resources?: unknown; providers?: unknown }[]) =>
  JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'EncryptionConfiguration', resources })
const secrets = (...providers: unknown[]) => file({ resources: ['secrets'], providers })
const kms = (fields: object) => secrets({ kms: { apiVersion: 'v2', name: 'k', endpoint: 'unix:///run/kms.sock', ...fields } })

const head = /^error while parsing file: /
const masked = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked"
const refused: { name: string; content: string; why: string; reload?: boolean }[] = [
  { name: 'nothing', content: '', why: 'error while loading file: encryption provider configuration file "f" is empty' },
  {
    name: 'an unknown field',
    content: secrets({ aesgcm: { keys: [{ nam: 'a' }] } }),
    why: 'error decoding encryption provider configuration file "f": strict decoding error: unknown field "resources[0].providers[0].aesgcm.keys[0].nam"',
  },
  { name: 'no resources', content: file(), why: 'resources: Required value: at least one resources is required' },
  {
    name: 'empty lists',
    content: file({ resources: [], providers: [] }),
    why: '[resources[0].resources: Required value: at least one resources[0].resources is required, resources[0].providers: Required value: at least one resources[0].providers is required]',
  },
  {
    name: 'a resource twice',
    content: file({ resources: ['secrets', 'secrets'], providers: [identity] }),
    why: 'resources[0].resources: Invalid value: ["secrets","secrets"]: the same resource cannot be specified multiple times',
  },
  {
    name: 'a resource and all of its group',
    content: file({ resources: ['secrets', '*.'], providers: [identity] }),
    why: `resources[0].resources: Invalid value: ["secrets","*."]: ${masked}`,
  },
  {
    name: 'everything and more',
    content: file({ resources: ['*.*', 'pods'], providers: [identity] }),
    why: `resources[0].resources: Invalid value: ["*.*","pods"]: ${masked}`,
  },
  ...(
    [
      ['Secrets', 'resource name should not contain capital letters'],
      ['*', "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"],
      ['apiserveripinfo', 'resources which do not have REST API/s cannot be encrypted'],
      ['*.events.k8s.io', "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file"],
      ['*.extensions', "'extensions' group has been removed and cannot be used for encryption"],
      ['secrets.*', 'encrypting the same resource across groups is not supported'],
    ] as const
  ).map(([name, why]) => ({
    name: `the resource ${name}`,
    content: file({ resources: [name], providers: [identity] }),
    why: `resources[0].resources[0]: Invalid value: "${name}": ${why}`,
  })),
  {
    name: 'a provider of no kind',
    content: secrets({}),
    why: 'resources[0].providers[0]: Invalid value: []: provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity',
  },
  {
    name: 'two providers in one element',
    content: secrets({ ...identity, aesgcm: { keys: [key('a')] } }),
    why: 'resources[0].providers[0]: Invalid value: ["aesgcm","identity"]: more than one provider specified in a single element, should split into different list elements',
  },
  { name: 'no keys', content: secrets({ aescbc: { keys: [] } }), why: 'resources[0].providers[0].aescbc.keys: Required value: at least one keys is required' },
  {
    name: 'an empty key',
    content: secrets({ secretbox: { keys: [{}] } }),
    why: '[resources[0].providers[0].secretbox.keys[0].name: Required value: name is a mandatory field for a key, resources[0].providers[0].secretbox.keys[0].secret: Required value: secret is a mandatory field for a key]',
  },
  {
    name: 'a key that is no base64',
    content: secrets({ aesgcm: { keys: [{ name: 'a', secret: '=' }] } }),
    why: 'resources[0].providers[0].aesgcm.keys[0].secret: Invalid value: "REDACTED": secrets must be base64 encoded',
  },
  {
    name: 'a key of another length',
    content: secrets({ aesgcm: { keys: [key('a', 1, 31)] } }),
    why: 'resources[0].providers[0].aesgcm.keys[0].secret: Invalid value: "REDACTED": secret is not of the expected length, got 31, expected one of [16 24 32]',
  },
  {
    name: 'a service without a name, at no socket, in no time',
    content: kms({ name: '', endpoint: 'http://x', timeout: '0s' }),
    why: '[resources[0].providers[0].kms.name: Required value: name is a mandatory field for a provider, resources[0].providers[0].kms.timeout: Invalid value: "0s": timeout should be a positive value, resources[0].providers[0].kms.endpoint: Invalid value: "http://x": unsupported scheme "http" for KMS provider, only unix is supported]',
  },
  {
    name: 'a service with a cache of version 1',
    content: kms({ cachesize: 5 }),
    why: 'resources[0].providers[0].kms.cachesize: Invalid value: 5: cachesize is not supported in v2',
  },
  {
    name: 'a service of version 3 with a colon',
    content: kms({ apiVersion: 'v3', name: 'a:b' }),
    why: '[resources[0].providers[0].kms.name: Invalid value: "a:b": invalid KMS provider name a:b, must not contain \':\', resources[0].providers[0].kms.apiVersion: Invalid value: "v3": unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported]',
  },
  {
    name: 'two services of one name, when the file is followed',
    reload: true,
    content: secrets(...['a', 'b'].map((at) => ({ kms: { name: 'k', endpoint: `unix:///${at}` } }))),
    why: 'resources[0].providers[1].kms.name: Invalid value: "k": duplicate KMS provider name k, names must be unique',
  },
]
for (const { name, content, why, reload = false } of refused) {
  test(`refused: ${name}`, () => {
    assert.throws(
      () => parseEncryptionConfiguration('f', content, reload),
      (error: Error) => {
        assert.equal(error.message.replace(head, ''), why)
        return true
      },
    )
  })
}

const clock = new VirtualClock('2026-01-01T00:00:00Z')
const deps: ProviderDeps = {
  clock,
  log: noLog,
  metrics: encryptionMetrics(noMetrics, clock, ''),
  newUid: () => 'uid',
  connectKms: () => assert.fail('no service is to be called'),
}
const providers = (content: string) => createProviders(parseEncryptionConfiguration('f', content, false), deps)

test('a service of version 1 is off', () => {
  const why = /^Error: KMSv1 is deprecated .* Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature\.$/
  assert.throws(() => providers(kms({ apiVersion: 'v1' })), why)
})

test('a resource that an earlier rule covers is refused', () => {
  const after = (earlier: string, later: string) => file({ resources: [earlier], providers: [identity] }, { resources: [later], providers: [identity] })
  assert.throws(() => providers(after('*.apps', 'deployments.apps')), /^Error: resource "deployments.apps" is masked by earlier rule "\*.apps"$/)
  assert.throws(() => providers(after('*.*', 'secrets')), /^Error: resource "secrets" is masked by earlier rule "\*.\*"$/)
  assert.throws(() => providers(after('*.', '*.')), /^Error: resource "\*\." is masked by earlier rule "\*\."$/)
})

test('the most specific resource entry decides, and a resource without an entry stays plain', () => {
  const aes = (name: string) => [{ aesgcm: { keys: [key(name)] } }]
  const { transformerFor } = providers(
    file(
      { resources: ['events'], providers: [identity] },
      { resources: ['secrets', 'pandas.bears.example'], providers: aes('1') },
      { resources: ['*.apps'], providers: aes('2') },
      { resources: ['*.'], providers: aes('3') },
    ),
  )
  const prefixOf = (group: string, resource: string) => {
    const value = Buffer.from(transformerFor({ group, resource }).toStorage(Buffer.from('{}'), { key: 'k', resource })).toString('latin1')
    return /^k8s:enc:\w+:v1:\w+:/.exec(value)?.[0] ?? value
  }
  assert.deepEqual(
    [
      prefixOf('', 'events'),
      prefixOf('', 'secrets'),
      prefixOf('bears.example', 'pandas'),
      prefixOf('apps', 'deployments'),
      prefixOf('', 'pods'),
      prefixOf('batch', 'jobs'),
    ],
    ['{}', 'k8s:enc:aesgcm:v1:1:', 'k8s:enc:aesgcm:v1:1:', 'k8s:enc:aesgcm:v1:2:', 'k8s:enc:aesgcm:v1:3:', '{}'],
  )
})

test('the first key writes; any of them reads, and what another than the first wrote is stale', () => {
  const context = { key: '/registry/secrets/a/b', resource: 'secrets' }
  const transformer = (...list: unknown[]): ValueTransformer => providers(secrets(...list)).transformerFor({ group: '', resource: 'secrets' })
  const [gcm1, gcm2, cbc] = [{ aesgcm: { keys: [key('a', 1)] } }, { aesgcm: { keys: [key('a', 2)] } }, { aescbc: { keys: [key('a', 1), key('b', 2)] } }]
  const plain = Buffer.from('{"a":1}')
  const read = (by: ValueTransformer, value: Uint8Array) => {
    const { data, stale } = by.fromStorage(value, context) as TransformedValue
    return [Buffer.from(data).toString(), stale]
  }
  const old = transformer(gcm1).toStorage(plain, context)
  const text = '{"a":1}'
  assert.deepEqual(read(transformer(gcm1), old), [text, false])
  assert.deepEqual(read(transformer(gcm2, gcm1), old), [text, true], 'one prefix, two keys')
  assert.deepEqual(read(transformer({ aesgcm: { keys: [key('b', 2), key('a', 1)] } }), old), [text, true])
  assert.deepEqual(read(transformer(identity, gcm1), old), [text, true])
  assert.deepEqual(read(transformer(gcm1, identity), plain), [text, true])
  assert.deepEqual(read(transformer(identity, gcm1), plain), [text, false])
  assert.throws(() => read(transformer(cbc), old), /^Error: no matching prefix found$/)
  assert.throws(() => read(transformer(gcm2), old), /^Error: cipher: message authentication failed$/)
  assert.throws(() => read(transformer({ aesgcm: { keys: [key('z')] } }), old), /^Error: no matching key was found for the provided AES transformer$/)
  assert.throws(() => read(transformer(identity), old), /^Error: no matching prefix found$/)
})

test('the file of older documents is read', () => {
  const content = 'kind: EncryptionConfig\napiVersion: v1\nresources:\n- resources: [secrets]\n  providers:\n  - identity: {}\n'
  assert.deepEqual(parseEncryptionConfiguration('f', content, false), { resources: [{ resources: ['secrets'], providers: [identity] }] })
})
