/** Services of type LoadBalancer get addresses of nodes, from a controller with its own rights. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ServiceSpec } from '#api/gen/types/core.v1'
import { endpointSlices, events, nodes, services } from '#client/builtIn'
import { eventually, startTestCluster, type TestCluster } from './cluster.ts'

const namespace = 'default'

async function withCluster(use: (cluster: TestCluster) => Promise<void>): Promise<void> {
  const cluster = await startTestCluster()
  try {
    await use(cluster)
    assert.deepEqual(cluster.complaints, [])
  } finally {
    await cluster.close()
  }
}

async function addNode({ client }: TestCluster, name: string, address: string): Promise<void> {
  await client.of(nodes).create({ metadata: { name }, spec: {} })
  await setReady(client, name, 'True', address)
}

async function setReady(client: TestCluster['client'], name: string, status: string, address: string): Promise<void> {
  const addresses = [{ type: 'InternalIP', address }]
  const daemonEndpoints = { kubeletEndpoint: { Port: 10_250 } }
  await client
    .of(nodes)
    .patch({ name }, 'strategic', { status: { conditions: [{ type: 'Ready', status }], addresses, daemonEndpoints } }, { subresource: 'status' })
}

const addService = ({ client }: TestCluster, name: string, port: number, spec: Partial<ServiceSpec> = {}) =>
  client.of(services).create({ metadata: { namespace, name }, spec: { type: 'LoadBalancer', selector: { app: name }, ports: [{ port }], ...spec } })

const addressesOf = async ({ client }: TestCluster, name: string) =>
  ((await client.of(services).get({ namespace, name })).status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip).join()

const eventuallyHas = (cluster: TestCluster, name: string, addresses: string) => eventually(async () => (await addressesOf(cluster, name)) === addresses)

const eventsOf = async ({ client }: TestCluster, name: string) =>
  (await client.of(events).list({ namespace })).items
    .filter(({ involvedObject }) => involvedObject.name === name)
    .map(({ reason, message }) => `${reason}: ${message}`)

test('CTL-11 a service gets the addresses of the ready nodes, follows them, and gives them back with its type', () =>
  withCluster(async (cluster) => {
    await addService(cluster, 'web', 80)
    await eventually(async () => (await eventsOf(cluster, 'web')).includes('UnAvailableLoadBalancer: There are no available nodes for LoadBalancer'))
    await addNode(cluster, 'a', '192.0.2.1')
    await eventuallyHas(cluster, 'web', '192.0.2.1')
    await addNode(cluster, 'b', '192.0.2.2')
    await eventuallyHas(cluster, 'web', '192.0.2.1,192.0.2.2')
    await setReady(cluster.client, 'a', 'False', '192.0.2.1')
    await eventuallyHas(cluster, 'web', '192.0.2.2')
    await cluster.client.of(services).patch({ namespace, name: 'web' }, 'merge', { spec: { type: 'ClusterIP' } })
    await eventuallyHas(cluster, 'web', '')
    const told = ['EnsuringLoadBalancer', 'EnsuredLoadBalancer', 'UpdatedLoadBalancer', 'DeletingLoadBalancer', 'DeletedLoadBalancer']
    await eventually(async () => {
      const reasons = (await eventsOf(cluster, 'web')).map((event) => event.split(':')[0] ?? '')
      return told.every((reason) => reasons.includes(reason))
    })
  }))

test('CTL-11 a port of an address has one service: the second gets an event, and takes over when the first is deleted', () =>
  withCluster(async (cluster) => {
    await addNode(cluster, 'a', '192.0.2.1')
    await addService(cluster, 'first', 80)
    await eventuallyHas(cluster, 'first', '192.0.2.1')
    await addService(cluster, 'second', 80)
    const taken = 'Error syncing load balancer: failed to ensure load balancer: port 80/TCP of 192.0.2.1 is taken by'
    await eventually(async () => (await eventsOf(cluster, 'second')).includes(`SyncLoadBalancerFailed: ${taken} service default/first`))
    await addService(cluster, 'other', 81)
    await eventuallyHas(cluster, 'other', '192.0.2.1')
    assert.equal(await addressesOf(cluster, 'second'), '')
    await cluster.client.of(services).delete({ namespace, name: 'first' })
    await eventuallyHas(cluster, 'second', '192.0.2.1')
  }))

test('CTL-11 the ports of the kubelet stay the kubelet’s, and services of another class are left alone', () =>
  withCluster(async (cluster) => {
    await addNode(cluster, 'a', '192.0.2.1')
    await addService(cluster, 'greedy', 10_250)
    await eventually(async () => (await eventsOf(cluster, 'greedy')).some((event) => event.endsWith('port 10250/TCP of 192.0.2.1 is taken by the kubelet')))
    await addService(cluster, 'foreign', 80, { loadBalancerClass: 'example.com/own' })
    const ingress = [{ ip: '198.51.100.1' }]
    await cluster.client.of(services).patch({ namespace, name: 'foreign' }, 'merge', { status: { loadBalancer: { ingress } } }, { subresource: 'status' })
    await addService(cluster, 'last', 80)
    await eventuallyHas(cluster, 'last', '192.0.2.1')
    assert.deepEqual([await addressesOf(cluster, 'greedy'), await addressesOf(cluster, 'foreign')], ['', '198.51.100.1'])
  }))

test('CTL-11 with the Local policy only nodes with a ready endpoint count', () =>
  withCluster(async (cluster) => {
    await addNode(cluster, 'a', '192.0.2.1')
    await addNode(cluster, 'b', '192.0.2.2')
    await addService(cluster, 'near', 80, { externalTrafficPolicy: 'Local', selector: {} })
    const slices = cluster.client.of(endpointSlices)
    const endpoint = (nodeName: string, ready: boolean) => ({ addresses: ['10.0.0.1'], nodeName, conditions: { ready } })
    const metadata = { namespace, name: 'near-1', labels: { 'kubernetes.io/service-name': 'near' } }
    await slices.create({ metadata, addressType: 'IPv4', endpoints: [endpoint('a', false), endpoint('b', true)], ports: [{ port: 80 }] })
    await eventuallyHas(cluster, 'near', '192.0.2.2')
    await slices.patch({ namespace, name: 'near-1' }, 'merge', { endpoints: [endpoint('a', true)] })
    await eventuallyHas(cluster, 'near', '192.0.2.1')
  }))
