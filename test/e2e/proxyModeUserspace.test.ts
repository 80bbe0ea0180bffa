/**
 * The proxy mode userspace as a process without any capability, in a network namespace whose administrator made cluster IPs local. A second namespace reaches it as a
 * pod reaches its node. Needs root to make them; removes what it made.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { createExec } from '../../src/host/exec.ts'
import { inNetworkNamespace } from '../../src/host/netns.ts'
import type { FamilyModel, ServiceRule } from '../../src/proxy/model.ts'

const skip = process.getuid?.() !== 0 ? 'needs root' : false
const options = { skip }
const node = `sku-${process.pid}-n`
const client = `sku-${process.pid}-c`
const program = path.join(import.meta.dirname, 'support/userspaceProxy.ts')
/** No capabilities, and no way to get some; still the owner of this checkout, which others may not read. */
const unprivileged = ['setpriv', '--securebits=+noroot,+noroot_locked', '--inh-caps=-all', '--bounding-set=-all', '--no-new-privs']

const families = [
  { family: 'IPv4' as const, pods: ['10.244.0.1', '10.244.0.2'], clusterIp: '10.96.0.10', nodeIp: '10.244.9.1' },
  { family: 'IPv6' as const, pods: ['fd01::1', 'fd01::2'], clusterIp: 'fd02::10', nodeIp: 'fd01::9:1' },
]
const serverProgram = `
const ips = process.argv.slice(1); let waiting = ips.length
for (const ip of ips) require('net').createServer((s) => s.end(ip)).listen(8080, ip, () => { if (--waiting === 0) console.log('ready') })
`
const clientProgram = `
const [host, port] = process.argv.slice(1)
const socket = require('net').connect({ host, port: Number(port), timeout: 1500 })
let text = ''; socket.on('data', (data) => text += data); socket.on('close', () => console.log(text))
socket.on('timeout', () => socket.destroy()); socket.on('error', (error) => text = error.code)
`
let servers: ChildProcess | undefined
let proxy: ChildProcess | undefined

before(async () => {
  if (skip) return
  for (const name of [node, client]) execFileSync('ip', ['netns', 'add', name])
  const batch = (name: string, lines: readonly string[]) => execFileSync('ip', ['-n', name, '-batch', '-'], { input: `${lines.join('\n')}\n` })
  batch(node, [
    'link set lo up',
    ...families.flatMap(({ pods }) => pods.map((ip) => `addr add ${ip}/${ip.includes(':') ? 128 : 32} dev lo`)),
    `link add pod0 type veth peer name eth0 netns ${client}`,
    'addr add 10.244.9.1/24 dev pod0',
    'addr add fd01::9:1/112 dev pod0 nodad',
    'link set pod0 up',
    // What the mode asks the administrator for.
    'route add local 10.96.0.0/16 dev lo',
    'route add local fd02::/112 dev lo',
  ])
  batch(client, [
    'addr add 10.244.9.2/24 dev eth0',
    'addr add fd01::9:2/112 dev eth0 nodad',
    'link set eth0 up',
    'route add default via 10.244.9.1',
    'route add default via fd01::9:1',
  ])
  const inNode = inNetworkNamespace(node)
  execFileSync(inNode[0] ?? '', [
    ...inNode.slice(1),
    'sh',
    '-c',
    'echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start; echo 1 >/proc/sys/net/ipv6/ip_nonlocal_bind',
  ])
  const start = (words: readonly string[]) => spawn(inNode[0] ?? '', [...inNode.slice(1), ...words], { stdio: ['pipe', 'pipe', 'inherit'], cwd: '/' })
  servers = start([process.execPath, '-e', serverProgram, ...families.flatMap(({ pods }) => pods)])
  proxy = start([...unprivileged, process.execPath, '--import', import.meta.resolve('tsx'), program])
  await once(servers.stdout as NodeJS.ReadableStream, 'data')
})

after(async () => {
  if (skip) return
  for (const child of [servers, proxy]) {
    child?.kill('SIGKILL')
    if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  for (const name of [node, client]) execFileSync('ip', ['netns', 'del', name])
})

function ruleOf({ pods, clusterIp }: (typeof families)[number], changes: Partial<ServiceRule> = {}): ServiceRule {
  const endpoints = pods.map((ip) => ({ ip, port: 8080, isLocal: true }))
  return {
    service: 'default/web',
    portName: 'http',
    protocol: 'tcp',
    clusterIp,
    port: 80,
    nodePort: 30_080,
    externalIps: [],
    loadBalancerIps: [],
    sourceRanges: undefined,
    affinitySeconds: undefined,
    internalPolicyLocal: false,
    externalPolicyLocal: false,
    clusterEndpoints: endpoints,
    localEndpoints: endpoints,
    ...changes,
  }
}

async function apply(rulesOf: (of: (typeof families)[number]) => readonly ServiceRule[]): Promise<void> {
  const model: FamilyModel[] = families.map((of) => ({ family: of.family, rules: rulesOf(of), clusterCidrs: [], serviceCidrs: [] }))
  proxy?.stdin?.write(`${JSON.stringify(model)}\n`)
  const ended = once(proxy as ChildProcess, 'exit').then(([code]) => assert.fail(`the proxy ended with ${code}`))
  await Promise.race([once(proxy?.stdout as NodeJS.ReadableStream, 'data'), ended])
}

async function ask(from: string, host: string, port: number): Promise<string> {
  return (await createExec(inNetworkNamespace(from)).run(process.execPath, ['-e', clientProgram, host, String(port)])).stdout.trim()
}

test('SVC-08 userspace without capabilities serves cluster IPs and node ports of both families, to pods and to the node', options, async () => {
  await apply((of) => [ruleOf(of)])
  const status = execFileSync('sh', ['-c', `cat /proc/${proxy?.pid}/status`], { encoding: 'utf8' })
  assert.match(status, /^CapEff:\t0+$/m)
  for (const { pods, clusterIp, nodeIp } of families) {
    for (const from of [node, client]) {
      const answers = await Promise.all([ask(from, clusterIp, 80), ask(from, clusterIp, 80)])
      assert.deepEqual(answers.sort(), pods)
      assert.ok(pods.includes(await ask(from, nodeIp, 30_080)))
    }
  }
})

test('SVC-08 userspace closes the ports of a Service that is gone, and serves one that appears', options, async () => {
  await apply(() => [])
  for (const { clusterIp } of families) assert.equal(await ask(client, clusterIp, 80), 'ECONNREFUSED')
  await apply((of) => [ruleOf(of, { port: 81, nodePort: undefined })])
  for (const { pods, clusterIp } of families) assert.ok(pods.includes(await ask(client, clusterIp, 81)))
})
