import assert from 'node:assert/strict'
import type { Deployment } from '#api/gen/types/apps.v1'
import { isStatus } from '#api/machinery/status'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { apply } from '#client/apply'
import { configMaps, deployments } from '#client/builtIn'
import { readYourWrites } from '#client/cache/readYourWrites'
import { createSharedInformer } from '#client/cache/sharedInformer'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import type { NewObject } from '#client/client'
import { createDiscovery } from '#client/discovery/discovery'
import { createDynamicClient, createRestMapper } from '#client/discovery/restMapper'
import { listAll } from '#client/listAll'
import { createMetadataClient } from '#client/metadataClient'
import { createScaleClient } from '#client/scaleClient'
import type { Transport } from '#client/transport'
import { waitFor } from '#client/waitFor'
import { realClock } from '#testing/realClock'
import { bothTransports } from '../api/bothTransports.ts'

const deps = { clock: realClock, random: seededRandom(1), log: noLog }

/** Requests the older documents of discovery, without Accept for the newer ones. */
function withoutAccept(transport: Transport): Transport {
  return { request: ({ accept: _, ...request }, signal) => transport.request(request, signal), watch: (request, signal) => transport.watch(request, signal) }
}

const web = (namespace: string): NewObject<Deployment> => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { namespace, name: 'web' },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  },
})

bothTransports({
  'CGO-06 both forms of discovery tell the same': async ({ client }) => {
    const found = await createDiscovery(client.transport).resources()
    const older = await createDiscovery(withoutAccept(client.transport)).resources()
    assert.equal(found.failed.size, 0)
    assert.ok(found.resources.length > 60)
    const byName = (all: typeof found.resources) =>
      all.map((one) => JSON.stringify({ ...one, subresources: one.subresources.map(({ name }) => name).sort() })).sort()
    assert.deepEqual(byName(older.resources), byName(found.resources))
  },

  'CGO-06 resources are found by name, and worked with without their types': async ({ client, namespace }) => {
    const dynamic = createDynamicClient(client, createRestMapper(createDiscovery(client.transport)))
    const maps = await dynamic.forName('cm')
    await maps.create({ metadata: { namespace, name: 'a' }, data: { k: 'v' } })
    assert.deepEqual((await (await dynamic.forKind('v1', 'ConfigMap')).get({ namespace, name: 'a' })).data, { k: 'v' })
    assert.equal((await dynamic.forName('deploy')).resource.group, 'apps')
  },

  'CGO-06 a metadata client reads, lists and watches metadata only': async ({ client, namespace }) => {
    await client.of(configMaps).create({ metadata: { namespace, name: 'a', labels: { l: '1' } }, data: { k: 'v' } })
    const metadata = createMetadataClient(client.transport)
    const one = await metadata.of(configMaps).get({ namespace, name: 'a' })
    assert.deepEqual([one.kind, one.metadata.labels, one.data], ['PartialObjectMetadata', { l: '1' }, undefined])
    const list = await metadata.of(configMaps).list({ namespace })
    assert.deepEqual([list.items.length, list.items[0]?.kind, list.items[0]?.data], [1, 'PartialObjectMetadata', undefined])

    const stop = new AbortController()
    const factory = createSharedInformerFactory(metadata, deps, { namespace })
    const informer = factory.of(configMaps)
    const running = factory.run(stop.signal)
    await informer.synced(stop.signal)
    const { metadata: made } = await client.of(configMaps).create({ metadata: { namespace, name: 'b' }, data: { k: 'v' } })
    await informer.caughtUp(made.resourceVersion ?? '', AbortSignal.timeout(60_000))
    assert.deepEqual(
      [...informer.store.values()].map(({ kind, metadata: { name }, data }) => [kind, name, data]),
      [
        ['PartialObjectMetadata', 'a', undefined],
        ['PartialObjectMetadata', 'b', undefined],
      ],
    )
    stop.abort()
    await running
  },

  'CGO-06 anything scalable is read and scaled through its scale': async ({ client, namespace }) => {
    await client.of(deployments).create(web(namespace))
    const ref = { namespace, name: 'web' }
    const scales = createScaleClient(client)
    const scale = await scales.get(deployments, ref)
    assert.deepEqual([scale.kind, scale.spec?.replicas, scale.status?.selector], ['Scale', 1, 'app=web'])
    await scales.update(deployments, ref, { ...scale, spec: { replicas: 3 } })
    assert.equal((await client.of(deployments).get(ref)).spec.replicas, 3)
    await scales.scaleTo(deployments, ref, 5)
    assert.equal((await client.of(deployments).get(ref)).spec.replicas, 5)
  },

  'CGO-06 apply says what is ours: what we leave out goes, what others own is a conflict unless forced': async ({ client, namespace }) => {
    const of = client.of(configMaps)
    const metadata = { namespace, name: 'a' }
    await apply(of, { metadata, data: { mine: '1', also: '1' } }, { fieldManager: 'me' })
    await apply(of, { metadata, data: { theirs: '1' } }, { fieldManager: 'they' })
    const after = await apply(of, { metadata, data: { mine: '2' } }, { fieldManager: 'me' })
    assert.deepEqual(after.data, { mine: '2', theirs: '1' })
    const grab = { metadata, data: { mine: '2', theirs: '2' } }
    await assert.rejects(apply(of, grab, { fieldManager: 'me' }), (error) => isStatus(error, 'Conflict'))
    assert.equal((await apply(of, grab, { fieldManager: 'me', force: true })).data?.theirs, '2')
  },

  'CGO-06 a list comes in pages': async ({ client, namespace }) => {
    const of = client.of(configMaps)
    for (let i = 0; i < 7; i++) await of.create({ metadata: { namespace, name: `m${i}` } })
    const list = await listAll(of, { namespace, limit: 3 })
    assert.equal(list.items.map(({ metadata }) => metadata.name).join(), 'm0,m1,m2,m3,m4,m5,m6')
    assert.equal(list.metadata.continue, undefined)
  },

  'CGO-04 one reads one own writes in the cache': async ({ client, namespace }) => {
    const stop = new AbortController()
    const informer = createSharedInformer(client.of(configMaps), deps, { namespace })
    const running = informer.run(stop.signal)
    await informer.synced(stop.signal)
    const of = readYourWrites(client.of(configMaps), informer, realClock, { limitMs: 60_000 })
    for (let i = 0; i < 20; i++) {
      const made = await of.create({ metadata: { namespace, name: `m${i}` } })
      assert.equal(informer.lister.get({ namespace, name: `m${i}` })?.metadata.uid, made.metadata.uid)
      await of.update({ ...made, data: { k: String(i) } })
      assert.equal(informer.lister.get({ namespace, name: `m${i}` })?.data?.k, String(i))
    }
    stop.abort()
    await running
  },

  'CGO-06 one waits for an object until it is as wished, and until it is gone': async ({ client, namespace }) => {
    const of = client.of(configMaps)
    const ref = { namespace, name: 'a' }
    const filled = waitFor(of, ref, (object) => object?.data?.k === '1', deps, AbortSignal.timeout(60_000))
    const made = await of.create({ metadata: ref })
    await of.update({ ...made, data: { k: '1' } })
    assert.equal((await filled)?.data?.k, '1')
    const gone = waitFor(of, ref, (object) => object === undefined, deps, AbortSignal.timeout(60_000))
    await of.delete(ref)
    assert.equal(await gone, undefined)
  },
})
