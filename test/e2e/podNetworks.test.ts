/**
 * Real nodes with other pod networks than the default: a tunnel, another program's CNI plugin, and nodes that have no plugins at all. Real containerd, real kernel,
 * real kubectl. Afterwards the host is as it was.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { ociTar } from '../../src/kubelet/images/ociTar.ts'
import { echoPod, echoPorts } from './support/echoPod.ts'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'

const packaged = '/usr/lib/cni'
const skip = obstacleToCluster(true)
const withPlugins = { skip: skip || (fs.existsSync(path.join(packaged, 'bridge')) ? false : 'needs the reference CNI plugins') }

interface Status {
  readonly pids: readonly { readonly role: string; readonly pid: number; readonly node?: string }[]
}

class Lab {
  readonly cluster: LocalCluster
  readonly nodes: readonly string[]

  constructor(cluster: LocalCluster, count: number) {
    this.cluster = cluster
    this.nodes = Array.from({ length: count }, (_, i) => `${cluster.name}-node-${i + 1}`)
  }

  applyAll(items: readonly object[]): Promise<string> {
    return this.cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), ['apply', '-f', '-'])
  }

  podIp(pod: string): Promise<string> {
    return this.cluster.must(['get', 'pod', pod, '-o', 'jsonpath={.status.podIP}'])
  }

  async get(pod: string, address: string, port: number = echoPorts.http): Promise<string> {
    return (await this.cluster.kubectl(['exec', pod, '--', 'timeout', '5', 'wget', '-q', '-O', '-', `http://${address}:${port}/`])).stdout.trim()
  }

  /** Runs a program in the namespaces of a node. */
  async onNode(index: number, ...command: string[]): Promise<string> {
    const { pids } = JSON.parse((await this.cluster.skiff(['status', this.cluster.name, '-o', 'json'])).stdout) as Status
    const { pid } = pids.find(({ role, node }) => role === 'node' && node === this.nodes[index]) ?? {}
    return execFileSync('nsenter', ['-t', String(pid), '-m', '-n', '--', ...command], { encoding: 'utf8' }).trim()
  }

  async echoPods(): Promise<void> {
    await this.applyAll(this.nodes.map((node, i) => echoPod(`echo-${i + 1}`, node)))
    await this.cluster.must(['wait', '--for=condition=Ready', 'pod', '--all', '--timeout=60s'])
  }
}

/** A cluster for one test, without which the host is as before. */
async function withCluster(
  name: string,
  count: number,
  flags: readonly string[],
  work: (lab: Lab) => Promise<void>,
  enter: readonly string[] = [],
): Promise<void> {
  const before = hostTraces()
  const cluster = await LocalCluster.start(name, ['--nodes', String(count), ...flags], enter)
  try {
    const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
    assert.equal(loaded.code, 0, loaded.stderr)
    await work(new Lab(cluster, count))
  } finally {
    await cluster.delete()
  }
  assert.deepEqual(newTraces(before), {})
}

test('NET-05 with --pod-network vxlan packets between the pods of two nodes travel through the tunnel, with the pods’ own addresses', { skip }, () =>
  withCluster('e2e-vxlan', 2, ['--pod-network', 'vxlan', '--ip-families', 'ipv4,ipv6'], async (lab) => {
    await lab.echoPods()
    const [one, two] = await Promise.all([lab.podIp('echo-1'), lab.podIp('echo-2')])
    assert.equal(await lab.get('echo-1', two), `echo-2 ${one}`)
    const sixth = await lab.cluster.must(['get', 'pod', 'echo-2', '-o', 'jsonpath={.status.podIPs[1].ip}'])
    assert.match(await lab.get('echo-1', `[${sixth}]`), /^echo-2 fd/)
    const range = two.replace(/\d+$/, '0/24')
    assert.match(await lab.onNode(0, 'ip', 'route', 'get', two), /dev skiff-vxlan/)
    const shown = await lab.cluster.skiff(['net', 'route', lab.nodes[0] ?? '', '--cluster', lab.cluster.name])
    assert.match(shown.stdout, /mode vxlan/)
    assert.match(shown.stdout, new RegExp(`${range.replaceAll('.', '\\.')}\\s+\\S+\\s+skiff-vxlan\\s+present`))
    // A node reaches the pods of the other, whose answers come through the tunnel.
    assert.match(await lab.onNode(0, 'busybox', 'wget', '-q', '-O', '-', `http://${two}:${echoPorts.http}/`), /^echo-2 /)
    const [packets] = /"tx":\{[^}]*"packets":(\d+)/.exec(await lab.onNode(0, 'ip', '-json', '-s', 'link', 'show', 'skiff-vxlan'))?.slice(1) ?? []
    assert.ok(Number(packets) > 0, packets)
    assert.match(await lab.onNode(0, 'cat', '/etc/cni/net.d/99-skiff.conflist'), /"mtu": 1430/)
  }),
)

test('NET-04 nodes without the reference plugins get pods with addresses, host ports, routes and limits of bandwidth from Skiff’s own', { skip }, async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-noplugins-'))
  const place = path.join(dir, 'mnt')
  fs.writeFileSync(place, '')
  // A mount namespace in which the package of the plugins is not installed. Its file may not lie on a shared mount.
  execFileSync('mount', ['--bind', dir, dir])
  execFileSync('mount', ['--make-private', dir])
  execFileSync('unshare', [`--mount=${place}`, '--propagation', 'slave', 'sh', '-c', `[ ! -d ${packaged} ] || mount -t tmpfs tmpfs ${packaged}`])
  try {
    const flags = ['--ip-families', 'ipv4,ipv6']
    await withCluster(
      'e2e-noplugins',
      2,
      flags,
      async (lab) => {
        assert.equal(await lab.onNode(0, 'ls', '/opt/cni/bin'), 'loopback\nskiff\nskiff-record-skiff')
        await lab.echoPods()
        const [one, two] = await Promise.all([lab.podIp('echo-1'), lab.podIp('echo-2')])
        assert.equal(await lab.get('echo-1', two), `echo-2 ${one}`)
        const ports = [{ containerPort: echoPorts.http, hostPort: 18_090 }]
        const slow = echoPod('slow', lab.nodes[0] ?? '')
        const annotations = { 'kubernetes.io/ingress-bandwidth': '1M', 'kubernetes.io/egress-bandwidth': '2M' }
        await lab.applyAll([
          echoPod('ports', lab.nodes[0] ?? '', { ports }),
          echoPod('near', lab.nodes[0] ?? ''),
          { ...slow, metadata: { ...slow.metadata, annotations } },
        ])
        await lab.cluster.must(['wait', '--for=condition=Ready', 'pod/ports', 'pod/near', 'pod/slow', '--timeout=60s'])
        const limits = async () => {
          const shown = JSON.parse(await lab.onNode(0, 'tc', '-json', 'qdisc', 'show')) as { kind: string; dev: string; options: { rate: number } }[]
          return shown.filter(({ kind }) => kind === 'tbf').map(({ dev, options }) => `${dev.slice(0, 3)} ${options.rate * 8}`)
        }
        assert.deepEqual((await limits()).sort(), ['bwp 2000000', 'vet 1000000'])
        const slowIp = await lab.podIp('slow')
        assert.equal(await lab.get('slow', one), `echo-1 ${slowIp}`)
        assert.equal(await lab.get('echo-2', slowIp), `slow ${two}`)
        const [near, sixth] = (await lab.cluster.must(['get', 'pod', 'near', '-o', 'jsonpath={.status.podIPs[*].ip}'])).split(' ')
        for (const address of [near, `[${sixth}]`]) assert.match(await lab.get('echo-1', address ?? ''), /^near /)
        const node = await lab.cluster.must(['get', 'node', lab.nodes[0] ?? '', '-o', 'jsonpath={.status.addresses[0].address}'])
        assert.match(await lab.get('echo-2', node, 18_090), /^ports /)
        await lab.cluster.must(['delete', 'pod', 'ports', 'near', 'slow', '--wait=true'])
        await eventually(
          'the end of the limits',
          10_000,
          async () => `${await limits()}${await lab.onNode(0, 'ip', '-o', 'link', 'show', 'type', 'ifb')}`,
          (text) => text === '',
        )
        await eventually(
          'the end of the host port',
          10_000,
          () => lab.get('echo-2', node, 18_090),
          (text) => text === '',
        )
        await eventually(
          'the release of the address',
          10_000,
          () => lab.onNode(0, 'ls', '/var/lib/cni/skiff/addresses'),
          (names) => !names.split('\n').includes(near ?? 'none'),
        )
      },
      ['nsenter', `--mount=${place}`, '--'],
    )
  } finally {
    execFileSync('umount', [place])
    execFileSync('umount', [dir])
    fs.rmSync(dir, { recursive: true })
  }
})

const networkImage = 'docker.io/library/other-network:1'

/** Installs a network as its makers' manifests do: an init container of a privileged DaemonSet copies plugins and writes the list of the node. */
function networkDaemonSet() {
  const image = networkImage
  const list = {
    cniVersion: '1.0.0',
    name: 'other',
    plugins: [
      {
        type: 'bridge',
        bridge: 'cni-other',
        isGateway: true,
        ipMasq: true,
        ipam: { type: 'host-local', ranges: [[{ subnet: 'RANGE' }]], routes: [{ dst: '0.0.0.0/0' }] },
      },
      { type: 'other-tuning', sysctl: {} },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  }
  const install = `cp /plugins/* /opt/cni/bin/ && range=10.77.\${NODE##*-}.0/24 && echo "$LIST" | sed "s,RANGE,$range," >/etc/cni/net.d/20-other.conflist`
  const mounts = [
    { name: 'bin', mountPath: '/opt/cni/bin' },
    { name: 'lists', mountPath: '/etc/cni/net.d' },
  ]
  const env = [
    { name: 'LIST', value: JSON.stringify(list) },
    { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
  ]
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'other-network', namespace: 'kube-system' },
    spec: {
      selector: { matchLabels: { app: 'other-network' } },
      template: {
        metadata: { labels: { app: 'other-network' } },
        spec: {
          hostNetwork: true,
          tolerations: [{ operator: 'Exists' }],
          terminationGracePeriodSeconds: 0,
          initContainers: [{ name: 'install', image, command: ['sh', '-c', install], env, securityContext: { privileged: true }, volumeMounts: mounts }],
          containers: [{ name: 'wait', image, command: ['sleep', '86400'] }],
          volumes: [
            { name: 'bin', hostPath: { path: '/opt/cni/bin' } },
            { name: 'lists', hostPath: { path: '/etc/cni/net.d' } },
          ],
        },
      },
    },
  }
}

/** The plugins that the network brings along, one of them under a name that no node has. */
async function writePluginImage(dir: string): Promise<string> {
  const file = path.join(dir, 'network.tar')
  const tools = ['sh', 'cp', 'sed', 'echo', 'sleep']
  const plugin = (from: string, name: string) => ({
    path: `plugins/${name}`,
    type: 'file' as const,
    mode: 0o755,
    data: fs.readFileSync(path.join(packaged, from)),
  })
  const files = [
    { path: 'bin/', type: 'directory' as const, mode: 0o755 },
    { path: 'plugins/', type: 'directory' as const, mode: 0o755 },
    { path: 'bin/busybox', type: 'file' as const, mode: 0o755, data: fs.readFileSync('/bin/busybox') },
    ...tools.map((tool) => ({ path: `bin/${tool}`, type: 'symlink' as const, target: 'busybox' })),
    ...['bridge', 'host-local', 'portmap'].map((name) => plugin(name, name)),
    plugin('tuning', 'other-tuning'),
  ]
  fs.writeFileSync(file, ociTar({ names: [networkImage], command: ['sh'], files }))
  return file
}

test('NET-06 with --pod-network none nodes become Ready with the plugins and the list that a DaemonSet installs', withPlugins, () =>
  withCluster('e2e-other-cni', 1, ['--pod-network', 'none'], async (lab) => {
    const { cluster, nodes } = lab
    const [node = ''] = nodes
    const ready = () => cluster.must(['get', 'node', node, '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'])
    assert.equal(await ready(), 'False')
    const loaded = await cluster.skiff(['image', 'load', '--name', cluster.name, await writePluginImage(cluster.dir)])
    assert.equal(loaded.code, 0, loaded.stderr)
    await lab.applyAll([networkDaemonSet()])
    await eventually('a Ready node', 60_000, ready, (text) => text === 'True')
    await lab.applyAll([echoPod('one', node), echoPod('two', node)])
    await cluster.must(['wait', '--for=condition=Ready', 'pod', '--all', '--timeout=60s'])
    const [one, two] = await Promise.all([lab.podIp('one'), lab.podIp('two')])
    assert.match(one, /^10\.77\.1\./)
    assert.equal(await lab.get('one', two), `two ${one}`)
    assert.ok(!(await lab.onNode(0, 'ls', '/etc/cni/net.d')).includes('skiff'))
    assert.ok(!(await lab.onNode(0, 'nft', 'list', 'tables')).includes('skiff-masquerade'))
    // The package of the host is as it was.
    assert.ok(!fs.existsSync(path.join(packaged, 'other-tuning')))
  }),
)

describe('a cluster without a service proxy, whose node gets the plugins of another network later', withPlugins, () => {
  const name = 'e2e-first-cni'
  let lab: Lab
  let traces: ReturnType<typeof hostTraces>

  before(async () => {
    traces = hostTraces()
    const cluster = await LocalCluster.start(name, ['--nodes', '1', '--disable-kube-proxy'])
    lab = new Lab(cluster, 1)
    const files = [await writePluginImage(cluster.dir), ...(await writeWebImage(cluster.dir, ['1.0']))]
    const loaded = await cluster.skiff(['image', 'load', '--name', name, ...files])
    assert.equal(loaded.code, 0, loaded.stderr)
  })
  after(async () => {
    await lab?.cluster.delete()
    assert.deepEqual(newTraces(traces), {})
  })

  test('SVC-09 with --disable-kube-proxy the node has no rule of a proxy, and skiff net says that it is off', async () => {
    assert.ok(!(await lab.onNode(0, 'nft', 'list', 'tables')).includes('kube-proxy'))
    assert.match((await lab.cluster.skiff(['net', 'service', 'default/kubernetes', '--cluster', name])).stdout, /the service proxy is turned off/)
  })

  test('NET-06 the list that another network installs goes before that of Skiff', async () => {
    await lab.applyAll([networkDaemonSet()])
    await lab.cluster.must(['rollout', 'status', '-n', 'kube-system', 'daemonset/other-network', '--timeout=60s'])
    await lab.applyAll([echoPod('one', lab.nodes[0] ?? ''), echoPod('two', lab.nodes[0] ?? '')])
    await lab.cluster.must(['wait', '--for=condition=Ready', 'pod/one', 'pod/two', '--timeout=60s'])
    assert.match(await lab.podIp('one'), /^10\.77\.1\./)
  })

  test('NET-07 another program serves a Service where the proxy is off', async () => {
    const port = { port: 80, targetPort: echoPorts.http }
    await lab.applyAll([{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'two' }, spec: { selector: { pod: 'two' }, ports: [port] } }])
    const clusterIp = await lab.cluster.must(['get', 'service', 'two', '-o', 'jsonpath={.spec.clusterIP}'])
    assert.equal(await lab.get('one', clusterIp, 80), '')
    const rule = `ip daddr ${clusterIp} tcp dport 80 dnat to ${await lab.podIp('two')}:${echoPorts.http}`
    const chains = ['prerouting', 'output'].map((hook) => `chain ${hook} { type nat hook ${hook} priority -100; ${rule}; }`)
    await lab.onNode(0, 'nft', `table ip replacement { ${chains.join('; ')}; }`)
    assert.match(await lab.get('one', clusterIp, 80), /^two /)
  })

  test('NET-02 the runtime calls the plugins of the list again when a pod is deleted, and the address is free', async () => {
    const one = await lab.podIp('one')
    const addresses = () => lab.onNode(0, 'ls', '/var/lib/cni/networks/other')
    assert.ok((await addresses()).includes(one))
    await lab.cluster.must(['delete', 'pod', 'one', '--wait=true'])
    await eventually('the end of the address', 10_000, addresses, (text) => !text.split('\n').includes(one))
  })
})
