/**
 * From a bare machine to real containers behind a Service: `skiff up`, the web application of the reference documents, and everything that
 * kubectl does with it. Real containerd, real kernel, real kubectl. Afterwards the host is as it was.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { kubernetesRelease } from '#base/version'
import { viewNode } from '../robustness/node/support/nodeView.ts'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'
import { webCommand, webManifests, writeDockerArchive, writeWebImage } from './support/webImage.ts'

const skip = obstacleToCluster(true)
const options = { skip }
let cluster: LocalCluster
let before_: ReturnType<typeof hostTraces>

before(async () => {
  if (skip) return
  before_ = hostTraces()
  cluster = await LocalCluster.start('e2e-web', ['--nodes', '1'])
})

after(async () => {
  if (!skip) await cluster?.delete()
})

const clientPod = 'client'

/** What a client in another pod gets from the address. */
async function fromPod(url: string): Promise<string> {
  return (await cluster.kubectl(['exec', clientPod, '--', 'timeout', '3', 'wget', '-q', '-O', '-', url])).stdout.trim()
}

async function fromHost(url: string): Promise<string> {
  try {
    return (await (await fetch(url, { signal: AbortSignal.timeout(3000) })).text()).trim()
  } catch (error) {
    return `no answer: ${(error as Error).message}`
  }
}

const nodeIp = () => cluster.must(['get', 'node', '-o', 'jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}'])
const podNames = async () => (await cluster.must(['get', 'pods', '-l', 'app=web', '-o', 'name'])).split('\n').filter(Boolean)
const ready = () => cluster.must(['get', 'deployment', 'web-app', '-o', 'jsonpath={.status.readyReplicas}/{.status.updatedReplicas}/{.status.replicas}'])

test('ARC-02 the node is Ready, on containerd, with a complete description', options, async () => {
  const wide = await cluster.must(['get', 'nodes', '-o', 'wide'])
  assert.match(wide, new RegExp(`^e2e-web-node-1 +Ready .*${kubernetesRelease.replaceAll('.', '\\.')} .*containerd://`, 'm'))
  const described = await cluster.must(['describe', 'node', 'e2e-web-node-1'])
  for (const part of ['Capacity:', 'Allocatable:', 'PodCIDR:', 'Kubelet Version:', 'Lease:', 'Non-terminated Pods:']) assert.match(described, new RegExp(part))
})

test('CRI-02 images are loaded into the node without a registry', options, async () => {
  const files = await writeWebImage(cluster.dir, ['1.0', '2.0'])
  const { code, stdout, stderr } = await cluster.skiff(['image', 'load', '--name', 'e2e-web', ...files])
  assert.equal(code, 0, stderr)
  assert.match(stdout, /docker\.io\/library\/web-app:1\.0 is on e2e-web-node-1/)
  assert.match((await cluster.skiff(['image', 'ls', '--name', 'e2e-web'])).stdout, /web-app:2\.0/)
})

test('CTL-04 the Deployment and Service of the reference documents run three pods', options, async () => {
  await cluster.mustWith(webManifests('web-app:1.0'), ['apply', '-f', '-'])
  await cluster.must(['rollout', 'status', 'deployment/web-app', '--timeout=60s'])
  assert.equal(await ready(), '3/3/3')
  assert.match(await cluster.must(['get', 'pods', '-l', 'app=web']), /(1\/1 +Running[^\n]*\n?){1}/)
})

test('CRI-01 CRI-04 what runs is containerd’s, under runc’s shim: a container per status, in a sandbox per pod', options, async () => {
  const status = '{range .items[*]}{.status.containerStatuses[*].containerID}{"\\n"}{end}'
  const told = (await cluster.must(['get', 'pods', '-A', '-o', `jsonpath=${status}`])).split('\n').filter(Boolean)
  const listed = await viewNode(cluster, 'e2e-web').run('ctr', '-n', 'k8s.io', 'containers', 'ls')
  const containers = listed.split('\n').slice(1).filter(Boolean)
  for (const container of containers) assert.match(container, / io\.containerd\.runc\.v2 *$/)
  for (const id of told) assert.ok(listed.includes(id.replace('containerd://', '')), id)
  assert.ok(told.length >= 3)
  assert.equal(containers.length, 2 * told.length)
})

test('CRI-03 CRI-07 containers of a pod share localhost and their host’s name; their image is one that docker saved', options, async () => {
  const file = await writeDockerArchive(cluster.dir, 'web-app:docker')
  assert.match((await cluster.skiff(['image', 'load', '--name', 'e2e-web', file])).stdout, /docker\.io\/library\/web-app:docker is on/)
  const containers = [
    { name: 'server', image: 'web-app:docker', command: webCommand, env: [{ name: 'VERSION', value: 'docker' }] },
    { name: 'client', image: 'web-app:docker', command: ['sleep', '600'] },
  ]
  await cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'pair' }, spec: { containers } }), ['apply', '-f', '-'])
  await cluster.must(['wait', '--for=condition=Ready', 'pod/pair', '--timeout=60s'])
  const inClient = (...command: string[]) => cluster.kubectl(['exec', 'pair', '-c', 'client', '--', ...command])
  await eventually(
    'an answer on localhost',
    10_000,
    async () => (await inClient('wget', '-q', '-O', '-', 'http://127.0.0.1:8080/')).stdout.trim(),
    (text) => text === 'docker pair',
  )
  assert.equal((await inClient('hostname')).stdout.trim(), 'pair')
  await cluster.must(['delete', 'pod', 'pair', '--now'])
})

test('SVC-01 the Service answers by its cluster IP and by its name from another pod', options, async () => {
  await cluster.must(['run', clientPod, '--image=web-app:1.0', '--restart=Never', '--command', '--', ...webCommand])
  await cluster.must(['wait', '--for=condition=Ready', `pod/${clientPod}`, '--timeout=60s'])
  const clusterIp = await cluster.must(['get', 'service', 'web-service', '-o', 'jsonpath={.spec.clusterIP}'])
  await eventually(
    'an answer by cluster IP',
    15_000,
    () => fromPod(`http://${clusterIp}/`),
    (text) => text.startsWith('one web-app-'),
  )
  await eventually(
    'an answer by name',
    15_000,
    () => fromPod('http://web-service/'),
    (text) => text.startsWith('one web-app-'),
  )
  assert.match(await fromPod('http://web-service.default.svc.cluster.local/'), /^one web-app-/)
})

test('SVC-02 the Service answers on its node port, from the host', options, async () => {
  const port = await cluster.must(['get', 'service', 'web-service', '-o', 'jsonpath={.spec.ports[0].nodePort}'])
  assert.match(
    await eventually(
      'an answer by node port',
      10_000,
      async () => fromHost(`http://${await nodeIp()}:${port}/`),
      (text) => text.startsWith('one'),
    ),
    /^one web-app-/,
  )
})

test('SVC-13 traffic reaches every pod', options, async () => {
  const seen = new Set<string>()
  await eventually(
    'answers of all three pods',
    20_000,
    async () => seen.add(await fromPod('http://web-service/')),
    () => seen.size >= 3,
  )
  assert.equal(seen.size, 3)
})

test('API-24 kubectl scale up and down', options, async () => {
  await cluster.must(['scale', 'deployment/web-app', '--replicas=5'])
  await eventually('five ready pods', 30_000, ready, (text) => text === '5/5/5')
  await cluster.must(['scale', 'deployment/web-app', '--replicas=2'])
  await eventually(
    'two pods',
    60_000,
    async () => (await podNames()).length,
    (count) => count === 2,
  )
})

test('CTL-04 set image, rollout status and undo', options, async () => {
  await cluster.must(['set', 'image', 'deployment/web-app', 'app=web-app:2.0'])
  assert.match(await cluster.must(['rollout', 'status', 'deployment/web-app', '--timeout=60s']), /successfully rolled out/)
  const image = () => cluster.must(['get', 'pods', '-l', 'app=web', '-o', 'jsonpath={.items[*].spec.containers[0].image}'])
  await eventually('only new pods', 60_000, image, (text) => /^(web-app:2\.0 ?){2}$/.test(text))
  assert.match(await cluster.must(['rollout', 'history', 'deployment/web-app']), /REVISION[\s\S]*1 [\s\S]*2 /)
  await cluster.must(['rollout', 'undo', 'deployment/web-app'])
  await cluster.must(['rollout', 'status', 'deployment/web-app', '--timeout=60s'])
  await eventually('the old image again', 60_000, image, (text) => /^(web-app:1\.0 ?){2}$/.test(text))
})

test('KUB-25 logs, and logs -f as they are written', options, async () => {
  const [pod = ''] = await podNames()
  const follow = cluster.follow(['logs', '-f', pod])
  const ip = await cluster.must(['get', pod, '-o', 'jsonpath={.status.podIP}'])
  await fromPod(`http://${ip}:8080/from-the-test`)
  await follow.until(/from-the-test/)
  follow.end()
  assert.match(await cluster.must(['logs', pod, '--tail=1000']), /from-the-test/)
})

test('ARC-05 exec with standard input, exit codes and a terminal', options, async () => {
  assert.equal(await cluster.mustWith('hello', ['exec', '-i', clientPod, '--', 'cat']), 'hello')
  const failed = await cluster.kubectl(['exec', clientPod, '--', 'sh', '-c', 'echo out; echo err >&2; exit 7'])
  assert.equal(failed.code, 7)
  assert.equal(failed.stdout.trim(), 'out')
  assert.match(failed.stderr, /err/)
  const terminal = cluster.follow(['exec', '-i', '-t', clientPod, '--', 'sh', '-c', 'test -t 0 && echo terminal'])
  terminal.child.stdin?.end()
  await once(terminal.child, 'close')
  assert.match(terminal.text + (await cluster.must(['exec', clientPod, '--', 'hostname'])), /client/)
})

test('ARC-05 cp there and back', options, async () => {
  const file = path.join(cluster.dir, 'there.txt')
  const content = 'x'.repeat(200_000)
  await fs.writeFile(file, content)
  await cluster.must(['cp', file, `${clientPod}:/tmp/there.txt`])
  await cluster.must(['cp', `${clientPod}:/tmp/there.txt`, `${file}.back`])
  assert.equal(await fs.readFile(`${file}.back`, 'utf8'), content)
})

/** Forwards a port to a pod and asks there, twice over the same tunnel. */
async function askThroughForward(): Promise<void> {
  const [pod = ''] = await podNames()
  const forward = cluster.follow(['port-forward', pod, ':8080', '-v=4'])
  const [, port] = await forward.until(/127\.0\.0\.1:(\d+) ->/)
  assert.match(await fromHost(`http://127.0.0.1:${port}/`), /^one web-app-/)
  assert.match(await fromHost(`http://127.0.0.1:${port}/`), /^one web-app-/)
  // kubectl has a second way, over SPDY alone, which would hide that the first one fails.
  assert.doesNotMatch(forward.text, /fallback to secondary dialer/)
  forward.end()
}

test('ARC-05 port-forward to a pod', options, askThroughForward)

test('ARC-05 the same over SPDY/3.1, as older clients speak', options, async () => {
  cluster.env.KUBECTL_REMOTE_COMMAND_WEBSOCKETS = 'false'
  cluster.env.KUBECTL_PORT_FORWARD_WEBSOCKETS = 'false'
  try {
    assert.equal(await cluster.mustWith('hello', ['exec', '-i', clientPod, '--', 'cat']), 'hello')
    assert.equal((await cluster.kubectl(['exec', clientPod, '--', 'sh', '-c', 'exit 9'])).code, 9)
    await askThroughForward()
  } finally {
    delete cluster.env.KUBECTL_REMOTE_COMMAND_WEBSOCKETS
    delete cluster.env.KUBECTL_PORT_FORWARD_WEBSOCKETS
  }
})

test('KUB-05 a container whose process is killed is started again', options, async () => {
  const [pod = ''] = await podNames()
  await cluster.kubectl(['exec', pod, '--', 'sh', '-c', 'kill -9 -1; kill -TERM 1'])
  const restarts = () => cluster.must(['get', pod, '-o', 'jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}'])
  await eventually('a restart', 30_000, restarts, (text) => /^[1-9]\d* true$/.test(text))
})

test('CTL-03 a deleted pod is replaced', options, async () => {
  const [pod = ''] = await podNames()
  await cluster.must(['delete', pod])
  assert.equal((await podNames()).includes(pod), false)
  await eventually('two ready pods', 30_000, ready, (text) => text === '2/2/2')
})

test('AUN-08 a pod reaches the API, and its own token may do only what it may', options, async () => {
  await cluster.must(['exec', clientPod, '--', 'sh', '-c', 'timeout 3 nc -w 3 kubernetes.default.svc 443 </dev/null'])
  const read = (name: string) => cluster.must(['exec', clientPod, '--', 'cat', `/var/run/secrets/kubernetes.io/serviceaccount/${name}`])
  assert.equal(await read('namespace'), 'default')
  const ca = path.join(cluster.dir, 'pod-ca.crt')
  await fs.writeFile(ca, await read('ca.crt'))
  const server = await cluster.must(['config', 'view', '--minify', '-o', 'jsonpath={.clusters[0].cluster.server}'])
  // An empty kubeconfig: the administrator's certificate must not be sent.
  const asPod = ['--kubeconfig', '/dev/null', '--server', server, '--certificate-authority', ca, '--token', await read('token')]
  assert.match(await cluster.must([...asPod, 'get', '--raw', '/version']), /"gitVersion": ?"v1\.36/)
  // What `kubectl auth whoami` does, which kubectl has only since 1.27.
  const review = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' })
  const whoAmI = await cluster.mustWith(review, [...asPod, 'create', '--validate=false', '-f', '-', '-o', 'jsonpath={.status.userInfo.username}'])
  assert.equal(whoAmI, 'system:serviceaccount:default:default')
  const refused = await cluster.kubectl([...asPod, 'get', 'secrets'])
  assert.equal(refused.code, 1)
  assert.match(
    refused.stderr,
    /secrets is forbidden: User "system:serviceaccount:default:default" cannot list resource "secrets" in API group "" in the namespace "default"/,
  )
})

test('CRI-08 stop and start leave the containers running, with their processes', options, async () => {
  const pids = async () =>
    cluster.must(['get', 'pods', '-l', 'app=web', '-o', 'jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[0].containerID}{"\\n"}{end}'])
  const earlier = await pids()
  assert.equal((await cluster.skiff(['stop', 'e2e-web'])).code, 0)
  const started = await cluster.skiff(['start', 'e2e-web'])
  assert.equal(started.code, 0, started.stderr)
  await eventually(
    'the node’s agent to be back',
    20_000,
    async () => (await cluster.kubectl(['exec', clientPod, '--', 'true'])).code,
    (code) => code === 0,
  )
  assert.equal(await pids(), earlier)
  await eventually('two ready pods', 20_000, ready, (text) => text === '2/2/2')
})

test('SDR-04 delete removes the pods and the service', options, async () => {
  await cluster.must(['delete', 'deployment/web-app', 'service/web-service', `pod/${clientPod}`, '--wait=true'], 90_000)
  await eventually('no pods', 60_000, podNames, (names) => names.length === 0)
})

test('deleting the cluster leaves the host as it was', options, async () => {
  await cluster.delete()
  assert.deepEqual(newTraces(before_), {})
  // For after(): deleting twice is fine.
  cluster = Object.assign(cluster, { delete: async () => {} })
})
