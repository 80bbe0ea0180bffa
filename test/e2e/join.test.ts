/**
 * `skiff token` and `skiff join`: a token is made, a machine joins a local cluster with it and becomes a node with a certificate of the cluster; and what is
 * refused. The machine is this host with a containerd of its own.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { toYaml } from '#api/machinery/yaml'
import { createKubeletHost } from '#kubelet/core/host'
import { freePort } from '#main/localCluster/freePort'
import { busybox, missingPrerequisite, startContainerd, type TestContainerd } from './kubeletContainerd.ts'
import { eventually, LocalCluster, obstacleToCluster, skiffBin } from './support/localCluster.ts'

const skip = obstacleToCluster(true) || ((await missingPrerequisite()) ?? false)
const options = { skip, timeout: 120_000 }
let cluster: LocalCluster
let containerd: TestContainerd
let joining: ChildProcess | undefined
let said = ''

const at = (name: string) => path.join(cluster.dir, name)
const joinCommand = async () =>
  (await cluster.skiff(['token', 'create', '--print-join-command', '--ttl', '1h', '--description', 'of the test'])).stdout.trim().split(' ')

before(async () => {
  if (skip) return
  containerd = await startContainerd()
  cluster = await LocalCluster.start('e2e-join', ['--runtime', 'simulated', '--simulated-nodes', '1'])
})

after(async () => {
  if (skip) return
  await endJoined()
  await cluster.delete()
  const host = await createKubeletHost()
  await containerd.stop()
  await host.cgroups.remove(containerd.cgroupRoot)
})

test('KUB-23 a token that was made is listed without its secret, and is gone after its deletion', options, async () => {
  const made = (await cluster.skiff(['token', 'create', '--ttl', '30m'])).stdout.trim()
  assert.match(made, /^[a-z0-9]{6}\.[a-z0-9]{16}$/)
  const [id = '', secret = ''] = made.split('.')
  const listed = (await cluster.skiff(['token', 'list'])).stdout
  assert.match(listed, new RegExp(`${id} +(29|30)m.*authentication,signing +<none> +system:bootstrappers:kubeadm:default-node-token`))
  assert.ok(!listed.includes(secret))
  assert.equal((await cluster.skiff(['token', 'delete', id])).stdout, `bootstrap token "${id}" deleted\n`)
  assert.ok(!(await cluster.skiff(['token', 'list'])).stdout.includes(id))
  assert.equal((await cluster.skiff(['token', 'delete', id])).code, 3)
})

/** Joins this host as a node, with the flags of `words`, and keeps its files in a directory of its own. */
async function joinNode(node: string, words: readonly string[]): Promise<{ readonly etc: string; readonly rootDir: string }> {
  const [etc, rootDir, settingsDir] = [at(`${node}/etc`), `${containerd.directory}/${node}`, at(`${node}/conf.d`)]
  fs.mkdirSync(settingsDir, { recursive: true })
  const settings = [
    `port: ${await freePort()}`,
    `healthzPort: ${await freePort()}`,
    'address: 127.0.0.1',
    `containerRuntimeEndpoint: unix://${containerd.socket}`,
    `imageServiceEndpoint: unix://${containerd.socket}`,
    `cgroupRoot: ${containerd.cgroupRoot}`,
    'makeIPTablesUtilChains: false',
    `podLogsDir: ${containerd.directory}/logs`,
    'evictionHard: {memory.available: 1Mi}',
  ]
  fs.writeFileSync(`${settingsDir}/10.conf`, `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${settings.join('\n')}\n`)
  const flags = [...words, '--node-name', node, '--config-dir', etc, '--root-dir', rootDir]
  const ofKubelet = ['--', `--config-dir=${settingsDir}`, '--node-ip=127.0.0.1', '--image-gc-high-threshold=99']
  said = ''
  joining = spawn(process.execPath, [skiffBin, ...flags, ...ofKubelet], { stdio: ['ignore', 'ignore', 'pipe'] })
  joining.stderr?.on('data', (chunk) => {
    said += chunk
  })
  await eventually(
    'the machine says that it is a node',
    60_000,
    async () => said,
    (text) => text.includes(`This machine is node ${node.toLowerCase()}`),
  )
  const ready = () => cluster.kubectl(['get', 'node', node.toLowerCase(), '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'])
  await eventually('the node reports its state', 30_000, ready, ({ stdout }) => stdout === 'True' || stdout === 'False')
  return { etc, rootDir }
}

async function endJoined(): Promise<void> {
  if (!joining || joining.exitCode !== null || joining.signalCode !== null) return
  const exited = once(joining, 'exit')
  joining.kill('SIGTERM')
  await exited
}

/** The machine has a certificate of the cluster, the cluster's configuration, and no token any more. */
async function assertJoined(node: string, { etc, rootDir }: { readonly etc: string; readonly rootDir: string }): Promise<void> {
  const requests = JSON.parse(await cluster.must(['get', 'csr', '-o', 'json'])) as {
    readonly items: readonly { readonly spec: { readonly signerName: string; readonly username: string }; readonly status: object }[]
  }
  const { spec, status } = requests.items.find((one) => said.includes(`token ${one.spec.username.replace('system:bootstrap:', '')}`)) ?? assert.fail(said)
  assert.equal(spec.signerName, 'kubernetes.io/kube-apiserver-client-kubelet')
  assert.match(JSON.stringify(status), /"type":"Approved"/)
  assert.match(said, / ✓ The cluster at 127\.0\.0\.1:\d+ is signed with token [a-z0-9]{6}, and its authority is the expected one\n/)
  assert.match(fs.readFileSync(`${rootDir}/config.yaml`, 'utf8'), /clusterDomain: cluster\.local/)
  assert.ok(!fs.existsSync(`${etc}/bootstrap-kubelet.conf`), node)
  assert.equal(fs.statSync(`${etc}/kubelet.conf`).mode & 0o777, 0o600)
}

test(
  'KUB-23 a machine joins by the printed command: it has a certificate of the cluster, the cluster’s configuration, and no token any more',
  options,
  async () => {
    const [, ...words] = await joinCommand()
    const files = await joinNode('joined-0', words)
    await assertJoined('joined-0', files)
    await endJoined()
  },
)

test('KUB-23 a machine joins by kubeadm’s JoinConfiguration, and a flag wins over the file', options, async () => {
  const files = await joinNode('Joined-1', ['join', '--config', await joinConfiguration()])
  assert.equal(await cluster.must(['get', 'node', 'joined-1', '-o', 'jsonpath={.metadata.labels.from}']), 'file')
  await assertJoined('joined-1', files)
})

/** The printed command as a file of kubeadm, with a name that the flag replaces. */
async function joinConfiguration(): Promise<string> {
  const [, , endpoint = '', , text = '', , hash = ''] = await joinCommand()
  const document = {
    apiVersion: 'kubeadm.k8s.io/v1beta4',
    kind: 'JoinConfiguration',
    discovery: { bootstrapToken: { token: text, apiServerEndpoint: endpoint, caCertHashes: [hash] } },
    nodeRegistration: { name: 'replaced', kubeletExtraArgs: [{ name: 'node-labels', value: 'from=file' }] },
  }
  fs.writeFileSync(at('join.yaml'), toYaml(document), { mode: 0o600 })
  return at('join.yaml')
}

const other = `sha256:${'0'.repeat(64)}`
const refusals = [
  {
    name: 'another hash of the authority',
    change: (words: string[]) => words.with(-1, other),
    code: 7,
    text: /has another public key than .*: sha256:[0-9a-f]{64}/,
  },
  { name: 'a wrong secret', change: (words: string[]) => words.with(3, `${words[3]?.slice(0, 7)}${'0'.repeat(16)}`), code: 7, text: /cannot be trusted/ },
  { name: 'no hash', change: (words: string[]) => words.slice(0, -2), code: 2, text: /--discovery-token-ca-cert-hash is missing/ },
  {
    name: 'a token that the cluster does not have',
    change: (words: string[]) => words.with(3, `zzzzzz.${'0'.repeat(16)}`),
    code: 3,
    text: /does not know the token "zzzzzz"/,
  },
  {
    name: 'an address where nothing listens',
    change: (words: string[]) => words.with(1, '127.0.0.1:1'),
    code: 5,
    text: /no API server answers at 127\.0\.0\.1:1/,
  },
] as const
for (const { name, change, code, text } of refusals) {
  test(`KUB-23 a machine does not join with ${name}, and nothing is written`, options, async () => {
    const [, ...words] = await joinCommand()
    const refused = await cluster.skiff([...change(words), '--config-dir', at('refused'), '--root-dir', at('refused')])
    assert.deepEqual([refused.code, text.test(refused.stderr)], [code, true], refused.stderr)
    assert.ok(!fs.existsSync(at('refused')))
  })
}

test('KUB-23 a machine that has joined is not joined again', options, async () => {
  const [, ...words] = await joinCommand()
  const again = await cluster.skiff([...words, '--config-dir', at('Joined-1/etc'), '--root-dir', at('refused')])
  assert.deepEqual([again.code, /this machine has joined a cluster/.test(again.stderr)], [4, true], again.stderr)
})

test('KUB-23 a machine leaves: its pods are evicted, its kubelet must end, and pods, mounts and files of the join are gone', options, async () => {
  const [etc, rootDir] = [at('Joined-1/etc'), `${containerd.directory}/Joined-1`]
  const leave = (...args: string[]) => cluster.skiff(['leave', '--config-dir', etc, '--root-dir', rootDir, '--cri-socket', containerd.socket, ...args])
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'leaving' },
    spec: {
      nodeName: 'joined-1',
      hostNetwork: true,
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'c', image: busybox, imagePullPolicy: 'IfNotPresent', command: ['sleep', '600'] }],
    },
  }
  fs.writeFileSync(at('leaving.json'), JSON.stringify(pod))
  await cluster.must(['create', '-f', at('leaving.json')])
  const running = () => cluster.kubectl(['get', 'pod', 'leaving', '-o', 'jsonpath={.status.phase}'])
  await eventually('the pod runs', 60_000, running, ({ stdout }) => stdout === 'Running')

  const planned = await leave('--dry-run', '--drain')
  assert.equal(planned.code, 0, planned.stderr)
  assert.match(planned.stdout, /^Drain node joined-1\nStop what runs here\nDelete the Node object joined-1\n/)

  const drained = await leave('--drain')
  assert.match(drained.stderr, / ✓ Node joined-1 is drained: 1 pods were evicted\n/)
  assert.deepEqual([drained.code, /the kubelet of .* runs/.test(drained.stderr)], [7, true], drained.stderr)
  assert.match((await cluster.kubectl(['get', 'pod', 'leaving'])).stderr, /NotFound/)
  assert.equal(await cluster.must(['get', 'node', 'joined-1', '-o', 'jsonpath={.spec.unschedulable}']), 'true')

  await endJoined()
  const left = await leave()
  assert.equal(left.code, 0, left.stderr)
  assert.match(left.stderr, /Node joined-1 stays in the cluster, this machine may not delete it: kubectl delete node joined-1/)
  assert.equal(fs.existsSync(rootDir), false)
  assert.deepEqual(fs.existsSync(etc) ? fs.readdirSync(etc) : [], [])
  const mounts = fs.readFileSync('/proc/self/mountinfo', 'utf8')
  assert.ok(!mounts.includes(rootDir), mounts)
  const again = await leave()
  assert.deepEqual([again.code, /this machine has joined no cluster/.test(again.stderr)], [3, true], again.stderr)
})

test('KUB-23 a machine that leaves with an administrator’s kubeconfig deletes its Node, and can join again', options, async () => {
  const [, ...words] = await joinCommand()
  const { etc, rootDir } = await joinNode('joined-2', words)
  await endJoined()
  const admin = cluster.env.KUBECONFIG ?? ''
  const left = await cluster.skiff(['leave', '--config-dir', etc, '--root-dir', rootDir, '--cri-socket', containerd.socket, '--kubeconfig', admin])
  assert.equal(left.code, 0, left.stderr)
  assert.match(left.stderr, / ✓ Node joined-2 is deleted\n/)
  assert.match((await cluster.kubectl(['get', 'node', 'joined-2'])).stderr, /NotFound/)
  await joinNode('joined-2', words)
  await endJoined()
})
