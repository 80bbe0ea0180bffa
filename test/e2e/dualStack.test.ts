/**
 * Two real nodes with addresses of both families: pods, Services, names, network policies, node ports, host ports, and what leaves the cluster. Real containerd,
 * real kernel, real kubectl. Afterwards the host is as it was.
 */
import assert from 'node:assert/strict'
import dgram from 'node:dgram'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { echoPod, echoPorts } from './support/echoPod.ts'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'

const skip = obstacleToCluster(true)
const options = { skip }
const name = 'e2e-dual'
const nodeNames = [`${name}-node-1`, `${name}-node-2`] as const
let cluster: LocalCluster
let before_: ReturnType<typeof hostTraces>

before(async () => {
  if (skip) return
  before_ = hostTraces()
  cluster = await LocalCluster.start(name, ['--nodes', '2', '--ip-families', 'ipv4,ipv6'])
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
  const service = (serviceName: string, spec: object) => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: serviceName },
    spec: { selector: { pod: 'two' }, ports: [{ name: 'http', port: 80, targetPort: echoPorts.http }], ...spec },
  })
  const hostPorts = [
    { containerPort: echoPorts.http, hostPort: 18_080, protocol: 'TCP' },
    { containerPort: echoPorts.udp, hostPort: 18_081, protocol: 'UDP' },
  ]
  await applyAll([
    echoPod('one', nodeNames[0]),
    echoPod('two', nodeNames[1]),
    echoPod('ports', nodeNames[1], { ports: hostPorts }),
    echoPod('host', nodeNames[0], { spec: { hostNetwork: true } }),
    service('both', { type: 'NodePort', ipFamilyPolicy: 'PreferDualStack' }),
    service('six', { ipFamilies: ['IPv6'] }),
    service('plain', {}),
    service('heads', { clusterIP: 'None', ipFamilyPolicy: 'RequireDualStack' }),
  ])
  await cluster.must(['wait', '--for=condition=Ready', 'pod', '--all', '--timeout=60s'])
})

after(async () => {
  if (!skip) await cluster?.delete()
})

const applyAll = (items: readonly object[]) => cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), ['apply', '-f', '-'])
const read = async (kind: string, of: string, path: string) => (await cluster.must(['get', kind, of, '-o', `jsonpath={${path}}`])).split(' ')
const podIps = (pod: string) => read('pod', pod, '.status.podIPs[*].ip')
const nodeIps = (node: string) => read('node', node, '.status.addresses[?(@.type=="InternalIP")].address')
const inPod = async (pod: string, ...command: string[]) => (await cluster.kubectl(['exec', pod, '--', 'timeout', '5', ...command])).stdout.trim()
const urlOf = (address: string, port: number) => `http://${address.includes(':') ? `[${address}]` : address}:${port}/`
const get = (pod: string, address: string, port: number) => inPod(pod, 'wget', '-q', '-O', '-', urlOf(address, port))
const isSix = (address = '') => address.includes(':')

test('NET-08 nodes and pods have an address and a range of each family, the first of IPv4', options, async () => {
  for (const node of nodeNames) {
    assert.deepEqual((await nodeIps(node)).map(isSix), [false, true])
    assert.deepEqual((await read('node', node, '.spec.podCIDRs[*]')).map(isSix), [false, true])
  }
  for (const pod of ['one', 'two']) assert.deepEqual((await podIps(pod)).map(isSix), [false, true])
})

test('NET-08 pods of two nodes see each other’s own addresses in both families', options, async () => {
  const [one, two] = await Promise.all([podIps('one'), podIps('two')])
  for (const i of [0, 1]) {
    assert.equal(await get('one', two[i] ?? '', echoPorts.http), `two ${one[i]}`)
    assert.equal(await get('two', one[i] ?? '', echoPorts.http), `one ${two[i]}`)
  }
})

test('NET-08 a Service of both families has two cluster IPs and a slice of each, and one of IPv6 alone has one', options, async () => {
  const both = await read('service', 'both', '.spec.clusterIPs[*]')
  assert.deepEqual(both.map(isSix), [false, true])
  assert.deepEqual((await read('service', 'plain', '.spec.clusterIPs[*]')).map(isSix), [false])
  const six = await read('service', 'six', '.spec.clusterIPs[*]')
  assert.deepEqual(six.map(isSix), [true])
  const types = await cluster.must(['get', 'endpointslices', '-l', 'kubernetes.io/service-name=both', '-o', 'jsonpath={.items[*].addressType}'])
  assert.deepEqual(types.split(' ').sort(), ['IPv4', 'IPv6'])
  const [four, sixth] = await podIps('one')
  for (const [address, source] of [
    [both[0], four],
    [both[1], sixth],
    [six[0], sixth],
  ])
    await eventually(
      `an answer of ${address}`,
      10_000,
      () => get('one', address ?? '', 80),
      (text) => text === `two ${source}`,
    )
})

test('NET-08 cluster DNS has AAAA records and names of IPv6 addresses', options, async () => {
  const [, clusterIp = ''] = await read('service', 'both', '.spec.clusterIPs[*]')
  const lookUp = (text: string, type: string) => inPod('one', 'nslookup', `-type=${type}`, text)
  assert.ok((await lookUp('both.default.svc.cluster.local', 'aaaa')).includes(clusterIp))
  const [, sixth = ''] = await podIps('two')
  assert.ok((await lookUp('heads.default.svc.cluster.local', 'aaaa')).includes(sixth))
  const program = `require('dns').reverse('${clusterIp}', (error, names) => console.log(error?.code ?? names.join()))`
  assert.equal(await inPod('one', process.execPath, '-e', program), 'both.default.svc.cluster.local')
})

test('NET-08 node ports and the TCP and UDP host ports of a pod answer on the addresses of a node in both families', options, async () => {
  const [nodePort = ''] = await read('service', 'both', '.spec.ports[0].nodePort')
  for (const address of await nodeIps(nodeNames[0]))
    await eventually(
      `an answer of ${address}`,
      5000,
      () => fetch(urlOf(address, Number(nodePort))).then((response) => response.text(), String),
      (text) => text.startsWith('two '),
    )
  for (const address of await nodeIps(nodeNames[1])) {
    const text = await fetch(urlOf(address, 18_080)).then((response) => response.text())
    assert.match(text, /^ports /)
    assert.match(await askUdp(address, 18_081), /^ports /)
  }
})

async function askUdp(address: string, port: number): Promise<string> {
  const socket = dgram.createSocket(isSix(address) ? 'udp6' : 'udp4')
  try {
    socket.send('?', port, address)
    const [data] = await once(socket, 'message', { signal: AbortSignal.timeout(5000) })
    return String(data)
  } finally {
    socket.close()
  }
}

test('NET-08 a pod with hostNetwork has the addresses of its node', options, async () => {
  const addresses = await nodeIps(nodeNames[0])
  assert.deepEqual(await podIps('host'), addresses)
  for (const address of addresses) assert.ok((await get('two', address, echoPorts.http)).startsWith(`${nodeNames[0]} `))
})

test('NET-08 what leaves the cluster has the node’s address in both families', options, async () => {
  const server = http.createServer((request, response) => response.end(request.socket.remoteAddress?.replace('::ffff:', '')))
  server.listen(0, '::')
  await once(server, 'listening')
  try {
    const { port } = server.address() as AddressInfo
    const nodes = await nodeIps(nodeNames[0])
    const gateways = nodes.map((address) => address.replace(/[^.:]+$/, '1'))
    for (const i of [0, 1]) assert.equal(await get('one', gateways[i] ?? '', port), nodes[i])
  } finally {
    server.close()
    server.closeAllConnections()
  }
})

test('NET-08 a network policy holds in both families', options, async () => {
  const [four = '', six = ''] = await podIps('two')
  const policy = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'closed' },
    spec: { podSelector: { matchLabels: { pod: 'two' } }, policyTypes: ['Ingress'], ingress: [{ from: [{ ipBlock: { cidr: '::/0' } }] }] },
  }
  await applyAll([policy])
  await eventually(
    'silence over IPv4',
    10_000,
    () => get('one', four, echoPorts.http),
    (text) => text === '',
  )
  assert.match(await get('one', six, echoPorts.http), /^two /)
  await applyAll([{ ...policy, spec: { ...policy.spec, ingress: [] } }])
  await eventually(
    'silence over IPv6',
    10_000,
    () => get('one', six, echoPorts.http),
    (text) => text === '',
  )
  await cluster.must(['delete', 'networkpolicy', 'closed'])
})

test('MSH-01 an init container with NET_ADMIN redirects the connections of its pod, and those of no other', options, async () => {
  const rule = `tcp dport 9000 redirect to :${echoPorts.http}`
  const ruleset = `table inet sidecar { chain prerouting { type nat hook prerouting priority -100; ${rule}; }; chain output { type nat hook output priority -100; ${rule}; }; }`
  const { spec, ...meshed } = echoPod('meshed', nodeNames[0])
  const [app] = spec.containers
  const init = {
    ...{ name: 'init', image: app?.image, volumeMounts: app?.volumeMounts, command: ['/usr/sbin/nft', ruleset] },
    securityContext: { capabilities: { add: ['NET_ADMIN'] } },
  }
  await applyAll([{ ...meshed, spec: { ...spec, initContainers: [init] } }])
  await cluster.must(['wait', '--for=condition=Ready', 'pod/meshed', '--timeout=60s'])
  for (const address of await podIps('meshed')) assert.match(await get('two', address, 9000), /^meshed /)
  for (const address of await podIps('one')) assert.equal(await get('two', address, 9000), '')
})

test('NET-08 deleting the cluster leaves the host as it was', options, async () => {
  await cluster.delete()
  assert.deepEqual(newTraces(before_), {})
  // For after(): deleting twice is fine.
  cluster = Object.assign(cluster, { delete: async () => {} })
})
