/**
 * `skiff join --control-plane` between two machines, which are network namespaces with a link between them: a second control plane over the same etcd serves the same
 * objects, takes over the controllers and the scheduler when the first machine dies, and is started again from its files. Also which joins are refused, and what
 * the bootstrap token may read.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { toYaml } from '#api/machinery/yaml'
import { inNetworkNamespace } from '#host/netns'
import { obstacleToEtcd } from '../support/etcdServer.ts'
import { openSsl } from '../support/openssl.ts'
import { type CommandResult, eventually, LocalCluster, obstacleToCluster, skiffBin } from './support/localCluster.ts'

const skip = obstacleToEtcd() || obstacleToCluster(false) || (process.getuid?.() === 0 ? false : 'needs root')
const options = { skip, timeout: 150_000 }
const [first, second] = [`skiff-join-a-${process.pid}`, `skiff-join-b-${process.pid}`]
const [firstAddress, secondAddress] = ['10.199.77.1', '10.199.77.2']
const port = '36443'
const ssl = skip ? undefined : openSsl()
let cluster: LocalCluster
let etcd: ChildProcess | undefined
let machine: ChildProcess | undefined
let said = ''
/** The words of the printed command, without `skiff`. */
let words: readonly string[] = []
let certificateKey = ''

const ip = (...args: string[]) => execFileSync('ip', args)
const at = (name: string) => path.join(cluster.dir, name)
/** A command of the second machine, which has a host name of its own. */
const onSecond = (...args: string[]) => [...inNetworkNamespace(second), 'unshare', '--uts', 'sh', '-c', 'hostname machine-b; exec "$@"', 'sh', ...args]

function runOnSecond(...args: string[]): Promise<CommandResult> {
  const [program = '', ...rest] = onSecond(...args)
  const child = spawn(program, rest, { env: cluster.env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []]
  child.stdout.on('data', (chunk) => stdout.push(chunk))
  child.stderr.on('data', (chunk) => stderr.push(chunk))
  return once(child, 'close').then(([code]) => ({ code, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() }))
}
const joinOnSecond = (...args: string[]) => runOnSecond(process.execPath, skiffBin, ...args)
const kubectlOnSecond = (...args: string[]) => runOnSecond('kubectl', `--server=https://127.0.0.1:${port}`, `--kubeconfig=${at('etc/admin.conf')}`, ...args)

/** Resolves when it serves. */
async function startMachine(...args: readonly string[]): Promise<void> {
  said = ''
  const [program = '', ...rest] = onSecond(process.execPath, skiffBin, ...args)
  machine = spawn(program, rest, { env: cluster.env, stdio: ['ignore', 'ignore', 'pipe'] })
  machine.stderr?.on('data', (chunk) => {
    said += chunk
  })
  await eventually(
    'the machine says that it is a control plane',
    60_000,
    async () => said,
    (text) => text.includes('This machine, machine-b, is a control plane'),
  )
}

async function endMachine(signal: NodeJS.Signals): Promise<void> {
  if (!machine || machine.exitCode !== null || machine.signalCode !== null) return
  const exited = once(machine, 'exit')
  machine.kill(signal)
  await exited
}

/** With certificates for its clients, which the second machine gets from the cluster. */
async function startEtcd(): Promise<object> {
  assert.ok(ssl)
  const authority = ssl.authority('etcd-ca')
  const serving = ssl.sign(authority, { subject: '/CN=etcd', usage: 'serverAuth', names: `IP:${firstAddress}` })
  const client = ssl.sign(authority, { subject: '/CN=apiserver' })
  const files = { ca: ssl.file('ca.crt', authority.cert), cert: ssl.file('client.crt', client.cert), key: ssl.file('client.key', client.key) }
  const url = `https://${firstAddress}:2379`
  const tls = [
    '--client-cert-auth',
    '--trusted-ca-file',
    files.ca,
    '--cert-file',
    ssl.file('s.crt', serving.cert),
    '--key-file',
    ssl.file('s.key', serving.key),
  ]
  const own = ['--data-dir', path.join(ssl.folder, 'data'), '--listen-client-urls', url, '--advertise-client-urls', url, '--log-level', 'error', ...tls]
  const [enter = '', ...rest] = inNetworkNamespace(first)
  etcd = spawn(enter, [...rest, 'etcd', ...own, '--listen-peer-urls', 'http://127.0.0.1:2380'], { stdio: 'ignore' })
  return { endpoints: [url], caFile: files.ca, certFile: files.cert, keyFile: files.key }
}

/** kubeadm's file for the first machine. */
function configuration(external: object): string {
  assert.ok(ssl)
  const head = { apiVersion: 'kubeadm.k8s.io/v1beta4' }
  const documents = [
    { ...head, kind: 'InitConfiguration', localAPIEndpoint: { advertiseAddress: firstAddress, bindPort: Number(port) } },
    { ...head, kind: 'ClusterConfiguration', etcd: { external }, networking: { podSubnet: '10.245.0.0/16' }, apiServer: { certSANs: ['api.example.com'] } },
  ]
  return ssl.file('kubeadm.yaml', documents.map((document) => toYaml(document)).join('---\n'))
}

async function upload(): Promise<void> {
  certificateKey = (await cluster.skiff(['certs', 'upload'])).stdout.trim()
  const printed = await cluster.skiff(['token', 'create', '--print-join-command', '--certificate-key', certificateKey])
  words = printed.stdout.trim().split(' ').slice(1)
}

before(async () => {
  if (skip) return
  for (const name of [first, second]) ip('netns', 'add', name)
  ip('link', 'add', 'veth0', 'netns', first, 'type', 'veth', 'peer', 'name', 'veth0', 'netns', second)
  for (const [name, address] of [
    [first, firstAddress],
    [second, secondAddress],
  ] as const) {
    ip('-n', name, 'addr', 'add', `${address}/24`, 'dev', 'veth0')
    for (const link of ['lo', 'veth0']) ip('-n', name, 'link', 'set', link, 'up')
  }
  const flags = ['--runtime', 'simulated', '--simulated-nodes', '1', '--config', configuration(await startEtcd())]
  cluster = await LocalCluster.start('e2e-cp', flags, inNetworkNamespace(first))
  await upload()
})

after(async () => {
  if (skip) return
  try {
    await endMachine('SIGTERM')
    await cluster?.delete()
  } finally {
    if (etcd && etcd.exitCode === null) {
      etcd.kill('SIGKILL')
      await once(etcd, 'exit')
    }
    for (const name of [first, second]) ip('netns', 'del', name)
    ssl?.remove()
  }
})

const token = () => words[words.indexOf('--token') + 1] ?? ''

test('HA-01 the token of a machine that joins reads the sealed Secret and two ConfigMaps of kube-system, and changes nothing', options, async () => {
  const core = '/api/v1/namespaces/kube-system'
  const asked = [
    ['get', `${core}/secrets/kubeadm-certs`, true],
    ['get', `${core}/configmaps/kubeadm-config`, true],
    ['get', `${core}/configmaps/kubelet-config`, true],
    ['get', `${core}/secrets`, false],
    ['get', `${core}/secrets?watch=1`, false],
    ['get', `${core}/secrets/bootstrap-token-${token().slice(0, 6)}`, false],
    ['get', `${core}/configmaps`, false],
    ['get', `${core}/configmaps/extension-apiserver-authentication`, false],
    ['delete', `${core}/secrets/kubeadm-certs`, false],
  ] as const
  // A kubeconfig without a client certificate: a server prefers it to a token.
  const [server = '', ca = ''] = await Promise.all(
    ['server', 'certificate-authority-data'].map((field) =>
      cluster.must(['config', 'view', '--minify', '--raw', '-o', `jsonpath={.clusters[0].cluster.${field}}`]),
    ),
  )
  const asToken = (...args: readonly string[]) => cluster.kubectl([...args, `--kubeconfig=${at('token.conf')}`])
  const config = {
    clusters: [{ name: 'c', cluster: { server, 'certificate-authority-data': ca } }],
    users: [{ name: 'u', user: { token: token() } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
  fs.writeFileSync(at('token.conf'), JSON.stringify(config), { mode: 0o600 })
  for (const [verb, where, isAllowed] of asked) {
    const { code, stderr } = await asToken(verb, '--raw', where)
    assert.ok(isAllowed ? code === 0 : /Forbidden|is forbidden/.test(stderr), `${verb} ${where}: ${code} ${stderr}`)
  }
  const change = ['-n', 'kube-system', '--type=merge', '-p', '{"data":{}}']
  for (const object of ['secrets/kubeadm-certs', 'configmaps/kubeadm-config'])
    assert.match((await asToken('patch', object, ...change)).stderr, /forbidden/i, object)
  assert.match((await asToken('replace', '--raw', `${core}/secrets/kubeadm-certs`, '-f', at('token.conf'))).stderr, /forbidden/i)
  const data = await cluster.must(['get', 'secret', 'kubeadm-certs', '-n', 'kube-system', '-o', 'json'])
  assert.ok(
    !Buffer.from((JSON.parse(data) as { data: Record<string, string> }).data['ca.key'] ?? '', 'base64')
      .toString('latin1')
      .includes('PRIVATE KEY'),
  )
})

const refusals = [
  {
    name: 'another certificate key',
    change: (args: readonly string[]) => args.with(-1, '0'.repeat(64)),
    code: 7,
    text: /the certificate key does not open the Secret kubeadm-certs/,
  },
  {
    name: 'no certificate key',
    change: (args: readonly string[]) => args.slice(0, -2),
    code: 2,
    text: /--certificate-key or --certificate-key-file is missing/,
  },
  {
    name: 'another hash of the authority',
    change: (args: readonly string[]) => args.map((word) => (word.startsWith('sha256:') ? `sha256:${'0'.repeat(64)}` : word)),
    code: 7,
    text: /has another public key than/,
  },
]
for (const { name, change, code, text } of refusals) {
  test(`HA-01 a machine does not become a control plane with ${name}, and nothing is written`, options, async () => {
    const refused = await joinOnSecond(...change(words), '--config-dir', at('refused'))
    assert.deepEqual([refused.code, text.test(refused.stderr)], [code, true], refused.stderr)
    assert.ok(!fs.existsSync(at('refused')))
  })
}

test('HA-01 the Secret is deleted when the token that owns it has expired, and a machine that joins says so', options, async () => {
  const owner = await cluster.must(['get', 'secret', 'kubeadm-certs', '-n', 'kube-system', '-o', 'jsonpath={.metadata.ownerReferences[0].name}'])
  // As at the end of the two hours; the controller that deletes expired tokens does the rest.
  const expiration = Buffer.from('2020-01-01T00:00:00Z').toString('base64')
  await cluster.must(['patch', 'secret', owner, '-n', 'kube-system', '-p', JSON.stringify({ data: { expiration } })])
  const gone = () => cluster.kubectl(['get', 'secret', 'kubeadm-certs', '-n', 'kube-system'])
  await eventually('the Secret is deleted', 60_000, gone, ({ stderr }) => stderr.includes('NotFound'))
  const refused = await joinOnSecond(...words, '--config-dir', at('refused'))
  assert.deepEqual([refused.code, /nothing was uploaded, or it has expired/.test(refused.stderr)], [3, true], refused.stderr)
  await upload()
})

test('HA-01 a machine joins as a control plane, serves the same objects, and keeps private keys for root', options, async () => {
  await startMachine(...words, '--config-dir', at('etc'))
  await cluster.must(['create', 'configmap', 'written-on-first', '--from-literal=a=b'])
  assert.equal((await kubectlOnSecond('get', 'configmap', 'written-on-first', '-o', 'jsonpath={.data.a}')).stdout, 'b')
  assert.equal((await kubectlOnSecond('create', 'configmap', 'written-on-second')).code, 0)
  await cluster.must(['get', 'configmap', 'written-on-second'])
  const addresses = () => cluster.must(['get', 'endpointslices', 'kubernetes', '-o', 'jsonpath={.endpoints[*].addresses[0]}:{.ports[0].port}'])
  await eventually('the kubernetes Service lists both', 30_000, addresses, (found) => found === `${firstAddress} ${secondAddress}:${port}`)
  const modes = fs.readdirSync(at('etc/pki')).flatMap((name) => (name.endsWith('.key') ? [fs.statSync(at(`etc/pki/${name}`)).mode & 0o777] : []))
  assert.ok(modes.length >= 8)
  assert.deepEqual(new Set(modes), new Set([0o600]))
  for (const name of ['admin.conf', 'controller-manager.conf', 'scheduler.conf']) assert.equal(fs.statSync(at(`etc/${name}`)).mode & 0o777, 0o600)
  const commands = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
  assert.ok(!commands.includes(certificateKey) && !commands.includes(token()))
})

test('HA-01 the second control plane serves metrics.k8s.io and node.skiff.dev, and says of a node that it does not reach why', options, async () => {
  const groups = await kubectlOnSecond('api-versions')
  for (const version of ['metrics.k8s.io/v1beta1', 'node.skiff.dev/v1alpha1']) assert.ok(groups.stdout.split('\n').includes(version), groups.stdout)
  // The kubelets of simulated nodes listen on the loopback of the first machine.
  const metrics = await kubectlOnSecond('get', '--raw', '/apis/metrics.k8s.io/v1beta1/nodes')
  assert.deepEqual([metrics.code, metrics.stderr, (JSON.parse(metrics.stdout) as { items: unknown[] }).items], [0, '', []])
  const views = await kubectlOnSecond('get', '--raw', '/apis/node.skiff.dev/v1alpha1/podworkers')
  assert.match(views.stdout, /"error":"[^"]+"/)
})

test('HA-01 a machine that is a control plane is not joined again', options, async () => {
  const again = await joinOnSecond(...words, '--config-dir', at('etc'))
  assert.deepEqual([again.code, /this machine is a control plane already/.test(again.stderr)], [4, true], again.stderr)
})

test('HA-01 tokens of ServiceAccounts that one control plane signs are accepted by the other', options, async () => {
  const made = await cluster.must(['create', 'token', 'default'])
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: made } }
  fs.writeFileSync(at('review.json'), JSON.stringify(review))
  const { stdout } = await kubectlOnSecond('create', '-f', at('review.json'), '-o', 'jsonpath={.status.user.username}')
  assert.equal(stdout, 'system:serviceaccount:default:default')
})

test('HA-01 a control plane whose process was killed leaves none of its own, and runs again from its files', options, async () => {
  await endMachine('SIGKILL')
  const parts = () =>
    Promise.resolve(
      execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
        .split('\n')
        .filter((line) => line.includes(at('etc')) && line.includes(' part ')),
    )
  await eventually('the components end with it', 30_000, parts, (found) => found.length === 0)
  await startMachine('join', '--control-plane', '--config-dir', at('etc'))
  assert.equal((await kubectlOnSecond('get', 'configmap', 'written-on-first')).code, 0)
})

test('HA-05 a machine joins as a control plane by kubeadm’s JoinConfiguration, with the names of the cluster in its certificate', options, async () => {
  await endMachine('SIGTERM')
  const bootstrapToken = { token: token(), apiServerEndpoint: `${firstAddress}:${port}`, caCertHashes: words.filter((word) => word.startsWith('sha256:')) }
  const controlPlane = { certificateKey, localAPIEndpoint: { advertiseAddress: secondAddress, bindPort: Number(port) } }
  const document = { apiVersion: 'kubeadm.k8s.io/v1beta4', kind: 'JoinConfiguration', discovery: { bootstrapToken }, controlPlane }
  fs.writeFileSync(at('join.yaml'), toYaml(document), { mode: 0o600 })
  await startMachine('join', '--config', at('join.yaml'), '--config-dir', at('etc-2'))
  const { subjectAltName = '' } = new X509Certificate(fs.readFileSync(at('etc-2/pki/apiserver.crt')))
  for (const name of ['api.example.com', firstAddress, secondAddress, 'machine-b']) assert.ok(subjectAltName.includes(name), `${name}: ${subjectAltName}`)
})

test('HA-01 a control plane that runs does not leave, and one that has ended leaves nothing and can join again', options, async () => {
  const leave = (...args: string[]) => joinOnSecond('leave', '--config-dir', at('etc-2'), '--root-dir', at('kubelet-2'), ...args)
  const refused = await leave()
  assert.deepEqual([refused.code, /its port 36443 is in use/.test(refused.stderr)], [7, true], refused.stderr)
  assert.match(refused.stderr, / ✓ No member of etcd runs on this machine\n/)
  const own = await leave('--remove-etcd-member')
  assert.deepEqual([own.code, /no member of the etcd of the cluster has an address of this machine/.test(own.stderr)], [3, true], own.stderr)
  await endMachine('SIGTERM')
  const left = await leave()
  assert.equal(left.code, 0, left.stderr)
  assert.equal(fs.existsSync(at('etc-2')), false)
  const addresses = () => cluster.must(['get', 'endpointslices', 'kubernetes', '-o', 'jsonpath={.endpoints[*].addresses[0]}'])
  await eventually('the kubernetes Service lists the first alone', 30_000, addresses, (found) => found === firstAddress)
  await startMachine('join', '--config', at('join.yaml'), '--config-dir', at('etc-2'))
})

test('HA-01 the second control plane takes over controllers and scheduler when the first machine dies', options, async () => {
  const holder = async (name: string) => (await kubectlOnSecond('get', 'lease', name, '-n', 'kube-system', '-o', 'jsonpath={.spec.holderIdentity}')).stdout
  const hostOfFirst = os.hostname()
  for (const name of ['kube-controller-manager', 'kube-scheduler']) assert.ok((await holder(name)).startsWith(`${hostOfFirst}_`), await holder(name))
  const { pids } = JSON.parse((await cluster.skiff(['status', cluster.name, '-o', 'json'])).stdout) as {
    pids: readonly { readonly role: string; readonly pid: number }[]
  }
  for (const role of ['supervisor', 'server']) process.kill(pids.find((one) => one.role === role)?.pid as number, 'SIGKILL')
  for (const name of ['kube-controller-manager', 'kube-scheduler'])
    await eventually(
      `the lead of ${name}`,
      60_000,
      () => holder(name),
      (found) => found.startsWith('machine-b'),
    )
  await kubectlOnSecond('create', 'deployment', 'web', '--image=web:1.0')
  const placed = async () => (await kubectlOnSecond('get', 'pods', '-l', 'app=web', '-o', 'jsonpath={.items[*].spec.nodeName}')).stdout
  await eventually('the pod is made and placed', 30_000, placed, (found) => found === 'e2e-cp-sim-1')
})
