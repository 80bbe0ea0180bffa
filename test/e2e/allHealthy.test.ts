/** Everything that `kubectl get all -A` shows is healthy within a minute from `skiff up`, with addons and an application. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'

const skip = obstacleToCluster(false)
const name = 'e2e-healthy'
const withinMs = 60_000
let cluster: LocalCluster
let startedMs = 0

before(async () => {
  if (skip) return
  startedMs = Date.now()
  cluster = await LocalCluster.start(name, ['--runtime', 'simulated', '--simulated-nodes', '2'])
})
after(async () => {
  if (!skip) await cluster?.delete()
})

interface Shown {
  readonly kind: string
  readonly metadata: { readonly namespace?: string; readonly name: string }
  readonly spec?: { readonly replicas?: number; readonly completions?: number; readonly suspend?: boolean }
  readonly status?: {
    readonly phase?: string
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
    readonly readyReplicas?: number
    readonly desiredNumberScheduled?: number
    readonly numberReady?: number
    readonly succeeded?: number
  }
}

const isTrue = ({ status }: Shown, type: string) => status?.conditions?.some((one) => one.type === type && one.status === 'True') ?? false

/** Whether an object is as it should be; kinds without a state are. */
function isHealthy(object: Shown): boolean {
  const { kind, spec = {}, status = {} } = object
  switch (kind) {
    case 'Pod':
      return status.phase === 'Succeeded' || isTrue(object, 'Ready')
    case 'Deployment':
    case 'ReplicaSet':
    case 'StatefulSet':
    case 'ReplicationController':
      return (status.readyReplicas ?? 0) === (spec.replicas ?? 1)
    case 'DaemonSet':
      return (status.numberReady ?? 0) === (status.desiredNumberScheduled ?? 0)
    case 'Job':
      return isTrue(object, 'Complete')
    case 'APIService':
      return isTrue(object, 'Available')
    case 'Node':
      return isTrue(object, 'Ready')
    default:
      return true
  }
}

async function unhealthy(): Promise<readonly string[]> {
  const shown = await Promise.all(['all', 'nodes,apiservices'].map((what) => cluster.must(['get', what, '-A', '-o', 'json'])))
  const items = shown.flatMap((text) => (JSON.parse(text) as { readonly items: readonly Shown[] }).items)
  assert.ok(items.some(({ kind }) => kind === 'Service') && items.some(({ kind }) => kind === 'Node'))
  return items.filter((one) => !isHealthy(one)).map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`)
}

test('EXP-02 everything that kubectl get all -A shows is healthy within 60 s from skiff up', { skip, timeout: 120_000 }, async () => {
  await eventually('everything is healthy', withinMs - (Date.now() - startedMs), unhealthy, (left) => left.length === 0)
  // Metrics take two samples of each node.
  const top = async () => (await cluster.kubectl(['top', 'nodes', '--no-headers'])).stdout
  await eventually('kubectl top nodes shows both', withinMs - (Date.now() - startedMs), top, (text) => /^(\S+ +\d+m .*\n){2}$/.test(text))
})

test('EXP-02 an application becomes healthy, and shows as such', { skip, timeout: 120_000 }, async () => {
  await cluster.must(['create', 'deployment', 'web', '--image=web:1.0', '--replicas=3'])
  await cluster.must(['expose', 'deployment', 'web', '--port=80'])
  await eventually('the application is healthy', withinMs, unhealthy, (left) => left.length === 0)
  assert.match(await cluster.must(['get', 'all', '-A']), /^default +deployment\.apps\/web +3\/3 +3 +3 /m)
})
