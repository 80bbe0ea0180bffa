import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createClient } from '#client/clientOverTransport'
import type { Exec, ExecOptions, ExecResult } from '#host/exec'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import { createNetworkAgent, type NetworkAgentConfig } from './networkAgent.ts'

/** A kernel's routes, as `ip` shows and changes them, and the scripts that nft is given. */
class RoutingTable implements Exec {
  readonly routes = new Map<string, string>()
  batches = 0
  failNext = 0
  /** Without those of the source check. */
  readonly scripts: string[] = []
  sourceChecks = 0
  refusesSourceCheck = false
  /** What the trial of limits of bandwidth ends with. */
  trial = { code: 0, stderr: '' }

  async run(command: string, args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    if (command === 'nft') {
      const script = String(options.input)
      if (!script.includes('skiff-source-check')) this.scripts.push(script)
      else if (this.refusesSourceCheck) return { code: 1, stdout: '', stderr: 'no', timedOut: false }
      else this.sourceChecks++
      return { code: 0, stdout: '', stderr: '', timedOut: false }
    }
    if (command === 'unshare') return { ...this.trial, stdout: '', timedOut: false }
    assert.equal(command, 'ip')
    if (this.failNext > 0) {
      this.failNext--
      return { code: 2, stdout: '', stderr: 'no', timedOut: false }
    }
    if (args[0] === 'link') return { code: 1, stdout: '', stderr: 'Cannot find device', timedOut: false }
    if (args.includes('-json')) {
      if (args.includes('-6')) return { code: 2, stdout: '', stderr: 'RTNETLINK answers: Operation not supported', timedOut: false }
      const shown = [...this.routes].map(([dst, gateway]) => ({ dst, gateway, dev: 'eth0', flags: [] }))
      return { code: 0, stdout: JSON.stringify(shown), stderr: '', timedOut: false }
    }
    this.batches++
    for (const line of String(options.input).trimEnd().split('\n')) {
      const [, action, cidr = '', , gateway = ''] = line.split(' ')
      if (action === 'del') this.routes.delete(cidr)
      else this.routes.set(cidr, gateway)
    }
    return { code: 0, stdout: '', stderr: '', timedOut: false }
  }

  spawn(): never {
    assert.fail('nothing is spawned')
  }
}

const node = (name: string, podCIDR: string, address: string) =>
  anObject(
    'Node',
    { name },
    { spec: { podCIDR }, status: { addresses: [{ type: 'InternalIP', address }], nodeInfo: { containerRuntimeVersion: 'containerd://1' } } },
  )

/** Runs the agent of node `self`, whose API and kernel the test plays. */
async function withAgent(
  run: (world: { server: HistoryTransport; clock: VirtualClock; kernel: RoutingTable; dir: string; events: string[] }) => Promise<void>,
  config: Partial<NetworkAgentConfig> = {},
  trial: Partial<RoutingTable['trial']> = {},
) {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'network-agent-'))
  // An earlier version wrote it.
  await fs.writeFile(path.join(dir, '10-skiff.conflist'), '{}')
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const kernel = Object.assign(new RoutingTable(), { trial: { code: 0, stderr: '', ...trial } })
  const events: string[] = []
  const recorder = { event: (...[, , reason, message]: string[]) => void events.push(`${reason}: ${message}`), flush: async () => {} }
  const informers = createSharedInformerFactory(createClient(server), { clock, random: seededRandom(1), log: noLog })
  const stop = new AbortController()
  server.put('/api/v1/nodes/self', node('self', '10.244.0.0/24', '10.88.0.10'))
  server.put('/api/v1/nodes/b', node('b', '10.244.1.0/24', '10.88.0.11'))
  kernel.routes.set('10.244.9.0/24', '10.88.0.19')
  const agent = createNetworkAgent(
    { informers, clock, log: noLog, exec: kernel, events: recorder as never },
    { nodeName: 'self', cniConfigDir: dir, clusterCidr: '10.244.0.0/16', ...config },
  )
  const running = Promise.all([agent.run(stop.signal), informers.run(stop.signal)])
  try {
    await run({ server, clock, kernel, dir, events })
  } finally {
    stop.abort()
    await clock.advance(1_000)
    await running
    await fs.rm(dir, { recursive: true })
  }
}

/** Files are written for real, on a disk that may be busy: advances until it holds, for ten real seconds at most. */
async function until(clock: VirtualClock, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000
  while (!holds() && performance.now() < deadline) {
    await clock.advance(5)
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.ok(holds())
}

test('NET-05 routes follow the nodes; leftovers of an earlier run are removed and a lost route is set again', () =>
  withAgent(async ({ server, clock, kernel, dir }) => {
    await until(clock, () => kernel.batches === 1)
    assert.deepEqual([...kernel.routes], [['10.244.1.0/24', '10.88.0.11']])
    const config = path.join(dir, '99-skiff.conflist')
    await until(clock, () => existsSync(config))
    const written = JSON.parse(await fs.readFile(config, 'utf8')) as { plugins: { ipam?: { ranges: unknown } }[] }
    assert.deepEqual(written.plugins[0]?.ipam?.ranges, [[{ subnet: '10.244.0.0/24' }]])
    server.put('/api/v1/nodes/c', node('c', '10.244.2.0/24', '10.88.0.12'))
    await until(clock, () => kernel.routes.get('10.244.2.0/24') === '10.88.0.12')
    kernel.routes.clear()
    await clock.advance(10_000)
    await until(clock, () => kernel.routes.size === 2)
    const { batches } = kernel
    await clock.advance(60_000)
    assert.equal(kernel.batches, batches)
    server.remove('/api/v1/nodes/b')
    await until(clock, () => !kernel.routes.has('10.244.1.0/24'))
  }))

test('NET-05 the agent tries again after the kernel refused a change', () =>
  withAgent(async ({ clock, kernel }) => {
    kernel.failNext = 2
    await until(clock, () => kernel.failNext === 0)
    await clock.advance(2_000)
    await until(clock, () => kernel.routes.has('10.244.1.0/24'))
  }))

test('NET-06 the agent of a node with another pod network writes no configuration and no route, and removes those of before', () =>
  withAgent(
    async ({ clock, kernel, dir }) => {
      const left = path.join(dir, '10-skiff.conflist')
      await until(clock, () => !existsSync(left) && kernel.scripts.length === 2)
      assert.deepEqual(await fs.readdir(dir), [])
      assert.deepEqual([...kernel.routes], [])
      for (const family of ['ip', 'ip6']) assert.ok(kernel.scripts.some((script) => script.includes(`delete table ${family} skiff-masquerade`)))
    },
    { routeMode: 'none' },
  ))

test('NET-04 the configuration of a node without the reference plugins names Skiff’s own, with the size of packets of the mode', () =>
  withAgent(
    async ({ clock, dir }) => {
      const config = path.join(dir, '99-skiff.conflist')
      await until(clock, () => existsSync(config) && !existsSync(path.join(dir, '10-skiff.conflist')))
      const { plugins } = JSON.parse(await fs.readFile(config, 'utf8')) as { plugins: unknown[] }
      assert.deepEqual(plugins, [{ type: 'skiff', mtu: 1430, ranges: ['10.244.0.0/24'], capabilities: { portMappings: true, bandwidth: true } }])
    },
    { routeMode: 'vxlan', installPlugins: async () => ({ isOwn: true, hasBandwidth: true }) },
  ))

for (const { name, hasBandwidth = true, code = 2, reason } of [
  { name: 'whose kernel cannot', reason: 'the kernel lacks one of ifb, .* \\(Error: Unknown device type\\.\\)' },
  { name: 'without the program tc', code: 127, reason: 'tc is not installed' },
  { name: 'without the plugin', hasBandwidth: false, reason: 'the CNI plugin bandwidth is not installed' },
])
  test(`NET-04 a node ${name} limit bandwidth says so in one Event, and its pods start without limits`, () =>
    withAgent(
      async ({ server, clock, dir, events }) => {
        const config = path.join(dir, '99-skiff.conflist')
        await until(clock, () => existsSync(config) && events.length > 0)
        const { plugins } = JSON.parse(await fs.readFile(config, 'utf8')) as { plugins: { type: string }[] }
        assert.deepEqual(
          plugins.map(({ type }) => type),
          ['ptp', 'portmap'],
        )
        server.put('/api/v1/nodes/c', node('c', '10.244.2.0/24', '10.88.0.12'))
        await clock.advance(60_000)
        assert.equal(events.length, 1)
        assert.match(events[0] ?? '', new RegExp(`^BandwidthNotLimited: Pods of this node have no limits of bandwidth.*: ${reason}$`))
      },
      { installPlugins: async () => ({ isOwn: false, hasBandwidth }) },
      { code, stderr: 'Error: Unknown device type.\n' },
    ))

for (const { name, fails, type } of [
  { name: 'names recorded plugins', fails: false, type: 'skiff-record-ptp' },
  { name: 'names the plugins themselves, where recorded ones cannot be installed', fails: true, type: 'ptp' },
])
  test(`LRN-07 the configuration of a node ${name}`, () =>
    withAgent(
      async ({ clock, dir }) => {
        const config = path.join(dir, '99-skiff.conflist')
        await until(clock, () => existsSync(config))
        const { plugins } = JSON.parse(await fs.readFile(config, 'utf8')) as { plugins: { type: string; ipam?: { type: string } }[] }
        assert.deepEqual([plugins[0]?.type, plugins[0]?.ipam?.type], [type, 'host-local'])
      },
      { installRecorder: () => (fails ? Promise.reject(new Error('read-only')) : Promise.resolve()) },
    ))

test('NET-01 connections of pods that leave the cluster get the node’s address, those to pods and nodes do not', () =>
  withAgent(async ({ server, clock, kernel }) => {
    await until(clock, () => kernel.scripts.length === 1)
    const [first = ''] = kernel.scripts
    assert.match(first, /ip saddr != 10\.244\.0\.0\/24 return\n\t\tip daddr 10\.244\.0\.0\/16 return\n\t\tip daddr @nodes return\n\t\tmasquerade/)
    assert.match(first, /add element ip skiff-masquerade nodes { 10\.88\.0\.10, 10\.88\.0\.11 }/)
    server.put('/api/v1/nodes/c', node('c', '10.244.2.0/24', '10.88.0.12'))
    await until(clock, () => kernel.scripts.length === 2)
    assert.equal(kernel.scripts[1], 'add element ip skiff-masquerade nodes { 10.88.0.12 }\n')
  }))

test('NET-03 the node gets its CNI configuration after the kernel checks the sources of packets', () =>
  withAgent(async ({ server, clock, kernel, dir }) => {
    kernel.refusesSourceCheck = true
    await until(clock, () => kernel.scripts.length === 1)
    await clock.advance(3_000)
    const config = path.join(dir, '99-skiff.conflist')
    assert.deepEqual([existsSync(config), kernel.sourceChecks], [false, 0])
    kernel.refusesSourceCheck = false
    await until(clock, () => existsSync(config))
    server.put('/api/v1/nodes/c', node('c', '10.244.2.0/24', '10.88.0.12'))
    await until(clock, () => kernel.scripts.length === 2)
    assert.equal(kernel.sourceChecks, 1)
  }))
