/** Two managers of controllers and two schedulers over one API server, under virtual time: one of each acts, whatever happens to the other. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UserInfo } from '#apiserver/core/request'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { deployments, leases, pods } from '#client/builtIn'
import { createControllerManager } from '#controllers/framework/manager'
import { controllers } from '#controllers/index'
import { runWhileLeading } from '#main/component/leading'
import { defaultLease } from '#main/component/options/leaderElection'
import { schedulerComponent } from '#main/component/schedulerComponent'
import { startCluster, type TestCluster } from '#testing/cluster'
import { seedOf } from '#testing/controlPlane'
import { Replica, type Write } from './replica.ts'

const namespace = 'default'
const minWatchSeconds = 86_400
/** A standby reads the lease every 2 s with a jitter of 120 %: it may see the last renewal, and later the expiry, by such an interval late. */
const takeOverMs = ({ leaseDurationMs, retryPeriodMs }: LeaseTimes) => leaseDurationMs + 2 * retryPeriodMs * 2.2
type LeaseTimes = Pick<ReturnType<typeof defaultLease>, 'leaseDurationMs' | 'renewDeadlineMs' | 'retryPeriodMs'>
const upstreams: LeaseTimes = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 }
/** `--leader-elect-lease-duration=8s --leader-elect-renew-deadline=5s --leader-elect-retry-period=1s`: within 15 s in any case. */
const shorter: LeaseTimes = { leaseDurationMs: 8_000, renewDeadlineMs: 5_000, retryPeriodMs: 1_000 }
const components = ['kube-controller-manager', 'kube-scheduler'] as const
type ComponentName = (typeof components)[number]

interface Setup {
  readonly cluster: TestCluster
  readonly replicas: Readonly<Record<ComponentName, readonly Replica[]>>
  readonly writes: Record<ComponentName, Write[]>
}

async function setUp(seed: number, times: LeaseTimes = upstreams): Promise<Setup> {
  const cluster = await startCluster({ seed, nodes: 2, controllers: false, scheduler: false })
  const writes: Setup['writes'] = { 'kube-controller-manager': [], 'kube-scheduler': [] }
  const start = (component: ComponentName) =>
    ['a', 'b'].map((name) => {
      const replica = new Replica(name, cluster.clock, writes[component])
      replica.run((signal) => live(component, replica, { cluster, seed: seedOf(seed, `${component}/${name}`), times }, signal))
      return replica
    })
  return { cluster, writes, replicas: { 'kube-controller-manager': start('kube-controller-manager'), 'kube-scheduler': start('kube-scheduler') } }
}

/** As the processes of the components do, but for their ports. */
function live(
  component: ComponentName,
  replica: Replica,
  { cluster, seed, times }: { readonly cluster: TestCluster; readonly seed: number; readonly times: LeaseTimes },
  signal: AbortSignal,
): Promise<void> {
  const tools = { clock: replica.clock, random: seededRandom(seed), log: noLog, metrics: noMetrics, minWatchSeconds }
  const clientAs = (user: UserInfo) => replica.client(user, (one) => cluster.clientAs(one))
  const client = clientAs({ name: `system:${component}`, groups: ['system:authenticated'] })
  const lead = { component, client, tools, lease: { ...defaultLease(component), ...times }, identity: replica.name }
  if (component === 'kube-scheduler') return runWhileLeading(lead, (leading, fence) => schedulerComponent(fence(client), tools).run(leading), signal)
  return runWhileLeading(
    lead,
    async (leading, fence) => {
      const groups = ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated']
      const clientFor = (account: string) => fence(clientAs({ name: `system:serviceaccount:kube-system:${account}`, groups }))
      await createControllerManager({ ...tools, client: fence(client), clientFor }, controllers, { controllers: ['*', '-nodeipam'] }).run(leading)
    },
    signal,
  )
}

async function deploy({ client }: TestCluster, name: string): Promise<void> {
  const labels = { app: name }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } }
  await client.of(deployments).create({ metadata: { namespace, name }, spec: { replicas: 2, selector: { matchLabels: labels }, template } })
}

/** Resolves when its pods run: that takes controllers, the scheduler and the nodes. */
function runs(cluster: TestCluster, name: string): Promise<true> {
  return cluster.until(async () => {
    const { items } = await cluster.client.of(pods).list({ namespace, labelSelector: `app=${name}` })
    return items.length === 2 && items.every(({ status }) => status?.phase === 'Running') ? true : undefined
  }, 120_000)
}

async function holder({ client }: TestCluster, component: ComponentName): Promise<string> {
  return (await client.of(leases).get({ namespace: 'kube-system', name: component })).spec?.holderIdentity ?? ''
}

async function leaders(setup: Setup): Promise<Replica[]> {
  return Promise.all(
    components.map(async (component) => {
      const name = await holder(setup.cluster, component)
      return setup.replicas[component].find((one) => one.name === name) ?? assert.fail(`${component} is led by ${name}`)
    }),
  )
}

async function tearDown({ cluster, replicas }: Setup): Promise<void> {
  let left = 4
  for (const replica of components.flatMap((component) => replicas[component])) void replica.end().then(() => left--)
  await cluster.until(async () => left === 0)
  await cluster.close()
}

/** Each writer once, in the order in which they wrote. */
function writers(writes: readonly Write[]): string[] {
  return writes.map(({ replica }) => replica).filter((replica, index, all) => replica !== all[index - 1])
}

const fates = [
  { name: 'is killed', seeds: [1], times: upstreams, strike: (one: Replica) => one.kill(), mend: () => {} },
  { name: 'of shorter leases is killed', seeds: [3], times: shorter, strike: (one: Replica) => one.kill(), mend: () => {} },
  { name: 'is cut off', seeds: [2], times: upstreams, strike: (one: Replica) => one.cut(), mend: (one: Replica) => one.mend() },
  { name: 'sleeps', seeds: [1, 2], times: upstreams, strike: (one: Replica) => one.fallAsleep(), mend: (one: Replica) => one.wake() },
] as const

for (const { name, seeds, times, strike, mend } of fates) {
  for (const seed of seeds) {
    test(`HA-04 when the leader ${name}, the other one takes over in time, and there are never two writers (seed ${seed})`, { timeout: 120_000 }, async () => {
      const setup = await setUp(seed, times)
      const { cluster, writes } = setup
      try {
        await deploy(cluster, 'first')
        await runs(cluster, 'first')
        const struck = await leaders(setup)
        const atMs = cluster.clock.monotonicMs()
        for (const one of struck) strike(one)
        await deploy(cluster, 'second')
        await runs(cluster, 'second')
        for (const component of components) {
          const next = writes[component].find(({ replica, atMs: wroteMs }) => wroteMs > atMs && replica !== struck[components.indexOf(component)]?.name)
          assert.ok(next && next.atMs - atMs <= takeOverMs(times), `${component} was taken over after ${next && next.atMs - atMs} ms`)
        }
        for (const one of struck) mend(one)
        await cluster.clock.advance(60_000)
        if (!name.includes('killed')) for (const one of struck) assert.match(String(one.failure?.message), /^leaderelection lost$/)
        await deploy(cluster, 'third')
        await runs(cluster, 'third')
        for (const component of components) assert.equal(writers(writes[component]).length, 2, `${component}: ${JSON.stringify(writes[component])}`)
      } finally {
        await tearDown(setup)
      }
    })
  }
}

test('HA-04 a stopped leader releases its lease, and the other takes over before it expires', { timeout: 120_000 }, async () => {
  const setup = await setUp(3)
  const { cluster, writes } = setup
  try {
    await deploy(cluster, 'first')
    await runs(cluster, 'first')
    const atMs = cluster.clock.monotonicMs()
    let left = 2
    for (const one of await leaders(setup)) void one.end().then(() => left--)
    await cluster.until(async () => left === 0)
    await deploy(cluster, 'second')
    await runs(cluster, 'second')
    assert.ok(cluster.clock.monotonicMs() - atMs < 15_000)
    for (const component of components) assert.equal(writers(writes[component]).length, 2)
  } finally {
    await tearDown(setup)
  }
})
