/**
 * As many pods as a real node takes, 110, while its agent and its containerd are killed in the middle of starting them and of ending them: all run, each
 * once, and in the end nothing is left of any.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, LocalCluster, obstacleToCluster } from '../../e2e/support/localCluster.ts'
import { writeWebImage } from '../../e2e/support/webImage.ts'
import { byName, containerOf, isClean, isReady, lines, type NodeView, restartsOf, type Traces, viewNode } from './support/nodeView.ts'

const skip = obstacleToCluster(true)
const options = { skip, timeout: 170_000 }
const name = 'many-pods'
const most = 110
const waitMs = 60_000
let cluster: LocalCluster
let node: NodeView
let clean: Traces

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start(name, [])
  node = viewNode(cluster, name)
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
  clean = await node.traces()
})

after(async () => {
  if (!skip) await cluster?.delete()
})

const pods = () => node.pods('many')
const ready = async () => (await pods()).filter(isReady)

/** Both at once, by pid; what runs in containers stays. */
async function killAgentAndContainerd(): Promise<void> {
  process.kill(await node.pidOf('node'), 'SIGKILL')
  await node.killContainerd()
}

test('KUB-02 CRI-08 110 pods all run, each once, though agent and containerd are killed while they start', options, async () => {
  const template = {
    metadata: { labels: { app: 'many' } },
    spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'app', image: 'web-app:1.0', command: ['sleep', '100000'] }] },
  }
  const spec = { replicas: most + 1, selector: { matchLabels: { app: 'many' } }, template }
  await cluster.mustWith(JSON.stringify({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'many' }, spec }), ['apply', '-f', '-'])
  const early = await eventually('some pods are ready, others not', waitMs, ready, (found) => found.length >= 30)
  await killAgentAndContainerd()
  assert.ok(early.length < most, `${early.length} were ready before anything was killed`)
  const found = await eventually('all that fit are ready', waitMs, ready, (now) => now.length === most)
  const rest = (await pods()).filter((pod) => !isReady(pod))
  assert.deepEqual(
    rest.map(({ status }) => status.phase),
    ['Pending'],
    'the one for which there is no room waits',
  )
  const identities = new Map(found.map((pod) => [pod.metadata.uid, containerOf(pod)]))
  for (const pod of early) assert.equal(identities.get(pod.metadata.uid), containerOf(pod), 'what ran before runs on')
  assert.ok(found.every((pod) => (restartsOf(pod) ?? 0) <= 1))
  const running = lines(await node.run('ctr', '-n', 'k8s.io', 'tasks', 'ls')).filter((line) => line.includes('RUNNING'))
  assert.equal(running.length, 2 * most, 'a sandbox and a container of each')
  const { interfaces, namespaces, podDirectories, shims } = await node.traces()
  assert.deepEqual([interfaces, namespaces, podDirectories, shims], [clean.interfaces + most, most, most, most])
})

test('KUB-02 in the end nothing is left of 110 pods, though agent and containerd are killed while they end', options, async () => {
  const before_ = byName(await pods())
  await cluster.must(['delete', 'deployment', 'many', '--wait=false'])
  await eventually('some pods are gone, others not', waitMs, pods, (found) => found.length < most - 20)
  await killAgentAndContainerd()
  const left = byName(await pods())
  assert.ok(
    left.every((one) => before_.includes(one)),
    'no pod has arrived',
  )
  await eventually('no pods', waitMs, pods, (found) => found.length === 0)
  await eventually(`a node as clean as before, ${JSON.stringify(clean)}`, waitMs, node.traces, (now) => isClean(now, clean))
})
