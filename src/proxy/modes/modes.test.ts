/** What every mode with rules in the kernel must do, on a host that records commands. The same modes against a kernel: test/e2e/proxyModes.test.ts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import { createWakeUp } from '#base/wakeUp'
import type { ConntrackFilter } from '#host/conntrack'
import type { Exec, ExecOptions, ExecResult } from '#host/exec'
import type { FamilyModel, ProxyModel, ServiceRule } from '../model.ts'
import { kernelModes } from './index.ts'
import { iptables } from './iptables.ts'
import type { ProxyMode, ProxyModeDeps } from './mode.ts'
import { nftables } from './nftables.ts'

/** A host that records the commands that change it. Each succeeds unless `failing` is set. */
class RecordingHost implements Exec {
  readonly changes: string[] = []
  failing = false
  programs = true
  tables = ''
  /** Another program has removed every rule. */
  flushed = false

  async run(command: string, args: readonly string[], { input }: ExecOptions = {}): Promise<ExecResult> {
    const result = { code: 0, stdout: '', stderr: '', timedOut: false }
    if (!this.programs) return { ...result, code: -1, stderr: `spawn ${command} ENOENT` }
    if (isQuestion(command, args)) return { ...result, code: this.flushed && args.includes('-S') ? 1 : 0, stdout: this.tables }
    this.changes.push(`${command} ${args.join(' ')}\n${String(input ?? '')}`)
    return this.failing ? { ...result, code: 1, stderr: 'refused' } : result
  }

  spawn(): never {
    assert.fail('nothing is spawned')
  }
}

function isQuestion(command: string, args: readonly string[]): boolean {
  return command === 'cat' || command.endsWith('-save') || ['--check', 'list', '--version', '-S'].some((word) => args.includes(word))
}

function rule(clusterIp: string, endpoint: string): ServiceRule {
  const endpoints = [{ ip: endpoint, port: 53, isLocal: true }]
  return {
    service: 'd/web',
    portName: 'dns',
    protocol: 'udp',
    clusterIp,
    port: 53,
    nodePort: undefined,
    externalIps: [],
    loadBalancerIps: [],
    sourceRanges: undefined,
    affinitySeconds: undefined,
    internalPolicyLocal: false,
    externalPolicyLocal: false,
    clusterEndpoints: endpoints,
    localEndpoints: endpoints,
  }
}

const four = (endpoint = '10.244.0.1'): FamilyModel => ({
  family: 'IPv4',
  rules: [rule('10.96.0.10', endpoint)],
  clusterCidrs: ['10.244.0.0/16'],
  serviceCidrs: ['10.96.0.0/16'],
})
const six = (endpoint = 'fd01::1'): FamilyModel => ({
  family: 'IPv6',
  rules: [rule('fd02::10', endpoint)],
  clusterCidrs: ['fd01::/48'],
  serviceCidrs: ['fd02::/112'],
})

interface World {
  readonly host: RecordingHost
  readonly clock: VirtualClock
  readonly deletedFlows: ConntrackFilter[]
  give(model: ProxyModel): Promise<void>
  /** The commands since the last call, in one text. */
  newChanges(): string
}

/** Runs the mode with models that the test gives. */
async function withMode(mode: ProxyMode, work: (world: World) => Promise<void>): Promise<RecordingHost> {
  const host = new RecordingHost()
  const clock = new VirtualClock()
  const deletedFlows: ConntrackFilter[] = []
  const changes = createWakeUp()
  let model: ProxyModel = []
  const conntrack = {
    delete: async (filter: ConntrackFilter) => {
      deletedFlows.push(filter)
      return 1
    },
  }
  const deps: ProxyModeDeps = { exec: host, clock, log: noLog, metrics: noMetrics, conntrack }
  const stop = new AbortController()
  const models = {
    newest: () => model,
    next: async (signal: AbortSignal) => {
      await changes.wait(signal)
      signal.throwIfAborted()
      return model
    },
  }
  const running = mode.run(deps, models, stop.signal)
  const give = async (next: ProxyModel) => {
    model = next
    changes.ring()
    await clock.advance(0)
  }
  let seen = 0
  const newChanges = () => {
    const text = host.changes.slice(seen).join('\n')
    seen = host.changes.length
    return text
  }
  try {
    await work({ host, clock, deletedFlows, give, newChanges })
  } finally {
    stop.abort()
    await clock.advance(0)
    await running
  }
  return host
}

test('SVC-06 nftables takes up a new range of cluster IPs, whose unknown addresses it drops', async () => {
  await withMode(nftables, async ({ give, newChanges }) => {
    await give([four()])
    newChanges()
    await give([{ ...four(), serviceCidrs: ['10.96.0.0/16', '10.112.0.0/20'] }])
    assert.ok(newChanges().includes('10.112.0.0/20'))
  })
})

test('SVC-05 iptables writes every rule again within half a minute of a flush, and once an hour', async () => {
  await withMode(iptables, async ({ host, clock, give, newChanges }) => {
    await give([four()])
    const all = newChanges()
    await clock.advance(30_000)
    assert.equal(newChanges(), '')
    host.flushed = true
    await clock.advance(30_000)
    const again = newChanges()
    assert.ok(again.includes('-A KUBE-SERVICES') && all.endsWith(again), again)
    host.flushed = false
    await clock.advance(3_540_000)
    assert.equal(newChanges(), again)
  })
})

for (const mode of kernelModes) {
  const row = mode === iptables ? 'SVC-05' : 'SVC-06'
  test(`${row} ${mode.name} renders both address families, and writes nothing for an unchanged model`, async () => {
    await withMode(mode, async ({ give, newChanges }) => {
      await give([four(), six()])
      const text = newChanges()
      for (const address of ['10.96.0.10', '10.244.0.1', 'fd02::10', 'fd01::1']) assert.ok(text.includes(address), `${address} is not in ${text}`)
      await give([four(), six()])
      assert.equal(newChanges(), '')
    })
  })

  test(`${row} ${mode.name} applies a change of one family without touching the other`, async () => {
    await withMode(mode, async ({ give, newChanges }) => {
      await give([four(), six()])
      newChanges()
      await give([four(), six('fd01::2')])
      const text = newChanges()
      assert.ok(text.includes('fd01::2'))
      assert.doesNotMatch(text, /10\.96\.0\.10|10\.244\.0\.1/)
    })
  })

  test(`SVC-13 ${mode.name} deletes the UDP flows to an endpoint that is gone, of its family only`, async () => {
    await withMode(mode, async ({ give, deletedFlows }) => {
      await give([four(), six()])
      await give([four(), six('fd01::2')])
      assert.deepEqual(deletedFlows, [{ protocol: 'udp', origDst: 'fd02::10', origPortDst: 53, dstNat: 'fd01::1', replyPortSrc: 53 }])
    })
  })

  test(`${row} ${mode.name} writes the newest model again with growing pauses after the host refused one`, async () => {
    await withMode(mode, async ({ host, clock, give, newChanges }) => {
      await give([four()])
      host.failing = true
      await give([four('10.244.0.2')])
      const first = host.changes.length
      await clock.advance(499)
      assert.equal(host.changes.length, first)
      await clock.advance(1)
      const second = host.changes.length
      assert.ok(second > first)
      await give([four('10.244.0.3')])
      await clock.advance(999)
      assert.equal(host.changes.length, second)
      newChanges()
      host.failing = false
      await clock.advance(1)
      const text = newChanges()
      assert.ok(text.includes('10.244.0.3') && text.includes('10.96.0.10'), text)
      assert.ok(!text.includes('10.244.0.2'))
    })
  })

  test(`${row} ${mode.name} leaves the rules in place when it is stopped`, async () => {
    let atStop = 0
    const host = await withMode(mode, async ({ give, host: recording }) => {
      await give([four(), six()])
      atStop = recording.changes.length
    })
    assert.equal(host.changes.length, atStop)
  })

  test(`${row} ${mode.name} has nothing to clean up on a host without its programs, and cannot run there`, async () => {
    const host = new RecordingHost()
    host.programs = false
    await mode.cleanUp(host)
    for (const family of ['IPv4', 'IPv6'] as const) assert.match((await mode.obstacle(host, family)) ?? '', /is not installed/)
    assert.deepEqual(host.changes, [])
  })
}
