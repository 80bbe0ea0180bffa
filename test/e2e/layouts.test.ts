/** A cluster whose controllers and simulated nodes have processes of their own. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { after, before, test } from 'node:test'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'
import { webManifests } from './support/webImage.ts'

const [name, nodeCount] = ['e2e-split', 200]
const skip = obstacleToCluster(false)
const options = { skip }
const parts = ['controllers', 'simulated-nodes'] as const
let cluster: LocalCluster

interface Status {
  readonly ready: boolean
  readonly simulatedNodes: { readonly count: number; readonly ready: number }
  readonly pids: readonly { readonly role: string; readonly pid: number }[]
  readonly restarts: readonly { readonly what: string; readonly ending: string }[]
}

const status = async () => JSON.parse((await cluster.skiff(['status', name, '-o', 'json'])).stdout) as Status
const pidOf = ({ pids }: Status, role: string) => pids.find((one) => one.role === role)?.pid ?? 0
const readyPods = () => cluster.must(['get', 'deployment', 'web-app', '-o', 'jsonpath={.status.readyReplicas}/{.status.replicas}'])
const scale = async (replicas: number) => {
  await cluster.must(['scale', 'deployment/web-app', `--replicas=${replicas}`])
  await eventually(`${replicas} ready pods`, 60_000, readyPods, (text) => text === `${replicas}/${replicas}`)
}
const restartCounts = async () =>
  new Set((await cluster.must(['get', 'pods', '-o', 'jsonpath={.items[*].status.containerStatuses[*].restartCount}'])).split(' '))
/** A process that has ended and that its parent has not asked about is gone, too. */
const isGone = (pid: number) => {
  try {
    return / Z /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/\(.*\)/, ''))
  } catch {
    return true
  }
}

before(async () => {
  if (!skip) cluster = await LocalCluster.start(name, ['--runtime', 'simulated', '--simulated-nodes', String(nodeCount), '--layout', 'split'])
})

after(async () => {
  if (!skip) await cluster?.delete()
})

test('ARC-13 the parts of a split cluster have processes, and its nodes are ready', options, async () => {
  const found = await status()
  assert.deepEqual(found.simulatedNodes, { count: nodeCount, ready: nodeCount })
  assert.equal(new Set(['server', ...parts].map((role) => pidOf(found, role))).size, 3)
  assert.ok(parts.every((role) => pidOf(found, role) > 0))
})

test('ARC-13 KUB-26 pods run, answer logs and exec, and are measured', options, async () => {
  await cluster.mustWith(webManifests('web-app:1.0'), ['apply', '-f', '-'])
  await scale(50)
  const pod = (await cluster.must(['get', 'pods', '-l', 'app=web', '-o', 'name'])).split('\n')[0] ?? ''
  assert.match(await cluster.must(['logs', pod]), /started on a simulated node/)
  assert.match((await cluster.kubectl(['exec', pod, '--', 'true'])).stderr, /true: not run, container .* is simulated/)
  const top = async () => (await cluster.kubectl(['top', 'nodes', '--no-headers'])).stdout.trim().split('\n').length
  await eventually('usage of all nodes', 60_000, top, (count) => count === nodeCount)
})

test('ARC-13 the names of nodes have the rights of nodes, and no more', options, async () => {
  const node = await cluster.must(['get', 'pods', '-o', 'jsonpath={.items[0].spec.nodeName}'])
  const managers = await cluster.must(['get', 'node', node, '-o', 'jsonpath={.metadata.managedFields[*].manager}', '--show-managed-fields'])
  assert.match(managers, /kubelet/)
  const refused = await cluster.kubectl(['auth', 'can-i', 'delete', 'nodes', '--as', `system:node:${node}`, '--as-group', 'system:nodes'])
  assert.match(refused.stdout, /no/)
})

for (const role of parts) {
  test(`SDR-05 ARC-13 the process of the ${role} is started again after kill -9, its pods continue, and status tells`, options, async () => {
    const killed = pidOf(await status(), role)
    process.kill(killed, 'SIGKILL')
    const isAgain = (found: Status) => ![0, killed].includes(pidOf(found, role)) && found.restarts.some(({ what }) => what === role)
    const { restarts } = await eventually(`another process of the ${role}`, 30_000, status, isAgain)
    assert.equal(restarts.find(({ what }) => what === role)?.ending, 'signal SIGKILL')
    await scale(role === 'controllers' ? 60 : 70)
    assert.deepEqual(await restartCounts(), new Set(['0']))
  })
}

test('ARC-13 nodes are added to a split cluster, and removed', options, async () => {
  const added = await cluster.skiff(['nodes', 'add', name, '--simulated', '3', '-q'])
  assert.equal(added.code, 0, added.stderr)
  assert.deepEqual((await status()).simulatedNodes, { count: nodeCount + 3, ready: nodeCount + 3 })
  const removed = await cluster.skiff(['nodes', 'remove', name, '--simulated', '3', '-q'])
  assert.equal(removed.code, 0, removed.stderr)
})

test('SDR-05 ARC-13 a server that is killed takes its parts along, and all are started again', options, async () => {
  const before_ = await status()
  process.kill(pidOf(before_, 'server'), 'SIGKILL')
  const old = ['server', ...parts].map((role) => pidOf(before_, role))
  const isAgain = (found: Status) => ['server', ...parts].every((role) => ![0, ...old].includes(pidOf(found, role)))
  await eventually('three other processes', 60_000, status, isAgain)
  await eventually('the end of the old ones', 30_000, async () => old.every(isGone), Boolean)
  await scale(80)
  assert.deepEqual(await restartCounts(), new Set(['0']))
})

test('ARC-13 stop ends the parts, start brings them back, and delete leaves none', options, async () => {
  const { pids } = await status()
  assert.equal((await cluster.skiff(['stop', name])).code, 0)
  assert.ok(pids.every(({ pid }) => isGone(pid)))
  assert.equal((await cluster.skiff(['start', name])).code, 0)
  const again = (await status()).pids
  assert.deepEqual(again.map(({ role }) => role).sort(), pids.map(({ role }) => role).sort())
  assert.equal((await cluster.skiff(['delete', name])).code, 0)
  assert.ok(again.every(({ pid }) => isGone(pid)))
})
