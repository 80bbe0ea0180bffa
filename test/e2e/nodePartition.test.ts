/**
 * A real node whose packets are dropped while its link and its processes are up: the cluster marks it and its pods, evicts what does not tolerate that, and the node
 * and its pods come back by themselves when packets flow again. Real containerd, real kernel, real kubectl. Afterwards the host is as it was.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, before, test } from 'node:test'
import { echoPod, echoPorts } from './support/echoPod.ts'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'

const skip = obstacleToCluster(true)
const options = { skip, timeout: 300_000 }
const name = 'e2e-partition'
const nodeNames = [`${name}-node-1`, `${name}-node-2`] as const
/** The kubelet renews its Lease every ten seconds. */
const graceSeconds = 18
let cluster: LocalCluster
let traces: ReturnType<typeof hostTraces>

interface Status {
  readonly pids: readonly { readonly role: string; readonly pid: number; readonly node?: string }[]
}

before(async () => {
  if (skip) return
  traces = hostTraces()
  cluster = await LocalCluster.start(name, ['--nodes', '2', '--kube-controller-manager-arg', `node-monitor-grace-period=${graceSeconds}s`])
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
  const leaves = ['not-ready', 'unreachable'].map((key) => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 1,
  }))
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'echo' },
    spec: { selector: { app: 'echo' }, ports: [{ port: 80, targetPort: echoPorts.http }] },
  }
  const items = [
    echoPod('near', nodeNames[0]),
    echoPod('far', nodeNames[1]),
    echoPod('leaves', nodeNames[1], { spec: { tolerations: leaves, terminationGracePeriodSeconds: 30 } }),
    service,
  ]
  await cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), ['apply', '-f', '-'])
  await cluster.must(['wait', '--for=condition=Ready', 'pod', '--all', '--timeout=60s'])
})

after(async () => {
  if (!skip) await cluster?.delete()
})

const jsonPath = (kind: string, of: string, path: string) => cluster.must(['get', kind, of, '-o', `jsonpath={${path}}`])
const nodeReady = () => jsonPath('node', nodeNames[1], '.status.conditions[?(@.type=="Ready")].status')
const taints = () => jsonPath('node', nodeNames[1], '.spec.taints[*].effect')
const podReady = (pod: string) => jsonPath('pod', pod, '.status.conditions[?(@.type=="Ready")].status')
const get = async (host: string) => (await cluster.kubectl(['exec', 'near', '--', 'timeout', '3', 'wget', '-q', '-O', '-', `http://${host}/`])).stdout.trim()

/** The pods that the Service sends connections to. */
const readyEndpoints = () =>
  cluster.must([
    'get',
    'endpointslices',
    '-l',
    'kubernetes.io/service-name=echo',
    '-o',
    'jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].targetRef.name}',
  ])

/** Runs nft in the network namespace of the second node. */
async function nftOnNode(script: string): Promise<void> {
  const { pids } = JSON.parse((await cluster.skiff(['status', name, '-o', 'json'])).stdout) as Status
  const { pid } = pids.find(({ role, node }) => role === 'init' && node === nodeNames[1]) ?? {}
  assert.ok(pid)
  execFileSync('nsenter', ['-t', String(pid), '-n', '--', 'nft', '-f', '-'], { input: script })
}

/** Before any other rule, in each direction; the node's own loopback works. */
const partition = `table inet partition {
  chain incoming { type filter hook prerouting priority -400; policy drop; iifname "lo" accept; }
  chain outgoing { type filter hook postrouting priority 400; policy drop; oifname "lo" accept; }
}
`

test(
  'CTL-09 a node whose packets are dropped becomes Unknown after the grace period, its pods leave their Service, and one that does not tolerate it is evicted',
  options,
  async () => {
    const began = Date.now()
    await nftOnNode(partition)
    await cluster.must(['wait', '--for=condition=Ready=Unknown', `node/${nodeNames[1]}`, '--timeout=90s'], 100_000)
    const seconds = (Date.now() - began) / 1000
    // The last Lease may be ten seconds old, and the controller looks every five.
    assert.ok(seconds > graceSeconds - 12 && seconds < graceSeconds + 30, `${seconds} s`)
    assert.equal(await jsonPath('node', nodeNames[1], '.status.conditions[?(@.type=="Ready")].reason'), 'NodeStatusUnknown')
    await eventually('the taints', 20_000, taints, (text) => text === 'NoSchedule NoExecute')
    await eventually(
      'the pod to be marked',
      20_000,
      () => podReady('far'),
      (text) => text === 'False',
    )
    await eventually('the endpoints', 20_000, readyEndpoints, (text) => text === 'near')
    for (let i = 0; i < 3; i++) assert.match(await get('echo'), /^near /)
    await eventually(
      'the eviction',
      30_000,
      () => jsonPath('pod', 'leaves', '.metadata.deletionTimestamp'),
      (text) => text !== '',
    )
    assert.equal(await jsonPath('pod', 'far', '.metadata.deletionTimestamp'), '')
    const events = await cluster.must([
      'get',
      'events',
      '--field-selector',
      'involvedObject.name=far,reason=NodeNotReady',
      '-o',
      'jsonpath={.items[*].message}',
    ])
    assert.equal(events, 'Node is not ready')
  },
)

test('CTL-09 the API server says that a partitioned node does not answer, and other nodes work', options, async () => {
  const began = Date.now()
  const logs = await cluster.kubectl(['logs', 'far'], 90_000)
  assert.ok(Date.now() - began < 45_000, `${Date.now() - began} ms`)
  assert.notEqual(logs.code, 0)
  assert.match(logs.stderr, /dial tcp \S+:10250: .*(i\/o timeout|unreachable)/)
  assert.equal((await cluster.kubectl(['logs', 'near'])).code, 0)
})

test('CTL-09 the node and its pods recover by themselves when packets flow again, in the same containers', options, async () => {
  const containerOf = (pod: string) => jsonPath('pod', pod, '.status.containerStatuses[0].containerID')
  const before = await containerOf('far')
  await nftOnNode('delete table inet partition\n')
  await eventually('the node to be Ready', 60_000, nodeReady, (text) => text === 'True')
  await eventually('the end of the taints', 20_000, taints, (text) => text === '')
  await eventually(
    'the pod to be Ready',
    60_000,
    () => podReady('far'),
    (text) => text === 'True',
  )
  await eventually('the endpoints', 20_000, readyEndpoints, (text) => text.split(' ').sort().join() === 'far,near')
  await eventually(
    'the end of the evicted pod',
    60_000,
    async () => (await cluster.kubectl(['get', 'pod', 'leaves'])).stderr,
    (text) => text.includes('NotFound'),
  )
  assert.equal(await containerOf('far'), before)
  assert.equal(await jsonPath('pod', 'far', '.status.containerStatuses[0].restartCount'), '0')
  await eventually(
    'an answer of the pod through its Service',
    20_000,
    () => get('echo'),
    (text) => text.startsWith('far '),
  )
  // The node takes new pods, and its kubelet serves.
  await cluster.mustWith(JSON.stringify(echoPod('later', nodeNames[1])), ['apply', '-f', '-'])
  await cluster.must(['wait', '--for=condition=Ready', 'pod/later', '--timeout=60s'], 70_000)
  assert.equal((await cluster.kubectl(['exec', 'later', '--', 'true'])).code, 0)
})

test('CTL-09 deleting the cluster leaves the host as it was', options, async () => {
  await cluster.delete()
  assert.deepEqual(newTraces(traces), {})
  // For after(): deleting twice is fine.
  cluster = Object.assign(cluster, { delete: async () => {} })
})
