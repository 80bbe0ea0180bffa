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
async function registryOf(mediaType: StorageMediaType, leaseReuseSeconds?: number) {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const store = createMemoryStore({ clock })
  const registry = createBuiltInRegistry({ store, clock, log: noLog, random: seededRandom(1), mediaType, leaseReuseSeconds })
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
  return { clock, store, storage: registry.storage, stored, close }
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

const reuses = [
  { name: 'by default', leaseReuseSeconds: undefined, pauseMs: 50_000, leases: 1 },
  { name: 'by default', leaseReuseSeconds: undefined, pauseMs: 70_000, leases: 2 },
  { name: 'with --lease-reuse-duration-seconds=10', leaseReuseSeconds: 10, pauseMs: 5_000, leases: 1 },
  { name: 'with --lease-reuse-duration-seconds=10', leaseReuseSeconds: 10, pauseMs: 15_000, leases: 2 },
  { name: 'with --lease-reuse-duration-seconds=0', leaseReuseSeconds: 0, pauseMs: 0, leases: 2 },
]
for (const { name, leaseReuseSeconds, pauseMs, leases } of reuses)
  test(`ETC-14 events that are written ${pauseMs / 1000} s apart have ${leases === 1 ? 'one lease' : 'leases of their own'}, ${name}`, async () => {
    const { clock, storage, stored, store, close } = await registryOf(protobufMediaType, leaseReuseSeconds)
    const events = stored('', 'v1', 'events')
    for (const one of ['a', 'b']) {
      const event = { apiVersion: 'v1', kind: 'Event', metadata: { name: one, namespace: 'default' }, involvedObject: {} } as unknown as KubeObject
      await storage.put(events, `default/${one}`, event, undefined)
      await clock.advance(pauseMs)
    }
    const { kvs } = await store.range(events.prefix, `${events.prefix}~`)
    assert.equal(new Set(kvs.map(({ lease }) => lease)).size, leases)
    await close()
  })
