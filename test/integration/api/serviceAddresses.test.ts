/** Cluster IPs and node ports: taken by IPAddress objects, out of the ready ServiceCIDRs, given back in time, repaired after a crash. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Service, ServiceSpec } from '#api/gen/types/core.v1'
import { isStatus, StatusError } from '#api/machinery/status'
import { eventsV1, ipAddresses, serviceCIDRs, services } from '#client/builtIn'
import { createMemoryStore } from '#store/drivers/memory'
import { startTestApiServer, type TestApiServer, type TestApiServerOptions } from '#testing/apiServer'
import { lastingStore } from '#testing/changedStore'
import { realClock } from '#testing/realClock'

async function withServer(options: TestApiServerOptions, use: (api: TestApiServer) => Promise<void>): Promise<void> {
  const api = await startTestApiServer(options)
  try {
    await use(api)
  } finally {
    await api.close()
  }
}

const network = (cidr: string): TestApiServerOptions => ({ serviceNetwork: { cidr, nodePorts: [30000, 30020] } })
const make = (api: TestApiServer, name: string, spec: Partial<ServiceSpec> = {}): Promise<Service> =>
  api.client.of(services).create({ metadata: { namespace: 'default', name }, spec: { ports: [{ port: 80 }], ...spec } }) as Promise<Service>
const remove = (api: TestApiServer, name: string) => api.client.of(services).delete({ namespace: 'default', name })
const taken = async (api: TestApiServer) => (await api.client.of(ipAddresses).list()).items.map((item) => item.metadata.name ?? '').sort()
const causes = async (promise: Promise<unknown>): Promise<readonly string[]> => {
  try {
    await promise
    return []
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    return error.details?.causes?.map(({ field, message }) => `${field}: ${message}`) ?? [error.message]
  }
}

test('SVC-01 an address is an IPAddress object from the moment the service exists until the moment it does not', () =>
  withServer({}, async (api) => {
    const { spec } = await make(api, 'web')
    const ip = spec.clusterIP ?? ''
    const object = await api.client.of(ipAddresses).get({ name: ip })
    assert.deepEqual(object.metadata.labels, { 'ipaddress.kubernetes.io/ip-family': 'IPv4', 'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io' })
    assert.deepEqual(object.spec?.parentRef, { resource: 'services', namespace: 'default', name: 'web' })
    await remove(api, 'web')
    assert.deepEqual(await taken(api), ['10.96.0.1'])
    // The very address can be asked for again at once.
    assert.equal((await make(api, 'web2', { clusterIP: ip })).spec.clusterIP, ip)
  }))

test('SVC-01 a cluster IP is refused when it is allocated, or outside the range', () =>
  withServer({}, async (api) => {
    await api.client.of(ipAddresses).create({ metadata: { name: '10.96.0.77' }, spec: { parentRef: { resource: 'gateways', group: 'x.y', name: 'g' } } })
    const refused = async (clusterIP: string) => causes(make(api, 'web', { clusterIP }))
    const start = 'spec.clusterIPs: Invalid value: '
    assert.deepEqual(await refused('10.96.0.1'), [`${start}["10.96.0.1"]: failed to allocate IP 10.96.0.1: provided IP is already allocated`])
    assert.deepEqual(await refused('10.96.0.77'), [`${start}["10.96.0.77"]: failed to allocate IP 10.96.0.77: provided IP is already allocated`])
    assert.deepEqual(await refused('10.97.0.1'), [
      `${start}["10.97.0.1"]: failed to allocate IP 10.97.0.1: the provided network does not match the current range`,
    ])
    assert.deepEqual(await refused('10.96.0.0'), [
      `${start}["10.96.0.0"]: failed to allocate IP 10.96.0.0: the provided IP (10.96.0.0) is not in the valid range. The range of valid IPs is 10.96.0.0/16`,
    ])
    assert.deepEqual(await taken(api), ['10.96.0.1', '10.96.0.77'])
  }))

test('SVC-01 a write that fails, and a dry run, leave no address behind', () =>
  withServer({}, async (api) => {
    assert.notDeepEqual(await causes(make(api, 'web', { sessionAffinity: 'Never' })), [])
    const dry = await api.client.of(services).create({ metadata: { namespace: 'default', name: 'dry' }, spec: { ports: [{ port: 80 }] } }, { dryRun: true })
    assert.match(dry.spec?.clusterIP ?? '', /^10\.96\./)
    assert.deepEqual(await taken(api), ['10.96.0.1'])
  }))

test('SVC-01 more ranges give more addresses; one that is not ready or going gives none', () =>
  withServer(network('10.96.0.0/29'), async (api) => {
    for (let i = 0; i < 5; i++) await make(api, `s${i}`)
    await assert.rejects(make(api, 'full'), (error) => isStatus(error, 'InternalError') && /failed to allocate a serviceIP: range is full/.test(String(error)))
    const ranges = api.client.of(serviceCIDRs)
    const made = await ranges.create({ metadata: { name: 'more' }, spec: { cidrs: ['10.98.0.0/24'] } })
    assert.match((await make(api, 'other')).spec.clusterIP ?? '', /^10\.98\.0\./)
    const notReady = { type: 'Ready', status: 'False', reason: 'Terminating', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }
    await ranges.patch({ name: 'more' }, 'merge', { status: { conditions: [notReady] } }, { subresource: 'status' })
    await assert.rejects(make(api, 'late'), /range is full/)
    assert.equal(made.spec?.cidrs?.[0], '10.98.0.0/24')
  }))

test('SVC-01 two families: both on request, one again, and back', () =>
  withServer(network('10.96.0.0/24,fd00:10:96::/112'), async (api) => {
    assert.deepEqual((await api.client.of(serviceCIDRs).get({ name: 'kubernetes' })).spec?.cidrs, ['10.96.0.0/24', 'fd00:10:96::/112'])
    const { spec } = await make(api, 'web', { ipFamilyPolicy: 'PreferDualStack' })
    assert.deepEqual([spec.ipFamilies, spec.clusterIPs?.length], [['IPv4', 'IPv6'], 2])
    assert.deepEqual(await taken(api), [...(spec.clusterIPs ?? []), '10.96.0.1'].sort())
    const at = { namespace: 'default', name: 'web' }
    const one = await api.client.of(services).patch(at, 'merge', { spec: { ipFamilyPolicy: 'SingleStack' } })
    assert.deepEqual([one.spec?.ipFamilies, one.spec?.clusterIPs], [['IPv4'], [spec.clusterIP]])
    assert.deepEqual(await taken(api), [spec.clusterIP ?? '', '10.96.0.1'].sort())
    const two = await api.client.of(services).patch(at, 'merge', { spec: { ipFamilyPolicy: 'RequireDualStack' } })
    assert.deepEqual([two.spec?.clusterIPs?.length, two.spec?.clusterIP], [2, spec.clusterIP])
  }))

test('SVC-01 a service that becomes an external name gives its address back, and gets one when it returns', () =>
  withServer({}, async (api) => {
    await make(api, 'web')
    const at = { namespace: 'default', name: 'web' }
    await api.client.of(services).patch(at, 'merge', { spec: { type: 'ExternalName', externalName: 'a.b' } })
    assert.deepEqual(await taken(api), ['10.96.0.1'])
    const back = await api.client.of(services).patch(at, 'merge', { spec: { type: 'ClusterIP', externalName: null } })
    assert.deepEqual(await taken(api), [back.spec?.clusterIP ?? '', '10.96.0.1'].sort())
  }))

test('SVC-01 node ports: one for a port of several protocols, refused when taken or outside, free again after', () =>
  withServer(network('10.96.0.0/24'), async (api) => {
    const ports = [
      { name: 'tcp', port: 53, protocol: 'TCP' },
      { name: 'udp', port: 53, protocol: 'UDP' },
    ]
    const dns = await make(api, 'dns', { type: 'NodePort', ports })
    const [tcp, udp] = dns.spec.ports ?? []
    assert.ok(tcp?.nodePort && tcp.nodePort === udp?.nodePort)
    const ask = (nodePort: number) => causes(make(api, 'web', { type: 'NodePort', ports: [{ port: 80, nodePort }] }))
    assert.deepEqual(await ask(tcp.nodePort), [`spec.ports[0].nodePort: Invalid value: ${tcp.nodePort}: provided port is already allocated`])
    assert.deepEqual(await ask(80), [
      'spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-30020',
    ])
    await remove(api, 'dns')
    assert.deepEqual(await ask(tcp.nodePort), [])
  }))

test('SVC-01 a server that starts puts right what a crash left behind', async () => {
  const store = lastingStore(createMemoryStore({ clock: realClock }))
  let ip = ''
  await withServer({ store }, async (api) => {
    ip = (await make(api, 'web')).spec.clusterIP ?? ''
    await api.client.of(ipAddresses).delete({ name: ip })
    const wrong = { group: '', resource: 'services', namespace: 'default', name: 'somebody' }
    const labels = { 'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io' }
    await api.client.of(ipAddresses).create({ metadata: { name: ip, labels }, spec: { parentRef: wrong } })
  })
  await withServer({ store }, async (api) => {
    const deadlineMs = Date.now() + 5_000
    const owner = async () =>
      (
        await api.client
          .of(ipAddresses)
          .get({ name: ip })
          .catch(() => undefined)
      )?.spec?.parentRef?.name
    while ((await owner()) !== 'web') {
      assert.ok(Date.now() < deadlineMs, 'the address was not put right')
      await new Promise((resolve) => setImmediate(resolve))
    }
  })
})

test('SVC-02 a server that starts marks the node ports in use, tells about them, and takes over a new range', async () => {
  const store = lastingStore(createMemoryStore({ clock: realClock }))
  const spec = { type: 'NodePort', ports: [{ port: 80, nodePort: 30_007 }] } as Partial<ServiceSpec>
  await withServer({ ...network('10.96.0.0/24'), store }, async (api) => {
    await make(api, 'web', spec)
    await store.transact({ compare: [], success: [{ type: 'delete', from: '/registry/ranges/servicenodeports' }] })
  })
  await withServer({ store, serviceNetwork: { cidr: '10.96.0.0/24', nodePorts: [30_000, 30_100] } }, async (api) => {
    assert.deepEqual(await causes(make(api, 'other', spec)), ['spec.ports[0].nodePort: Invalid value: 30007: provided port is already allocated'])
    assert.deepEqual(await causes(make(api, 'new', { type: 'NodePort', ports: [{ port: 80, nodePort: 30_099 }] as never })), [])
    const deadlineMs = Date.now() + 5_000
    const notes = async () => (await api.client.of(eventsV1).list()).items.map(({ reason, note, regarding }) => `${regarding?.name} ${reason}: ${note}`)
    while (!(await notes()).includes('web PortNotAllocated: Port 30007 is not allocated; repairing')) {
      assert.ok(Date.now() < deadlineMs, 'no event tells about the port')
      await new Promise((resolve) => setImmediate(resolve))
    }
  })
})

test('SVC-02 the allocated node ports are stored as upstream stores them', async () => {
  const store = lastingStore(createMemoryStore({ clock: realClock }))
  await withServer({ ...network('10.96.0.0/24'), store }, async (api) => {
    await make(api, 'web', { type: 'NodePort', ports: [{ port: 80, nodePort: 30_009 }] as never })
    const { kvs } = await store.range('/registry/ranges/servicenodeports')
    assert.deepEqual(JSON.parse(Buffer.from(kvs[0]?.value ?? []).toString()), {
      kind: 'RangeAllocation',
      apiVersion: 'v1',
      metadata: {},
      range: '30000-30020',
      data: Buffer.from([2, 0]).toString('base64'),
    })
  })
})
