/** CTL-10: how fast the controllers of a process of their own delete namespaces, with the client rate limit that its flags set by default. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { configMaps, namespaces } from '#client/builtIn'
import { createClient } from '#client/clientOverTransport'
import { rateLimitedTransport } from '#client/rateLimitedTransport'
import { createControllerManager } from '#controllers/framework/manager'
import { controllers } from '#controllers/index'
import { controllerClients } from '#main/component/controllerClients'
import { startCluster, type TestCluster } from '#testing/cluster'

const rateLimit = { qps: 20, burst: 30 }
const count = 20

/** The namespace controller as kube-controller-manager runs it: every client has its own rate limit. */
function runControllers({ client, clock }: TestCluster, signal: AbortSignal): Promise<void> {
  const clients = controllerClients({
    component: 'kube-controller-manager',
    rateLimit,
    open: (_agent, options) => createClient(rateLimitedTransport(client.transport, clock, options.rateLimit ?? assert.fail('a client without a rate limit'))),
  })
  const deps = { ...clients, clock, random: seededRandom(1), log: noLog, metrics: noMetrics }
  return createControllerManager(deps, controllers, { controllers: ['namespace-controller'] }).run(signal)
}

test('CTL-10 20 namespaces of one ConfigMap are gone within 15 s, the client has the default rate limit', async () => {
  const cluster = await startCluster({ nodes: 0, controllers: false, scheduler: false })
  const { client, clock, until } = cluster
  const stop = new AbortController()
  const running = runControllers(cluster, stop.signal)
  const names = Array.from({ length: count }, (_, index) => `ns-${index}`)
  for (const name of names) {
    await client.of(namespaces).create({ metadata: { name }, spec: {} })
    await client.of(configMaps).create({ metadata: { namespace: name, name: 'one' } })
  }
  await clock.advance(60_000)
  const startedMs = clock.monotonicMs()
  for (const name of names) await client.of(namespaces).delete({ name })
  await until(async () => {
    const { items } = await client.of(namespaces).list()
    return items.every(({ metadata }) => !names.includes(metadata.name ?? ''))
  })
  const tookMs = clock.monotonicMs() - startedMs
  stop.abort(new Error('the test is over'))
  await running
  await cluster.close()
  assert.ok(tookMs <= 15_000, `it took ${tookMs} ms`)
})
