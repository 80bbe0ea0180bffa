/** What a test of a controller says when the controller misbehaves: reconciles without end, failures, stops that do not come. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '#base/random'
import { configMaps, podDisruptionBudgets, pods, serviceAccounts } from '#client/builtIn'
import { type DefinedController, defineController } from '#controllers/framework/defineController'
import { type RunControllersOptions, runControllers } from '#controllers/framework/runControllers'
import { startCluster, type TestCluster } from '#testing/cluster'

const bare = { nodes: 0, scheduler: false, controllers: false } as const
const ref = { namespace: 'default', name: 'a' }

interface Running extends AsyncDisposable {
  readonly done: Promise<void>
  stop(): void
}

function run({ client, clock, log }: TestCluster, controller: DefinedController, options: RunControllersOptions = {}): Running {
  const stop = new AbortController()
  const done = runControllers({ client, clock, random: seededRandom(1), log }, [controller], options, stop.signal)
  done.catch(() => {})
  const end = () => stop.abort(new Error('the test is over'))
  return {
    done,
    stop: end,
    [Symbol.asyncDispose]: async () => {
      end()
      await done.catch(() => {})
    },
  }
}

/** Writes its own object on every run. */
function counting(write: 'data' | 'status'): DefinedController {
  let runs = 0
  return defineController({
    name: 'counting',
    for: write === 'data' ? configMaps : podDisruptionBudgets,
    reconcileOwnStatus: true,
    async reconcile({ client }) {
      runs++
      if (write === 'data') await client.of(configMaps).patch(ref, 'merge', { data: { runs: String(runs) } })
      else await client.of(podDisruptionBudgets).patch(ref, 'merge', { status: { observedGeneration: runs } }, { subresource: 'status' })
      return undefined
    },
  })
}

const endless = (kind: string) => new RegExp(`controller counting reconciled ${kind} default/a \\d+ times without time passing`)

const moves: readonly { readonly name: string; readonly move: (cluster: TestCluster) => Promise<unknown> }[] = [
  { name: 'advance', move: ({ clock }) => clock.advance(1_000) },
  { name: 'idle', move: ({ idle }) => idle() },
  { name: 'until', move: ({ until }) => until(async () => false) },
]
for (const { name, move } of moves) {
  test(`X2 ${name} rejects with the controller and the object, a reconcile writes its own object on every run`, async () => {
    await using cluster = await startCluster(bare)
    await using _running = run(cluster, counting('data'))
    await cluster.client.of(configMaps).create({ metadata: ref })
    await assert.rejects(move(cluster), endless('ConfigMap'))
  })
}

test('X2 advance rejects with the controller and the object, a reconcile writes the status of its own object on every run', async () => {
  await using cluster = await startCluster(bare)
  await using _running = run(cluster, counting('status'))
  await cluster.client.of(podDisruptionBudgets).create({ metadata: ref, spec: {} })
  await assert.rejects(cluster.clock.advance(1_000), endless('PodDisruptionBudget'))
})

test('X2 a reconcile that throws leaves its stack in the log', async () => {
  await using cluster = await startCluster(bare)
  const failing = defineController({
    name: 'failing',
    for: configMaps,
    reconcile: async function brokenReconcile() {
      throw new Error('no luck')
    },
  })
  await using _running = run(cluster, failing)
  await cluster.client.of(configMaps).create({ metadata: ref })
  await cluster.clock.advance(10)
  assert.match(cluster.complaints.join('\n'), /Failed to reconcile.*no luck[\s\S]*brokenReconcile.*controllerDiagnosis\.test\.ts/)
})

test('X2 runControllers ends after the graceful stop and names the object, a reconcile never returns', async () => {
  await using cluster = await startCluster(bare)
  const stuck = defineController({
    name: 'stuck',
    for: configMaps,
    predicates: [{ create: ({ metadata }) => metadata.name === ref.name }],
    reconcile: () => new Promise<undefined>(() => {}),
  })
  await using running = run(cluster, stuck, { gracefulStopMs: 5_000 })
  await cluster.client.of(configMaps).create({ metadata: ref })
  await cluster.clock.advance(1_000)
  running.stop()
  let isOver = false
  const ended = assert.rejects(running.done, /controllers did not stop within 5000 ms: stuck reconciles default\/a/).finally(() => {
    isOver = true
  })
  await cluster.clock.advance(4_999)
  assert.equal(isOver, false)
  await cluster.clock.advance(1)
  await ended
})

test('X2 runControllers ends without an error, a reconcile ends when its signal aborts', async () => {
  await using cluster = await startCluster(bare)
  const waiting = defineController({
    name: 'waiting',
    for: configMaps,
    async reconcile({ signal }) {
      await cluster.clock.sleep(3_600_000, signal)
      return undefined
    },
  })
  await using running = run(cluster, waiting, { gracefulStopMs: 5_000 })
  await cluster.client.of(configMaps).create({ metadata: ref })
  await cluster.clock.advance(1_000)
  running.stop()
  await Promise.all([running.done, cluster.clock.advance(5_000)])
})

test('X2 a StatusError of the cluster has the line of the call in its stack', async () => {
  await using cluster = await startCluster(bare)
  async function readMissingObject() {
    await cluster.client.of(configMaps).get(ref)
  }
  await assert.rejects(readMissingObject(), (error: Error) => /readMissingObject.*controllerDiagnosis\.test\.ts/.test(error.stack ?? ''))
})

test('X2 until says what its check saw last: conditions, events, errors of controllers', async () => {
  await using cluster = await startCluster({ nodes: 0 })
  const failing = defineController({
    name: 'failing',
    for: pods,
    reconcile: () => Promise.reject(new Error('no luck')),
  })
  await using _running = run(cluster, failing)
  await cluster.until(async () => (await cluster.client.of(serviceAccounts).list({ namespace: 'default' })).items.length > 0)
  await cluster.client.of(pods).create({ metadata: ref, spec: { containers: [{ name: 'c', image: 'example.com/i:1' }] } })
  const isRunning = async () => (await cluster.client.of(pods).get(ref)).status?.phase === 'Running'
  const { message } = await cluster.until(isRunning, 60_000).then(
    () => assert.fail('the pod runs'),
    (error: Error) => error,
  )
  assert.match(message, /^not within 60000 ms: /)
  assert.match(message, /last seen: Pod default\/a, phase Pending\n {2}PodScheduled=False \(Unschedulable\): .*\n {2}event Warning FailedScheduling: /)
  assert.match(message, /logged: Failed to reconcile, trying again: Error: no luck/)
})

test('X2 until keeps the error that its check threw last as the cause', async () => {
  await using cluster = await startCluster(bare)
  const failure = new Error('not yet')
  await assert.rejects(
    cluster.until(() => Promise.reject(failure), 1_000),
    (error: Error) => error.cause === failure && /1000 ms: not yet/.test(error.message),
  )
})
