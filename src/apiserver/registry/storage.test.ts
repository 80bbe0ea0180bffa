import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { protobufMediaType } from '#api/protobuf/envelope'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { createMemoryStore } from '#store/drivers/memory'
import { createBuiltInRegistry } from '../builtInRegistry.ts'
import type { StorageMediaType } from './storedForm.ts'

/** What a server over etcd with this media type writes to. */
async function registryOf(mediaType: StorageMediaType) {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  const registry = createBuiltInRegistry({ store, clock, log: noLog, random: seededRandom(1), mediaType })
  const stop = new AbortController()
  const running = registry.cacher.run(stop.signal)
  await registry.cacher.loaded
  const close = async () => {
    stop.abort()
    await running
  }
  const stored = (group: string, version: string, resource: string) => {
    const found = registry.served(group, version, resource)?.stored
    assert.ok(found)
    return found
  }
  return { store, storage: registry.storage, stored, close }
}

function definition(versions: number, schemaBytes: number): KubeObject {
  const schema = { openAPIV3Schema: { type: 'object', description: 'x'.repeat(schemaBytes) } }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'things.example.com' },
    spec: {
      group: 'example.com',
      names: { plural: 'things', kind: 'Thing' },
      scope: 'Namespaced',
      versions: Array.from({ length: versions }, (_, at) => ({ name: `v${at + 1}`, served: true, storage: at === 0, schema })),
    },
  } as unknown as KubeObject
}

test('ETC-02 a definition whose versions share a schema is refused as too large by the size of its JSON, too', async () => {
  const { storage, stored, store, close } = await registryOf(protobufMediaType)
  const definitions = stored('apiextensions.k8s.io', 'v1', 'customresourcedefinitions')
  const entry = await storage.put(definitions, 'things.example.com', definition(20, 120_000), undefined)
  const { kvs } = await store.range(`${definitions.prefix}things.example.com`)
  assert.ok((entry?.storedBytes ?? 0) > 2_400_000 && (kvs[0]?.value.length ?? 0) < 130_000)
  await assert.rejects(storage.put(definitions, 'things.example.com', definition(60, 120_000), entry), (error) => {
    assert.deepEqual(isStatus(error, 'RequestEntityTooLarge') && error.message, 'etcdserver: request is too large')
    return true
  })
  await close()
})
