/**
 * HA-01: `skiff up --control-planes 2 --etcd embedded`: two servers share the embedded store, which one process serves by etcd's API. No etcd is installed for it. A
 * store process or a server that is killed starts again, and what was acknowledged stays.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'

const skip = obstacleToCluster(false)
const options = { skip, timeout: 150_000 }
let cluster: LocalCluster

interface Status {
  readonly ready: boolean
  readonly servers: readonly { readonly ready: boolean; readonly leads: readonly string[] }[]
  readonly etcd: readonly { readonly name: string; readonly healthy: boolean }[]
  readonly pids: readonly { readonly role: string; readonly pid: number }[]
  readonly restarts: readonly { readonly what: string }[]
}
const status = async () => JSON.parse((await cluster.skiff(['status', cluster.name, '-o', 'json'])).stdout) as Status
const isWhole = ({ ready, servers, etcd }: Status) => ready && servers.every((one) => one.ready) && etcd.every(({ healthy }) => healthy)

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start('e2e-emb', ['--control-planes', '2', '--etcd', 'embedded', '--runtime', 'simulated', '--simulated-nodes', '1'])
})
after(async () => {
  if (!skip) await cluster?.delete()
})

test('HA-01 two servers over the embedded store are ready, and each work has one leader', options, async () => {
  const found = await eventually('a whole control plane', 30_000, status, isWhole)
  assert.deepEqual([found.servers.length, found.etcd.map(({ name }) => name)], [2, ['etcd-1']])
  assert.deepEqual(found.servers.flatMap(({ leads }) => leads).sort(), ['controllers', 'nodes', 'scheduler'])
  const listed = await cluster.skiff(['etcd', 'member', 'ls', '--cluster', cluster.name])
  assert.match(listed.stdout, /etcd-1 +leader +https:\/\/127\.0\.0\.1:\d+/)
  const added = await cluster.skiff(['etcd', 'member', 'add', '--cluster', cluster.name])
  assert.deepEqual([added.code, /--etcd embedded, which has one member/.test(added.stderr)], [2, true], added.stderr)
})

test('HA-01 each acknowledged write is there after the store process and a server were killed', options, async () => {
  for (const role of ['etcd', 'server']) {
    const written = `before-the-kill-of-${role}`
    await cluster.must(['create', 'configmap', written])
    process.kill((await status()).pids.find((one) => one.role === role)?.pid as number, 'SIGKILL')
    await eventually(
      `a restart after the kill of ${role}`,
      60_000,
      status,
      (found) => found.restarts.some(({ what }) => what.startsWith(role)) && isWhole(found),
    )
    await cluster.must(['get', 'configmap', written])
  }
  await cluster.must(['create', 'deployment', 'web', '--image=web:1.0'])
  const running = () => cluster.must(['get', 'pods', '-l', 'app=web', '-o', 'jsonpath={.items[*].status.phase}'])
  await eventually('the pod of a new Deployment', 60_000, running, (phase) => phase === 'Running')
})
