import assert from 'node:assert/strict'
import type { Event } from '#api/gen/types/core.v1'
import { isStatus } from '#api/machinery/status'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { configMaps, events, leases } from '#client/builtIn'
import { createSharedInformer } from '#client/cache/sharedInformer'
import { createEventRecorder } from '#client/eventRecorder'
import { runLeaderElected } from '#client/leaderElection'
import { realClock } from '#testing/realClock'
import { until } from '../../support/until.ts'
import { bothTransports } from '../api/bothTransports.ts'

const deps = { clock: realClock, random: seededRandom(1), log: noLog }

/** Resolves when `check` holds; the test's own time-out is the deadline. */

bothTransports({
  'CGO-01 CGO-02 an informer hears the first state, every change in order, and the end': async ({ client, namespace }) => {
    const of = client.of(configMaps)
    await of.create({ metadata: { namespace, name: 'a' } })
    const informer = createSharedInformer(of, deps, { namespace })
    const heard: string[] = []
    informer.addHandler({
      onAdd: ({ metadata }, initial) => heard.push(`add ${metadata.name} ${initial}`),
      onUpdate: (old, { metadata, data }) => heard.push(`update ${metadata.name} ${old.data?.k} ${data?.k}`),
      onDelete: ({ metadata }) => heard.push(`delete ${metadata.name}`),
    })
    const stop = new AbortController()
    const running = informer.run(stop.signal)
    await informer.synced(stop.signal)
    const b = await of.create({ metadata: { namespace, name: 'b' } })
    await of.update({ ...b, data: { k: '1' } })
    await of.delete({ namespace, name: 'a' })
    await until('four events have arrived', () => heard.length === 4)
    assert.deepEqual(heard, ['add a true', 'add b false', 'update b undefined 1', 'delete a'])
    assert.equal(informer.store.get(`${namespace}/b`)?.data?.k, '1')
    stop.abort()
    await running
  },

  'errors are Status reasons; a stale update conflicts; a collection is deleted by selector': async ({ client, namespace }) => {
    const of = client.of(configMaps)
    const made = await of.create({ metadata: { namespace, name: 'a', labels: { l: '1' } } })
    await of.update({ ...made, data: { k: '1' } })
    await assert.rejects(of.update({ ...made, data: { k: '2' } }), (error) => isStatus(error, 'Conflict'))
    await assert.rejects(of.create({ metadata: { namespace, name: 'a' } }), (error) => isStatus(error, 'AlreadyExists'))
    await of.deleteCollection({ namespace, labelSelector: 'l=1' })
    await assert.rejects(of.get({ namespace, name: 'a' }), (error) => isStatus(error, 'NotFound'))
  },

  'an event that repeats is counted': async ({ client, namespace }) => {
    const recorder = createEventRecorder({ client, ...deps }, { component: 'test' })
    const object = await client.of(configMaps).create({ metadata: { namespace, name: 'a' } })
    for (let i = 0; i < 3; i++) recorder.event(object, 'Normal', 'Did', 'Did it')
    await recorder.flush()
    const found: readonly Pick<Event, 'count' | 'message'>[] = (await client.of(events).list({ namespace })).items as never
    assert.deepEqual(
      found.map(({ count, message }) => [count, message]),
      [[3, 'Did it']],
    )
  },

  'CGO-08 a lease is taken, and released at the end': async ({ client, namespace }) => {
    const stop = new AbortController()
    const lock = { namespace, name: 'l' }
    await runLeaderElected({ client, ...deps }, { lock, identity: 'me', releaseOnCancel: true }, async () => stop.abort(), stop.signal)
    assert.equal((await client.of(leases).get(lock)).spec?.holderIdentity ?? '', '')
  },
})
