/**
 * Every mode that this host can run against the real kernel, for each address family, in network namespaces of their own: addresses on the loopback interface stand for
 * pods, and a small program in the namespace serves and asks. The mode userspace is a process there. Needs root and the mode's programs; removes what it made.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { Service } from '../../src/api/gen/types/core.v1.ts'
import type { EndpointSlice } from '../../src/api/gen/types/discovery.v1.ts'
import { noLog } from '../../src/base/log.ts'
import { noMetrics } from '../../src/base/metrics.ts'
import { createWakeUp } from '../../src/base/wakeUp.ts'
import { createConntrack } from '../../src/host/conntrack.ts'
import { createExec, type Exec } from '../../src/host/exec.ts'
import { inNetworkNamespace } from '../../src/host/netns.ts'
import { addressRule } from '../../src/proxy/externalAddresses.ts'
import { buildModel, type Family, type FamilyModel, type ServiceRule } from '../../src/proxy/model.ts'
import { kernelModes } from '../../src/proxy/modes/index.ts'
import { iptables } from '../../src/proxy/modes/iptables.ts'
import type { ProxyMode } from '../../src/proxy/modes/mode.ts'
import { nftables } from '../../src/proxy/modes/nftables.ts'
import { userspace } from '../../src/proxy/modes/userspace.ts'
import { realClock } from '../../src/testing/realClock.ts'

/** The addresses of one family's run. */
interface Plan {
  readonly family: Family
  /** Three pods; the first two are the service's endpoints. */
  readonly pods: readonly [string, string, string]
  readonly clusterIp: string
  readonly otherClusterIp: string
  readonly nodeIp: string
  readonly balancerIp: string
  /** The pod beyond the node's interface, and the node on that link. */
  readonly client: string
  readonly gateway: string
  readonly linkPrefix: number
  readonly hostPrefix: number
  readonly clusterCidr: string
  readonly serviceCidr: string
  /** Holds the client, and only it. */
  readonly clientRange: string
  readonly anywhere: string
  /** The addresses of many Services. */
  many(i: number): string
}

const plans: readonly Plan[] = [
  {
    family: 'IPv4',
    pods: ['10.244.0.1', '10.244.0.2', '10.244.0.3'],
    clusterIp: '10.96.0.10',
    otherClusterIp: '10.96.0.66',
    nodeIp: '192.0.2.7',
    balancerIp: '203.0.113.9',
    client: '10.244.9.2',
    gateway: '10.244.9.1',
    linkPrefix: 24,
    hostPrefix: 32,
    clusterCidr: '10.244.0.0/16',
    serviceCidr: '10.96.0.0/16',
    clientRange: '10.244.9.2/32',
    anywhere: '0.0.0.0/0',
    many: (i) => `10.96.2.${i}`,
  },
  {
    family: 'IPv6',
    pods: ['fd01::1', 'fd01::2', 'fd01::3'],
    clusterIp: 'fd02::10',
    otherClusterIp: 'fd02::66',
    nodeIp: '2001:db8::7',
    balancerIp: '2001:db8:1::9',
    client: 'fd01::9:2',
    gateway: 'fd01::9:1',
    linkPrefix: 112,
    hostPrefix: 128,
    clusterCidr: 'fd01::/48',
    serviceCidr: 'fd02::/112',
    clientRange: 'fd01::9:2/128',
    anywhere: '::/0',
    many: (i) => `fd02::${(0x200 + i).toString(16)}`,
  },
]

/** Answers each connection with the address it was made to and the client's. */
const serverProgram = `
const net = require('net')
const ips = process.argv.slice(1)
let waiting = ips.length
for (const ip of ips) net.createServer((s) => s.end(ip + ' ' + s.remoteAddress)).listen(8080, ip, () => { if (--waiting === 0) console.log('ready') })
`
const clientProgram = `
const net = require('net'); const [ip, port, local] = process.argv.slice(1)
const s = net.connect({ host: ip, port: Number(port), ...(local ? { localAddress: local } : {}), timeout: 1500 })
let out = ''; s.on('data', (d) => out += d); s.on('end', () => { console.log(out); process.exit(0) })
s.on('timeout', () => { console.log('timeout'); process.exit(0) }); s.on('error', (e) => { console.log(e.code); process.exit(0) })
`

/** Connects `count` times and prints how often each server answered, as JSON. */
const countProgram = `
const net = require('net'); const [ip, count] = process.argv.slice(1)
const answers = {}; let left = Number(count)
const ask = () => { if (left-- <= 0) return
  const s = net.connect({ host: ip, port: 80, timeout: 1500 }); let out = ''
  s.on('data', (d) => out += d); s.on('timeout', () => s.destroy()); s.on('error', () => {})
  s.on('close', () => { const server = out.split(' ')[0]; answers[server] = (answers[server] ?? 0) + 1; ask() }) }
for (let i = 0; i < 8; i++) ask()
process.on('exit', () => console.log(JSON.stringify(answers)))
`

async function countAnswers(where: Exec, ip: string, count: number): Promise<Record<string, number>> {
  const { stdout } = await where.run(process.execPath, ['-e', countProgram, ip, String(count)], { timeoutMs: 60_000 })
  return JSON.parse(stdout)
}

async function askFrom(where: Exec, ip: string, port: number, local?: string): Promise<string> {
  const { stdout } = await where.run(process.execPath, ['-e', clientProgram, ip, String(port), ...(local ? [local] : [])], { timeoutMs: 5000 })
  return stdout.trim()
}

function ruleOf({ pods, clusterIp }: Plan, changes: Partial<ServiceRule>): ServiceRule {
  const endpoints = pods.slice(0, 2).map((ip) => ({ ip, port: 8080, isLocal: ip === pods[0] }))
  return {
    service: 'default/web',
    portName: 'http',
    protocol: 'tcp',
    clusterIp,
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

/** A mode that runs in the namespace; `apply` resolves when it serves the model. */
interface RunningMode {
  apply(next: FamilyModel): Promise<void>
  stop(): Promise<void>
}

/** The commands of a mode with rules in the kernel enter the namespace. */
function runMode(mode: ProxyMode, exec: Exec): RunningMode {
  const changes = createWakeUp()
  const stop = new AbortController()
  let model: FamilyModel[] = []
  let asked = () => {}
  const models = {
    newest: () => model,
    next: async (signal: AbortSignal) => {
      // Asked for the next model, the mode has applied the one before.
      asked()
      await changes.wait(signal)
      signal.throwIfAborted()
      return model
    },
  }
  const running = mode.run({ exec, clock: realClock, log: noLog, metrics: noMetrics, conntrack: createConntrack(exec) }, models, stop.signal)
  return {
    apply: (next: FamilyModel) => {
      const applied = new Promise<void>((resolve) => {
        asked = resolve
      })
      model = [next]
      changes.ring()
      return applied
    },
    stop: async () => {
      stop.abort()
      await running
    },
  }
}

/** The sockets of the mode userspace belong to a process in the namespace. */
function runUserspace(namespace: string): RunningMode {
  const program = path.join(import.meta.dirname, 'support/userspaceProxy.ts')
  const words = [`--net=/run/netns/${namespace}`, process.execPath, '--import', import.meta.resolve('tsx'), program]
  const proxy = spawn('nsenter', words, { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(proxy, 'exit')
  return {
    apply: async (next) => {
      const applied = once(proxy.stdout, 'data')
      proxy.stdin.write(`${JSON.stringify([next])}\n`)
      await Promise.race([applied, ended.then(([code]) => assert.fail(`the proxy ended with ${code}`))])
    },
    stop: async () => {
      proxy.stdin.end()
      await ended
    },
  }
}

function makeNamespaces(namespace: string, clientNamespace: string, plan: Plan): void {
  const v6 = plan.family === 'IPv6'
  // The client is the node's default route: the kernel would send it redirects, which share a rate limit with the ICMP messages of refusals.
  const settings = v6
    ? 'echo 1 > /proc/sys/net/ipv6/conf/all/forwarding'
    : 'cd /proc/sys/net/ipv4; echo 1 > conf/all/route_localnet; echo 1 > ip_forward; for i in all pod0; do echo 0 > conf/$i/send_redirects; done'
  const nodad = v6 ? ' nodad' : ''
  for (const name of [namespace, clientNamespace]) execFileSync('ip', ['netns', 'add', name])
  const commands = [
    'link set lo up',
    ...[...plan.pods, plan.nodeIp].map((ip) => `addr add ${ip}/${plan.hostPrefix} dev lo`),
    `link add pod0 type veth peer name eth0 netns ${clientNamespace}`,
    `addr add ${plan.gateway}/${plan.linkPrefix} dev pod0${nodad}`,
    'link set pod0 up',
    `route add default via ${plan.client}`,
  ]
  const clientCommands = [`addr add ${plan.client}/${plan.linkPrefix} dev eth0${nodad}`, 'link set eth0 up', `route add default via ${plan.gateway}`]
  const family = v6 ? '-6' : '-4'
  execFileSync('ip', [family, '-n', namespace, '-batch', '-'], { input: `${commands.join('\n')}\n` })
  execFileSync('ip', [family, '-n', clientNamespace, '-batch', '-'], { input: `${clientCommands.join('\n')}\n` })
  execFileSync('nsenter', [`--net=/run/netns/${namespace}`, 'sh', '-c', settings])
}

for (const mode of [...kernelModes, userspace]) {
  for (const plan of plans) {
    const world = await prepareWorld(mode, plan)
    testReach(world)
    testChoice(world)
  }
}

type World = Awaited<ReturnType<typeof prepareWorld>>

/** Two namespaces with the mode and three servers in the first, for as long as the tests run. */
async function prepareWorld(mode: ProxyMode, plan: Plan) {
  const missing = await mode.obstacle(createExec(), plan.family)
  const obstacle = process.getuid?.() !== 0 ? 'needs root' : (missing ?? false)
  const namespace = `skiff-test-${process.pid}-${mode.name}-${plan.family}`
  const exec = createExec(inNetworkNamespace(namespace))
  /** Reaches the first namespace as a pod reaches its node. */
  const clientNamespace = `${namespace}-c`
  const { family, pods, clusterCidr, serviceCidr } = plan
  let running: RunningMode | undefined
  let servers: ReturnType<typeof spawn> | undefined

  before(async () => {
    if (obstacle) return
    makeNamespaces(namespace, clientNamespace, plan)
    servers = spawn('nsenter', [`--net=/run/netns/${namespace}`, process.execPath, '-e', serverProgram, ...pods], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(servers.stdout as NodeJS.ReadableStream, 'data')
    running = mode === userspace ? runUserspace(namespace) : runMode(mode, exec)
    // This mode listens on addresses, and an administrator gives the host those that come from outside.
    if (mode === userspace) execFileSync('ip', ['-n', namespace, 'addr', 'add', `${plan.balancerIp}/${plan.hostPrefix}`, 'dev', 'lo'])
  })
  after(async () => {
    if (obstacle) return
    await running?.stop()
    servers?.kill('SIGKILL')
    for (const name of [namespace, clientNamespace]) execFileSync('ip', ['netns', 'del', name])
  })

  const applyModel = async (model: FamilyModel) => running?.apply(model)
  return {
    mode,
    plan,
    exec,
    options: { skip: obstacle },
    row: mode === nftables ? 'SVC-06' : mode === userspace ? 'SVC-08' : 'SVC-05',
    /** What a client gets that may not use an address. */
    refusal: mode === userspace ? 'ECONNRESET' : 'timeout',
    title: `${mode.name} ${family}`,
    clientExec: createExec(inNetworkNamespace(clientNamespace)),
    ask: (ip: string, port: number, local?: string) => askFrom(exec, ip, port, local),
    rule: (changes: Partial<ServiceRule>) => ruleOf(plan, changes),
    applyModel,
    apply: (rules: readonly ServiceRule[]) => applyModel({ family, rules, clusterCidrs: [clusterCidr], serviceCidrs: [serviceCidr] }),
    stop: async () => running?.stop(),
    isPod: (answer: string, ...allowed: string[]) => assert.ok(allowed.includes(answer.split(' ')[0] ?? ''), `${answer} is not of ${allowed.join()}`),
  }
}

/** Which addresses lead to the endpoints. */
function testReach({ mode, plan, options, row, title, refusal, clientExec, ask, rule, apply, applyModel, isPod }: World): void {
  const { family, pods, clusterIp, otherClusterIp, nodeIp, balancerIp, clusterCidr, serviceCidr } = plan

  test(`${row} ${title}: a cluster IP leads to every endpoint`, options, async () => {
    await apply([rule({})])
    const answers = new Set<string>()
    for (let i = 0; i < 16; i++) answers.add((await ask(clusterIp, 80, pods[2])).split(' ')[0] ?? '')
    assert.deepEqual([...answers].sort(), [pods[0], pods[1]])
  })

  test(`${row} ${title}: a pod that reaches itself through the service (hairpin) gets an answer`, options, async () => {
    await apply([rule({ clusterEndpoints: [{ ip: pods[0], port: 8080, isLocal: true }] })])
    isPod(await ask(clusterIp, 80, pods[0]), pods[0])
  })

  test(`SVC-02 ${title}: a node port answers on the node’s address, and on localhost where the family allows it`, options, async () => {
    await apply([rule({ nodePort: 30080 })])
    isPod(await ask(nodeIp, 30080), pods[0], pods[1])
    if (family === 'IPv4') isPod(await ask('127.0.0.1', 30080), pods[0], pods[1])
    else if (mode === userspace) isPod(await ask('::1', 30080), pods[0], pods[1])
    else assert.equal(await ask('::1', 30080), 'ECONNREFUSED')
  })

  test(`SVC-03 ${title}: a load balancer’s address answers clients in its source ranges only`, options, async () => {
    const balanced = { externalIps: [balancerIp], loadBalancerIps: [balancerIp] }
    await apply([rule({ ...balanced, sourceRanges: [plan.clientRange] })])
    isPod(await askFrom(clientExec, balancerIp, 80), pods[0], pods[1])
    assert.equal(await ask(balancerIp, 80, pods[2]), refusal)
    await apply([rule({ ...balanced, sourceRanges: [] })])
    assert.equal(await askFrom(clientExec, balancerIp, 80), refusal)
    await apply([rule(balanced)])
    isPod(await ask(balancerIp, 80, pods[2]), pods[0], pods[1])
  })

  test(`${row} ${title}: external addresses of another Service cannot take over a cluster IP`, options, async () => {
    const serviceOf = (name: string, clusterIP: string, more: Partial<Service['spec']> = {}): Service => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace: 'default' },
      spec: { type: 'ClusterIP', clusterIP, clusterIPs: [clusterIP], ports: [{ port: 443, protocol: 'TCP' }], ...more },
      status: { loadBalancer: name === 'evil' ? { ingress: [{ ip: clusterIp }] } : {} },
    })
    const sliceOf = (name: string, ip: string): EndpointSlice => ({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name, namespace: 'default', labels: { 'kubernetes.io/service-name': name } },
      addressType: family,
      endpoints: [{ addresses: [ip] }],
      ports: [{ port: 8080 }],
    })
    const answering = sliceOf('kubernetes', pods[0])
    const evil = serviceOf('evil', otherClusterIp, { externalIPs: [clusterIp], loadBalancerSourceRanges: [plan.anywhere], type: 'LoadBalancer' })
    for (const slices of [[answering, sliceOf('evil', pods[1])], [answering]]) {
      const services = [serviceOf('kubernetes', clusterIp), evil]
      const sources = { services, slices, place: { nodeName: 'n' }, clusterCidrs: [clusterCidr], serviceCidrs: [serviceCidr] }
      const [model] = buildModel(sources, [family], addressRule(services, [serviceCidr]))
      await applyModel(model as FamilyModel)
      for (let i = 0; i < 4; i++) {
        isPod(await ask(clusterIp, 443, pods[2]), pods[0])
        isPod(await askFrom(clientExec, clusterIp, 443), pods[0])
      }
    }
  })
}

const connections = 600
/** An even choice exceeds it in one run of a billion. */
const mostChiSquare = 41.4

/** Which endpoint is chosen, and the answers where there is none. */
function testChoice({ mode, plan, exec, options, row, title, clientExec, ask, rule, apply, stop, isPod }: World): void {
  const { pods, clusterIp, client } = plan

  test(`${row} ${title}: connections are spread evenly over the endpoints (chi-square)`, options, async () => {
    await apply([rule({ clusterEndpoints: pods.map((ip) => ({ ip, port: 8080, isLocal: false })) })])
    const answers = await countAnswers(clientExec, clusterIp, connections)
    assert.deepEqual(Object.keys(answers).sort(), [...pods])
    const expected = connections / pods.length
    const chiSquare = pods.reduce((sum, ip) => sum + ((answers[ip] ?? 0) - expected) ** 2 / expected, 0)
    assert.ok(chiSquare < mostChiSquare, `${chiSquare}: ${JSON.stringify(answers)}`)
  })

  if (mode === iptables)
    test(`${row} ${title}: the rules that are shown of a Service are in the kernel and count its connections`, options, async () => {
      const rules = [rule({ nodePort: 30080 })]
      await apply(rules)
      const shown = () => iptables.rulesOf(exec, { family: plan.family, rules, clusterCidrs: [plan.clusterCidr], serviceCidrs: [] })
      const ofEndpoints = async () =>
        (await shown()).filter(({ place }) => place.includes('KUBE-SEP-')).reduce((sum, { connections = 0 }) => sum + connections, 0)
      const before = await ofEndpoints()
      await countAnswers(clientExec, clusterIp, 20)
      assert.equal((await ofEndpoints()) - before, 20)
      const all = await shown()
      assert.ok(all.length === 6 && all.every(({ lines = [] }) => lines.length > 0), JSON.stringify(all))
    })

  test(`SVC-10 ${title}: ClientIP affinity keeps a client with its endpoint, also after the timeout was changed`, options, async () => {
    for (const affinitySeconds of [60, 90]) {
      await apply([rule({ affinitySeconds })])
      const answers = new Set<string>()
      for (let i = 0; i < 8; i++) answers.add(await ask(clusterIp, 80, pods[2]))
      assert.equal(answers.size, 1)
    }
  })

  test(`SVC-10 ${title}: the Local policy stays on this node`, options, async () => {
    await apply([rule({ internalPolicyLocal: true })])
    for (let i = 0; i < 4; i++) isPod(await ask(clusterIp, 80, pods[2]), pods[0])
  })

  test(
    `SVC-13 ${title}: a service without endpoints refuses a connection at once, and one with endpoints shows them the ${mode === userspace ? 'node' : 'pod'}’s address`,
    options,
    async () => {
      await apply([rule({ clusterEndpoints: [], localEndpoints: [], nodePort: 30080 })])
      assert.equal(await askFrom(clientExec, clusterIp, 80), 'ECONNREFUSED')
      await apply([rule({})])
      const answer = await askFrom(clientExec, clusterIp, 80)
      isPod(answer, pods[0], pods[1])
      // A connection of the node's own has the address that it leads to: pods are addresses of the node here.
      const [to, source] = answer.split(' ')
      assert.equal(source, mode === userspace ? to : client)
    },
  )

  // Upstream's mode iptables has no rule for it, so that the packet leaves the node.
  if (mode !== iptables)
    test(`SVC-13 ${title}: an unknown port of a service refuses a connection at once`, options, async () => {
      await apply([rule({})])
      assert.equal(await askFrom(clientExec, clusterIp, 81), 'ECONNREFUSED')
    })

  test(`${row} ${title}: two hundred services load at once, rules of the kernel outlive the mode, and cleaning up removes them`, options, async () => {
    const many = Array.from({ length: 200 }, (_, i) =>
      rule({ service: `ns/s${i}`, clusterIp: plan.many(i), nodePort: 31_000 + i, affinitySeconds: i % 2 ? 60 : undefined }),
    )
    await apply(many)
    isPod(await ask(plan.many(199), 80, pods[2]), pods[0], pods[1])
    await apply(many.slice(100))
    assert.equal(await ask(plan.many(5), 80), mode === userspace ? 'ECONNREFUSED' : 'timeout')
    await stop()
    if (mode === userspace) assert.equal(await ask(plan.many(199), 80, pods[2]), 'ECONNREFUSED')
    else isPod(await ask(plan.many(199), 80, pods[2]), pods[0], pods[1])
    await mode.cleanUp(exec)
    assert.match(await ask(plan.many(199), 80, pods[2]), /^(timeout|E)/)
    if (mode === userspace) {
      const table = plan.family === 'IPv4' ? '-4' : '-6'
      assert.equal((await exec.run('ip', [table, 'route', 'show', 'table', 'local', 'proto', '109'])).stdout, '')
      return
    }
    const [command, ...args] =
      mode === nftables ? (['nft', 'list', 'ruleset'] as const) : ([plan.family === 'IPv4' ? 'iptables-save' : 'ip6tables-save'] as const)
    const left = await exec.run(command, args)
    assert.equal(left.code, 0, left.stderr)
    // Mode iptables leaves KUBE-FIREWALL, which a kubelet may have made.
    assert.doesNotMatch(mode === nftables ? left.stdout : left.stdout.replaceAll('KUBE-FIREWALL', ''), /kube-proxy|KUBE-/)
    await mode.cleanUp(exec)
  })
}
