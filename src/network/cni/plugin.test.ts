import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { Exec, ExecOptions, ExecResult } from '#host/exec'
import { realClock } from '#testing/realClock'
import { addressDirectory, releaseUnfinished } from './addresses.ts'
import { installPlugins } from './install.ts'
import { runPlugin } from './plugin.ts'

/** A node's kernel: keeps the commands, and the addresses of the pod's interface. */
class NodeKernel implements Exec {
  readonly commands: string[] = []
  readonly links = new Map<string, string[]>()
  /** The rates of buckets in bytes per second, by device. */
  readonly rates = new Map<string, number>()
  failing = /^$/
  missing = ''

  async run(command: string, args: readonly string[], { input = '' }: ExecOptions = {}): Promise<ExecResult> {
    const answer = (code: number, stdout = '') => ({ code, stdout, stderr: code === 0 ? '' : 'refused', timedOut: false })
    if (command === this.missing) return answer(-1)
    if (command === 'tc' && args.includes('-json')) {
      const rate = this.rates.get(args.at(-1) ?? '')
      return answer(0, JSON.stringify(rate === undefined ? [{ kind: 'noqueue', options: {} }] : [{ kind: 'tbf', options: { rate } }]))
    }
    if (args.includes('-json')) {
      const ips = this.links.get('eth0')
      return ips ? answer(0, JSON.stringify([{ address: '0a:00:00:00:00:01', addr_info: ips.map((local) => ({ local })) }])) : answer(1)
    }
    const lines = input === '' ? [[command, ...args].join(' ')] : String(input).trimEnd().split('\n')
    for (const line of lines) {
      if (this.failing.test(line)) return answer(1)
      this.commands.push(line)
      const [, ip = ''] = /^addr add (\S+)\/\d+ dev eth0/.exec(line) ?? []
      const [, device = '', rate] = /^qdisc add dev (\S+) root .*rate (\d+)bit/.exec(line) ?? []
      if (device) this.rates.set(device, Number(rate) / 8)
      if (ip) this.links.set('eth0', [...(this.links.get('eth0') ?? []), ip])
    }
    return answer(0)
  }

  spawn(): never {
    assert.fail('nothing is spawned')
  }
}

const config = { cniVersion: '1.0.0', name: 'skiff', type: 'skiff', ranges: ['10.244.3.0/29'] }
const environment = { CNI_CONTAINERID: 'a1', CNI_IFNAME: 'eth0', CNI_NETNS: '/run/netns/p' }

async function withNode(
  work: (node: {
    kernel: NodeKernel
    directory: string
    call: (command: string, changes?: object, env?: Record<string, string | undefined>) => Promise<{ code: number; result: Record<string, unknown> }>
  }) => Promise<void>,
): Promise<void> {
  const directory = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-cni-'))
  const kernel = new NodeKernel()
  const call = async (command: string, changes: object = {}, env: Record<string, string | undefined> = {}) => {
    kernel.links.clear()
    const deps = { exec: kernel, clock: realClock, env: { ...environment, ...env, CNI_COMMAND: command }, directory }
    const { output, code } = await runPlugin(deps, JSON.stringify({ ...config, ...changes }))
    return { code, result: output === '' ? {} : (JSON.parse(output) as Record<string, unknown>) }
  }
  try {
    await work({ kernel, directory, call })
  } finally {
    await fs.rm(directory, { recursive: true })
  }
}

const addressOf = ({ result }: { result: Record<string, unknown> }) => (result.ips as { address: string }[] | undefined)?.[0]?.address

test('NET-04 the own plugin links a pod to its node with an address of each range, and answers in the form of the asked version', () =>
  withNode(async ({ kernel, call }) => {
    const { code, result } = await call('ADD', { cniVersion: '0.4.0', ranges: ['10.244.3.0/29', 'fd00:3::/64'], mtu: 1430 })
    assert.equal(code, 0)
    assert.deepEqual(result.ips, [
      { version: '4', address: '10.244.3.2/32', gateway: '10.244.3.1', interface: 1 },
      { version: '6', address: 'fd00:3::2/128', gateway: 'fd00:3::1', interface: 1 },
    ])
    assert.deepEqual(result.routes, [
      { dst: '0.0.0.0/0', gw: '10.244.3.1' },
      { dst: '::/0', gw: 'fd00:3::1' },
    ])
    const [, add, ...rest] = kernel.commands
    const [, host = ''] = /^link add (veth\w{8}) mtu 1430 type veth peer name eth0 netns \/run\/netns\/p mtu 1430$/.exec(add ?? '') ?? []
    assert.deepEqual(rest, [
      'link set lo up',
      'addr add 10.244.3.2/32 dev eth0',
      'addr add fd00:3::2/128 dev eth0 nodad',
      'link set eth0 up',
      'route add 10.244.3.1/32 dev eth0',
      'route add default via 10.244.3.1 dev eth0',
      'route add fd00:3::1/128 dev eth0',
      'route add default via fd00:3::1 dev eth0',
      `addr add 10.244.3.1/32 dev ${host}`,
      `addr add fd00:3::1/128 dev ${host} nodad`,
      `link set ${host} up`,
      `route add 10.244.3.2/32 dev ${host}`,
      `route add fd00:3::2/128 dev ${host}`,
    ])
  }))

test('NET-04 an address is given to one pod at a time, and a range that is used up refuses the next', () =>
  withNode(async ({ call }) => {
    const pods = ['a', 'b', 'c', 'd', 'e']
    const given = await Promise.all(pods.map((id) => call('ADD', {}, { CNI_CONTAINERID: id })))
    assert.deepEqual(
      given.map(addressOf).sort(),
      [2, 3, 4, 5, 6].map((n) => `10.244.3.${n}/32`),
    )
    const refused = await call('ADD', {}, { CNI_CONTAINERID: 'f' })
    assert.deepEqual([refused.code, refused.result.code, refused.result.msg], [1, 100, 'all addresses of 10.244.3.0/29 are taken'])
    await call('DEL', {}, { CNI_CONTAINERID: 'c' })
    assert.equal(addressOf(await call('ADD', {}, { CNI_CONTAINERID: 'f' })), given.map(addressOf)[2])
  }))

test('NET-02 DEL frees the address and removes the link, also a second time and without a namespace', () =>
  withNode(async ({ kernel, directory, call }) => {
    await call('ADD')
    kernel.commands.length = 0
    for (let i = 0; i < 2; i++) assert.equal((await call('DEL', {}, { CNI_NETNS: '' })).code, 0)
    assert.match(kernel.commands.slice(0, 2).join(), /^ip link del veth\w{8},ip link del bwp\w{12}$/)
    const left = await fs.readdir(path.join(directory, 'addresses'))
    assert.deepEqual(left, ['last_reserved_ip.10.244.3.0-29'])
  }))

test('NET-04 a pod whose link cannot be made keeps no address', () =>
  withNode(async ({ kernel, directory, call }) => {
    kernel.failing = /^route add default/
    assert.equal((await call('ADD')).code, 1)
    assert.deepEqual(await fs.readdir(path.join(directory, 'addresses')), ['last_reserved_ip.10.244.3.0-29'])
    assert.match(kernel.commands.slice(-2).join(), /^ip link del veth\w{8},ip link del bwp\w{12}$/)
  }))

test('NET-02 CHECK accepts a pod as it was made, and names a lost interface or address', () =>
  withNode(async ({ kernel, call }) => {
    const prevResult = (await call('ADD')).result
    const checkWith = async (ips: string[] | undefined) => {
      const deps = { exec: kernel, clock: realClock, env: { ...environment, CNI_COMMAND: 'CHECK' }, directory: '/nowhere' }
      kernel.links.clear()
      if (ips) kernel.links.set('eth0', ips)
      return runPlugin(deps, JSON.stringify({ ...config, prevResult }))
    }
    assert.deepEqual(await checkWith(['10.244.3.2', 'fe80::1']), { output: '', code: 0 })
    assert.match((await checkWith(['fe80::1'])).output, /lacks the address 10\.244\.3\.2/)
    assert.match((await checkWith(undefined)).output, /has no interface eth0/)
  }))

test('NET-02 GC frees what attachments left that the runtime does not know, and nothing else', () =>
  withNode(async ({ kernel, directory, call }) => {
    for (const id of ['a', 'b']) await call('ADD', {}, { CNI_CONTAINERID: id })
    kernel.commands.length = 0
    const valid = [{ containerID: 'b', ifname: 'eth0' }]
    const { code } = await call('GC', { 'cni.dev/valid-attachments': valid }, { CNI_CONTAINERID: undefined, CNI_IFNAME: undefined, CNI_NETNS: undefined })
    assert.equal(code, 0)
    assert.match(kernel.commands.join(), /^ip link del veth\w{8},ip link del bwp\w{12}$/)
    assert.deepEqual((await fs.readdir(path.join(directory, 'addresses'))).sort(), ['10.244.3.3', 'last_reserved_ip.10.244.3.0-29'])
  }))

test('NET-02 an address whose file a crash left empty is freed at the next start, and no GC takes one that is being written', () =>
  withNode(async ({ directory, call }) => {
    await call('ADD')
    const addresses = addressDirectory(directory)
    const now = Date.UTC(2026, 0, 2)
    for (const [ip, ageMs] of [
      ['10.244.3.3', 60_000],
      ['10.244.3.4', 100],
    ] as const) {
      await fs.writeFile(path.join(addresses, ip), '')
      await fs.utimes(path.join(addresses, ip), (now - ageMs) / 1000, (now - ageMs) / 1000)
    }
    await call('GC', { 'cni.dev/valid-attachments': [{ containerID: 'a1', ifname: 'eth0' }] })
    const taken = async () => (await fs.readdir(addresses)).filter((name) => /^\d/.test(name)).sort()
    assert.deepEqual(await taken(), ['10.244.3.2', '10.244.3.3', '10.244.3.4'])
    await releaseUnfinished(addresses, now)
    assert.deepEqual(await taken(), ['10.244.3.2', '10.244.3.4'])
  }))

test('NET-02 GC without the list of valid attachments is refused and frees nothing, an empty list frees all', () =>
  withNode(async ({ directory, call }) => {
    await call('ADD')
    const taken = async () => (await fs.readdir(path.join(directory, 'addresses'))).filter((name) => name === '10.244.3.2')
    for (const changes of [{}, { 'cni.dev/valid-attachments': null }]) {
      const { code, result } = await call('GC', changes)
      assert.deepEqual([code, result.code, await taken()], [1, 7, ['10.244.3.2']])
    }
    assert.equal((await call('GC', { 'cni.dev/valid-attachments': [] })).code, 0)
    assert.deepEqual(await taken(), [])
  }))

test('NET-02 STATUS says what is missing, VERSION which versions there are', () =>
  withNode(async ({ kernel, call }) => {
    assert.deepEqual(await call('STATUS'), { code: 0, result: {} })
    kernel.missing = 'nft'
    const { code, result } = await call('STATUS')
    assert.deepEqual([code, result.code, result.msg], [1, 50, 'nft is not installed'])
    assert.deepEqual((await call('VERSION')).result, { cniVersion: '1.1.0', supportedVersions: ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] })
  }))

const refused: readonly { name: string; command?: string; changes?: object; env?: Record<string, string>; code: number }[] = [
  { name: 'an unknown version', changes: { cniVersion: '9.0.0' }, code: 1 },
  { name: 'an unknown command', command: 'MOVE', code: 4 },
  { name: 'a container without a name', env: { CNI_CONTAINERID: '' }, code: 4 },
  { name: 'a container whose name is a path', env: { CNI_CONTAINERID: '../x' }, code: 4 },
  { name: 'an interface whose name is two words', env: { CNI_IFNAME: 'eth0 up' }, code: 4 },
  { name: 'a namespace with a line break', env: { CNI_NETNS: '/a\nlink del x' }, code: 4 },
  { name: 'a configuration without ranges', changes: { ranges: [] }, code: 7 },
  { name: 'a rate without a burst', changes: { runtimeConfig: { bandwidth: { ingressRate: 1000 } } }, code: 7 },
  { name: 'a burst without a rate', changes: { runtimeConfig: { bandwidth: { egressBurst: 1000 } } }, code: 7 },
  { name: 'a burst of more than 4 GB', changes: { runtimeConfig: { bandwidth: { ingressRate: 1000, ingressBurst: 2 ** 35 } } }, code: 7 },
  { name: 'a rate that is a word', changes: { runtimeConfig: { bandwidth: { ingressRate: '1m down', ingressBurst: 1000 } } }, code: 7 },
]
for (const { name, command = 'ADD', changes = {}, env = {}, code } of refused) {
  test(`NET-02 ${name} is refused with the code of the specification, and nothing is made`, () =>
    withNode(async ({ kernel, call }) => {
      const answer = await call(command, changes, env)
      assert.deepEqual([answer.code, answer.result.code], [1, code])
      assert.deepEqual(
        kernel.commands.filter((line) => line.startsWith('link add')),
        [],
      )
    }))
}

test('NET-02 the loopback plugin turns the interface on and reports 127.0.0.1', () =>
  withNode(async ({ kernel, call }) => {
    const { result } = await call('ADD', { type: 'loopback' }, { CNI_IFNAME: 'lo' })
    assert.deepEqual(kernel.commands, ['nsenter --net=/run/netns/p -- ip link set lo up'])
    assert.deepEqual(result.ips, [{ address: '127.0.0.1/8', interface: 0 }])
    assert.deepEqual(await call('DEL', { type: 'loopback' }, { CNI_IFNAME: 'lo' }), { code: 0, result: {} })
  }))

test('NET-08 host ports of TCP and UDP lead to the pod until it is deleted, those of another pod stay', () =>
  withNode(async ({ kernel, call }) => {
    const portMappings = [
      { hostPort: 8080, containerPort: 80, protocol: 'tcp', hostIP: '' },
      // As containerd writes it.
      { HostPort: 5353, ContainerPort: 53, Protocol: 'udp', HostIP: '10.88.0.10' },
    ]
    const ranges = ['10.244.3.0/29', 'fd00:3::/64']
    await call('ADD', { ranges, runtimeConfig: { portMappings } })
    await call('ADD', { ranges, runtimeConfig: { portMappings: [{ hostPort: 1, containerPort: 2, protocol: 'tcp' }] } }, { CNI_CONTAINERID: 'b' })
    const rules = () => kernel.commands.slice(kernel.commands.lastIndexOf('add table inet skiff-hostports')).filter((line) => line.includes(' dnat '))
    const rule = (text: string) => `add rule inet skiff-hostports ports ${text}`
    const ofOther = [rule('meta nfproto ipv4 tcp dport 1 dnat ip to 10.244.3.3:2'), rule('meta nfproto ipv6 tcp dport 1 dnat ip6 to [fd00:3::3]:2')]
    assert.deepEqual(
      rules().filter((line) => line.includes('dport')),
      [
        rule('meta nfproto ipv4 tcp dport 8080 dnat ip to 10.244.3.2:80'),
        rule('meta nfproto ipv6 tcp dport 8080 dnat ip6 to [fd00:3::2]:80'),
        rule('ip daddr 10.88.0.10 udp dport 5353 dnat ip to 10.244.3.2:53'),
        ...ofOther,
      ],
    )
    await call('DEL')
    assert.deepEqual(
      rules().filter((line) => line.includes('dport')),
      ofOther,
    )
  }))

/** As containerd writes it: no limit of what passes at once. */
const unlimitedBurst = 2 ** 32 - 1

test('NET-04 the bandwidth of a pod is limited in each direction, with a bucket that holds no more than the kernel can count', () =>
  withNode(async ({ kernel, call }) => {
    const bandwidth = { IngressRate: 1_000_000, IngressBurst: unlimitedBurst, EgressRate: 10_000_000_000, EgressBurst: unlimitedBurst }
    const { code, result } = await call('ADD', { mtu: 1430, runtimeConfig: { bandwidth } })
    assert.equal(code, 0)
    const [host, , device] = (result.interfaces as { name: string }[]).map(({ name }) => name)
    assert.match(`${host} ${device}`, /^veth\w{8} bwp\w{12}$/)
    assert.deepEqual(
      kernel.commands.filter((line) => /^(qdisc|filter|link \w+ bwp)/.test(line)),
      [
        `link add ${device} mtu 1430 type ifb`,
        `link set ${device} up`,
        `qdisc add dev ${host} root handle 1: tbf rate 1000000bit burst 34359738 limit 34362863`,
        `qdisc add dev ${host} handle ffff: ingress`,
        `filter add dev ${host} parent ffff: protocol all prio 1 u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev ${device}`,
        `qdisc add dev ${device} root handle 1: tbf rate 10000000000bit burst 536870911 limit 568120911`,
      ],
    )
  }))

test('NET-04 a pod with a limit of one direction has no device for the other, and one without annotations no limit at all', () =>
  withNode(async ({ kernel, call }) => {
    const { result } = await call('ADD', { runtimeConfig: { bandwidth: { ingressRate: 1_000_000, ingressBurst: 8000, egressRate: 0, egressBurst: 0 } } })
    assert.equal((result.interfaces as object[]).length, 2)
    const ofBandwidth = () => kernel.commands.filter((line) => /^(qdisc|filter|link add bwp)/.test(line))
    assert.deepEqual(ofBandwidth().length, 1)
    await call('ADD', { runtimeConfig: { portMappings: [] } }, { CNI_CONTAINERID: 'b' })
    assert.deepEqual(ofBandwidth().length, 1)
  }))

test('NET-04 a pod whose limit the kernel refuses keeps no link, device or address', () =>
  withNode(async ({ kernel, directory, call }) => {
    kernel.failing = /^qdisc add dev bwp/
    const { code } = await call('ADD', { runtimeConfig: { bandwidth: { egressRate: 1_000_000, egressBurst: unlimitedBurst } } })
    assert.equal(code, 1)
    assert.match(kernel.commands.slice(-2).join(), /^ip link del veth\w{8},ip link del bwp\w{12}$/)
    assert.deepEqual(await fs.readdir(path.join(directory, 'addresses')), ['last_reserved_ip.10.244.3.0-29'])
  }))

test('NET-02 CHECK names a limit of bandwidth that the kernel lost', () =>
  withNode(async ({ kernel, call }) => {
    const changes = { runtimeConfig: { bandwidth: { ingressRate: 8_000_000, ingressBurst: unlimitedBurst, egressRate: 8000, egressBurst: unlimitedBurst } } }
    await call('ADD', changes)
    const checked = async () => {
      const deps = { exec: kernel, clock: realClock, env: { ...environment, CNI_COMMAND: 'CHECK' }, directory: '/nowhere' }
      kernel.links.set('eth0', ['10.244.3.2'])
      return runPlugin(deps, JSON.stringify({ ...config, ...changes }))
    }
    assert.deepEqual(await checked(), { output: '', code: 0 })
    const device = [...kernel.rates.keys()].find((name) => name.startsWith('bwp')) ?? ''
    kernel.rates.delete(device)
    assert.match((await checked()).output, new RegExp(`device ${device} lacks the limit of 8000 bits per second`))
  }))

test('NET-04 the own plugins are put where the reference plugins are missing, and only there', async () => {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-cni-'))
  const [own, packaged] = [path.join(dir, 'own'), path.join(dir, 'packaged')]
  try {
    await fs.mkdir(own)
    await fs.mkdir(packaged)
    await fs.writeFile(path.join(own, 'loopback'), 'theirs')
    assert.deepEqual(await installPlugins([own, packaged], ['/usr/bin/node', '/a b/skiff.mjs']), { isOwn: true, hasBandwidth: true })
    assert.equal(await fs.readFile(path.join(own, 'skiff'), 'utf8'), "#!/bin/sh\nexec '/usr/bin/node' '/a b/skiff.mjs' 'cni-plugin'\n")
    assert.equal((await fs.stat(path.join(own, 'skiff'))).mode & 0o777, 0o755)
    assert.equal(await fs.readFile(path.join(own, 'loopback'), 'utf8'), 'theirs')
    for (const name of ['ptp', 'host-local', 'portmap']) await fs.writeFile(path.join(packaged, name), '')
    assert.deepEqual(await installPlugins([own, packaged], ['skiff']), { isOwn: false, hasBandwidth: false })
    await fs.writeFile(path.join(packaged, 'bandwidth'), '')
    assert.deepEqual(await installPlugins([own, packaged], ['skiff']), { isOwn: false, hasBandwidth: true })
  } finally {
    await fs.rm(dir, { recursive: true })
  }
})
