/** Calls to CNI plugins on a real node (LRN-07): `skiff calls` shows the runtime's ADD and DEL for a pod, with arguments, answers and times. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { NodeCall, NodeCalls } from '#api/debug/nodeCalls'
import { LocalCluster, obstacleToCluster } from './support/localCluster.ts'

const skip = obstacleToCluster(true)
const name = 'e2e-cni-calls'
let cluster: LocalCluster
let node: string

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start(name, ['--nodes', '1'])
  node = await cluster.must(['get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}'])
})

after(async () => {
  if (!skip) await cluster?.delete()
})

async function cniCalls(pod: string): Promise<NodeCall[]> {
  const { calls = [] } = JSON.parse(await cluster.must(['get', '--raw', `/apis/node.skiff.dev/v1alpha1/nodecalls/${node}?pod=default/${pod}`])) as NodeCalls
  return calls.filter(({ api }) => api === 'CNI')
}

/** Hostports make the second plugin of the list work. */
const manifest = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'called' },
  spec: {
    terminationGracePeriodSeconds: 5,
    containers: [{ name: 'main', image: 'skiff.internal/pause:1', imagePullPolicy: 'Never', ports: [{ containerPort: 80, hostPort: 31_980 }] }],
  },
})

test('LRN-07 the calls for a pod include ADD of its CNI plugins, with the pod, the configuration and the addresses', { skip }, async () => {
  await cluster.mustWith(manifest, ['create', '-f', '-'])
  await cluster.must(['wait', '--for=condition=Ready', 'pod/called', '--timeout=60s'])
  const address = await cluster.must(['get', 'pod', 'called', '-o', 'jsonpath={.status.podIP}'])
  const added = await cniCalls('called')
  assert.ok(
    added.every(({ method, code, pod }) => /^ADD \S+$/.test(method) && code === 'OK' && pod === 'default/called'),
    JSON.stringify(added),
  )
  const [first, last] = [added[0], added.at(-1)]
  assert.match(first?.request ?? '', /"netns":"\/var\/run\/netns\/.*"ifname":"eth0".*K8S_POD_NAME=called/)
  assert.match(last?.request ?? '', /"containerPort":80/i)
  assert.ok(last?.answer?.includes(address), last?.answer)
  assert.ok((first?.milliseconds ?? 0) > 0, `${first?.milliseconds} ms`)
  const { code, stdout } = await cluster.skiff(['calls', 'pod/called', '--cluster', name])
  assert.equal(code, 0)
  assert.match(stdout, /CRI RunPodSandbox: OK[\s\S]*CNI ADD \S+: OK after \d+ ms, for pod default\/called[\s\S]*CRI CreateContainer: OK/)
})

test('LRN-07 the calls for a pod that is gone include DEL of its CNI plugins', { skip }, async () => {
  await cluster.must(['delete', 'pod', 'called', '--wait=true', '--timeout=60s'])
  // The kubelet reports the end of the containers before it stops the sandbox.
  // It may do so more than once.
  const deadline = Date.now() + 60_000
  for (;;) {
    const methods = (await cniCalls('called')).map(({ method, code }) => `${method} ${code}`)
    const [added = 0, removed = 0] = ['ADD', 'DEL'].map((command) => methods.filter((method) => method.startsWith(command) && method.endsWith(' OK')).length)
    if (added > 0 && removed >= added) return
    assert.ok(Date.now() < deadline, methods.join())
  }
})
