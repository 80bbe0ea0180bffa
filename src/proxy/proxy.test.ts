import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createClient } from '#client/clientOverTransport'
import type { EventRecorder } from '#client/eventRecorder'
import type { Exec } from '#host/exec'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import type { Family, ProxyModel } from './model.ts'
import type { ProxyMode } from './modes/mode.ts'
import { createProxy, type ServiceProxy } from './proxy.ts'

/** A mode that notes what happens to it, in the order of all modes. */
class NotingMode implements ProxyMode {
  rulesOf: ProxyMode['rulesOf']
  readonly name: string
  readonly families: readonly Family[]
  readonly log: string[]
  readonly models: ProxyModel[] = []
  cleanUpFails = false

  constructor(name: string, log: string[], families: readonly Family[] = ['IPv4', 'IPv6']) {
    this.name = name
    this.log = log
    this.families = families
  }

  async obstacle(_exec: Exec, family: Family): Promise<string | undefined> {
    return this.families.includes(family) ? undefined : 'not here'
  }

  async run(_deps: unknown, models: { next(signal: AbortSignal): Promise<ProxyModel> }, signal: AbortSignal): Promise<void> {
    this.log.push(`${this.name} runs`)
    while (!signal.aborted) this.models.push(await models.next(signal))
  }

  async cleanUp(): Promise<void> {
    this.log.push(`${this.name} cleans up`)
    if (this.cleanUpFails) throw new Error('refused')
  }
}

const noExec = { run: () => assert.fail('no program runs'), spawn: () => assert.fail('no program runs') } as unknown as Exec

async function withProxy(
  modes: readonly ProxyMode[],
  mode: string,
  work: (world: { server: HistoryTransport; clock: VirtualClock; proxy: ServiceProxy }) => Promise<void>,
): Promise<void> {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const informers = createSharedInformerFactory(createClient(server), { clock, random: seededRandom(1), log: noLog })
  const stop = new AbortController()
  const proxy = createProxy(
    {
      informers,
      clock,
      log: noLog,
      metrics: noMetrics,
      exec: noExec,
      conntrack: { delete: async () => 0 },
      events: { event: () => {} } as unknown as EventRecorder,
      modes,
    },
    { nodeName: 'self', clusterCidr: '10.244.0.0/16,fd01::/48', serviceCidr: '10.96.0.0/16,fd02::/112', mode },
  )
  const running = Promise.all([proxy.run(stop.signal), informers.run(stop.signal)])
  running.catch(() => {})
  try {
    await clock.advance(1_000)
    await work({ server, clock, proxy })
  } finally {
    stop.abort()
    await clock.advance(1_000)
    await running
  }
}

test('SVC-06 the proxy removes what every other mode left before its own mode runs, also when one of them fails', async () => {
  const log: string[] = []
  const [a, b, c] = ['a', 'b', 'c'].map((name) => new NotingMode(name, log)) as [NotingMode, NotingMode, NotingMode]
  a.cleanUpFails = true
  await withProxy([a, b, c], 'b', async () => assert.deepEqual(log, ['a cleans up', 'c cleans up', 'b runs']))
})

test('SVC-09 the proxy that is turned off removes what every mode left and runs none', async () => {
  const log: string[] = []
  await withProxy([new NotingMode('a', log), new NotingMode('b', log)], 'none', async ({ proxy }) => {
    assert.deepEqual(log, ['a cleans up', 'b cleans up'])
    assert.deepEqual(await proxy.serviceRules('default/web'), { isStopped: true, note: 'the service proxy is turned off' })
  })
})

test('SVC-06 the proxy in mode auto takes the first mode that this host can run', async () => {
  const log: string[] = []
  await withProxy([new NotingMode('a', log, []), new NotingMode('b', log), new NotingMode('c', log)], 'auto', async () =>
    assert.deepEqual(log, ['a cleans up', 'c cleans up', 'b runs']),
  )
})

test('SVC-06 the proxy names every obstacle when no mode can run, and the modes when the one asked for is unknown', async () => {
  const log: string[] = []
  await assert.rejects(
    withProxy([new NotingMode('a', log, [])], 'auto', async () => {}),
    /no proxy mode works on this host: a \(IPv4\): not here; a \(IPv6\): not here/,
  )
  await assert.rejects(
    withProxy([new NotingMode('a', log)], 'ebpf', async () => {}),
    /proxy mode "ebpf" is not supported; there are: a/,
  )
})

test('SVC-06 a dual-stack Service is in the model of each family, and a ServiceCIDR widens its family’s ranges', async () => {
  const mode = new NotingMode('a', [])
  await withProxy([mode], 'a', async ({ server, clock }) => {
    server.put(
      '/api/v1/namespaces/d/services/web',
      anObject(
        'Service',
        { name: 'web', namespace: 'd' },
        { spec: { clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10', 'fd02::10'], ports: [{ port: 80 }] } },
      ),
    )
    for (const [name, addressType, address] of [
      ['web-4', 'IPv4', '10.244.0.1'],
      ['web-6', 'IPv6', 'fd01::1'],
    ] as const) {
      const metadata = { name, namespace: 'd', labels: { 'kubernetes.io/service-name': 'web' } }
      const slice = anObject('EndpointSlice', metadata, { addressType, endpoints: [{ addresses: [address] }], ports: [{ port: 8080 }] })
      server.put(`/apis/discovery.k8s.io/v1/namespaces/d/endpointslices/${name}`, slice)
    }
    server.put('/apis/networking.k8s.io/v1/servicecidrs/more', anObject('ServiceCIDR', { name: 'more' }, { spec: { cidrs: ['10.112.0.0/20'] } }))
    await clock.advance(1_000)
    const newest = mode.models.at(-1) ?? []
    assert.deepEqual(
      newest.map(({ family, rules, clusterCidrs, serviceCidrs }) => [
        family,
        rules.map((rule) => `${rule.clusterIp} -> ${rule.clusterEndpoints.map(({ ip }) => ip).join()}`),
        clusterCidrs,
        serviceCidrs,
      ]),
      [
        ['IPv4', ['10.96.0.10 -> 10.244.0.1'], ['10.244.0.0/16'], ['10.96.0.0/16', '10.112.0.0/20']],
        ['IPv6', ['fd02::10 -> fd01::1'], ['fd01::/48'], ['fd02::/112']],
      ],
    )
  })
})

test('SVC-06 a host without IPv6 tables gets the model of IPv4 alone', async () => {
  const mode = new NotingMode('a', [], ['IPv4'])
  await withProxy([mode], 'auto', async () =>
    assert.deepEqual(
      mode.models.at(-1)?.map(({ family }) => family),
      ['IPv4'],
    ),
  )
})

test('SVC-06 the proxy shows the rules of one Service by its mode as the mode got them last, and says when it cannot', async () => {
  const mode = new NotingMode('a', [], ['IPv4'])
  mode.rulesOf = async (_, { rules }) => rules.map(({ service, portName }) => ({ place: `${service}/${portName}`, lines: [] }))
  let shown: ServiceProxy | undefined
  await withProxy([mode], 'a', async ({ server, clock, proxy }) => {
    for (const name of ['web', 'db']) {
      const spec = { clusterIP: name === 'web' ? '10.96.0.10' : '10.96.0.11', ports: [{ name: 'http', port: 80 }] }
      server.put(`/api/v1/namespaces/d/services/${name}`, anObject('Service', { name, namespace: 'd' }, { spec }))
    }
    await clock.advance(1_000)
    assert.deepEqual(await proxy.serviceRules('d/web'), { mode: 'a', rules: [{ place: 'd/web/http', lines: [] }] })
    assert.match((await proxy.serviceRules('d/none')).note ?? '', /no rules for the Service/)
    // Within the time that changes settle in.
    server.put(
      '/api/v1/namespaces/d/services/web',
      anObject('Service', { name: 'web', namespace: 'd' }, { spec: { clusterIP: '10.96.0.10', ports: [{ name: 'new', port: 80 }] } }),
    )
    await clock.advance(5)
    assert.deepEqual((await proxy.serviceRules('d/web')).rules, [{ place: 'd/web/http', lines: [] }])
    await clock.advance(1_000)
    assert.deepEqual((await proxy.serviceRules('d/web')).rules, [{ place: 'd/web/new', lines: [] }])
    mode.rulesOf = undefined
    assert.deepEqual(await proxy.serviceRules('d/web'), { mode: 'a', note: 'the mode a does not show its rules' })
    shown = proxy
  })
  assert.deepEqual(await shown?.serviceRules('d/web'), { isStopped: true, note: 'the service proxy does not run' })
})
