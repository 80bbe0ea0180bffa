/** Objects are rewritten in the present stored form where a StorageVersionMigration asks for it: another storage version, another key of the encryption at rest. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import type { CustomResourceDefinition } from '#api/gen/types/apiextensions.v1'
import type { StorageVersionMigration } from '#api/gen/types/storagemigration.v1beta1'
import { findCondition, isConditionTrue } from '#api/machinery/conditions'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { configMaps, customResourceDefinitions, namespaced, secrets } from '#client/builtIn'
import { storageVersionMigrations } from '#client/optional'
import { createControllerManager } from '#controllers/framework/manager'
import { controllers } from '#controllers/index'
import { createMemoryStore } from '#store/drivers/memory'
import type { Store } from '#store/store'
import type { TestApiServer } from '#testing/apiServer'
import { lastingStore } from '#testing/changedStore'
import { startCluster } from '#testing/cluster'
import { realClock } from '#testing/realClock'
import { refused } from '../../support/refused.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'
import { definition, establish, group, until, version } from '../crd/support.ts'
import { controllerClients } from './cluster.ts'

const flags = ['--authorization-mode=RBAC', '--feature-gates=StorageVersionMigrator=true', '--runtime-config=storagemigration.k8s.io/v1beta1=true']
const count = 1_100
const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-migration-'))
after(() => fs.rm(folder, { recursive: true }))

interface Running extends AsyncDisposable {
  readonly api: TestApiServer
  migrate(name: string, resource: { group?: string; resource: string }): Promise<Frozen<StorageVersionMigration>>
}

/** A server with the controller alone, which has the rights of its service account. */
async function start(store: Store, more: readonly string[] = []): Promise<Running> {
  const api = await startServerWithFlags([...flags, ...more], { store })
  const stop = new AbortController()
  const deps = {
    client: api.clientAs({ name: 'system:kube-controller-manager', groups: ['system:authenticated'] }),
    informerClient: api.client,
    clientFor: controllerClients(api),
    ...{ clock: realClock, random: seededRandom(5), log: noLog, metrics: noMetrics },
  }
  const options = { controllers: ['storage-version-migrator-controller'], featureGates: { StorageVersionMigrator: true } }
  const running = createControllerManager(deps, controllers, options).run(stop.signal)
  const migrations = api.client.of(storageVersionMigrations)
  return {
    api,
    async migrate(name, { group = '', resource }) {
      await migrations.create({ metadata: { name }, spec: { resource: { group, resource } } })
      return until(
        'the end of the migration',
        async () => {
          const found = await migrations.get({ name })
          const conditions = found.status?.conditions
          return ['Succeeded', 'Failed'].some((type) => isConditionTrue(conditions, type)) && !findCondition(conditions, 'Running') && found
        },
        60_000,
      )
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('the test is over'))
      await running
      await api.close()
    },
  }
}

const values = async (store: Store, prefix: string) => {
  const { kvs } = await store.range(prefix, `${prefix.slice(0, -1)}0`)
  return kvs.map(({ value }) => Buffer.from(value).toString('latin1'))
}
const conditionsOf = ({ status }: Frozen<StorageVersionMigration>) => status.conditions?.map(({ type, status, reason }) => `${type} ${status} ${reason}`)

const schema = { type: 'object', properties: { spec: { type: 'object', properties: { size: { type: 'integer' } } } } }
const widgets = (storage: 'v1' | 'v2') =>
  definition('widgets', 'Widget', [version('v1', schema, { storage: storage === 'v1' }), version('v2', schema, { storage: storage === 'v2' })])
type Widget = KubeObject & { spec: { size: number } }

test('CTL-22 a migration rewrites every custom resource in the new storage version, and changes nothing else of it', async () => {
  const store = createMemoryStore({ clock: realClock })
  await using cluster = await start(store)
  const { client } = cluster.api
  await establish(client, widgets('v1'))
  const ofV1 = client.of(namespaced<Widget>(group, 'v1', 'widgets', 'Widget'))
  // More than two pages of the list.
  for (let at = 0; at < count; at++) await ofV1.create({ metadata: { namespace: 'default', name: `w${at}` }, spec: { size: at } }, { fieldManager: 'user' })
  const before = await ofV1.get({ namespace: 'default', name: 'w7' })
  const definitions = client.of(customResourceDefinitions)
  const old = await definitions.get({ name: `widgets.${group}` })
  const change = { ...old, spec: { ...old.spec, versions: widgets('v2').spec.versions } } as CustomResourceDefinition
  await definitions.update(change)
  const stored = async () => {
    const found = await values(store, `/registry/${group}/widgets/`)
    return Object.fromEntries(['v1', 'v2'].map((name) => [name, found.filter((value) => JSON.parse(value).apiVersion === `${group}/${name}`).length]))
  }
  await until('both versions', async () => (await definitions.get({ name: `widgets.${group}` })).status.storedVersions?.length === 2)
  assert.deepEqual(await stored(), { v1: count, v2: 0 })
  const migration = await cluster.migrate('widgets', { group, resource: 'widgets' })
  assert.deepEqual(conditionsOf(migration), ['Succeeded True StorageVersionMigrationSucceeded'])
  assert.match(migration.status.resourceVersion ?? '', /^\d+$/)
  assert.deepEqual(await stored(), { v1: 0, v2: count })
  const { metadata: is, ...rest } = await ofV1.get({ namespace: 'default', name: 'w7' })
  const { metadata: was, ...restBefore } = before
  assert.deepEqual(rest, restBefore)
  assert.deepEqual({ ...is, resourceVersion: '' }, { ...was, resourceVersion: '' })
  const { status } = await definitions.get({ name: `widgets.${group}` })
  assert.deepEqual(status.storedVersions, ['v2'])
  const migrating = findCondition(status.conditions, 'StorageMigrating')
  assert.deepEqual(
    [migrating?.status, migrating?.reason, migrating?.message],
    ['False', 'MigrationSucceeded', 'The migration has succeeded and the stored versions have been updated'],
  )
})

const rule = (...names: string[]) => {
  const keys = names.map((name) => ({ name, secret: Buffer.alloc(32, name).toString('base64') }))
  return {
    kind: 'EncryptionConfiguration',
    apiVersion: 'apiserver.config.k8s.io/v1',
    resources: [{ resources: ['secrets'], providers: [{ aescbc: { keys } }] }],
  }
}
const encryptedBy = async (...names: string[]) => {
  const file = path.join(folder, `${names.join('-')}.json`)
  await fs.writeFile(file, JSON.stringify(rule(...names)), { mode: 0o600 })
  return [`--encryption-provider-config=${file}`]
}

test('API-22 after a migration of Secrets no value needs the key of before, and none was lost', async () => {
  const store = lastingStore(createMemoryStore({ clock: realClock }))
  const names = Array.from({ length: 40 }, (_, at) => `s${at}`)
  const keysInUse = async () => [...new Set((await values(store, '/registry/secrets/')).map((value) => /^k8s:enc:aescbc:v1:(\w+):/.exec(value)?.[1]))]
  {
    await using cluster = await start(store, await encryptedBy('k1'))
    for (const name of names) await cluster.api.client.of(secrets).create({ metadata: { namespace: 'default', name }, stringData: { word: `${name}-word` } })
    assert.deepEqual(await keysInUse(), ['k1'])
  }
  {
    await using cluster = await start(store, await encryptedBy('k2', 'k1'))
    assert.deepEqual(await keysInUse(), ['k1'])
    assert.deepEqual(conditionsOf(await cluster.migrate('secrets', { resource: 'secrets' })), ['Succeeded True StorageVersionMigrationSucceeded'])
    assert.deepEqual(await keysInUse(), ['k2'])
  }
  await using cluster = await start(store, await encryptedBy('k2'))
  const { items } = await cluster.api.client.of(secrets).list({ namespace: 'default' })
  assert.deepEqual(items.map(({ data }) => Buffer.from(data?.word ?? '', 'base64').toString()).sort(), names.map((name) => `${name}-word`).sort())
})

test('CTL-22 a migration leaves alone what was written after it began, and what is in the present form', async () => {
  const store = createMemoryStore({ clock: realClock })
  await using cluster = await start(store)
  const maps = cluster.api.client.of(configMaps)
  const made = await maps.create({ metadata: { namespace: 'default', name: 'm' }, data: { k: 'v' } })
  await cluster.migrate('maps', { resource: 'configmaps' })
  assert.deepEqual(await maps.get({ namespace: 'default', name: 'm' }), made)
})

test('CTL-22 two migrations of one resource run one after the other', async () => {
  await using cluster = await start(createMemoryStore({ clock: realClock }))
  const migrations = cluster.api.client.of(storageVersionMigrations)
  const seen: string[] = []
  const stop = new AbortController()
  const following = (async () => {
    for await (const events of migrations.watch({ signal: stop.signal, resourceVersion: '0' })) {
      for (const { object } of events) if (isConditionTrue(object.status?.conditions, 'Running')) seen.push(object.metadata.name ?? '')
    }
  })()
  await Promise.all(['a', 'b'].map((name) => cluster.migrate(name, { resource: 'configmaps' })))
  stop.abort()
  await following.catch(() => {})
  assert.deepEqual(
    seen.filter((name, at) => name !== seen[at - 1]),
    ['a', 'b'],
  )
})

test('CTL-22 a migration of a resource that does not exist fails after a minute', async () => {
  await using cluster = await startCluster({
    ...{ nodes: 0, scheduler: false, controllers: ['storage-version-migrator-controller'] },
    apiServerArgs: flags.filter((flag) => !flag.startsWith('--authorization')),
    controllerOptions: { featureGates: { StorageVersionMigrator: true } },
  })
  const migrations = cluster.client.of(storageVersionMigrations)
  await migrations.create({ metadata: { name: 'none' }, spec: { resource: { group: 'example.com', resource: 'nothings' } } })
  const conditions = async () => (await migrations.get({ name: 'none' })).status?.conditions
  await cluster.clock.advance(50_000)
  assert.equal(isConditionTrue(await conditions(), 'Failed'), false)
  const failed = await cluster.until(async () => findCondition(await conditions(), 'Failed'))
  assert.deepEqual([failed.status, failed.reason, failed.message], ['True', 'StorageVersionMigrationFailed', 'resource does not exist in discovery'])
})

test('CTL-22 a status that takes back an end, or has two, is refused', async () => {
  await using cluster = await start(createMemoryStore({ clock: realClock }))
  const migrations = cluster.api.client.of(storageVersionMigrations)
  const done = await cluster.migrate('done', { resource: 'configmaps' })
  await assert.rejects(
    migrations.updateStatus({ ...done, status: { ...done.status, conditions: [] } }),
    (error) => isStatus(error, 'Invalid') && /Success condition cannot be set to false once it is true/.test(error.message),
  )
  const failed = { type: 'Failed', status: 'True', reason: 'R', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }
  await assert.rejects(
    migrations.updateStatus({ ...done, status: { ...done.status, conditions: [...(done.status.conditions ?? []), failed] } }),
    (error) => isStatus(error, 'Invalid') && /Both success and failed conditions cannot be true at the same time/.test(error.message),
  )
  await assert.rejects(
    migrations.updateStatus({ ...done, status: { ...done.status, resourceVersion: '1' } }),
    (error) => isStatus(error, 'Invalid') && /cannot be updated/.test(error.message),
  )
  const { message } = await refused(migrations.create({ metadata: { name: 'none' }, spec: { resource: { group: '', resource: '' } } }))
  assert.match(message, /spec\.resource\.resource: Required value: resource is required/)
})
