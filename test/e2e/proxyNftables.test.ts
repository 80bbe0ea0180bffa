/**
 * The nftables mode against the real kernel, in a network namespace of its own: addresses on its loopback stand for pods, and a small program in
 * the namespace serves and asks. Needs root and nft; cleans up after itself.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import type { Service } from '../../src/api/gen/types/core.v1.ts'
import type { EndpointSlice } from '../../src/api/gen/types/discovery.v1.ts'
import { createExec, type Exec } from '../../src/host/exec.ts'
import { inNetworkNamespace } from '../../src/host/netns.ts'
import { addressRule } from '../../src/proxy/externalAddresses.ts'
import { buildModel, type ServiceRule } from '../../src/proxy/model.ts'
import type { ProxyBackend } from '../../src/proxy/modes/mode.ts'
import { nftables } from '../../src/proxy/modes/nftables.ts'

const obstacle = process.getuid?.() !== 0 ? 'needs root' : (await nftables.obstacle(createExec())) !== undefined ? 'nft does not work here' : false
const namespace = `skiff-test-${process.pid}`
const exec = createExec(inNetworkNamespace(namespace))
/** A second namespace, reached through the first as a pod reaches its node. */
const clientNamespace = `${namespace}-c`
const clientExec = createExec(inNetworkNamespace(clientNamespace))
let backend: ProxyBackend
let servers: ReturnType<typeof spawn> | undefined

/** Answers each connection with the address it was made to and the client's, over TCP and UDP. */
const serverProgram = `
const net = require('net'), dgram = require('dgram')
let waiting = 0
const up = () => { if (--waiting === 0) console.log('ready') }
for (const ip of ['10.244.0.1', '10.244.0.2', '10.244.0.3']) {
  waiting += 2
  net.createServer((s) => s.end(ip + ' ' + s.remoteAddress)).listen(8080, ip, up)
  const u = dgram.createSocket('udp4'); u.on('message', (m, r) => u.send(ip + ' ' + r.address, r.port, r.address)); u.bind(5353, ip, up)
}
`
const clientProgram = `
const net = require('net'); const [ip, port, local] = process.argv.slice(1)
const s = net.connect({ host: ip, port: Number(port), ...(local ? { localAddress: local } : {}), timeout: 1500 })
let out = ''; s.on('data', (d) => out += d); s.on('end', () => { console.log(out); process.exit(0) })
s.on('timeout', () => { console.log('timeout'); process.exit(0) }); s.on('error', (e) => { console.log(e.code); process.exit(0) })
`

/** What a TCP client in the namespace gets. */
const ask = (ip: string, port: number, local?: string) => askFrom(exec, ip, port, local)

async function askFrom(where: Exec, ip: string, port: number, local?: string): Promise<string> {
  const { stdout } = await where.run(process.execPath, ['-e', clientProgram, ip, String(port), ...(local ? [local] : [])], { timeoutMs: 5000 })
  return stdout.trim()
}

const rule = (changes: Partial<ServiceRule>): ServiceRule => {
  const endpoints = ['10.244.0.1', '10.244.0.2'].map((ip) => ({ ip, port: 8080, isLocal: ip === '10.244.0.1' }))
  return {
    service: 'default/web',
    portName: 'http',
    protocol: 'tcp',
    clusterIp: '10.96.0.10',
    port: 80,
    nodePort: undefined,
    externalIps: [],
    loadBalancerIps: [],
    sourceRanges: undefined,
    affinitySeconds: undefined,
    internalPolicyLocal: false,
    externalPolicyLocal: false,
    clusterEndpoints: endpoints,
    localEndpoints: endpoints.filter((endpoint) => endpoint.isLocal),
    ...changes,
  }
}

before(async () => {
  if (obstacle) return
  for (const name of [namespace, clientNamespace]) execFileSync('ip', ['netns', 'add', name])
  const commands = ['link set lo up', ...['10.244.0.1', '10.244.0.2', '10.244.0.3', '192.0.2.7'].map((ip) => `addr add ${ip}/32 dev lo`)]
  commands.push(
    `link add pod0 type veth peer name eth0 netns ${clientNamespace}`,
    'addr add 10.244.9.1/24 dev pod0',
    'link set pod0 up',
    'route add default via 10.244.9.2',
  )
  const clientCommands = ['addr add 10.244.9.2/24 dev eth0', 'link set eth0 up', 'route add default via 10.244.9.1']
  execFileSync('ip', ['-n', namespace, '-batch', '-'], { input: `${commands.join('\n')}\n` })
  execFileSync('ip', ['-n', clientNamespace, '-batch', '-'], { input: `${clientCommands.join('\n')}\n` })
  await exec.run('sh', ['-c', 'echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet; echo 1 > /proc/sys/net/ipv4/ip_forward'])
  servers = spawn('nsenter', [`--net=/run/netns/${namespace}`, process.execPath, '-e', serverProgram], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(servers.stdout as NodeJS.ReadableStream, 'data')
  backend = nftables.create({ exec, clusterCidr: '10.244.0.0/16', serviceCidr: '10.96.0.0/16' })
})

after(() => {
  if (obstacle) return
  servers?.kill('SIGKILL')
  for (const name of [namespace, clientNamespace]) execFileSync('ip', ['netns', 'del', name])
})

const options = { skip: obstacle }

test('SVC-06 a cluster IP leads to every endpoint', options, async () => {
  await backend.apply([rule({})])
  const answers = new Set<string>()
  for (let i = 0; i < 16; i++) answers.add((await ask('10.96.0.10', 80, '10.244.0.3')).split(' ')[0] ?? '')
  assert.deepEqual([...answers].sort(), ['10.244.0.1', '10.244.0.2'])
})

test('SVC-06 a pod that reaches itself through the service (hairpin) gets an answer', options, async () => {
  await backend.apply([rule({ clusterEndpoints: [{ ip: '10.244.0.1', port: 8080, isLocal: true }] })])
  assert.match(await ask('10.96.0.10', 80, '10.244.0.1'), /^10.244.0.1 /)
})

test('SVC-02 a node port answers on the address of the node and on localhost', options, async () => {
  await backend.apply([rule({ nodePort: 30080 })])
  assert.match(await ask('192.0.2.7', 30080), /^10.244.0.[12] /)
  assert.match(await ask('127.0.0.1', 30080), /^10.244.0.[12] /)
})

test('SVC-03 a load balancer’s address answers those that its ranges let in, and nobody else', options, async () => {
  const balanced = { externalIps: ['203.0.113.9'], loadBalancerIps: ['203.0.113.9'] }
  await backend.apply([rule({ ...balanced, sourceRanges: ['10.244.9.0/25', '10.244.9.2/32'] })])
  assert.match(await askFrom(clientExec, '203.0.113.9', 80), /^10.244.0.[12] /)
  assert.equal(await ask('203.0.113.9', 80, '10.244.0.3'), 'timeout')
  await backend.apply([rule({ ...balanced, sourceRanges: [] })])
  assert.equal(await askFrom(clientExec, '203.0.113.9', 80), 'timeout')
  await backend.apply([rule(balanced)])
  assert.match(await ask('203.0.113.9', 80, '10.244.0.3'), /^10.244.0.[12] /)
})

test('SVC-06 a cluster IP cannot be taken over by external addresses of another Service', options, async () => {
  const serviceOf = (name: string, clusterIP: string, more: Partial<Service['spec']> = {}): Service => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default' },
    spec: { type: 'ClusterIP', clusterIP, clusterIPs: [clusterIP], ports: [{ port: 443, protocol: 'TCP' }], ...more },
    status: { loadBalancer: name === 'evil' ? { ingress: [{ ip: '10.96.0.1' }] } : {} },
  })
  const sliceOf = (name: string, ip: string): EndpointSlice => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace: 'default', labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [ip] }],
    ports: [{ port: 8080 }],
  })
  const answering = sliceOf('kubernetes', '10.244.0.1')
  const evil = serviceOf('evil', '10.96.0.66', { externalIPs: ['10.96.0.1'], loadBalancerSourceRanges: ['203.0.113.0/24'], type: 'LoadBalancer' })
  for (const slices of [[answering, sliceOf('evil', '10.244.0.2')], [answering]]) {
    const services = [serviceOf('kubernetes', '10.96.0.1'), evil]
    await backend.apply(buildModel(services, slices, { nodeName: 'n' }, 'IPv4', addressRule(services, ['10.96.0.0/16'])))
    for (let i = 0; i < 4; i++) {
      assert.match(await ask('10.96.0.1', 443, '10.244.0.3'), /^10.244.0.1 /)
      assert.match(await askFrom(clientExec, '10.96.0.1', 443), /^10.244.0.1 /)
    }
  }
})

test('SVC-10 ClientIP affinity keeps a client with its endpoint', options, async () => {
  await backend.apply([rule({ affinitySeconds: 60 })])
  const answers = new Set<string>()
  for (let i = 0; i < 8; i++) answers.add(await ask('10.96.0.10', 80, '10.244.0.3'))
  assert.equal(answers.size, 1)
})

test('SVC-10 the Local policy stays on this node', options, async () => {
  await backend.apply([rule({ internalPolicyLocal: true })])
  for (let i = 0; i < 4; i++) assert.match(await ask('10.96.0.10', 80, '10.244.0.3'), /^10.244.0.1 /)
})

test('SVC-13 no endpoint, or an unknown port of a service: refused at once', options, async () => {
  await backend.apply([rule({ clusterEndpoints: [], localEndpoints: [], nodePort: 30080 })])
  assert.equal(await askFrom(clientExec, '10.96.0.10', 80), 'ECONNREFUSED')
  await backend.apply([rule({})])
  assert.match(await askFrom(clientExec, '10.96.0.10', 80), /^10.244.0.[12] .*10.244.9.2$/)
  assert.equal(await askFrom(clientExec, '10.96.0.10', 81), 'ECONNREFUSED')
})

test('SVC-06 two hundred services load at once, and cleaning up leaves no table', options, async () => {
  const many = Array.from({ length: 200 }, (_, i) =>
    rule({ service: `ns/s${i}`, clusterIp: `10.96.2.${i}`, nodePort: 31_000 + i, affinitySeconds: i % 2 ? 60 : undefined }),
  )
  await backend.apply(many)
  assert.match(await ask('10.96.2.199', 80, '10.244.0.3'), /^10.244/)
  await backend.apply(many.slice(100))
  assert.equal(await ask('10.96.2.5', 80), 'timeout')
  await backend.cleanUp()
  const { stdout } = await exec.run('nft', ['list', 'tables'])
  assert.equal(stdout.includes('kube-proxy'), false)
})
