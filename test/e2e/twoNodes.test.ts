/**
 * Two real nodes: pods see each other's true addresses, Services work from everywhere, names resolve on both nodes, and nodes survive the
 * sudden end of each of their processes. Real containerd, real kernel, real kubectl. Afterwards the host is as it was.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import dgram from 'node:dgram'
import { once } from 'node:events'
import fs from 'node:fs'
import net from 'node:net'
import { networkInterfaces } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'

const skip = obstacleToCluster(true)
const options = { skip }
const name = 'e2e-two'
const nodeNames = [`${name}-node-1`, `${name}-node-2`] as const
let cluster: LocalCluster
let before_: ReturnType<typeof hostTraces>
let addresses: string[] = []

interface Status {
  readonly nodes: readonly { readonly name: string; readonly address: string }[]
  readonly pids: readonly { readonly role: string; readonly pid: number; readonly node?: string }[]
}

const status = async () => JSON.parse((await cluster.skiff(['status', name, '-o', 'json'])).stdout) as Status

before(async () => {
  if (skip) return
  before_ = hostTraces()
  cluster = await LocalCluster.start(name, ['--nodes', '2'])
  addresses = (await status()).nodes.map((node) => node.address)
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
})

after(async () => {
  if (!skip) await cluster?.delete()
})

/** Answers each request with its own name and the address that the request came from. */
const whoServer = [
  'sh',
  '-c',
  "mkdir -p /www/cgi-bin; printf '#!/bin/sh\\necho\\necho $(hostname) $REMOTE_ADDR\\n' >/www/cgi-bin/who; chmod +x /www/cgi-bin/who; exec httpd -f -p 8080 -h /www",
]

function webPod(index: number) {
  const container = {
    name: 'app',
    image: 'web-app:1.0',
    command: whoServer,
    ports: [{ containerPort: 8080, name: 'http' }],
    readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
  }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `web-${index}`, labels: { app: 'web', index: String(index) } },
    spec: { nodeName: nodeNames[index - 1], hostname: `web-${index}`, subdomain: 'heads', terminationGracePeriodSeconds: 0, containers: [container] },
  }
}

function service(serviceName: string, spec: object) {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name: serviceName }, spec: { selector: { app: 'web' }, ...spec } }
}

const ports = [{ name: 'http', port: 80, targetPort: 8080 }]
const services = [
  service('web', { type: 'NodePort', ports }),
  service('heads', { clusterIP: 'None', ports: [{ name: 'http', port: 8080 }] }),
  service('sticky', { sessionAffinity: 'ClientIP', ports }),
  service('near', { internalTrafficPolicy: 'Local', ports }),
  service('only-one', { type: 'NodePort', externalTrafficPolicy: 'Local', selector: { index: '1' }, ports }),
  service('same-zone', { trafficDistribution: 'PreferSameZone', ports }),
  service('same-node', { trafficDistribution: 'PreferSameNode', ports }),
  service('hairpin', { selector: { index: '2' }, ports }),
]

const inPod = async (pod: string, ...command: string[]) => (await cluster.kubectl(['exec', pod, '--', 'timeout', '4', ...command])).stdout.trim()
const get = (pod: string, host: string) => inPod(pod, 'wget', '-q', '-O', '-', `http://${host}/cgi-bin/who`)
const podIp = (pod: string) => cluster.must(['get', 'pod', pod, '-o', 'jsonpath={.status.podIP}'])
const nodePort = (of: string) => cluster.must(['get', 'service', of, '-o', 'jsonpath={.spec.ports[0].nodePort}'])

/** The answer that the host gets, with mapped IPv4 addresses in IPv4 form; empty when there is none. */
async function fromHost(host: string): Promise<string> {
  try {
    return (await (await fetch(`http://${host}/cgi-bin/who`, { signal: AbortSignal.timeout(1500) })).text()).trim()
  } catch {
    return ''
  }
}

/** The pod that answered, and the source address that it saw. */
function parse(answer: string): { who: string; source: string } {
  const [who = '', source = ''] = answer.split(' ')
  return { who, source: source.replace(/[[\]]|::ffff:/g, '') }
}

/** Names of the pods that answer some requests. */
async function answering(times: number, ask: () => Promise<string>): Promise<string[]> {
  const seen = new Set<string>()
  for (let i = 0; i < times; i++) seen.add(parse(await ask()).who)
  return [...seen].sort()
}

test('NET-01 pods on two nodes see each other’s own addresses, and the host has no route to them', options, async () => {
  await cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [webPod(1), webPod(2), ...services] }), ['apply', '-f', '-'])
  await cluster.must(['wait', '--for=condition=Ready', 'pod/web-1', 'pod/web-2', '--timeout=30s'])
  const [one, two] = await Promise.all([podIp('web-1'), podIp('web-2')])
  assert.deepEqual(parse(await get('web-1', `${two}:8080`)), { who: 'web-2', source: one })
  assert.deepEqual(parse(await get('web-2', `${one}:8080`)), { who: 'web-1', source: two })
  assert.deepEqual(parse(await get('web-1', `${one}:8080`)), { who: 'web-1', source: one })
  const routes = execFileSync('ip', ['route', 'show', 'table', 'all'], { encoding: 'utf8' })
  assert.ok(!routes.includes(`${two.split('.').slice(0, 3).join('.')}.`), routes)
})

test('SVC-13 a Service reaches the pods of both nodes from a pod of each, by name', options, async () => {
  for (const pod of ['web-1', 'web-2']) {
    const seen = new Set<string>()
    await eventually(
      `answers of both pods to ${pod}`,
      15_000,
      async () => seen.add(parse(await get(pod, 'web')).who),
      () => seen.has('web-1') && seen.has('web-2'),
    )
  }
})

test('SVC-02 a node port answers on each node’s address and on localhost, and closes with the Service', options, async () => {
  const port = await nodePort('web')
  for (const host of [...addresses, '127.0.0.1']) {
    await eventually(
      `an answer of ${host}`,
      5000,
      () => fromHost(`${host}:${port}`),
      (text) => /^web-[12] /.test(text),
    )
  }
  await cluster.must(['patch', 'service', 'web', '-p', '{"spec":{"type":"ClusterIP"}}'])
  await eventually(
    'silence on localhost',
    5000,
    () => fromHost(`127.0.0.1:${port}`),
    (text) => text === '',
  )
})

test(
  'CTL-11 SVC-03 a load balancer has the addresses of the nodes, and answers there and on localhost under its own port, until it is deleted',
  options,
  async () => {
    await cluster.mustWith(JSON.stringify(service('balanced', { type: 'LoadBalancer', ports: [{ name: 'http', port: 8088, targetPort: 8080 }] })), [
      'apply',
      '-f',
      '-',
    ])
    await eventually(
      'its addresses',
      5000,
      () => cluster.must(['get', 'service', 'balanced', '-o', 'jsonpath={.status.loadBalancer.ingress[*].ip}']),
      (text) => text === [...addresses].sort().join(' '),
    )
    for (const host of [...addresses, '127.0.0.1', '[::1]']) {
      await eventually(
        `an answer of ${host}`,
        5000,
        () => fromHost(`${host}:8088`),
        (text) => /^web-[12] /.test(text),
      )
    }
    await cluster.must(['delete', 'service', 'balanced'])
    for (const host of ['127.0.0.1', '[::1]']) {
      await eventually(
        `silence of ${host}`,
        2000,
        () => fromHost(`${host}:8088`),
        (text) => text === '',
      )
    }
  },
)

test('SVC-10 the health check node port of a Service says on each node whether it has an endpoint', options, async () => {
  await cluster.mustWith(JSON.stringify(service('checked', { type: 'LoadBalancer', externalTrafficPolicy: 'Local', selector: { index: '1' }, ports })), [
    'apply',
    '-f',
    '-',
  ])
  const port = await cluster.must(['get', 'service', 'checked', '-o', 'jsonpath={.spec.healthCheckNodePort}'])
  const codeOf = (address: string) => async () => (await fetch(`http://${address}:${port}/`).catch(() => undefined))?.status
  await eventually('the node of the endpoint', 20_000, codeOf(addresses[0] as string), (code) => code === 200)
  await eventually('the other node', 20_000, codeOf(addresses[1] as string), (code) => code === 503)
  assert.equal((await fetch(`http://${addresses[0]}:10256/healthz`)).status, 200)
  await cluster.must(['delete', 'service', 'checked'])
  for (const address of addresses) await eventually('the closed port', 20_000, codeOf(address), (code) => code === undefined)
})

test('SVC-03 a load balancer with the Local policy answers on localhost by a node that has an endpoint', options, async () => {
  const spec = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', selector: { index: '2' }, ports: [{ name: 'http', port: 8089, targetPort: 8080 }] }
  await cluster.mustWith(JSON.stringify(service('balanced-local', spec)), ['apply', '-f', '-'])
  await eventually(
    'an answer',
    5000,
    () => fromHost('127.0.0.1:8089'),
    (text) => text.startsWith('web-2 '),
  )
  for (let i = 0; i < 10; i++) assert.match(await fromHost('localhost:8089'), /^web-2 /)
  await cluster.must(['delete', 'service', 'balanced-local'])
})

test(
  'SVC-03 a port of a load balancer that is taken on localhost gets a Warning with another port, until it is free, and the server’s log names the holder',
  options,
  async () => {
    const holder = net.createServer((socket) => socket.destroy()).listen(8090, '::1')
    await once(holder, 'listening')
    const spec = { type: 'LoadBalancer', ports: [{ name: 'http', port: 8090, targetPort: 8080 }] }
    await cluster.mustWith(JSON.stringify(service('taken-balancer', spec)), ['apply', '-f', '-'])
    const event = ['get', 'events', '--field-selector=involvedObject.name=taken-balancer,type=Warning', '-o', 'jsonpath={.items[*].message}']
    const message = await eventually(
      'the warning',
      5000,
      () => cluster.must(event),
      (text) => text.includes('8090'),
    )
    const port = await nodePort('taken-balancer')
    const [, other] = /^Port 8090 is not reachable on localhost: it is in use on the host; use localhost:(\d+)$/.exec(message) ?? []
    assert.equal(other, port, message)
    const log = fs.readFileSync(path.join(cluster.dir, 'home', 'clusters', cluster.name, 'server.log'), 'utf8')
    assert.match(log, new RegExp(`\\[::1\\]:8090: .*held by \\S+ \\(pid ${process.pid}\\)`))
    assert.match(await fromHost(`localhost:${other}`), /^web-[12] /)
    holder.close()
    await eventually(
      'an answer under its own port',
      5000,
      () => fromHost('[::1]:8090'),
      (text) => /^web-[12] /.test(text),
    )
    await cluster.must(['delete', 'service', 'taken-balancer'])
  },
)

test('SVC-02 a node port that is taken on localhost gets a Warning on its Service, and still answers on the nodes', options, async () => {
  const port = 31_977
  const holder = net.createServer().listen(port, '127.0.0.1')
  await once(holder, 'listening')
  try {
    const spec = { type: 'NodePort', ports: [{ name: 'http', port: 80, targetPort: 8080, nodePort: port }] }
    await cluster.mustWith(JSON.stringify(service('taken', spec)), ['apply', '-f', '-'])
    const event = ['get', 'events', '--field-selector=involvedObject.name=taken', '-o', 'jsonpath={.items[*].type} {.items[*].message}']
    await eventually(
      'the warning',
      5000,
      () => cluster.must(event),
      (text) => text.startsWith('Warning') && text.includes(String(port)),
    )
    await eventually(
      'an answer of the node',
      5000,
      () => fromHost(`${addresses[0]}:${port}`),
      (text) => /^web-[12] /.test(text),
    )
  } finally {
    holder.close()
  }
})

test('SVC-10 affinity keeps a client with its pod; local policies keep traffic on its node', options, async () => {
  assert.equal((await answering(6, () => get('web-1', 'sticky'))).length, 1)
  assert.deepEqual(await answering(4, () => get('web-1', 'near')), ['web-1'])
  assert.deepEqual(await answering(4, () => get('web-2', 'near')), ['web-2'])
  const port = await nodePort('only-one')
  const gateway = `${addresses[0]?.split('.').slice(0, 3).join('.')}.1`
  assert.deepEqual(parse(await fromHost(`${addresses[0]}:${port}`)), { who: 'web-1', source: gateway })
  assert.equal(await fromHost(`${addresses[1]}:${port}`), '')
  assert.equal(parse(await fromHost(`127.0.0.1:${port}`)).who, 'web-1')
})

test('SVC-11 SVC-10 a Service with a trafficDistribution keeps traffic in the zone or on the node, while there are endpoints', options, async () => {
  const [one, two] = nodeNames as [string, string]
  const answersOf = (of: string, want: readonly string[][]) =>
    eventually(
      `answers of ${of} as ${JSON.stringify(want)}`,
      30_000,
      () => Promise.all(['web-1', 'web-2'].map((pod) => answering(8, () => get(pod, of)))),
      (seen) => JSON.stringify(seen) === JSON.stringify(want),
    )
  await answersOf('same-node', [['web-1'], ['web-2']])
  // Nodes without a zone: there is nothing to go by.
  await answersOf('same-zone', [
    ['web-1', 'web-2'],
    ['web-1', 'web-2'],
  ])
  await cluster.must(['label', 'node', one, 'topology.kubernetes.io/zone=a'])
  await cluster.must(['label', 'node', two, 'topology.kubernetes.io/zone=b'])
  // As upstream, slices get a node's new zone only when their service is synced again.
  await cluster.must(['annotate', 'service', 'same-zone', 'looked-at=again'])
  await answersOf('same-zone', [['web-1'], ['web-2']])
  await cluster.must(['label', 'node', one, 'topology.kubernetes.io/zone-'])
  await cluster.must(['annotate', 'service', 'same-zone', 'looked-at=once-more', '--overwrite'])
  await answersOf('same-zone', [
    ['web-1', 'web-2'],
    ['web-1', 'web-2'],
  ])
  await cluster.must(['label', 'node', two, 'topology.kubernetes.io/zone-'])
})

test('SVC-13 a pod reaches itself through its own Service', options, async () => {
  assert.equal(parse(await get('web-2', 'hairpin')).who, 'web-2')
})

test('SVC-12 headless names, SRV records and search paths on both nodes; outside names fail in time', options, async () => {
  const [one, two] = await Promise.all([podIp('web-1'), podIp('web-2')])
  for (const pod of ['web-1', 'web-2']) {
    const found = await inPod(pod, 'nslookup', 'heads.default.svc.cluster.local')
    for (const ip of [one, two]) assert.match(found, new RegExp(`Address: ${ip.replaceAll('.', '\\.')}\\b`))
    const records = await inPod(pod, 'nslookup', '-type=srv', '_http._tcp.heads.default.svc.cluster.local')
    for (const host of ['web-1', 'web-2']) assert.match(records, new RegExp(`\\d+ \\d+ 8080 ${host}\\.heads\\.default\\.svc\\.cluster\\.local`))
    assert.match(await inPod(pod, 'cat', '/etc/resolv.conf'), /^search default\.svc\.cluster\.local svc\.cluster\.local cluster\.local/m)
    for (const host of ['web-1.heads:8080', 'web-2.heads.default:8080']) assert.equal(`${parse(await get(pod, host)).who}`, host.slice(0, 5))
    const startedMs = performance.now()
    await inPod(pod, 'nslookup', 'example.invalid')
    assert.ok(performance.now() - startedMs < 6000)
  }
})

/** An address of this host that is not of the cluster's bridge. */
function otherAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return all.find((one) => one.family === 'IPv4' && !one.internal && !one.address.startsWith('10.88.'))?.address
}

test('SVC-13 a UDP client with one socket follows the Service to its new endpoint', {
  skip: skip || (otherAddress() ? false : 'needs a second address'),
}, async () => {
  const gateway = `${addresses[0]?.split('.').slice(0, 3).join('.')}.1`
  const [first, second, client] = [await udpServer('first', gateway), await udpServer('second', otherAddress() ?? ''), dgram.createSocket('udp4')]
  const answers: string[] = []
  client.on('message', (message) => answers.push(String(message)))
  try {
    const spec = { type: 'NodePort', selector: null, ports: [{ name: 'udp', port: 53, protocol: 'UDP' }] }
    await cluster.mustWith(JSON.stringify(service('udp', spec)), ['apply', '-f', '-'])
    const port = Number(await nodePort('udp'))
    const ask = async () => {
      client.send('who?', port, addresses[1])
      return answers.at(-1) ?? ''
    }
    for (const [who, server] of [
      ['first', first],
      ['second', second],
    ] as const) {
      const { address, port: target } = server.address()
      await cluster.mustWith(JSON.stringify(sliceOf('udp', 'udp', 'UDP', address, target)), ['apply', '-f', '-'])
      await eventually(`an answer of the ${who} endpoint`, 5000, ask, (answer) => answer === who)
    }
  } finally {
    for (const socket of [first, second, client]) socket.close()
  }
})

test('SVC-13 a TCP connection that waits for an endpoint which does not answer reaches the next one with its next attempt', options, async () => {
  const gateway = `${addresses[0]?.split('.').slice(0, 3).join('.')}.1`
  const server = net.createServer((socket) => socket.end('here')).listen(0, gateway)
  await once(server, 'listening')
  const { port: target } = server.address() as net.AddressInfo
  const spec = { type: 'NodePort', selector: null, ports: [{ name: 'tcp', port: 80 }] }
  await cluster.mustWith(JSON.stringify(service('waiting', spec)), ['apply', '-f', '-'])
  const port = Number(await nodePort('waiting'))
  const use = (address: string) => cluster.mustWith(JSON.stringify(sliceOf('waiting', 'tcp', 'TCP', address, target)), ['apply', '-f', '-'])
  // No host has this address. The node port answers with a reset until the node has the endpoint.
  await use(`${addresses[0]?.split('.').slice(0, 3).join('.')}.250`)
  const isRefused = () =>
    new Promise<boolean>((resolve) => {
      const socket = net.connect({ host: addresses[1] ?? '', port, timeout: 300 })
      const end = (refused: boolean) => {
        socket.destroy()
        resolve(refused)
      }
      socket.once('error', () => end(true)).once('timeout', () => end(false))
    })
  await eventually('the node to have the endpoint', 10_000, isRefused, (refused) => !refused)
  const client = net.connect({ host: addresses[1] ?? '', port })
  try {
    await new Promise((resolve) => setTimeout(resolve, 200))
    await use(gateway)
    const [data] = (await once(client, 'data', { signal: AbortSignal.timeout(20_000) })) as [Buffer]
    assert.equal(String(data), 'here')
  } finally {
    client.destroy()
    server.close()
  }
})

async function udpServer(answer: string, address: string): Promise<dgram.Socket> {
  const socket = dgram.createSocket('udp4')
  socket.on('message', (_message, from) => socket.send(answer, from.port, from.address))
  socket.bind(0, address)
  await once(socket, 'listening')
  return socket
}

function sliceOf(of: string, portName: string, protocol: string, address: string, port: number) {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${of}-1`, labels: { 'kubernetes.io/service-name': of } },
    addressType: 'IPv4',
    ports: [{ name: portName, port, protocol }],
    endpoints: [{ addresses: [address] }],
  }
}

const pidOf = async (role: string) => (await status()).pids.find((one) => one.role === role && one.node === nodeNames[1])?.pid ?? 0
const containerOf = (pod: string) =>
  cluster.must(['get', 'pod', pod, '-o', 'jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].ready}'])
const execWorks = async (pod: string) => (await cluster.kubectl(['exec', pod, '--', 'true'])).code

test('CRI-08 agent and containerd restart after both are killed, and the pod keeps serving with the same processes', options, async () => {
  const earlier = await containerOf('web-2')
  const ip = await podIp('web-2')
  const killed = { agent: await pidOf('node'), containerd: await pidOf('containerd') }
  for (const pid of Object.values(killed)) {
    assert.ok(pid > 1)
    process.kill(pid, 'SIGKILL')
  }
  assert.equal(parse(await get('web-1', `${ip}:8080`)).who, 'web-2')
  await eventually(
    'new processes',
    15_000,
    async () => ({ agent: await pidOf('node'), containerd: await pidOf('containerd') }),
    (now) => now.agent > 0 && now.agent !== killed.agent && now.containerd > 0 && now.containerd !== killed.containerd,
  )
  await eventually(
    'exec again',
    20_000,
    () => execWorks('web-2'),
    (code) => code === 0,
  )
  // A restarted kubelet probes once before it reports the pod ready.
  await eventually(
    'the same container to be ready',
    10_000,
    () => containerOf('web-2'),
    (now) => now === earlier,
  )
})

test('a node that ends without a supervisor becomes Unknown, and runs its pods again after skiff start', options, async () => {
  const earlier = await containerOf('web-2')
  const supervisor = (await status()).pids.find((one) => one.role === 'supervisor')?.pid ?? 0
  assert.ok(supervisor > 1)
  process.kill(supervisor, 'SIGKILL')
  const init = await pidOf('init')
  assert.ok(init > 1)
  process.kill(init, 'SIGKILL')
  await cluster.must(['wait', '--for=condition=Ready=Unknown', `node/${nodeNames[1]}`, '--timeout=70s'], 80_000)
  const slice = ['get', 'endpointslices', '-l', 'kubernetes.io/service-name=hairpin', '-o', 'jsonpath={.items[*].endpoints[*].conditions.ready}']
  await eventually(
    'the dead pod to leave its Service',
    10_000,
    () => cluster.must(slice),
    (text) => text === 'false',
  )
  const port = await nodePort('taken')
  await eventually(
    'the other node to answer on localhost',
    5000,
    () => fromHost(`127.0.0.1:${port}`),
    (text) => text.startsWith('web-1'),
  )
  const started = await cluster.skiff(['start', name])
  assert.equal(started.code, 0, started.stderr)
  await eventually(
    'the pod in a new container',
    40_000,
    async () => ((await execWorks('web-2')) === 0 ? containerOf('web-2') : ''),
    (text) => text.endsWith(' true') && text !== earlier,
  )
  await eventually(
    'the other node’s pod to reach it by name',
    10_000,
    () => get('web-1', 'hairpin'),
    (text) => parse(text).who === 'web-2',
  )
})

test('deleting the cluster leaves the host as it was', options, async () => {
  await cluster.delete()
  assert.deepEqual(newTraces(before_), {})
  // For after(): deleting twice is fine.
  cluster = Object.assign(cluster, { delete: async () => {} })
})
