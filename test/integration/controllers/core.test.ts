import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { configMaps, endpointSlices, endpoints, namespaces, nodes, pods, serviceAccounts, services } from '#client/builtIn'
import { eventually, startTestCluster, type TestCluster } from './cluster.ts'

let cluster: TestCluster
before(async () => {
  cluster = await startTestCluster({ rootCa: 'PEM' })
})
after(() => cluster.close())

const pod = (namespace: string, name: string, extra: object = {}) => ({
  metadata: { namespace, name, labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image: 'a', ports: [{ name: 'http', containerPort: 8080 }] }], ...extra },
})

test('CTL-13 CTL-19 a new namespace gets its service account and the CA, and both are recreated when deleted', async () => {
  await cluster.client.of(namespaces).create({ metadata: { name: 'fresh' }, spec: {} })
  const account = () => cluster.client.of(serviceAccounts).get({ namespace: 'fresh', name: 'default' })
  const ca = () => cluster.client.of(configMaps).get({ namespace: 'fresh', name: 'kube-root-ca.crt' })
  const { metadata } = await eventually(account)
  assert.deepEqual((await eventually(ca)).data, { 'ca.crt': 'PEM' })
  await cluster.client.of(serviceAccounts).delete({ namespace: 'fresh', name: 'default' })
  await eventually(async () => (await account()).metadata.uid !== metadata.uid)
  await cluster.client.of(configMaps).patch({ namespace: 'fresh', name: 'kube-root-ca.crt' }, 'merge', { data: { 'ca.crt': 'tampered' } })
  await eventually(async () => (await ca()).data?.['ca.crt'] === 'PEM')
})

test('CTL-09 nodes get distinct pod address blocks', async () => {
  for (const name of ['a', 'b']) await cluster.client.of(nodes).create({ metadata: { name }, spec: {} })
  const blocks = await eventually(async () => {
    const all = (await cluster.client.of(nodes).list()).items.map(({ spec }) => spec.podCIDR)
    return all.every((cidr) => cidr !== undefined) && all
  })
  assert.deepEqual(new Set(blocks), new Set(['10.244.0.0/24', '10.244.1.0/24']))
})

test('CTL-12 endpoint slices follow pods and their readiness', async () => {
  const namespace = 'default'
  await cluster.client.of(services).create({
    metadata: { namespace, name: 'web', labels: { l: '1' } },
    spec: { selector: { app: 'web' }, ports: [{ name: 'p', port: 80, targetPort: 'http' }] },
  })
  const slices = async () => (await cluster.client.of(endpointSlices).list({ namespace, labelSelector: 'kubernetes.io/service-name=web' })).items
  await eventually(async () => (await slices()).length === 1)
  for (const name of ['x', 'y']) await cluster.client.of(pods).create(pod(namespace, name))
  await eventually(async () => {
    const [slice, ...others] = await slices()
    assert.equal(others.length, 0)
    assert.deepEqual(slice?.ports, [{ name: 'p', port: 8080, protocol: 'TCP' }])
    assert.deepEqual(
      slice?.endpoints?.map(({ conditions }) => conditions),
      [
        { ready: true, serving: true, terminating: false },
        { ready: true, serving: true, terminating: false },
      ],
    )
    return true
  })
  const [slice] = await slices()
  assert.deepEqual(slice?.metadata.labels, {
    l: '1',
    'kubernetes.io/service-name': 'web',
    'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
  })
  assert.equal(slice?.metadata.ownerReferences?.[0]?.kind, 'Service')
  const conditions = [{ type: 'Ready', status: 'False' }]
  await cluster.client.of(pods).patch({ namespace, name: 'x' }, 'strategic', { status: { conditions } }, { subresource: 'status' })
  await eventually(async () => (await slices())[0]?.endpoints?.find(({ targetRef }) => targetRef?.name === 'x')?.conditions?.ready === false)
  await cluster.client.of(pods).delete({ namespace, name: 'x' })
  await eventually(async () => (await slices())[0]?.endpoints?.length === 1)
})

test('CTL-12 hand-written Endpoints of a service without a selector are mirrored', async () => {
  const namespace = 'default'
  await cluster.client.of(services).create({ metadata: { namespace, name: 'outside' }, spec: { ports: [{ port: 80 }] } })
  const subsets = [{ addresses: [{ ip: '192.0.2.7' }], ports: [{ port: 8080 }] }]
  const made = await cluster.client.of(endpoints).create({ metadata: { namespace, name: 'outside' }, subsets })
  const slices = async () => (await cluster.client.of(endpointSlices).list({ namespace, labelSelector: 'kubernetes.io/service-name=outside' })).items
  await eventually(async () => {
    const [slice, ...others] = await slices()
    assert.equal(others.length, 0)
    assert.deepEqual([slice?.endpoints?.[0]?.addresses, slice?.ports?.[0]?.port], [['192.0.2.7'], 8080])
    return slice?.metadata.ownerReferences?.[0]?.uid === made.metadata.uid
  })
  await cluster.client.of(endpoints).delete({ namespace, name: 'outside' })
  await eventually(async () => (await slices()).length === 0)
})

test('CTL-10 ARC-15 deleting a namespace empties it, pods first, and waits for finalizers', async () => {
  const name = 'doomed'
  await cluster.client.of(namespaces).create({ metadata: { name }, spec: {} })
  await cluster.client.of(pods).create(pod(name, 'p'))
  await cluster.client.of(configMaps).create({ metadata: { namespace: name, name: 'kept', finalizers: ['example.com/hold'] } })
  await cluster.client.of(namespaces).delete({ name })
  await eventually(async () => {
    const { status } = await cluster.client.of(namespaces).get({ name })
    const condition = status.conditions?.find(({ type }) => type === 'NamespaceFinalizersRemaining')
    assert.equal(condition?.message, 'Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances')
    return status.phase === 'Terminating'
  })
  assert.equal((await cluster.client.of(pods).list({ namespace: name })).items.length, 0)
  await cluster.client.of(configMaps).patch({ namespace: name, name: 'kept' }, 'merge', { metadata: { finalizers: null } })
  await eventually(async () =>
    cluster.client
      .of(namespaces)
      .get({ name })
      .then(
        () => false,
        (error: unknown) => isStatus(error, 'NotFound'),
      ),
  )
  assert.deepEqual(cluster.complaints, [])
})

test('CTL-10 CVE-2024-7598 a NetworkPolicy stays until the last pod of its namespace is gone', async () => {
  const name = 'guarded'
  await cluster.client.of(namespaces).create({ metadata: { name }, spec: {} })
  const made = pod(name, 'p')
  await cluster.client.of(pods).create({ ...made, metadata: { ...made.metadata, finalizers: ['example.com/hold'] } })
  const policies = `/apis/networking.k8s.io/v1/namespaces/${name}/networkpolicies`
  const request = async (method: 'GET' | 'POST', path: string, body?: unknown) =>
    (await cluster.client.transport.request({ method, path, body })).body as { metadata: { deletionTimestamp?: string } }
  await request('POST', policies, { metadata: { name: 'none' }, spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'] } })
  await cluster.client.of(namespaces).delete({ name })
  await eventually(async () => {
    const { status } = await cluster.client.of(namespaces).get({ name })
    const condition = status.conditions?.find(({ type }) => type === 'NamespaceContentRemaining')
    return condition?.message === 'Some resources are remaining: pods. has 1 resource instances'
  })
  assert.equal((await request('GET', `${policies}/none`)).metadata.deletionTimestamp, undefined)
  await cluster.client.of(pods).patch({ namespace: name, name: 'p' }, 'merge', { metadata: { finalizers: null } })
  await eventually(async () => (await cluster.client.of(namespaces).list()).items.every(({ metadata }) => metadata.name !== name))
})

test('CTL-10 a pod that something holds is no failure of the namespace’s end', async () => {
  const name = 'stuck'
  await cluster.client.of(namespaces).create({ metadata: { name }, spec: {} })
  const made = pod(name, 'p')
  await cluster.client.of(pods).create({ ...made, metadata: { ...made.metadata, finalizers: ['example.com/hold'] } })
  await cluster.client.of(namespaces).delete({ name })
  const condition = async (type: string) => (await cluster.client.of(namespaces).get({ name })).status.conditions?.find((one) => one.type === type)
  await eventually(async () => (await condition('NamespaceContentRemaining'))?.message === 'Some resources are remaining: pods. has 1 resource instances')
  assert.equal((await condition('NamespaceDeletionContentFailure'))?.status, 'False')
  await cluster.client.of(pods).patch({ namespace: name, name: 'p' }, 'merge', { metadata: { finalizers: null } })
  await eventually(async () => (await cluster.client.of(namespaces).list()).items.every(({ metadata }) => metadata.name !== name))
})
