/** What authors of operators ask for, each by its row of the list of users' needs: against a whole cluster, under virtual time, with faults. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ConfigMap } from '#api/gen/types/core.v1'
import { type Frozen, keyOf } from '#api/machinery/meta'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { configMaps, deployments, events, leases, secrets } from '#client/builtIn'
import { createSharedInformer } from '#client/cache/sharedInformer'
import { createClient } from '#client/clientOverTransport'
import { LeadershipLostError } from '#client/fencedClient'
import { type Leadership, runLeaderElected } from '#client/leaderElection'
import type { Transport } from '#client/transport'
import { controllerReference, type DefinedController, defineController, generationChanged } from '#controllers/framework/defineController'
import { runControllers } from '#controllers/framework/runControllers'
import type { TestCluster } from '#testing/cluster'
import { withCluster } from './withCluster.ts'

const namespace = 'default'
const bare = { nodes: 0, scheduler: false, controllers: false } as const

const depsOf = ({ client, clock }: TestCluster) => ({ client, clock, random: seededRandom(1), log: noLog })

const isParent = ({ metadata }: Frozen<ConfigMap>) => metadata.name?.startsWith('parent-') ?? false

async function withController(cluster: TestCluster, controller: DefinedController, use: () => Promise<void>): Promise<void> {
  const stop = new AbortController()
  const running = runControllers(depsOf(cluster), [controller], {}, stop.signal)
  try {
    await use()
  } finally {
    stop.abort(new Error('the test is over'))
    await cluster.idle()
    await running
  }
}

test(
  'user need 38: an informer never dies silently: after an hour of broken watches, compactions and restarts it has every final state',
  { timeout: 120_000 },
  () =>
    withCluster(bare, async (cluster) => {
      const { client, clock, faults, until } = cluster
      const random = seededRandom(38)
      const informer = createSharedInformer(client.of(configMaps), { ...depsOf(cluster), minWatchSeconds: 300 }, { namespace })
      const seen = new Map<string, string | undefined>()
      const note = (object: Frozen<ConfigMap>) => void seen.set(keyOf(object), object.data?.value)
      informer.addHandler({ onAdd: note, onUpdate: (_, object) => note(object), onDelete: (object) => void seen.delete(keyOf(object)) })
      const stop = new AbortController()
      const running = informer.run(stop.signal)
      const harms = [
        () => void faults.breakWatches({ component: 'test' }),
        () => void faults.refuse({ component: 'test', verb: 'watch', times: 3 }, 'TooManyRequests'),
        () => void faults.refuse({ component: 'test', verb: 'list', times: 2 }, 'InternalError'),
        () => cluster.compact().then(() => void faults.breakWatches({ component: 'test' })),
        () => cluster.restart('kube-apiserver', 'crash'),
      ]
      for (let minute = 0; minute < 60; minute++) {
        const ref = { namespace, name: `o-${random.int(10)}` }
        const write = async () => {
          if (random.int(4) === 0)
            await client
              .of(configMaps)
              .delete(ref)
              .catch(() => {})
          else
            await client
              .of(configMaps)
              .patch(ref, 'apply', { apiVersion: 'v1', kind: 'ConfigMap', metadata: ref, data: { value: String(minute) } }, { fieldManager: 'test' })
        }
        await write()
        await harms[random.int(harms.length)]?.()
        await clock.advance(60_000)
      }
      faults.clear()
      await clock.advance(120_000)
      const { items } = await client.of(configMaps).list({ namespace })
      const wanted = new Map(items.map((object) => [keyOf(object), object.data?.value]))
      await until(async () => (informer.hasSynced() ? true : undefined))
      assert.deepEqual(new Map([...seen].sort()), new Map([...wanted].sort()))
      stop.abort(new Error('the test is over'))
      await running
    }),
)

const parentsTouchedEarly = async (cluster: TestCluster, count: number, readYourWrites?: boolean) => {
  const { client, clock, faults } = cluster
  const outcomes = { made: 0, refused: 0 }
  const parents = defineController({
    name: 'parents',
    for: configMaps,
    owns: [secrets],
    readYourWrites,
    predicates: [{ create: isParent, update: (_, object) => isParent(object) }],
    concurrency: 8,
    async reconcile({ object, ref, client: mine, cache }) {
      if (cache(secrets).list({ matches: ({ metadata }) => metadata.labels?.parent === ref.name }).length > 0) return undefined
      const metadata = { namespace, generateName: 'child-', labels: { parent: ref.name }, ownerReferences: [controllerReference(object)] }
      await mine
        .of(secrets)
        .create({ metadata })
        .then(
          () => outcomes.made++,
          () => outcomes.refused++,
        )
      return undefined
    },
  })
  faults.delay({ component: 'test', verb: 'watch', resource: 'secrets' }, 2_000)
  await withController(cluster, parents, async () => {
    await clock.advance(5_000)
    for (let number = 0; number < count; number++) {
      const ref = { namespace, name: `parent-${number}` }
      await client.of(configMaps).create({ metadata: ref })
      await clock.advance(100)
      // Touched again while the child's event is still on its way.
      await client.of(configMaps).patch(ref, 'merge', { data: { touched: 'yes' } })
    }
    await clock.advance(60_000)
  })
  const made = (await client.of(secrets).list({ namespace })).items.map(({ metadata }) => metadata.labels?.parent)
  return [made.length, new Set(made).size, outcomes.refused]
}

/** SKIFF_RECONCILES=10000 is as many as the need speaks of. */
const children = Number(process.env.SKIFF_RECONCILES ?? 100)

test(
  'user need 43: a controller reads its own writes by default: each child is made once, without conflicts, although the cache comes late',
  {
    timeout: 60_000 + 600 * children,
  },
  () => withCluster(bare, async (cluster) => assert.deepEqual(await parentsTouchedEarly(cluster, children), [children, children, 0])),
)

test('user need 43: without its guard the same controller makes children twice', { timeout: 120_000 }, () =>
  withCluster(bare, async (cluster) => assert.deepEqual(await parentsTouchedEarly(cluster, 10, false), [20, 10, 0])),
)

test('user need 51: a controller’s own status does not wake it, another’s does; one that wakes itself is named', () =>
  withCluster(bare, async (cluster) => {
    const { client, clock } = cluster
    const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'main', image: 'example.com/app:1' }] } }
    const ref = { namespace, name: 'web' }
    await client.of(deployments).create({ metadata: ref, spec: { selector: { matchLabels: { a: 'b' } }, template } })
    let times = 0
    const quiet = defineController({
      name: 'quiet',
      for: deployments,
      async reconcile({ patchStatus }) {
        await patchStatus({ observedGeneration: ++times })
        return undefined
      },
    })
    await withController(cluster, quiet, async () => {
      await clock.advance(5_000)
      assert.equal(times, 1)
      await client.of(deployments).patch(ref, 'merge', { status: { replicas: 1, updatedReplicas: 1 } }, { subresource: 'status' })
      await clock.advance(5_000)
      assert.equal(times, 2)
    })
    const hot = defineController({
      name: 'hot',
      for: deployments,
      reconcileOwnStatus: true,
      async reconcile({ patchStatus }) {
        await clock.sleep(100)
        if (++times < 60) await patchStatus({ observedGeneration: times })
        return undefined
      },
    })
    await withController(cluster, hot, async () => void (await clock.advance(20_000)))
    const named = (await client.of(events).list({ namespace })).items.filter(({ reason }) => reason === 'HotLoop')
    assert.deepEqual(
      named.map(({ message, count }) => [message, count]),
      [['Reconciled 11 times in 1 s, changing status.observedGeneration: write only what differs', 1]],
    )
  }))

/** A connection that can be cut without the other side noticing. */
function cuttable(transport: Transport): Transport & { cut: boolean } {
  const link = {
    cut: false,
    request: (request: Parameters<Transport['request']>[0], signal?: AbortSignal) =>
      link.cut ? Promise.reject(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })) : transport.request(request, signal),
    watch: (request: Parameters<Transport['watch']>[0], signal: AbortSignal) => transport.watch(request, signal),
  }
  return link
}

test('user need 49: who leads and loses its connection stops before another leads, and its late writes are refused', () =>
  withCluster(bare, async (cluster) => {
    const { clock, client, until } = cluster
    const events: string[] = []
    const stop = new AbortController()
    const lock = { namespace, name: 'the-lead' }
    let first: Leadership | undefined
    const link = cuttable(client.transport)
    const compete = (identity: string, transport: Transport, lead: (leadership: Leadership) => void) =>
      runLeaderElected(
        { ...depsOf(cluster), client: createClient(transport) },
        { lock, identity },
        async (signal, leadership) => {
          events.push(`${identity} leads at ${clock.monotonicMs() / 1000} s`)
          lead(leadership)
          await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
          events.push(`${identity} has stopped`)
        },
        stop.signal,
      ).catch(() => {})
    const one = compete('one', link, (leadership) => {
      first = leadership
    })
    await until(async () => (events.length === 1 ? true : undefined))
    const two = compete('two', client.transport, () => {})
    await clock.advance(60_000)
    assert.equal(events.length, 1)
    link.cut = true
    const cutMs = clock.monotonicMs()
    await until(async () => (events.some((event) => event.startsWith('two leads')) ? true : undefined), 60_000)
    assert.ok(clock.monotonicMs() - cutMs <= 20_000, `${clock.monotonicMs() - cutMs} ms`)
    assert.deepEqual(
      events.map((event) => event.replace(/ at .*/, '')),
      ['one leads', 'one has stopped', 'two leads'],
    )
    // The connection is back, and the former leader still tries to write a decision.
    link.cut = false
    const late = first
      ?.fence(createClient(link))
      .of(configMaps)
      .create({ metadata: { namespace, name: 'late' } })
    await assert.rejects(Promise.resolve(late), LeadershipLostError)
    assert.deepEqual((await client.of(configMaps).list({ namespace })).items, [])
    assert.equal((await client.of(leases).get(lock)).spec?.holderIdentity, 'two')
    stop.abort(new Error('the test is over'))
    await cluster.idle()
    await Promise.all([one, two])
  }))

test('user need 51: with generationChanged a controller’s own status writes do not wake it, and requeueAfterMs is kept to the millisecond', () =>
  withCluster(bare, async (cluster) => {
    const { client, clock } = cluster
    const times: number[] = []
    const watcher = defineController({
      name: 'watcher',
      for: deployments,
      predicates: [generationChanged],
      async reconcile({ patchStatus }) {
        times.push(clock.now())
        await patchStatus({ observedGeneration: times.length })
        return { requeueAfterMs: 12_345 }
      },
    })
    await withController(cluster, watcher, async () => {
      await clock.advance(1_000)
      const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'main', image: 'example.com/app:1' }] } }
      await client.of(deployments).create({ metadata: { namespace, name: 'web' }, spec: { selector: { matchLabels: { a: 'b' } }, template } })
      await clock.advance(12_345 * 4 + 5)
      assert.deepEqual(
        times.slice(1).map((time, index) => time - (times[index] ?? 0)),
        [12_345, 12_345, 12_345, 12_345],
      )
    })
  }))
