import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { ProxyHealth } from '#proxy/health'
import { createComponentMetrics } from '../../componentMetrics.ts'
import { createRealClock } from '../../realClock.ts'
import { createHealthPort, createMetricsPort } from './proxyPorts.ts'

const anywhere = { host: '127.0.0.1', port: 0 }
const deps = () => ({ clock: createRealClock(), log: noLog, metrics: createComponentMetrics() })

async function withPort(port: ReturnType<typeof createHealthPort>, work: (get: (path: string) => Promise<Response>) => Promise<void>): Promise<void> {
  const stop = new AbortController()
  const running = port.run(stop.signal)
  try {
    const at = `http://127.0.0.1:${await port.listening}`
    await work((path) => fetch(at + path))
  } finally {
    stop.abort()
    await running
  }
}

test('ARC-06 the health port answers 503 at /healthz while the node is being deleted and 200 at /livez, and counts both', async () => {
  const tools = deps()
  const health = new ProxyHealth(tools.clock, 60_000)
  health.serves(['IPv4'])
  health.applied('IPv4', tools.clock.monotonicMs())
  await withPort(createHealthPort(tools, health, anywhere), async (get) => {
    health.setNode({ metadata: { name: 'self' }, spec: {}, apiVersion: 'v1', kind: 'Node' } as never)
    const well = await get('/healthz')
    assert.equal(well.status, 200)
    assert.equal(well.headers.get('content-type'), 'application/json')
    const body = (await well.json()) as Record<string, unknown>
    assert.deepEqual(Object.keys(body), ['lastUpdated', 'currentTime', 'nodeEligible', 'healthy', 'status'])
    health.setNode(undefined)
    const refused = await get('/healthz')
    assert.equal(refused.status, 503)
    assert.equal(((await refused.json()) as Record<string, unknown>).nodeEligible, false)
    assert.equal((await get('/livez')).status, 200)
    assert.equal((await get('/metrics')).status, 404)
  })
  const text = tools.metrics.render()
  assert.match(text, /kubeproxy_proxy_healthz_total\{code="200"\} 1\n/)
  assert.match(text, /kubeproxy_proxy_healthz_total\{code="503"\} 1\n/)
  assert.match(text, /kubeproxy_proxy_livez_total\{code="200"\} 1\n/)
})

const pages = { mode: () => 'nftables', configuration: { mode: 'nftables' }, flags: { v: '2' }, profiling: false }

test('ARC-06 the metrics port serves metrics, mode, configuration, flags and status, and no profile unless it is asked to', async () => {
  await withPort(createMetricsPort(deps(), pages, anywhere), async (get) => {
    assert.match(await (await get('/metrics')).text(), /^kubernetes_build_info\{/m)
    assert.equal(await (await get('/healthz')).text(), 'ok')
    assert.match(await (await get('/metrics/slis')).text(), /kubernetes_healthcheck\{name="ping",type="healthz"\} 1/)
    assert.equal(await (await get('/proxyMode')).text(), 'nftables')
    assert.deepEqual(await (await get('/configz')).json(), { 'kubeproxy.config.k8s.io': { mode: 'nftables' } })
    assert.match(await (await get('/flagz')).text(), /kube-proxy flagz[\s\S]*v=2/)
    assert.match(await (await get('/statusz')).text(), /kube-proxy statusz/)
    assert.equal((await get('/debug/pprof/heap')).status, 404)
    assert.equal((await get('/livez')).status, 404)
  })
})

test('ARC-06 a taken port is tried again until it is free', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => taken.once('listening', resolve))
  const { port } = taken.address() as { port: number }
  const failures: Error[] = []
  const tools = deps()
  const clock = Object.assign(Object.create(tools.clock), {
    sleep: async () => {
      await new Promise((resolve) => taken.close(resolve))
    },
  }) as typeof tools.clock
  const health = createHealthPort({ ...tools, clock, onFailed: (error) => failures.push(error) }, new ProxyHealth(clock, 1), { host: '127.0.0.1', port })
  await withPort(health, async (get) => {
    assert.equal(failures.length, 1)
    assert.match(String(failures[0]), /EADDRINUSE/)
    assert.equal((await get('/livez')).status, 200)
  })
})
