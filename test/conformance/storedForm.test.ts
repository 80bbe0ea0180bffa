/**
 * What stands in etcd is what upstream writes there: keys, versions, and bytes. The vectors are upstream's own bytes: a server that finds them under
 * upstream's keys serves their objects, and stores the same objects in the same bytes.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { allResources, type ResourceFacts, resourceKey, type StorageFacts, storagePrefix } from '#api/discovery/resources'
import { groupVersion, type KubeObject } from '#api/machinery/meta'
import { isProtobuf, protobufMediaType } from '#api/protobuf/envelope'
import { createBuiltInRegistry } from '#apiserver/builtInRegistry'
import type { Registry } from '#apiserver/registry/registry'
import type { StorageMediaType } from '#apiserver/registry/storedForm'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { createMemoryStore } from '#store/drivers/memory'
import type { Store } from '#store/store'
import { realClock } from '#testing/realClock'
import { reference, skipWithout } from './reference.ts'
import { storedKeys } from './storedKeys.ts'

type Stored = ResourceFacts & { readonly storage: StorageFacts }

const folder = reference('serialization-v1.36')
const needsReference = skipWithout(folder, 'serialization-v1.36')
/** One version of each stored resource. */
const resources = [
  ...new Map(
    allResources().flatMap((facts) => (facts.storage && facts.storage.version === facts.version ? [[facts.storage.prefix, facts as Stored]] : [])),
  ).values(),
]
const writtenIn = ({ storage }: Stored) => groupVersion({ group: storage.group, version: storage.writtenVersion ?? storage.version })

test('ETC-01 each resource has the key prefix of upstream, and ETC-02 its version in etcd', () => {
  const served = allResources().flatMap(({ group, version, resource, storage }) => {
    if (!storage || group === 'internal.apiserver.k8s.io') return []
    const { prefix, writtenVersion = storage.version } = storage
    return [`${group}/${version}/${resource} ${prefix} ${groupVersion({ group: storage.group, version: writtenVersion })}`]
  })
  assert.ok(served.length >= 60, `${served.length} resources`)
  assert.deepEqual(
    served.filter((row) => !storedKeys.includes(row)),
    [],
  )
})

/** Upstream's object and bytes of the version in etcd; undefined for the kinds that have no vector: they are not in k8s.io/api. */
function vectorOf(facts: Stored): { readonly object: KubeObject; readonly protobuf: Buffer; readonly held: KubeObject } | undefined {
  const { group, version, writtenVersion = version } = facts.storage
  const read = (of: string, ext: string) => path.join(folder ?? '', `${group || 'core'}.${of}.${facts.kind}.${ext}`)
  if (!fs.existsSync(read(writtenVersion, 'pb'))) return undefined
  const json = (of: string) => JSON.parse(fs.readFileSync(read(of, 'json'), 'utf8')) as KubeObject
  return { object: json(writtenVersion), protobuf: fs.readFileSync(read(writtenVersion, 'pb')), held: json(version) }
}

const keyOf = ({ storage, namespaced }: Stored, { metadata }: KubeObject) =>
  `${storagePrefix(storage)}/${namespaced ? `${metadata.namespace}/` : ''}${metadata.name}`

const optional = new Set(allResources().map(({ group, version, resource }) => resourceKey(group, version, resource)))

async function withRegistry(mediaType: StorageMediaType | undefined, store: Store, use: (registry: Registry) => Promise<void>): Promise<void> {
  const registry = createBuiltInRegistry({ store, clock: realClock, log: noLog, random: seededRandom(1), mediaType, optional })
  const stop = new AbortController()
  const running = registry.cacher.run(stop.signal)
  await registry.cacher.loaded
  try {
    await use(registry)
  } finally {
    stop.abort()
    await running
  }
}

const storeOf = () => createMemoryStore({ clock: realClock })
const withoutRevision = ({ metadata: { resourceVersion: _, ...metadata }, ...object }: KubeObject) => ({ ...object, metadata })

test('ETC-02 upstream’s bytes under upstream’s keys are served as the objects that they hold', needsReference, async (t) => {
  const store = storeOf()
  const vectors = resources.flatMap((facts) => vectorOf(facts) ?? []).length
  assert.ok(vectors >= 55, `${vectors} kinds`)
  for (const facts of resources) {
    const vector = vectorOf(facts)
    if (vector) await store.transact({ compare: [], success: [{ type: 'put', key: keyOf(facts, vector.object), value: vector.protobuf }] })
  }
  await withRegistry(protobufMediaType, store, async (registry) => {
    for (const facts of resources) {
      const vector = vectorOf(facts)
      if (!vector) continue
      await t.test(`${writtenIn(facts)} ${facts.kind}`, () => {
        const stored = registry.served(facts.group, facts.version, facts.resource)?.stored
        const entry = stored?.cache.get(keyOf(facts, vector.object).slice(stored.prefix.length))
        assert.deepEqual(withoutRevision(JSON.parse(Buffer.from(entry?.bytes ?? []).toString()) as KubeObject), withoutRevision(vector.held))
      })
    }
  })
})

test('ETC-02 an object is stored in the bytes that upstream writes', needsReference, async (t) => {
  const store = storeOf()
  await withRegistry(protobufMediaType, store, async (registry) => {
    for (const facts of resources) {
      const vector = vectorOf(facts)
      const stored = registry.served(facts.group, facts.version, facts.resource)?.stored
      if (!vector || !stored) continue
      const key = keyOf(facts, vector.held)
      await t.test(key, async () => {
        await registry.storage.put(stored, key.slice(stored.prefix.length), structuredClone(vector.held), undefined)
        const { kvs } = await store.range(key)
        // The store’s revision is no part of the value, upstream’s vector has one.
        const want = protobufWithoutRevision(vector.protobuf, vector.object.metadata.resourceVersion ?? '')
        assert.equal(Buffer.from(kvs[0]?.value ?? []).toString('hex'), want)
      })
    }
  })
})

/** The vector with field 6 of its metadata taken out, and the lengths around it corrected. */
function protobufWithoutRevision(vector: Buffer, revision: string): string {
  const field = Buffer.concat([Buffer.from([0x32, revision.length]), Buffer.from(revision)])
  // k8s\0, the type's field, then raw (tag 0x12), which begins with metadata (tag 0x0a).
  const typeEnd = 4 + 2 + (vector[5] as number)
  const raw = varint(vector, typeEnd + 1)
  const message = vector.subarray(raw.end, raw.end + raw.value)
  const meta = varint(message, 1)
  const metadata = message.subarray(meta.end, meta.end + meta.value)
  const cut = metadata.indexOf(field)
  const shorter = Buffer.concat([metadata.subarray(0, cut), metadata.subarray(cut + field.length)])
  const inner = Buffer.concat([Buffer.from([0x0a]), varintOf(shorter.length), shorter, message.subarray(meta.end + meta.value)])
  return Buffer.concat([vector.subarray(0, typeEnd + 1), varintOf(inner.length), inner, vector.subarray(raw.end + raw.value)]).toString('hex')
}

function varint(bytes: Buffer, at: number): { readonly value: number; readonly end: number } {
  let value = 0
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++] as number
    value += (byte & 0x7f) * 2 ** shift
    if (byte < 0x80) return { value, end: at }
  }
}

function varintOf(value: number): Buffer {
  const bytes: number[] = []
  for (; value > 0x7f; value = Math.floor(value / 128)) bytes.push((value & 0x7f) | 0x80)
  return Buffer.from([...bytes, value])
}

for (const mediaType of ['application/json', 'application/yaml'] as const) {
  test(`ETC-02 what --storage-media-type=${mediaType} writes is served by a server of any other media type`, needsReference, async () => {
    const store = storeOf()
    const vectors = resources.flatMap((facts) => ({ facts, vector: vectorOf(facts) }))
    await withRegistry(mediaType, store, async (registry) => {
      for (const { facts, vector } of vectors) {
        const stored = registry.served(facts.group, facts.version, facts.resource)?.stored
        if (stored && vector) await registry.storage.put(stored, keyOf(facts, vector.held).slice(stored.prefix.length), structuredClone(vector.held), undefined)
      }
    })
    const { kvs } = await store.range('/registry/', '/registry0')
    assert.ok(kvs.length >= 55 && kvs.every(({ value }) => !isProtobuf(value) && (value[0] === 0x7b) === (mediaType === 'application/json')))
    await withRegistry(protobufMediaType, store, async (registry) => {
      for (const { facts, vector } of vectors) {
        const stored = registry.served(facts.group, facts.version, facts.resource)?.stored
        const entry = vector && stored?.cache.get(keyOf(facts, vector.held).slice(stored.prefix.length))
        if (entry) assert.deepEqual(withoutRevision(JSON.parse(Buffer.from(entry.bytes).toString()) as KubeObject), withoutRevision(vector.held))
      }
    })
  })
}

test('ETC-02 a server with a store of its own keeps JSON', async () => {
  const store = storeOf()
  await withRegistry(undefined, store, async (registry) => {
    const stored = registry.served('', 'v1', 'configmaps')?.stored
    assert.ok(stored)
    await registry.storage.put(stored, 'a/b', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'b', namespace: 'a' } }, undefined)
  })
  const { kvs } = await store.range('/registry/configmaps/a/b')
  assert.equal(Buffer.from(kvs[0]?.value ?? []).toString(), '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"a"}}')
})
