/**
 * The rules that are rendered for network policies, in the real kernel: the cases that the model is held against, with a network namespace for each pod and one
 * for the node, whose two bridges stand for two nodes' pods. Needs root and nft; removes what it made.
 */
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { createExec } from '../../src/host/exec.ts'
import { inNetworkNamespace } from '../../src/host/netns.ts'
import { createNftTable } from '../../src/host/nftables.ts'
import { compilePolicy } from '../../src/network/policy/compilePolicy.ts'
import { complete } from '../../src/network/policy/model.ts'
import { createPolicyRenderer, policyTable } from '../../src/network/policy/nftables.ts'
import { modelOf, outside, type PolicyCase, policyCases, probeOf, type Stack, type TestPod, testPods } from '../../src/network/policy/testCases.ts'

const options = { skip: process.getuid?.() === 0 && process.platform === 'linux' ? false : 'needs root' }
const prefix = `skiff-test-${process.pid}`
const node = `${prefix}-node`
const ends = [...testPods, outside]
const namespaceOf = ({ key }: TestPod) => `${prefix}-${key.replace('/', '-')}`

/** Serves both protocols on the ports 80 and 81, and connects where its standard input says: to HOST PORT PROTOCOL, for so many milliseconds. */
const podProgram = `
const net = require('net'), dgram = require('dgram')
for (const port of [80, 81]) {
  net.createServer((s) => s.on('error', () => {}).end('here')).listen(port, '::')
  const udp = dgram.createSocket('udp6'); udp.on('message', (m, from) => udp.send('here', from.port, from.address)); udp.bind(port)
}
const tcp = (host, port, timeoutMs) => new Promise((done) => {
  const s = net.connect({ host, port, timeout: timeoutMs })
  s.on('data', () => { s.destroy(); done(true) }).on('timeout', () => { s.destroy(); done(false) }).on('error', () => done(false))
})
const udp = (host, port, timeoutMs) => new Promise((done) => {
  const s = dgram.createSocket(host.includes(':') ? 'udp6' : 'udp4')
  const ask = () => s.send('?', port, host)
  const end = (found) => { clearTimeout(timer); clearInterval(again); s.close(); done(found) }
  const timer = setTimeout(() => end(false), timeoutMs), again = setInterval(ask, 300)
  s.on('message', () => end(true)).on('error', () => end(false)); ask()
})
require('readline').createInterface({ input: process.stdin }).on('line', async (line) => {
  const [id, host, port, protocol, timeoutMs] = line.split(' ')
  console.log(id + ' ' + await (protocol === 'udp' ? udp : tcp)(host, Number(port), Number(timeoutMs)))
})
setTimeout(() => console.log('ready'), 200)
`

/** An open connection may need more than one packet: the kernel repeats a lost one after a second. */
const openMs = 8000
const blockedMs = 500

/** The program in a pod's namespace or in the node's. */
class PodProcess {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #waiting = new Map<string, (passed: boolean) => void>()
  #next = 0

  constructor(namespace: string) {
    this.#child = spawn('nsenter', [`--net=/run/netns/${namespace}`, process.execPath, '-e', podProgram])
    this.#child.stderr.pipe(process.stderr)
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      const [id = '', passed] = line.split(' ')
      this.#waiting.get(id)?.(passed === 'true')
      this.#waiting.delete(id)
    })
  }

  async started(): Promise<void> {
    await new Promise<void>((resolve) => this.#waiting.set('ready', () => resolve()))
  }

  connects(host: string, port: number, protocol: string, timeoutMs = openMs): Promise<boolean> {
    const id = String(this.#next++)
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve)
      this.#child.stdin.write(`${id} ${host} ${port} ${protocol} ${timeoutMs}\n`)
    })
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }
}

function makeNetwork(): void {
  execFileSync('ip', ['netns', 'add', node])
  const ip = (namespace: string, lines: readonly string[]) => execFileSync('ip', ['-n', namespace, '-batch', '-'], { input: `${lines.join('\n')}\n` })
  const bridges = [1, 2].flatMap((i) => [
    `link add br${i} type bridge`,
    `addr add 10.244.${i}.1/24 dev br${i}`,
    `addr add fd01:0:0:${i}::1/64 dev br${i} nodad`,
    `link set br${i} up`,
  ])
  ip(node, ['link set lo up', ...bridges])
  for (const [i, pod] of ends.entries()) {
    execFileSync('ip', ['netns', 'add', namespaceOf(pod)])
    ip(node, [`link add pod${i} type veth peer name eth0 netns ${namespaceOf(pod)}`, `link set pod${i} master br${pod.node} up`])
    const routes = [`route add default via 10.244.${pod.node}.1`, `route add default via fd01:0:0:${pod.node}::1`]
    const addresses = [`addr add ${pod.addresses.IPv4}/24 dev eth0`, `addr add ${pod.addresses.IPv6}/64 dev eth0 nodad`]
    ip(namespaceOf(pod), ['link set lo up', 'link set eth0 up', ...addresses, ...routes])
  }
  setBridgeFilter(1)
  execFileSync('nsenter', [`--net=/run/netns/${node}`, 'sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding'])
}

function setBridgeFilter(value: 0 | 1): void {
  const command = `cd /proc/sys/net/bridge; for f in bridge-nf-call-iptables bridge-nf-call-ip6tables; do echo ${value} > $f; done`
  execFileSync('nsenter', [`--net=/run/netns/${node}`, 'sh', '-c', command])
}

const processes = new Map<string, PodProcess>()
const table = createNftTable(createExec(inNetworkNamespace(node)), 'inet', policyTable)
const render = createPolicyRenderer()
/** One model for all cases, as a node has: each case replaces the policies of the one before. */
const model = modelOf([])
let inForce: PolicyCase['policies'] = []

before(async () => {
  if (options.skip) return
  makeNetwork()
  for (const pod of ends) processes.set(pod.key, new PodProcess(namespaceOf(pod)))
  processes.set('node', new PodProcess(node))
  await Promise.all([...processes.values()].map((process) => process.started()))
})

after(async () => {
  if (options.skip) return
  await Promise.all([...processes.values()].map((process) => process.stop()))
  for (const name of [...ends.map(namespaceOf), node]) execFileSync('ip', ['netns', 'del', name])
})

async function enforce(policies: PolicyCase['policies']): Promise<void> {
  for (const { metadata } of inForce) complete(model.updatePolicy(`${metadata.namespace}/${metadata.name}`, metadata.namespace ?? '', undefined))
  for (const policy of policies)
    complete(model.updatePolicy(`${policy.metadata.namespace}/${policy.metadata.name}`, policy.metadata.namespace ?? '', complete(compilePolicy(policy))))
  complete(model.settle())
  inForce = policies
  await table.apply(complete(render(model)))
}

/** @returns those of the connections that a pod's program made */
async function passing(open: readonly string[], blocked: readonly string[], stack: Stack): Promise<string[]> {
  const results = await Promise.all(
    [...open, ...blocked].map(async (text, i) => {
      const { from, to, port, protocol } = probeOf(text)
      const timeoutMs = i < open.length ? openMs : blockedMs
      return (await processes.get(from.key)?.connects(to.addresses[stack], port, protocol, timeoutMs)) ? [text] : []
    }),
  )
  return results.flat()
}

for (const { name, policies, passes, blocked } of policyCases) {
  test(`NPO-02 in the kernel: ${name}`, options, async () => {
    await enforce(policies)
    // The kernel need not have SCTP.
    const real = (connections: readonly string[]) => connections.filter((text) => !text.endsWith('/sctp'))
    for (const stack of ['IPv4', 'IPv6'] as const) assert.deepEqual(await passing(real(passes), real(blocked), stack), real(passes), stack)
  })
}

const denyAll = policyCases.find(({ name }) => name.includes('default-deny-all'))?.policies ?? []

test('NPO-02 in the kernel: the node reaches an isolated pod, and the pod the node', options, async () => {
  await enforce(denyAll)
  const [a] = testPods as [TestPod]
  for (const protocol of ['tcp', 'udp']) {
    assert.equal(await processes.get('node')?.connects(a.addresses.IPv4, 80, protocol), true, protocol)
    assert.equal(await processes.get(a.key)?.connects('10.244.1.1', 80, protocol), true, protocol)
  }
})

test('NPO-02 in the kernel: link-local addresses of a bridge do not lead around a policy', options, async () => {
  const [a, b] = testPods as [TestPod, TestPod]
  const shown = execFileSync('ip', ['-n', namespaceOf(a), '-json', '-6', 'addr', 'show', 'dev', 'eth0', 'scope', 'link'], { encoding: 'utf8' })
  const local = (JSON.parse(shown) as { addr_info: { local?: string }[] }[]).flatMap(({ addr_info }) => addr_info.flatMap((one) => one.local ?? []))[0]
  const reach = (timeoutMs?: number) => processes.get(b.key)?.connects(`${local}%eth0`, 80, 'tcp', timeoutMs)
  await enforce([])
  assert.equal(await reach(), true)
  await enforce(denyAll)
  assert.equal(await reach(blockedMs), false)
})

test('NPO-02 in the kernel: without the bridge setting policies do not hold on a bridge, so the agent must set it', options, async () => {
  await enforce(denyAll)
  setBridgeFilter(0)
  try {
    assert.deepEqual(await passing(['x/b > x/a 80'], ['y/a > x/a 80'], 'IPv4'), ['x/b > x/a 80'])
  } finally {
    setBridgeFilter(1)
  }
  assert.deepEqual(await passing([], ['x/b > x/a 80'], 'IPv4'), [])
})
