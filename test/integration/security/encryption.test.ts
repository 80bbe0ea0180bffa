/**
 * Encryption at rest on a server set up by flags (API-22, SDR-02): the values in the store, keys that change with and without a restart, values
 * that cannot be decrypted, and a key management plugin in its own process.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { noLog } from '#base/log'
import { configMaps, customResourceDefinitions, secrets } from '#client/builtIn'
import type { Resource } from '#client/client'
import { openLmdbStore } from '#store/drivers/lmdb'
import { createMemoryStore } from '#store/drivers/memory'
import type { Store } from '#store/store'
import type { TestApiServer } from '#testing/apiServer'
import { lastingStore } from '#testing/changedStore'
import { realClock } from '#testing/realClock'
import { type KmsPlugin, startKmsPlugin } from '../../support/kmsPlugin.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

let folder: string
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-encryption-'))
})
after(() => fs.rm(folder, { recursive: true }))

const plaintext = 'a-very-secret-word'
const secretOf = (name: string, word = plaintext) => ({ metadata: { name, namespace: 'default' }, stringData: { word } })
const ref = (name: string) => ({ namespace: 'default', name })
const key = (name: string, byte: number) => ({ name, secret: Buffer.alloc(32, byte).toString('base64') })
const rule = (resources: string[], ...providers: object[]) => ({ resources, providers })
const identity = { identity: {} }
const kms = (name: string, socket: string) => ({ kms: { apiVersion: 'v2', name, endpoint: `unix://${socket}`, timeout: '1s' } })

let files = 0
async function configFile(...resources: object[]): Promise<string> {
  const file = path.join(folder, `config-${files++}.json`)
  await writeConfig(file, ...resources)
  return file
}
async function writeConfig(file: string, ...resources: object[]): Promise<void> {
  await fs.writeFile(file, JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'EncryptionConfiguration', resources }))
}

/** One store that outlives its servers: each is started on it and ends without closing it. */
function lasting(): { store: Store; start(...resources: object[]): Promise<TestApiServer> } {
  const inner = createMemoryStore({ clock: realClock })
  const store = lastingStore(inner)
  return {
    store,
    start: async (...resources) =>
      startServerWithFlags(resources.length === 0 ? [] : [`--encryption-provider-config=${await configFile(...resources)}`], { store }),
  }
}
async function raw(store: Store, storeKey: string): Promise<string> {
  const { kvs } = await store.range(storeKey)
  return Buffer.from(kvs[0]?.value ?? []).toString('latin1')
}
const rawSecret = (store: Store, name: string) => raw(store, `/registry/secrets/default/${name}`)
const prefixOf = (value: string) => /^k8s:enc:\w+:v\d:\w+:/.exec(value)?.[0] ?? value.slice(0, 10)

async function eventually(what: () => Promise<boolean>, why: string): Promise<void> {
  const until = Date.now() + 20_000
  while (!(await what())) {
    if (Date.now() > until) assert.fail(why)
    await realClock.sleep(50)
  }
}

describe('what the store keeps', () => {
  const providers = {
    aesgcm: { aesgcm: { keys: [key('k1', 1)] } },
    aescbc: { aescbc: { keys: [key('k1', 1)] } },
    secretbox: { secretbox: { keys: [key('k1', 1)] } },
  }
  for (const [name, provider] of Object.entries(providers)) {
    test(`${name}: nothing of a Secret; get, list, watch and update show it as ever`, async () => {
      const { store, start } = lasting()
      const api = await start(rule(['secrets'], provider, identity))
      const client = api.client.of(secrets)
      const made = await client.create(secretOf('one'))
      const value = await rawSecret(store, 'one')
      assert.equal(prefixOf(value), `k8s:enc:${name}:v1:k1:`)
      assert.ok(!value.includes(Buffer.from(plaintext).toString('base64')))
      assert.deepEqual(await client.get(ref('one')), made)
      assert.equal((await client.list({ namespace: 'default' })).items.length, 1)
      const { items } = await client.list({ namespace: 'default', resourceVersion: made.metadata.resourceVersion, resourceVersionMatch: 'Exact' })
      assert.deepEqual(items[0]?.metadata.uid, made.metadata.uid)
      const stop = new AbortController()
      const seen = client.watch({ namespace: 'default', signal: stop.signal, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' })
      for await (const events of seen) {
        assert.deepEqual(events[0]?.object, made)
        break
      }
      stop.abort()
      const changed = await client.update({ ...made, immutable: true })
      assert.notEqual(changed.metadata.resourceVersion, made.metadata.resourceVersion)
      const same = await client.update(changed)
      assert.equal(same.metadata.resourceVersion, changed.metadata.resourceVersion, 'a write that changes nothing is none')
      await api.close()
      const restarted = await start(rule(['secrets'], provider))
      assert.deepEqual(await restarted.client.of(secrets).get(ref('one')), changed)
      await restarted.close()
    })
  }

  test('the files of an embedded store hold no word of a Secret, and a crash loses none', async () => {
    const file = path.join(folder, 'data.mdb')
    const open = () => openLmdbStore({ path: file, clock: realClock, log: noLog })
    const flag = `--encryption-provider-config=${await configFile(rule(['secrets'], providers.secretbox))}`
    const api = await startServerWithFlags([flag], { store: await open() })
    await Promise.all(Array.from({ length: 20 }, (_, at) => api.client.of(secrets).create(secretOf(`s${at}`))))
    await api.client.of(configMaps).create({ metadata: { name: 'plain', namespace: 'default' }, data: { word: 'to-be-found' } })
    // The state after a crash: acknowledged writes exist.
    const crashed = path.join(folder, 'crashed.mdb')
    for (const part of ['', '-journal']) await fs.copyFile(`${file}${part}`, `${crashed}${part}`)
    await api.close()
    const content = Buffer.concat([await fs.readFile(crashed), await fs.readFile(`${crashed}-journal`)])
    assert.ok(content.includes('to-be-found'))
    for (const word of [plaintext, Buffer.from(plaintext).toString('base64')]) assert.ok(!content.includes(word))
    const after = await startServerWithFlags([flag], { store: await openLmdbStore({ path: crashed, clock: realClock, log: noLog }) })
    assert.equal((await after.client.of(secrets).list({ namespace: 'default' })).items.length, 20)
    await after.close()
  })

  test('custom resources too, where a rule covers them', async () => {
    const { store, start } = lasting()
    const api = await start(rule(['*.example.com'], providers.aesgcm))
    await api.client.of(customResourceDefinitions).create({
      metadata: { name: 'widgets.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } } }],
      },
    })
    const widgets: Resource<{ apiVersion: string; kind: string; metadata: { name: string; namespace: string }; word: string }> = {
      group: 'example.com',
      version: 'v1',
      resource: 'widgets',
      kind: 'Widget',
      namespaced: true,
    }
    const client = api.client.of(widgets)
    await eventually(
      () =>
        client.list({ namespace: 'default' }).then(
          () => true,
          () => false,
        ),
      'widgets are not served',
    )
    await client.create({ metadata: { name: 'w', namespace: 'default' }, word: plaintext })
    const value = await raw(store, '/registry/example.com/widgets/default/w')
    assert.equal(prefixOf(value), 'k8s:enc:aesgcm:v1:k1:')
    assert.ok(!value.includes(plaintext))
    assert.equal((await client.get(ref('w'))).word, plaintext)
    await api.close()
  })
})

describe('keys that change', () => {
  const [first, second] = [{ aesgcm: { keys: [key('k1', 1)] } }, { aesgcm: { keys: [key('k2', 2)] } }]

  test('writing what is there already encrypts it under the new key, once', async () => {
    const { store, start } = lasting()
    const plain = await start()
    await plain.client.of(secrets).create(secretOf('one'))
    assert.equal(prefixOf(await rawSecret(store, 'one')), '{"apiVersi')
    await plain.close()
    for (const [providers, prefix] of [
      [[first, identity], 'k8s:enc:aesgcm:v1:k1:'],
      [[second, first], 'k8s:enc:aesgcm:v1:k2:'],
      [[identity, second], '{"apiVersi'],
    ] as const) {
      const api = await start(rule(['secrets'], ...providers))
      const client = api.client.of(secrets)
      const before = await client.get(ref('one'))
      const rewritten = await client.update(before)
      assert.equal(prefixOf(await rawSecret(store, 'one')), prefix)
      assert.notEqual(rewritten.metadata.resourceVersion, before.metadata.resourceVersion)
      const again = await client.update(rewritten)
      assert.equal(again.metadata.resourceVersion, rewritten.metadata.resourceVersion)
      assert.equal(Buffer.from(again.data?.word ?? '', 'base64').toString(), plaintext)
      await api.close()
    }
  })

  test('a file that changes takes effect without a restart; a bad one changes nothing', async () => {
    const file = await configFile(rule(['secrets'], first))
    const store = createMemoryStore({ clock: realClock, log: noLog })
    const flags = [`--encryption-provider-config=${file}`, '--encryption-provider-config-automatic-reload']
    const api = await startServerWithFlags(flags, { store })
    const client = api.client.of(secrets)
    await client.create(secretOf('one'))
    await fs.writeFile(file, '{"kind":"EncryptionConfiguration","apiVersion":"apiserver.config.k8s.io/v1","resources":[]}')
    await realClock.sleep(500)
    await client.create(secretOf('two'))
    assert.equal(prefixOf(await rawSecret(store, 'two')), 'k8s:enc:aesgcm:v1:k1:')
    await writeConfig(file, rule(['secrets'], second, first))
    let at = 0
    await eventually(async () => {
      const { metadata } = await client.create(secretOf(`n${at++}`))
      return prefixOf(await rawSecret(store, metadata.name ?? '')) === 'k8s:enc:aesgcm:v1:k2:'
    }, 'the new key is not used')
    await client.update(await client.get(ref('one')))
    assert.equal(prefixOf(await rawSecret(store, 'one')), 'k8s:enc:aesgcm:v1:k2:')
    const health = await api.client.transport.request({ method: 'GET', path: '/healthz/kms-providers' })
    assert.equal(health.status, 200)
    await assert.rejects(api.client.transport.request({ method: 'GET', path: '/livez/kms-providers' }), (error) => isStatus(error as Error, 'NotFound'))
    await api.close()
  })
})

describe('values that cannot be decrypted', () => {
  const [known, lost] = [{ aesgcm: { keys: [key('k1', 1)] } }, { aesgcm: { keys: [key('k2', 2)] } }]
  const fails = (call: Promise<unknown>, message: string | RegExp) =>
    assert.rejects(call, (error: Error) => {
      assert.ok(isStatus(error, 'InternalError'), String(error))
      if (typeof message === 'string') assert.equal(error.message, message)
      else assert.match(error.message, message)
      return true
    })

  test('such a value fails only requests that read it, until its key is configured', async () => {
    const { store, start } = lasting()
    const writer = await start(rule(['secrets'], lost))
    await writer.client.of(secrets).create(secretOf('lost'))
    await writer.close()
    const file = await configFile(rule(['secrets'], known, identity))
    const api = await startServerWithFlags([`--encryption-provider-config=${file}`, '--encryption-provider-config-automatic-reload'], { store })
    const client = api.client.of(secrets)
    const why = 'no matching key was found for the provided AES transformer'
    const listed = `Internal error occurred: unable to transform key "/registry/secrets/default/lost": ${why}`
    await fails(client.get(ref('lost')), `Internal error occurred: ${why}`)
    await fails(client.list(), listed)
    await fails(client.list({ namespace: 'default', limit: 1 }), listed)
    await fails(client.delete(ref('lost')), `Internal error occurred: ${why}`)
    await assert.rejects(
      (async () => {
        for await (const _ of client.watch({ namespace: 'default', signal: AbortSignal.timeout(10_000) })) break
      })(),
      (error) => isStatus(error as Error, 'TooManyRequests'),
    )
    await assert.rejects(client.create(secretOf('lost')), (error) => isStatus(error as Error, 'AlreadyExists'))
    await client.create(secretOf('other'))
    await client.create({ metadata: { name: 'else', namespace: 'kube-system' } })
    assert.equal((await client.get(ref('other'))).metadata.name, 'other')
    assert.equal((await client.list({ namespace: 'kube-system' })).items.length, 1)
    await api.client.of(configMaps).create({ metadata: { name: 'works', namespace: 'default' } })
    await writeConfig(file, rule(['secrets'], known, lost, identity))
    await eventually(
      () =>
        client.get(ref('lost')).then(
          () => true,
          () => false,
        ),
      'the object did not come back',
    )
    assert.deepEqual(
      (await client.list({ namespace: 'default' })).items.map(({ metadata }) => metadata.name),
      ['lost', 'other'],
    )
    await client.delete(ref('lost'))
    await api.close()
  })

  test('an event that cannot be read ends watches of its resource; a server without configuration tells encrypted values from objects', async () => {
    const { store, start } = lasting()
    const api = await start()
    const client = api.client.of(secrets)
    await client.create(secretOf('one'))
    const ended = (async () => {
      for await (const _ of client.watch({ namespace: 'default', signal: AbortSignal.timeout(20_000) }));
    })()
    await store.transact({ compare: [], success: [{ type: 'put', key: '/registry/secrets/default/one', value: Buffer.from('k8s:enc:aesgcm:v1:k9:xx') }] })
    await ended.catch(() => undefined)
    await fails(client.get(ref('one')), 'Internal error occurred: identity transformer tried to read encrypted data')
    await store.transact({ compare: [], success: [{ type: 'delete', from: '/registry/secrets/default/one' }] })
    await eventually(async () => (await client.list({ namespace: 'default' }).catch(() => undefined))?.items.length === 0, 'the object is not gone')
    await client.create(secretOf('one'))
    await api.close()
  })
})

describe('KMS v2', () => {
  let plugin: KmsPlugin
  let socket: string
  before(async () => {
    socket = path.join(folder, 'kms.sock')
    plugin = await startKmsPlugin(socket)
  })
  after(() => plugin.close())

  test('one key is made for many values; a restart asks for it once', async () => {
    const { store, start } = lasting()
    const config = rule(['secrets', 'configmaps'], kms('plug', socket))
    const before = await plugin.tell({})
    const api = await start(config)
    await Promise.all(Array.from({ length: 10 }, (_, at) => api.client.of(secrets).create(secretOf(`s${at}`))))
    const value = await rawSecret(store, 's0')
    assert.equal(prefixOf(value), 'k8s:enc:kms:v2:plug:')
    assert.ok(value.includes('nonce.kms.example'))
    assert.ok(!value.includes(Buffer.from(plaintext).toString('base64')))
    await api.close()
    const between = await plugin.tell({})
    assert.deepEqual([between.Encrypt - before.Encrypt, between.Decrypt - before.Decrypt], [1, 0])
    const again = await start(config)
    assert.equal((await again.client.of(secrets).list({ namespace: 'default' })).items.length, 10)
    assert.equal(again.server.reader.list({ group: '', resource: 'secrets' }).length, 10)
    await again.close()
    assert.equal((await plugin.tell({})).Decrypt - between.Decrypt, 1)
  })

  test('watch events of values written by another server are decrypted in order', async () => {
    const { start } = lasting()
    const config = rule(['secrets'], kms('plug', socket))
    const [one, two] = [await start(config), await start(config)]
    const names = Array.from({ length: 20 }, (_, at) => `s${String(at).padStart(2, '0')}`)
    for (const [at, name] of names.entries()) await (at % 2 ? one : two).client.of(secrets).create(secretOf(name))
    for (const api of [one, two]) {
      const { items } = await api.client.of(secrets).list({ namespace: 'default' })
      assert.deepEqual(
        items.map(({ metadata }) => metadata.name),
        names,
      )
    }
    const { metadata } = await one.client.of(secrets).get(ref('s01'))
    await two.client.of(secrets).patch(ref('s01'), 'merge', { metadata: { labels: { by: 'two' } } })
    await eventually(async () => (await one.client.of(secrets).get(ref('s01'))).metadata.resourceVersion !== metadata.resourceVersion, 'no event')
    await Promise.all([one.close(), two.close()])
  })

  test('requests that need a stopped plugin fail, and succeed after its restart', async () => {
    const { start } = lasting()
    const later = path.join(folder, 'later.sock')
    const config = rule(['secrets'], kms('later', later))
    const present = await startKmsPlugin(later, '7')
    const writer = await start(config)
    await writer.client.of(secrets).create(secretOf('one'))
    await writer.close()
    await present.close()
    await fs.rm(later, { force: true })
    const api = await start(config)
    await assert.rejects(api.client.of(secrets).get(ref('one')), (error) => isStatus(error as Error, 'InternalError'))
    await assert.rejects(api.client.of(secrets).create(secretOf('two')), /got unexpected nil transformer/)
    await api.client.of(configMaps).create({ metadata: { name: 'works', namespace: 'default' } })
    const back = await startKmsPlugin(later, '7')
    await eventually(
      () =>
        api.client
          .of(secrets)
          .get(ref('one'))
          .then(
            () => true,
            () => false,
          ),
      'the plugin is not used again',
    )
    await api.client.of(secrets).create(secretOf('two'))
    await api.close()
    await back.close()
  })
})
