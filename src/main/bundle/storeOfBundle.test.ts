import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { type BundleIndex, DamagedBundle } from '#cli/bundle/format'
import type { Kind, PastObject } from '#cli/past/objects'
import { writeDatabase } from '#store/snapshot/snapshotFile'
import type { LocalStore, StoredChange } from '#store/store'
import { createObjectFile } from './objectFile.ts'
import { storeOfBundle } from './storeOfBundle.ts'

const clock = new VirtualClock()
const configMaps = { group: '', version: 'v1', resource: 'configmaps', kind: 'ConfigMap', namespaced: true } as Kind
const services = { ...configMaps, resource: 'services', kind: 'Service' }
const boats = { ...configMaps, group: 'example.com', resource: 'boats', kind: 'Boat' }
const object = (kind: string, name: string, revision: number, members = {}): PastObject =>
  ({ kind, apiVersion: 'v1', metadata: { namespace: 'a', name, resourceVersion: String(revision) }, ...members }) as unknown as PastObject
const indexOf = (revision: number, oldestRevision: number) => ({ revision, oldestRevision }) as BundleIndex

describe('the store of a bundle', () => {
  let folder: string
  let files = 0
  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-bundle-'))
  })
  after(() => fs.rm(folder, { recursive: true }))

  const directory = async () => {
    const made = path.join(folder, String(files++))
    await fs.mkdir(made)
    return made
  }
  const keysAt = async (store: LocalStore, revision: number) =>
    (await store.range('/registry/', '/registry0', { revision })).kvs.map(({ key, modRevision, value }) => `${key}@${modRevision} ${Buffer.from(value)}`)

  /** Written as another program would. */
  async function databaseOf(changes: readonly Partial<StoredChange>[]): Promise<Buffer> {
    const file = path.join(await directory(), 'db')
    const handle = await fs.open(file, 'w+')
    const all = changes.map(
      (change, at): StoredChange => ({
        key: '/registry/configmaps/a/b',
        value: Buffer.from('{}'),
        modRevision: at + 2,
        createRevision: at + 2,
        version: 1,
        lease: 0,
        sub: 0,
        ...change,
      }),
    )
    const snapshot = {
      revision: all.length + 1,
      compactRevision: 0,
      leases: [],
      auth: [],
      changes: async function* () {
        yield all
      },
      isLiveAt: () => true,
      close: () => {},
    }
    await writeDatabase(handle, snapshot, { alarms: [] })
    await handle.close()
    return fs.readFile(file)
  }

  test('X18 objects that are added kind by kind are there by revision, below the keys of upstream', async () => {
    const written = await createObjectFile(await directory())
    await written.add(configMaps, object('ConfigMap', 'new', 7))
    await written.add(configMaps, object('ConfigMap', 'old', 3))
    await written.add(services, object('Service', 'web', 5))
    await written.add(boats, object('Boat', 'skiff', 4))
    await written.add(configMaps, object('ConfigMap', 'old', 8, { data: { a: 'é' } }))
    written.remove(configMaps, object('ConfigMap', 'new', 9))
    assert.equal(written.count, 3)
    const database = await fs.readFile(await written.end({ revision: 12, oldestRevision: 7 }))
    const store = await storeOfBundle(database, indexOf(12, 7), clock)
    const value = (kind: string, name: string, more = '') => `{"apiVersion":"v1","kind":"${kind}","metadata":{"namespace":"a","name":"${name}"}${more}}`
    const rest = [`/registry/example.com/boats/a/skiff@4 ${value('Boat', 'skiff')}`, `/registry/services/specs/a/web@5 ${value('Service', 'web')}`]
    assert.deepEqual(await keysAt(store, 7), [
      `/registry/configmaps/a/new@7 ${value('ConfigMap', 'new')}`,
      `/registry/configmaps/a/old@3 ${value('ConfigMap', 'old')}`,
      ...rest,
    ])
    assert.deepEqual(await keysAt(store, 12), [`/registry/configmaps/a/old@8 ${value('ConfigMap', 'old', ',"data":{"a":"é"}')}`, ...rest])
    assert.equal(store.latestRevision(), 12)
    await assert.rejects(keysAt(store, 6), { code: 'compacted' })
    await assert.rejects(store.transact({ compare: [], success: [{ type: 'put', key: '/registry/x', value: Buffer.from('{}') }] }))
    await store.close()
  })

  const refused = async (database: Buffer, index: BundleIndex, message: RegExp) =>
    assert.rejects(storeOfBundle(database, index, clock), (error: unknown) => error instanceof DamagedBundle && message.test(error.message))

  test('X18 a store that is none, or another than the index says, is refused', async () => {
    const database = await databaseOf([{}])
    await refused(Buffer.alloc(8192), indexOf(2, 1), /damaged/)
    await refused(database.subarray(0, database.length / 2), indexOf(2, 1), /damaged/)
    await refused(database, indexOf(3, 1), /of revision 2, and its index says 3/)
    await refused(database, indexOf(2, 5), /its history begins after its end/)
  })

  test('X18 a value that is no JSON is refused', async () => refused(await databaseOf([{ value: Buffer.from('k8s\0protobuf') }]), indexOf(2, 1), /is no JSON/))

  test('X18 a definition of custom resources loses its webhook, and one that is no JSON is refused', async () => {
    const key = '/registry/apiextensions.k8s.io/customresourcedefinitions/boats.example.com'
    const value = Buffer.from('{"spec":{"group":"example.com","conversion":{"strategy":"Webhook"}}}')
    const store = await storeOfBundle(await databaseOf([{ key, value }]), indexOf(2, 1), clock)
    assert.deepEqual(await keysAt(store, 2), [`${key}@2 {"spec":{"group":"example.com"}}`])
    await store.close()
    await refused(await databaseOf([{ key, value: Buffer.from('{"spec":') }]), indexOf(2, 1), /definition of custom resources is no JSON/)
  })
})
