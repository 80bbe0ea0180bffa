/**
 * Two real nodes in a cluster whose pods, Services and nodes have addresses of IPv6 alone. Real containerd, real kernel, real kubectl. Afterwards the host is as it was.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { echoPod, echoPorts } from './support/echoPod.ts'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'

const skip = obstacleToCluster(true)
const options = { skip, timeout: 120_000 }
const name = 'e2e-six'
const nodeNames = [`${name}-node-1`, `${name}-node-2`] as const
const podRange = 'fd00:6:6:100::/56'
const serviceRange = 'fd00:6:6:2::/112'
let cluster: LocalCluster
let traces: ReturnType<typeof hostTraces>

before(async () => {
  if (skip) return
  traces = hostTraces()
  cluster = await LocalCluster.start(name, ['--nodes', '2', '--ingress', '--pod-cidr', podRange, '--service-cidr', serviceRange])
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
  const service = (serviceName: string, spec: object) => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: serviceName },
    spec: { selector: { pod: 'two' }, ports: [{ name: 'http', port: 80, targetPort: echoPorts.http }], ...spec },
  })
  const probed = echoPod('probed', nodeNames[0])
  const livenessProbe = { httpGet: { port: echoPorts.http, path: '/' }, periodSeconds: 1 }
  await applyAll([
    echoPod('one', nodeNames[0]),
    echoPod('two', nodeNames[1]),
    echoPod('ports', nodeNames[1], { ports: [{ containerPort: echoPorts.http, hostPort: 18_080, protocol: 'TCP' }] }),
    echoPod('host', nodeNames[0], { spec: { hostNetwork: true } }),
    { ...probed, spec: { ...probed.spec, containers: probed.spec.containers.map((container) => ({ ...container, livenessProbe })) } },
    service('plain', { type: 'NodePort' }),
    service('heads', { clusterIP: 'None' }),
    service('balanced', { type: 'LoadBalancer', ports: [{ port: 18_088, targetPort: echoPorts.http }] }),
  ])
  await cluster.must(['wait', '--for=condition=Ready', 'pod', '--all', '--timeout=60s'])
})

after(async () => {
  if (!skip) await cluster?.delete()
})

const applyAll = (items: readonly object[]) => cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), ['apply', '-f', '-'])
const read = async (kind: string, of: string, path: string) => (await cluster.must(['get', kind, of, '-o', `jsonpath={${path}}`])).split(' ')
const only = async (kind: string, of: string, path: string) => {
  const values = await read(kind, of, path)
  assert.equal(values.length, 1, values.join(' '))
  return values[0] ?? ''
}
const podIp = (pod: string) => only('pod', pod, '.status.podIPs[*].ip')
const nodeIp = (node: string) => only('node', node, '.status.addresses[?(@.type=="InternalIP")].address')
const inPod = async (pod: string, ...command: string[]) => (await cluster.kubectl(['exec', pod, '--', 'timeout', '5', ...command])).stdout.trim()
const get = (pod: string, host: string, port: number) => inPod(pod, 'wget', '-q', '-O', '-', `http://${host.includes(':') ? `[${host}]` : host}:${port}/`)

test('NET-08 nodes, pods and Services of a cluster of IPv6 have one address each, and the kubernetes Service leads to the API server', options, async () => {
  for (const node of nodeNames) {
    assert.match(await nodeIp(node), /^fd/)
    assert.match(await only('node', node, '.spec.podCIDRs[*]'), /^fd00:6:6:1\w\w::\/64$/)
  }
  for (const pod of ['one', 'two']) assert.match(await podIp(pod), /^fd00:6:6:1/)
  assert.equal(await podIp('host'), await nodeIp(nodeNames[0]))
  assert.match(await only('service', 'plain', '.spec.clusterIPs[*]'), /^fd00:6:6:2::/)
  assert.equal(await only('service', 'kubernetes', '.spec.clusterIPs[*]'), 'fd00:6:6:2::1')
  const addresses = `Object.values(require('os').networkInterfaces()).flat().filter(({ internal }) => !internal).map(({ family }) => family)`
  assert.match(await inPod('one', process.execPath, '-p', `new Set(${addresses})`), /^Set\(1\) { 'IPv6' }$/)
  const program = `require('https').get('https://kubernetes.default.svc/version', { rejectUnauthorized: false }, (r) => console.log(r.statusCode)).on('error', (e) => console.log(e.code))`
  assert.match(await inPod('one', process.execPath, '-e', program), /^(200|401|403)$/)
})

test('NET-08 pods of two nodes see each other’s own addresses of IPv6, directly and through a Service', options, async () => {
  const [one, two] = await Promise.all([podIp('one'), podIp('two')])
  assert.equal(await get('one', two, echoPorts.http), `two ${one}`)
  assert.equal(await get('two', one, echoPorts.http), `one ${two}`)
  for (const host of [await only('service', 'plain', '.spec.clusterIP'), 'plain', 'heads.default.svc.cluster.local'])
    await eventually(
      `an answer of ${host}`,
      10_000,
      () => get('one', host, host.startsWith('heads') ? echoPorts.http : 80),
      (text) => text === `two ${one}`,
    )
  // A pod that reaches itself through its Service.
  assert.match(await get('two', 'plain', 80), /^two /)
})

test('NET-08 cluster DNS of IPv6 has AAAA records and no A, and names below ip6.arpa', options, async () => {
  const clusterIp = await only('service', 'plain', '.spec.clusterIP')
  const ask = (method: string, of: string) =>
    inPod('one', process.execPath, '-e', `require('dns').${method}('${of}', (error, answer) => console.log(error?.code ?? answer.join()))`)
  assert.equal(await ask('resolve6', 'plain.default.svc.cluster.local'), clusterIp)
  assert.equal(await ask('resolve4', 'plain.default.svc.cluster.local'), 'ENODATA')
  assert.equal(await ask('resolve6', 'heads.default.svc.cluster.local'), await podIp('two'))
  assert.equal(await ask('reverse', clusterIp), 'plain.default.svc.cluster.local')
  assert.match(await inPod('one', 'cat', '/etc/resolv.conf'), /^nameserver fd00:6:6:2::a$/m)
})

test('NET-08 node ports, host ports and load balancers of IPv6 answer on the addresses of nodes', options, async () => {
  const [first, second] = await Promise.all(nodeNames.map(nodeIp))
  const nodePort = await only('service', 'plain', '.spec.ports[0].nodePort')
  const text = (address: string | undefined, port: number | string) =>
    fetch(`http://[${address}]:${port}/`, { signal: AbortSignal.timeout(3000) }).then((response) => response.text(), String)
  for (const [address, port, who] of [
    [first, nodePort, 'two '],
    [second, nodePort, 'two '],
    [second, 18_080, 'ports '],
    [first, 18_088, 'two '],
  ] as const)
    await eventually(
      `an answer of [${address}]:${port}`,
      10_000,
      () => text(address, port),
      (answer) => answer.startsWith(who),
    )
  assert.deepEqual((await read('service', 'balanced', '.status.loadBalancer.ingress[*].ip')).sort(), [first, second].sort())
  // The host forwards its own localhost.
  await eventually(
    'an answer on localhost',
    10_000,
    () => fetch('http://127.0.0.1:18088/').then((response) => response.text(), String),
    (answer) => answer.startsWith('two '),
  )
})

test('NET-08 ING-01 the ingress of each node answers on its address of IPv6', options, async () => {
  const rule = { host: 'six.example', http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'plain', port: { number: 80 } } } }] } }
  await applyAll([{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { name: 'plain' }, spec: { ingressClassName: 'skiff', rules: [rule] } }])
  const answerOf = (host: string) =>
    new Promise<string>((resolve) => {
      const request = http.get({ host, port: 80, headers: { host: 'six.example' }, timeout: 3000 }, async (response) => {
        let text = ''
        for await (const chunk of response) text += chunk
        resolve(text)
      })
      request.on('timeout', () => request.destroy())
      request.on('error', (error) => resolve(String(error)))
    })
  for (const node of nodeNames)
    await eventually(
      `an answer of the ingress of ${node}`,
      20_000,
      async () => answerOf(await nodeIp(node)),
      (text) => text.startsWith('two '),
    )
})

test('NET-08 probes, logs, exec, port-forward and proxies reach pods of IPv6', options, async () => {
  assert.deepEqual(await read('pod', 'probed', '.status.containerStatuses[0].ready'), ['true'])
  assert.deepEqual(await read('pod', 'probed', '.status.containerStatuses[0].restartCount'), ['0'])
  assert.equal((await cluster.kubectl(['logs', 'one'])).code, 0)
  assert.equal(await inPod('one', 'hostname'), 'one')
  const forward = cluster.follow(['port-forward', 'pod/two', `:${echoPorts.http}`])
  const [, port] = await forward.until(/Forwarding from 127\.0\.0\.1:(\d+)/)
  assert.match(await (await fetch(`http://127.0.0.1:${port}/`)).text(), /^two /)
  await forward.ended()
  assert.match(await cluster.must(['get', '--raw', `/api/v1/namespaces/default/pods/two:${echoPorts.http}/proxy/`]), /^two /)
  assert.match(await cluster.must(['get', '--raw', '/api/v1/namespaces/default/services/plain:80/proxy/']), /^two /)
  await eventually(
    'metrics of the node',
    60_000,
    () => cluster.kubectl(['top', 'node', nodeNames[1]]),
    ({ code }) => code === 0,
  )
})

test('NET-08 a network policy of IPv6 holds', options, async () => {
  const two = await podIp('two')
  const policy = (ingress: object[]) => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'closed' },
    spec: { podSelector: { matchLabels: { pod: 'two' } }, policyTypes: ['Ingress'], ingress },
  })
  await applyAll([policy([{ from: [{ podSelector: { matchLabels: { pod: 'ports' } } }] }])])
  await eventually(
    'silence for other pods',
    10_000,
    () => get('one', two, echoPorts.http),
    (text) => text === '',
  )
  assert.match(await get('ports', two, echoPorts.http), /^two /)
  await applyAll([policy([{ from: [{ ipBlock: { cidr: `${await podIp('one')}/128` } }] }])])
  await eventually(
    'an answer for the block',
    10_000,
    () => get('one', two, echoPorts.http),
    (text) => text.startsWith('two '),
  )
  assert.equal(await get('ports', two, echoPorts.http), '')
  await cluster.must(['delete', 'networkpolicy', 'closed'])
})

test('NET-08 what leaves a cluster of IPv6 has the node’s address, and pods find the host by its name', options, async () => {
  const server = http.createServer((request, response) => response.end(request.socket.remoteAddress))
  server.listen(0, '::')
  await once(server, 'listening')
  try {
    const { port } = server.address() as AddressInfo
    assert.equal(await get('one', 'host.skiff.internal', port), await nodeIp(nodeNames[0]))
  } finally {
    server.close()
    server.closeAllConnections()
  }
})

test('NET-08 a cluster of IPv6 starts again after it was stopped, and keeps its families', options, async () => {
  assert.equal((await cluster.skiff(['stop', name])).code, 0)
  const other = await cluster.skiff(['start', name, '--ip-families', 'ipv4'])
  assert.equal(other.code, 4)
  assert.match(other.stderr, /--ip-families ipv4 was asked for, it was made with ipv6/)
  const started = await cluster.skiff(['start', name, '--ip-families', 'ipv6'])
  assert.equal(started.code, 0, started.stderr)
  await eventually(
    'an answer through the Service',
    30_000,
    () => get('one', 'plain', 80),
    (text) => text.startsWith('two '),
  )
})

test('NET-08 deleting the cluster of IPv6 leaves the host as it was', options, async () => {
  await cluster.delete()
  assert.deepEqual(newTraces(traces), {})
  // For after(): deleting twice is fine.
  cluster = Object.assign(cluster, { delete: async () => {} })
})
