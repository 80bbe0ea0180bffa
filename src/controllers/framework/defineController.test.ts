import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '#api/machinery/meta'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { configMaps, namespaced, pods, secrets } from '#client/builtIn'
import { createClient } from '#client/clientOverTransport'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import { type ControllerDefinition, defineController, generationChanged, watching } from './defineController.ts'
import { type RunControllersOptions, runControllers } from './runControllers.ts'

interface Site extends KubeObject {
  spec?: { page?: string }
  status?: { ready?: boolean }
}
const sites = namespaced<Site>('example.com', 'v1', 'sites', 'Site')
const at = (name: string) => `/apis/example.com/v1/namespaces/x/sites/${name}`
const site = (name: string, fields: Record<string, unknown> = {}, metadata: object = {}) => ({
  ...anObject('Site', { namespace: 'x', name }, fields),
  apiVersion: 'example.com/v1',
  metadata: { namespace: 'x', name, uid: `uid-${name}`, ...metadata },
})

async function start(definition: Omit<ControllerDefinition<Site>, 'name' | 'for'>, options: RunControllersOptions = {}, server = new HistoryTransport()) {
  const clock = new VirtualClock()
  const stop = new AbortController()
  const deps = { client: createClient(server), clock, random: seededRandom(1), log: noLog }
  let ended = false
  const done = runControllers(deps, [defineController({ name: 'c', for: sites, ...definition })], options, stop.signal).finally(() => {
    ended = true
  })
  await clock.advance(0)
  return { server, clock, stop: () => stop.abort(new Error('stop')), done, ended: () => ended }
}

test('CGO-09 an object is reconciled when it changes, when what it owns does, and when what is watched names it', async () => {
  const heard: string[] = []
  const { server, clock, stop, done } = await start({
    owns: [pods],
    watches: [watching(secrets, ({ metadata }) => [{ namespace: metadata.namespace, name: metadata.labels?.site ?? '' }])],
    reconcile: async ({ ref, object, cache }) => void heard.push(`${ref.name} ${object.spec?.page ?? ''} ${cache(pods).list().length}`),
  })
  const settle = async () => {
    await clock.advance(0)
    return heard.splice(0)
  }
  server.put(at('a'), site('a', { spec: { page: '1' } }))
  server.put(at('b'), site('b'))
  assert.deepEqual(await settle(), ['a 1 0', 'b  0'])
  const owner = (name: string, more = {}) => ({ apiVersion: 'example.com/v1beta1', kind: 'Site', name, uid: 'u', controller: true, ...more })
  const pod = (name: string, ...ownerReferences: object[]) =>
    server.put(`/api/v1/namespaces/x/pods/${name}`, {
      ...anObject('Pod', { namespace: 'x', name }),
      metadata: { namespace: 'x', name, ownerReferences: ownerReferences as never },
    })
  pod('p', owner('a'))
  assert.deepEqual(await settle(), ['a 1 1'])
  pod('other', owner('a', { controller: false }))
  pod('strange', owner('a', { kind: 'Other' }))
  pod('alien', owner('a', { apiVersion: 'example.org/v1' }))
  assert.deepEqual(await settle(), [])
  pod('p', owner('b'))
  assert.deepEqual((await settle()).sort(), ['a 1 4', 'b  4'], 'who lost it and who got it')
  server.remove('/api/v1/namespaces/x/pods/p')
  assert.deepEqual(await settle(), ['b  3'])
  server.put('/api/v1/namespaces/x/secrets/s', {
    ...anObject('Secret', { namespace: 'x', name: 's' }),
    metadata: { namespace: 'x', name: 's', labels: { site: 'a' } },
  })
  assert.deepEqual(await settle(), ['a 1 3'])
  server.remove(at('a'))
  assert.deepEqual(await settle(), [], 'what is gone is not reconciled')
  stop()
  await done
})

test('CGO-09 predicates filter events; failures are retried after growing waits; requeueAfterMs is kept', async () => {
  let fail = 3
  const atMs: number[] = []
  const { server, clock, stop, done } = await start({
    predicates: [generationChanged, { create: ({ metadata }) => metadata.name !== 'ignored' }],
    reconcile: async () => {
      atMs.push(clock.monotonicMs())
      if (fail-- > 0) throw new Error('not yet')
      return fail > -3 ? { requeueAfterMs: 1000 } : undefined
    },
  })
  server.put(at('a'), site('a', {}, { generation: 1 }))
  server.put(at('ignored'), site('ignored', {}, { generation: 1 }))
  await clock.advance(10_000)
  assert.deepEqual(atMs.splice(0), [0, 5, 15, 35, 1035, 2035])
  server.put(at('a'), site('a', { status: { ready: true } }, { generation: 1 }))
  await clock.advance(10)
  assert.deepEqual(atMs.splice(0), [])
  server.put(at('a'), site('a', {}, { generation: 2 }))
  await clock.advance(10)
  assert.equal(atMs.length, 1)
  stop()
  await done
})

test('CGO-09 a finalizer keeps the object until finalize() succeeds, and other finalizers stay', async () => {
  let clean = false
  const heard: string[] = []
  const { server, clock, stop, done } = await start({
    reconcile: async ({ object }) => void heard.push(`reconcile ${object.metadata.finalizers}`),
    finalizer: {
      name: 'me/f',
      finalize: async () => {
        heard.push('finalize')
        if (!clean) throw new Error('not yet')
      },
    },
  })
  const current = () => server.objects()[0]?.metadata
  server.put(at('a'), site('a', {}, { finalizers: ['other/f'] }))
  await clock.advance(0)
  assert.deepEqual([heard.splice(0), current()?.finalizers], [['reconcile other/f,me/f'], ['other/f', 'me/f']])
  server.put(at('a'), site('a', {}, { ...(current() as object), deletionTimestamp: '2026-01-01T00:00:00Z' }))
  await clock.advance(12)
  assert.deepEqual(
    [heard.splice(0), current()?.finalizers],
    [
      ['finalize', 'finalize'],
      ['other/f', 'me/f'],
    ],
  )
  clean = true
  await clock.advance(1000)
  assert.deepEqual([heard.splice(0), current()?.finalizers], [['finalize'], ['other/f']])
  stop()
  await done
})

test('CGO-09 a status is written only when it differs', async () => {
  const { server, clock, stop, done } = await start({ reconcile: ({ patchStatus }) => patchStatus({ ready: true }).then(() => undefined) })
  // State that a real server keeps with the object is separate here.
  server.put(`${at('a')}/status`, site('a'))
  server.put(at('a'), site('a'))
  await clock.advance(100)
  const writes = server.requests.filter(({ method }) => method === 'PATCH')
  assert.deepEqual(
    writes.map(({ path, body }) => [path, body]),
    [[`${at('a')}/status`, { status: { ready: true } }]],
  )
  server.put(at('a'), site('a', { status: { ready: true, other: 1 } }))
  await clock.advance(100)
  assert.equal(server.requests.filter(({ method }) => method === 'PATCH').length, writes.length)
  stop()
  await done
})

test('CGO-09 a stop lets work under way end, begins nothing new, and after its grace ends it', async () => {
  const begun: string[] = []
  const work = (ends: boolean) => ({
    reconcile: ({ ref, signal }: { ref: { name: string }; signal: AbortSignal }) => {
      begun.push(ref.name)
      return new Promise<undefined>((resolve, reject) => {
        if (ends) finish = () => resolve(undefined)
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
    },
  })
  let finish = () => {}
  const patient = await start(work(true))
  patient.server.put(at('a'), site('a'))
  patient.server.put(at('b'), site('b'))
  await patient.clock.advance(0)
  patient.stop()
  await patient.clock.advance(29_000)
  assert.deepEqual([begun.splice(0), patient.ended()], [['a'], false])
  finish()
  await patient.done
  assert.deepEqual(begun, [])

  const stuck = await start(work(false), { gracefulStopMs: 5_000 })
  stuck.server.put(at('a'), site('a'))
  await stuck.clock.advance(4_999)
  stuck.stop()
  await stuck.clock.advance(4_999)
  assert.equal(stuck.ended(), false)
  await stuck.clock.advance(1)
  await stuck.done
})

test('CGO-09 HA-04 who does not lead does not work; who loses the lead is cut off at once, and its writes are refused', async () => {
  const server = new HistoryTransport()
  const lock = { namespace: 'x', name: 'l' }
  let under: AbortSignal | undefined
  let write: (() => Promise<unknown>) | undefined
  const leader = await start(
    {
      reconcile: ({ client, signal }) => {
        under = signal
        write = () => client.of(configMaps).create({ metadata: { namespace: 'x', name: 'm' } })
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
      },
    },
    { leaderElection: { lock, identity: 'a' } },
    server,
  )
  server.put(at('a'), site('a'))
  await leader.clock.advance(0)
  assert.ok(under)
  let other = 0
  const standby = await start({ reconcile: async () => void other++ }, { leaderElection: { lock, identity: 'b' } }, server)
  await standby.clock.advance(10_000)
  assert.equal(other, 0)
  server.intercept = ({ path }) => {
    if (path.includes('leases')) throw new Error('no route')
  }
  const lost = assert.rejects(leader.done, /leaderelection lost/)
  await leader.clock.advance(12_000)
  await lost
  assert.equal(under.aborted, true)
  await assert.rejects(async () => write?.(), /leadership is lost/)
  server.intercept = () => {}
  await standby.clock.advance(30_000)
  assert.equal(other, 1)
  standby.stop()
  await standby.clock.advance(0)
  await standby.done
})
