/** The objects of a fresh cluster, and those that the server keeps up to date. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { endpointSlices, ipAddresses, namespaces, pods, priorityClasses, serviceCIDRs, services } from '#client/builtIn'
import { createMemoryStore } from '#store/drivers/memory'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'
import { lastingStore } from '#testing/changedStore'
import { realClock } from '#testing/realClock'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'
import { until } from '../../support/until.ts'

const names = (list: { readonly items: readonly { readonly metadata: { readonly name?: string | undefined } }[] }) =>
  list.items.map((item) => item.metadata.name)

test('EXP-01 a fresh cluster has its namespaces, priority classes and service range', async () => {
  const api = await startTestApiServer()
  assert.deepEqual(names(await api.client.of(namespaces).list()), ['default', 'kube-node-lease', 'kube-public', 'kube-system'])
  assert.deepEqual(names(await api.client.of(priorityClasses).list()), ['system-cluster-critical', 'system-node-critical'])
  assert.deepEqual((await api.client.of(serviceCIDRs).get({ name: 'kubernetes' })).spec?.cidrs, ['10.96.0.0/16'])
  await api.close()
})

test('API-30 the kubernetes service is the first address of the range and leads to this server', async () => {
  const api = await startTestApiServer()
  const service = await api.client.of(services).get({ namespace: 'default', name: 'kubernetes' })
  const slice = await api.client.of(endpointSlices).get({ namespace: 'default', name: 'kubernetes' })
  assert.deepEqual([service.spec?.clusterIP, service.spec?.ports?.[0]?.port, service.spec?.ports?.[0]?.targetPort], ['10.96.0.1', 443, 6443])
  assert.deepEqual([slice.endpoints?.[0]?.addresses, slice.ports?.[0]?.port], [['192.0.2.1'], 6443])
  await api.close()
})

test('SVC-01 every cluster IP has an IPAddress object that names its service', async () => {
  const api = await startTestApiServer()
  const made = await api.client.of(services).create({ metadata: { namespace: 'default', name: 's' }, spec: { ports: [{ port: 80 }] } })
  const ip = made.spec?.clusterIP ?? ''
  await until('the address has an object', async () => names(await api.client.of(ipAddresses).list()).includes(ip))
  const { parentRef } = (await api.client.of(ipAddresses).get({ name: ip })).spec ?? {}
  assert.deepEqual(parentRef, { resource: 'services', namespace: 'default', name: 's' })
  await api.client.of(services).delete({ namespace: 'default', name: 's' })
  await until('the address has no object', async () => !names(await api.client.of(ipAddresses).list()).includes(ip))
  await api.close()
})

test('ETC-10 a server that starts over the same store finds everything again, and gives no address twice', async () => {
  const clock = realClock
  const kept = createMemoryStore({ clock })
  const store = lastingStore(kept)
  const create = (api: TestApiServer, name: string) =>
    api.client.of(services).create({ metadata: { namespace: 'default', name }, spec: { ports: [{ port: 80 }] } })
  const first = await startTestApiServer({ store })
  const a = await create(first, 'a')
  await first.close()
  const second = await startTestApiServer({ store })
  const again = await second.client.of(services).get({ namespace: 'default', name: 'a' })
  assert.deepEqual(again, a)
  const taken = second.client
    .of(services)
    .create({ metadata: { namespace: 'default', name: 'b' }, spec: { clusterIP: a.spec?.clusterIP, ports: [{ port: 80 }] } })
  await assert.rejects(taken, /provided IP is already allocated/)
  await second.close()
  await kept.close()
})

test('API-24 a binding by the collection schedules the pod, once', async () => {
  const api = await startTestApiServer()
  await api.client.of(pods).create({ metadata: { namespace: 'default', name: 'p' }, spec: { containers: [{ name: 'c', image: 'x' }] } })
  const bind = (node: string) =>
    api.client.transport.request({
      method: 'POST',
      path: '/api/v1/namespaces/default/bindings',
      body: { metadata: { name: 'p' }, target: { kind: 'Node', name: node } },
    })
  await bind('n1')
  const pod = await api.client.of(pods).get({ namespace: 'default', name: 'p' })
  const scheduled = pod.status?.conditions?.find((one) => one.type === 'PodScheduled')
  assert.deepEqual([pod.spec?.nodeName, scheduled?.status, pod.metadata.generation], ['n1', 'True', 1])
  await assert.rejects(bind('n2'), /Operation cannot be fulfilled on pods\/binding "p": pod p is already assigned to node "n1"/)
  await api.close()
})

test('API-32 the root lists every path, and /statusz tells the roots that help to find faults', async () => {
  const api = await startTestApiServer()
  const get = async (path: string, accept = 'application/json') => (await api.client.transport.request({ method: 'GET', path, accept })).body
  const { paths } = (await get('/')) as { paths: string[] }
  for (const path of ['/api/v1', '/apis/apps', '/apis/apps/v1', '/healthz/ping', '/livez', '/readyz/etcd', '/flagz', '/statusz', '/openapi/v3']) {
    assert.ok(paths.includes(path), path)
  }
  assert.deepEqual(paths, [...paths].sort())
  assert.match(
    String(await get('/statusz', 'text/plain')),
    /\nBinary version: 1\.36\.\d+.*\nEmulation version: 1\.36\nPaths: \/flagz \/healthz \/livez \/metrics \/readyz \/statusz \/version\n/,
  )
  await api.close()
})

test('API-32 /metrics/slis tells how each health check went, by the endpoint that was asked', async () => {
  let isWell = true
  const check = { name: 'mood', check: () => (isWell ? undefined : 'bad') }
  const api = await startTestApiServer({ deps: () => ({ healthChecks: [check] }) })
  const get = async (path: string, query: Readonly<Record<string, string>> = {}) =>
    String((await api.client.transport.request({ method: 'GET', path, query, accept: 'text/plain' })).body)
  assert.equal(await get('/metrics/slis'), '')
  await get('/livez')
  await get('/livez')
  isWell = false
  await assert.rejects(get('/livez'))
  await get('/readyz', { exclude: 'mood' })
  const mood = (await get('/metrics/slis')).split('\n').filter((line) => line.startsWith('#') || line.includes('"mood"') || line.includes('"shutdown"'))
  assert.deepEqual(
    mood.map((line) => line.replace(/(HELP \S+ \S+) .*/, '$1')),
    [
      '# HELP kubernetes_healthcheck [STABLE]',
      '# TYPE kubernetes_healthcheck gauge',
      'kubernetes_healthcheck{name="mood",type="livez"} 0',
      'kubernetes_healthcheck{name="shutdown",type="readyz"} 1',
      '# HELP kubernetes_healthchecks_total [STABLE]',
      '# TYPE kubernetes_healthchecks_total counter',
      'kubernetes_healthchecks_total{name="mood",status="error",type="livez"} 1',
      'kubernetes_healthchecks_total{name="mood",status="success",type="livez"} 2',
      'kubernetes_healthchecks_total{name="shutdown",status="success",type="readyz"} 1',
    ],
  )
  await api.close()
})

test('OBS-16 API-32 /debug/pprof serves profiles in pprof’s form and V8’s while others are answered, unless it is turned off', async () => {
  const api = await startServerWithFlags([])
  const get = async (path: string, query: Readonly<Record<string, string>> = {}) => (await api.client.transport.request({ method: 'GET', path, query })).body
  assert.match(String(await get('/debug/pprof/')), /\/debug\/pprof\/profile.*\n\/debug\/pprof\/heap.*\n\/debug\/pprof\/goroutine/)
  const profile = get('/debug/pprof/profile', { seconds: '1', format: 'v8' }) as Promise<{ nodes: unknown[]; samples: unknown[] }>
  await assert.rejects(get('/debug/pprof/profile', { seconds: '1' }), /Could not enable profile profiling: it is already in use/)
  assert.equal(String(await get('/livez')), 'ok')
  const heap = (await get('/debug/pprof/heap', { seconds: '1', format: 'v8' })) as { head: object }
  assert.ok((await profile).nodes.length > 0 && (await profile).samples.length > 0 && 'callFrame' in heap.head)
  assert.match(String(await get('/debug/pprof/goroutine', { debug: '1' })), /^goroutine profile: total \d+\n/)
  assert.ok(String(await get('/debug/pprof/cmdline')).startsWith(process.argv[0] as string))
  await assert.rejects(get('/debug/pprof/trace'), { code: 501 })
  await assert.rejects(get('/debug/pprof/mutex'), { code: 404 })
  await api.close()
  const off = await startServerWithFlags(['--profiling=false'])
  for (const path of ['/debug/pprof', '/debug/pprof/', '/debug/pprof/profile']) {
    await assert.rejects(off.client.transport.request({ method: 'GET', path }), { code: 404 })
  }
  await off.close()
})

test('API-32 /flagz tells every flag, those that were given and the others', async () => {
  const api = await startServerWithFlags(['--max-requests-inflight=7', '--request-timeout', '90s'])
  const { body } = await api.client.transport.request({ method: 'GET', path: '/flagz', accept: 'text/plain' })
  assert.match(String(body), /\nmax-mutating-requests-inflight=200\nmax-requests-inflight=7\n.*request-timeout=1m30s\n/s)
  await api.close()
})
