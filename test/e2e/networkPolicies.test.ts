/**
 * The rules that are rendered for network policies, in the real kernel: the cases that the model is held against, with a network namespace for each pod and one
 * for the node, to which each pod has a link as the CNI plugin `ptp` makes it. Needs root and nft; removes what it made.
 */
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { createConntrack } from '../../src/host/conntrack.ts'
import { createExec } from '../../src/host/exec.ts'
import { inNetworkNamespace } from '../../src/host/netns.ts'
import { createNftTable } from '../../src/host/nftables.ts'
import { compilePolicy } from '../../src/network/policy/compilePolicy.ts'
import { complete } from '../../src/network/policy/model.ts'
import { createPolicyRenderer, policyTable } from '../../src/network/policy/nftables.ts'
import { modelOf, outside, type PolicyCase, policyCases, probeOf, type Stack, type TestPod, testPods } from '../../src/network/policy/testCases.ts'
import { sourceCheck, sourceCheckTable } from '../../src/network/sourceCheck.ts'

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
  ip(node, ['link set lo up'])
  for (const [i, pod] of ends.entries()) {
    execFileSync('ip', ['netns', 'add', namespaceOf(pod)])
    const gateways = [`10.244.${pod.node}.1`, `fd01:0:0:${pod.node}::1`]
    const addresses = [`${pod.addresses.IPv4}/32`, `${pod.addresses.IPv6}/128`]
    const link = `veth${i}`
    ip(node, [
      `link add ${link} type veth peer name eth0 netns ${namespaceOf(pod)}`,
      `link set ${link} up`,
      `addr add ${gateways[0]}/32 dev ${link}`,
      `addr add ${gateways[1]}/128 dev ${link} nodad`,
      ...addresses.map((address) => `route add ${address} dev ${link}`),
    ])
    ip(namespaceOf(pod), [
      'link set lo up',
      'link set eth0 up',
      ...addresses.map((address) => `addr add ${address} dev eth0${address.includes(':') ? ' nodad' : ''}`),
      ...gateways.flatMap((gateway) => [`route add ${gateway} dev eth0`, `route add default via ${gateway} dev eth0`]),
    ])
  }
  const switches = 'echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding'
  execFileSync('nsenter', [`--net=/run/netns/${node}`, 'sh', '-c', switches])
}

const processes = new Map<string, PodProcess>()
const exec = createExec(inNetworkNamespace(node))
const table = createNftTable(exec, 'inet', policyTable)
const checkedSources = createNftTable(exec, 'inet', sourceCheckTable)
const render = createPolicyRenderer()
/** One model for all cases, as a node has: each case replaces the policies of the one before. */
const model = modelOf([])
let inForce: PolicyCase['policies'] = []

before(async () => {
  if (options.skip) return
  makeNetwork()
  await checkedSources.apply(sourceCheck)
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

const fromB: PolicyCase['policies'] = [
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'from-b', namespace: 'x' },
    spec: { podSelector: {}, ingress: [{ from: [{ podSelector: { matchLabels: { pod: 'b' } } }] }] },
  },
]
const denyAll = policyCases.find(({ name }) => name.includes('default-deny-all'))?.policies ?? []

test('NPO-02 in the kernel: the node reaches an isolated pod, and the pod the node', options, async () => {
  await enforce(denyAll)
  const [a] = testPods as [TestPod]
  for (const protocol of ['tcp', 'udp']) {
    assert.equal(await processes.get('node')?.connects(a.addresses.IPv4, 80, protocol), true, protocol)
    assert.equal(await processes.get(a.key)?.connects('10.244.1.1', 80, protocol), true, protocol)
  }
})

test('NPO-02 in the kernel: pods do not reach each other by link-local addresses', options, async () => {
  const [a, b] = testPods as [TestPod, TestPod]
  await enforce([])
  assert.equal(await processes.get(b.key)?.connects(`${linkLocalOf(a)}%eth0`, 80, 'tcp', blockedMs), false)
})

function linkLocalOf(pod: TestPod): string {
  const shown = execFileSync('ip', ['-n', namespaceOf(pod), '-json', '-6', 'addr', 'show', 'dev', 'eth0', 'scope', 'link'], { encoding: 'utf8' })
  const all = (JSON.parse(shown) as { addr_info: { local?: string }[] }[]).flatMap(({ addr_info }) => addr_info.flatMap(({ local }) => local ?? []))
  return all[0] ?? assert.fail('no link-local address')
}

/** Datagrams of z/c, which the policy keeps from x/a, with the address of x/b, which may send. @returns what x/a receives of them and of x/b's own */
async function receivedWithFalseSource(stack: Stack): Promise<string[]> {
  const [to, allowed] = testPods as [TestPod, TestPod]
  const intruder = testPods.find(({ key }) => key === 'z/c') ?? assert.fail()
  const { addresses } = allowed
  const [type, prefix] = stack === 'IPv4' ? ['udp4', 32] : ['udp6', 128]
  const inPod = (pod: TestPod, ...command: string[]) => spawn('nsenter', [`--net=/run/netns/${namespaceOf(pod)}`, ...command])
  const receive = `
    const s = require('dgram').createSocket('${type}')
    s.on('message', (m) => { console.log(String(m)); if (String(m) === 'end') process.exit() }).bind(90, () => console.log('ready'))`
  const send = (text: string) => `
    const s = require('dgram').createSocket('${type}')
    s.bind(0, '${addresses[stack]}', () => s.send('${text}', 90, '${to.addresses[stack]}', () => s.close()))`
  const receiver = inPod(to, process.execPath, '-e', receive)
  const lines = createInterface({ input: receiver.stdout })[Symbol.asyncIterator]()
  assert.equal((await lines.next()).value, 'ready')
  execFileSync('ip', ['-n', namespaceOf(intruder), 'addr', 'add', `${addresses[stack]}/${prefix}`, 'dev', 'lo'])
  try {
    await once(inPod(intruder, process.execPath, '-e', send('false')), 'exit')
  } finally {
    execFileSync('ip', ['-n', namespaceOf(intruder), 'addr', 'del', `${addresses[stack]}/${prefix}`, 'dev', 'lo'])
  }
  await once(inPod(allowed, process.execPath, '-e', send('end')), 'exit')
  const received: string[] = []
  for (let line = await lines.next(); !line.done; line = await lines.next()) received.push(line.value)
  return received
}

test('NPO-02 in the kernel: a pod does not pass a policy with the address of another pod', options, async () => {
  await enforce(fromB)
  for (const stack of ['IPv4', 'IPv6'] as const) assert.deepEqual(await receivedWithFalseSource(stack), ['end'], stack)
  await checkedSources.remove()
  try {
    assert.deepEqual(await receivedWithFalseSource('IPv4'), ['false', 'end'])
  } finally {
    await checkedSources.apply(sourceCheck)
  }
})

test('NPO-02 in the kernel: connections of an address that are forgotten meet the policies again', options, async () => {
  const [to, , from] = testPods as [TestPod, TestPod, TestPod]
  /** Always from the same port. */
  const ask = `
    const s = require('dgram').createSocket('udp4')
    s.on('message', () => { console.log('answer'); s.close() }).bind(5555, () => s.send('?', 80, '${to.addresses.IPv4}'))
    setTimeout(() => process.exit(), ${blockedMs}).unref()`
  const asked = () => execFileSync('nsenter', [`--net=/run/netns/${namespaceOf(from)}`, process.execPath, '-e', ask], { encoding: 'utf8' })
  await enforce([])
  assert.equal(asked(), 'answer\n')
  await enforce(denyAll)
  assert.equal(asked(), 'answer\n')
  await createConntrack(exec).delete({ replySrc: to.addresses.IPv4 })
  assert.equal(asked(), '')
})
