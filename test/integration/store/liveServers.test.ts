/** HA: the `kubernetes` service leads to every API server that lives, and to no other. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '#api/machinery/status'
import type { AdmissionAttributes } from '#apiserver/admission/admission'
import type { ApiServerConfig, ApiServerDeps } from '#apiserver/apiServer'
import { serverId } from '#apiserver/bootstrap/identityLease'
import { VirtualClock } from '#base/virtualClock'
import { endpointSlices, endpoints, leases } from '#client/builtIn'
import { createMemoryStore } from '#store/drivers/memory'
import type { Store } from '#store/store'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { changedStore, lastingStore } from '#testing/changedStore'

const kubernetes = { namespace: 'default', name: 'kubernetes' }

async function addresses({ client }: TestApiServer) {
  const ofEndpoints = ((await client.of(endpoints).get(kubernetes)).subsets ?? []).flatMap((subset) => (subset.addresses ?? []).map(({ ip }) => ip))
  const slice = await client.of(endpointSlices).get(kubernetes)
  assert.deepEqual(
    (slice.endpoints ?? []).flatMap((endpoint) => endpoint.addresses),
    ofEndpoints,
  )
  return ofEndpoints
}

function world() {
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
  const clock = new VirtualClock('2026-01-01T00:00:00Z', settle)
  const store = lastingStore(createMemoryStore({ clock }))
  const start = (last: number, config: ApiServerConfig = {}, over: Store = store, deps: Partial<ApiServerDeps> = {}) =>
    startTestApiServer({ store: over, clock, deps: () => deps, config: { advertised: () => ({ address: `192.0.2.${last}`, port: 6443 }), ...config } })
  /** A round of a server is a chain of requests, each of which settles within a few turns. */
  const pass = async (seconds: number, step = 1) => {
    for (let second = 0; second < seconds; second += step) {
      await clock.advance(step * 1000)
      for (let turn = 0; turn < 30; turn++) await settle()
    }
  }
  return { store, start, pass }
}

test('HA-01 each server is in the endpoints while it lives: one that stops goes at once, one that crashes after its lease', async () => {
  const { start, pass } = world()
  const [a, b] = [await start(1), await start(2)]
  assert.deepEqual(await addresses(a), ['192.0.2.1', '192.0.2.2'])
  await b.server.announceShutdown()
  assert.deepEqual(await addresses(a), ['192.0.2.1'])
  await b.close()
  const c = await start(3)
  assert.deepEqual(await addresses(a), ['192.0.2.1', '192.0.2.3'])
  await c.close()
  await pass(14)
  assert.deepEqual(await addresses(a), ['192.0.2.1', '192.0.2.3'])
  await pass(12)
  assert.deepEqual(await addresses(a), ['192.0.2.1'])
  await a.server.announceShutdown()
  assert.deepEqual(await addresses(a), [])
  await a.close()
})

test('HA-01 servers that stay write nothing, and restore endpoints that someone changes', async () => {
  const { store, start, pass } = world()
  // Each compaction writes a key, by which servers agree on the next one.
  const withoutCompaction = { compactionIntervalMs: 0 }
  const [a, b] = [await start(1, withoutCompaction), await start(2, withoutCompaction)]
  await pass(30)
  const before = await store.latestRevision()
  await pass(300)
  assert.equal(await store.latestRevision(), before)
  await a.client.of(endpoints).patch(kubernetes, 'merge', { subsets: null })
  await a.client.of(endpointSlices).delete(kubernetes)
  await pass(10)
  assert.deepEqual(await addresses(b), ['192.0.2.1', '192.0.2.2'])
  await store.transact({ compare: [], success: [{ type: 'delete', from: '/registry/masterleases/192.0.2.1' }] })
  await pass(20)
  assert.deepEqual(await addresses(b), ['192.0.2.1', '192.0.2.2'])
  await Promise.all([a.close(), b.close()])
})

test('HA-01 a server that restarts after a crash is out of the endpoints until it is ready', async () => {
  const { start } = world()
  const [a, b] = [await start(1), await start(2)]
  await b.close()
  let seen: readonly string[] = []
  const again = await startTestApiServer({
    store: a.store,
    clock: a.clock,
    config: { advertised: () => ({ address: '192.0.2.2', port: 6443 }) },
    deps: () => ({
      postStartHooks: [
        async () => {
          seen = await addresses(a)
        },
      ],
    }),
  })
  assert.deepEqual([seen, await addresses(a)], [['192.0.2.1'], ['192.0.2.1', '192.0.2.2']])
  await Promise.all([a.close(), again.close()])
})

test('HA-01 counted servers add themselves up to their number; with the reconciler none the objects are left alone', async () => {
  const { start } = world()
  const counted = { endpointReconciler: 'master-count', serverCount: 2 } as const
  const [a, b] = [await start(1, counted), await start(2, counted)]
  assert.deepEqual(await addresses(a), ['192.0.2.1', '192.0.2.2'])
  const c = await start(3, { endpointReconciler: 'none' })
  assert.deepEqual(await addresses(c), ['192.0.2.1', '192.0.2.2'])
  await b.server.announceShutdown()
  assert.deepEqual(await addresses(c), ['192.0.2.1'])
  await Promise.all([a.close(), b.close(), c.close()])
})

test('HA-01 each server has an identity lease, which it renews while it lives; those of crashed servers go after an hour', async () => {
  const { start, pass } = world()
  const [a, b] = [await start(1, { hostName: 'kind-control-plane' }), await start(2, { hostName: 'second' })]
  // Readiness does not wait for the leases.
  await pass(1)
  const name = 'apiserver-c7uylvfxlbqccnk6myfkwetzze'
  assert.equal(serverId('kind-control-plane'), name)
  const list = async () =>
    (await a.client.of(leases).list({ namespace: 'kube-system', labelSelector: 'apiserver.kubernetes.io/identity=kube-apiserver' })).items
  const names = async () => (await list()).map(({ metadata }) => metadata.name)
  assert.deepEqual(await names(), [name, serverId('second')].sort())
  const { metadata, spec } = await a.client.of(leases).get({ namespace: 'kube-system', name })
  assert.equal(metadata.labels?.['kubernetes.io/hostname'], 'kind-control-plane')
  assert.match(spec?.holderIdentity ?? '', new RegExp(`^${name}_[0-9a-f-]{36}$`))
  assert.equal(spec?.leaseDurationSeconds, 3600)
  assert.match(spec?.renewTime ?? '', /^2026-01-01T00:00:0[01]\.000000Z$/)
  await pass(11)
  const again = await a.client.of(leases).get({ namespace: 'kube-system', name })
  assert.ok((again.spec?.renewTime ?? '') > '2026-01-01T00:00:09')
  await a.client.of(leases).delete({ namespace: 'kube-system', name })
  await pass(22)
  assert.equal((await names()).length, 2)
  await b.close()
  await pass(2 * 3600 + 60, 60)
  assert.deepEqual(await names(), [name])
  await a.server.announceShutdown()
  assert.deepEqual(await names(), [])
  await a.close()
})

test('HA-01 a server whose store does not answer gives up taking itself out of the endpoints after twenty seconds', async () => {
  const { store, start, pass } = world()
  const state = { isSilent: false }
  const silent = changedStore(store, {
    transact: (transaction) => (state.isSilent && JSON.stringify(transaction).includes('/masterleases/') ? new Promise(() => {}) : store.transact(transaction)),
  })
  const a = await start(1, {}, silent)
  state.isSilent = true
  let isOver = false
  const announced = a.server.announceShutdown().then(() => {
    isOver = true
  })
  await pass(19)
  assert.equal(isOver, false)
  await pass(2)
  assert.equal(isOver, true)
  await announced
  await a.close()
})

test('HA-01 a server is ready and in the endpoints while admission refuses every write of a lease, and has its lease soon after', async () => {
  const { store, start, pass } = world()
  const state = { refuses: true }
  const refuse = ({ resource, operation }: AdmissionAttributes) => {
    if (state.refuses && resource.resource === 'leases') throw new StatusError('Forbidden', `no ${operation}`)
  }
  const admission = [{ name: 'NoLeases', handles: () => true, validate: refuse }]
  const a = await start(1, { hostName: 'first' }, store, { admission })
  assert.deepEqual(await addresses(a), ['192.0.2.1'])
  await pass(30)
  const names = async () => (await a.client.of(leases).list({ namespace: 'kube-system' })).items.map(({ metadata }) => metadata.name)
  assert.deepEqual(await names(), [])
  state.refuses = false
  await pass(8)
  assert.deepEqual(await names(), [serverId('first')])
  await a.server.announceShutdown()
  assert.deepEqual(await names(), [])
  await a.close()
})
