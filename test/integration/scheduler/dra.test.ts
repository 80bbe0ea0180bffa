/** Devices for pods in a whole cluster under virtual time: API server, controllers, scheduler, kubelets, and a simulated driver. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodSpec } from '#api/gen/types/core.v1'
import type { Device, DeviceRequest, DeviceToleration } from '#api/gen/types/resource.v1'
import { podCondition } from '#api/helpers/pods'
import { isStatus } from '#api/machinery/status'
import { deviceClasses, events, nodes, pods, resourceClaims, resourceClaimTemplates } from '#client/builtIn'
import { startCluster, type TestCluster } from '#testing/cluster'
import { SimulatedDraDriver } from '#testing/draDriver'

const namespace = 'default'
const driverName = 'gpu.example.com'
const finalizer = 'resource.kubernetes.io/delete-protection'
const selectors = [{ cel: { expression: `device.driver == "${driverName}" && device.attributes["${driverName}"].model == "a100"` } }]
const model = (name: string, value: string, more: Partial<Device> = {}): Device => ({ name, attributes: { model: { string: value } }, ...more })

async function withDevices(use: (cluster: TestCluster, driver: SimulatedDraDriver) => Promise<void>): Promise<void> {
  const cluster = await startCluster({ nodes: 2 })
  try {
    await cluster.client.of(deviceClasses).create({ metadata: { name: 'gpu' }, spec: { selectors } })
    await use(cluster, new SimulatedDraDriver(cluster.client, driverName))
  } finally {
    await cluster.close()
  }
}

const requests: DeviceRequest[] = [{ name: 'r', exactly: { deviceClassName: 'gpu' } }]

async function addClaim(cluster: TestCluster, name: string, tolerations: DeviceToleration[] = []): Promise<void> {
  const tolerant = [{ name: 'r', exactly: { deviceClassName: 'gpu', tolerations } }]
  await cluster.client.of(resourceClaims).create({ metadata: { namespace, name }, spec: { devices: { requests: tolerant } } })
}

async function addPod({ client }: TestCluster, name: string, claim: NonNullable<PodSpec['resourceClaims']>[number]): Promise<void> {
  const containers = [{ name: 'c', image: 'a', resources: { claims: [{ name: claim.name }] } }]
  await client.of(pods).create({ metadata: { namespace, name }, spec: { containers, resourceClaims: [claim], terminationGracePeriodSeconds: 0 } })
}

const running = ({ client, until }: TestCluster, name: string) =>
  until(async () => {
    const pod = await client.of(pods).get({ namespace, name })
    return pod.status?.phase === 'Running' && pod
  })

const messageOf = ({ client, until }: TestCluster, name: string) =>
  until(async () => (await client.of(pods).get({ namespace, name })).status?.conditions?.find(({ type }) => type === 'PodScheduled')?.message)

const isGone = (error: unknown): boolean => isStatus(error, 'NotFound')

test('DRA-02 a claim from a template gets the device that its class selects; the next pod waits until that one is given back', () =>
  withDevices(async (cluster, driver) => {
    const { client, until } = cluster
    await client.of(resourceClaimTemplates).create({ metadata: { namespace, name: 't' }, spec: { spec: { devices: { requests } } } })
    await addPod(cluster, 'first', { name: 'gpu', resourceClaimTemplateName: 't' })
    assert.match(await messageOf(cluster, 'first'), /^0\/2 nodes are available: 2 cannot allocate all claims\. still not schedulable, preemption: /)
    await driver.publish('n1', [model('g0', 'k80')])
    await driver.publish('n2', [model('g0', 'k80'), model('g1', 'a100')])
    const first = await running(cluster, 'first')
    assert.equal(first.spec.nodeName, 'n2')
    const name = first.status?.resourceClaimStatuses?.[0]?.resourceClaimName ?? ''
    const claim = await client.of(resourceClaims).get({ namespace, name })
    assert.deepEqual(claim.metadata.finalizers, [finalizer])
    assert.deepEqual(claim.status?.allocation?.devices, { results: [{ request: 'r', driver: driverName, pool: 'n2', device: 'g1' }] })
    assert.deepEqual(claim.status?.allocation?.nodeSelector?.nodeSelectorTerms, [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n2'] }] }])
    assert.deepEqual(claim.status?.reservedFor, [{ resource: 'pods', name: 'first', uid: first.metadata.uid }])

    await addPod(cluster, 'second', { name: 'gpu', resourceClaimTemplateName: 't' })
    assert.match(await messageOf(cluster, 'second'), /2 cannot allocate all claims/)
    await client.of(pods).delete({ namespace, name: 'first' })
    assert.equal((await running(cluster, 'second')).spec.nodeName, 'n2')
    await until(() =>
      client
        .of(resourceClaims)
        .get({ namespace, name })
        .then(() => false, isGone),
    )
    assert.deepEqual(cluster.complaints, [])
  }))

test('DRA-02 pods share a claim: the second goes where its devices are, and the devices are free when both are gone', () =>
  withDevices(async (cluster, driver) => {
    const { client, until } = cluster
    await driver.publish('n1', [model('g0', 'a100')])
    await addClaim(cluster, 'shared')
    for (const name of ['first', 'second']) {
      await addPod(cluster, name, { name: 'gpu', resourceClaimName: 'shared' })
      assert.equal((await running(cluster, name)).spec.nodeName, 'n1')
    }
    const claim = () => client.of(resourceClaims).get({ namespace, name: 'shared' })
    assert.deepEqual(
      (await claim()).status?.reservedFor?.map(({ name }) => name),
      ['first', 'second'],
    )
    for (const name of ['first', 'second']) await client.of(pods).delete({ namespace, name })
    await until(async () => (await claim()).status?.allocation === undefined)
    await until(async () => (await claim()).metadata.finalizers === undefined)
  }))

test('DRA-02 an idle claim that keeps a pod from the only node that would do is freed for it', () =>
  withDevices(async (cluster, driver) => {
    const { client } = cluster
    await driver.publish('n1', [model('g0', 'a100')])
    await driver.publish('n2', [model('g0', 'a100')])
    await addClaim(cluster, 'c')
    const claim = await client.of(resourceClaims).get({ namespace, name: 'c' })
    const nodeSelector = { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] }] }
    const allocation = { devices: { results: [{ request: 'r', driver: driverName, pool: 'n1', device: 'g0' }] }, nodeSelector }
    // The claim has no consumer, and its finalizer keeps it from being released.
    await client.of(resourceClaims).updateStatus({ ...claim, status: { allocation } })
    const containers = [{ name: 'c', image: 'a' }]
    const spec = { containers, nodeSelector: { 'kubernetes.io/hostname': 'n2' }, resourceClaims: [{ name: 'gpu', resourceClaimName: 'c' }] }
    await client.of(pods).create({ metadata: { namespace, name: 'p' }, spec })
    assert.equal((await running(cluster, 'p')).spec.nodeName, 'n2')
    assert.equal((await client.of(resourceClaims).get({ namespace, name: 'c' })).status?.allocation?.devices?.results?.[0]?.pool, 'n2')
  }))

test('DRA-04 a pod waits until its device is attached; one that cannot be is given up for another', () =>
  withDevices(async (cluster, driver) => {
    const { client, until } = cluster
    const attachable = (name: string) => model(name, 'a100', { bindingConditions: ['Attached'], bindingFailureConditions: ['Failed'] })
    await driver.publish('n1', [attachable('g0')])
    await addClaim(cluster, 'c')
    await addPod(cluster, 'p', { name: 'gpu', resourceClaimName: 'c' })
    const allocated = (device: string) =>
      until(async () => (await client.of(resourceClaims).get({ namespace, name: 'c' })).status?.allocation?.devices?.results?.[0]?.device === device)
    await allocated('g0')
    await until(async () => (await client.of(events).list({ namespace })).items.some(({ reason }) => reason === 'BindingConditionsPending'))
    assert.equal((await client.of(pods).get({ namespace, name: 'p' })).spec.nodeName, undefined)
    await driver.publish('n1', [attachable('g1')])
    await driver.report(namespace, 'c', 'Failed', 'True', '2026-01-01T00:00:00Z')
    await allocated('g1')
    await driver.report(namespace, 'c', 'Attached', 'True', '2026-01-01T00:00:00Z')
    assert.equal((await running(cluster, 'p')).spec.nodeName, 'n1')
  }))

test('DRA-04 pods on devices that are tainted are evicted: at once, when their toleration is over, or not at all when the taint goes', () =>
  withDevices(async (cluster, driver) => {
    const { client, until, clock } = cluster
    const tolerations = (seconds: number) => [{ key: 'broken', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: seconds }]
    const devices = (...taints: Device['taints'][]) => taints.map((one, index) => model(`g${index}`, 'a100', one ? { taints: one } : {}))
    const broken = [{ key: 'broken', value: 'yes', effect: 'NoExecute' }]
    await driver.publish('n1', devices(undefined, undefined, undefined))
    await addClaim(cluster, 'none')
    await addClaim(cluster, 'some', tolerations(60))
    await addClaim(cluster, 'long', tolerations(300))
    for (const name of ['none', 'some', 'long']) {
      await addPod(cluster, name, { name: 'gpu', resourceClaimName: name })
      await running(cluster, name)
    }
    const deletedSince = clock.monotonicMs()
    await driver.publish('n1', devices(broken, broken, broken))
    const gone = (name: string) =>
      until(() =>
        client
          .of(pods)
          .get({ namespace, name })
          .then(() => false, isGone),
      )
    await gone('none')
    assert.ok(clock.monotonicMs() - deletedSince < 10_000)
    const some = await client.of(pods).get({ namespace, name: 'some' })
    assert.equal(podCondition(some, 'DisruptionTarget'), undefined)
    await gone('some')
    const lastedMs = clock.monotonicMs() - deletedSince
    assert.ok(lastedMs >= 59_000 && lastedMs < 90_000, `${lastedMs}`)
    await driver.publish('n1', devices(undefined, undefined, undefined))
    await clock.advance(600_000)
    assert.equal((await client.of(pods).get({ namespace, name: 'long' })).status?.phase, 'Running')
    const { items } = await client.of(events).list({ namespace })
    const told = items.filter(({ reason }) => reason === 'DeviceTaintManagerEviction')
    assert.deepEqual(told.map(({ involvedObject, message }) => `${involvedObject.name}: ${message}`).sort(), [
      'long: Cancelling deletion',
      'none: Marking for deletion',
      'some: Marking for deletion',
    ])
    assert.deepEqual([...new Set(told.map(({ source }) => source?.component))], ['device-taint-eviction'])
  }))

const gpuResource = 'example.com/gpu'
const specialAnnotation = 'resource.kubernetes.io/extended-resource-claim'

async function addGpuPod({ client }: TestCluster, name: string, resource: string, count: number): Promise<void> {
  const amounts = { [resource]: String(count) }
  const containers = [{ name: 'c', image: 'a', resources: { requests: amounts, limits: amounts } }]
  await client.of(pods).create({ metadata: { namespace, name }, spec: { containers, terminationGracePeriodSeconds: 0 } })
}

const specialClaims = async ({ client }: TestCluster) =>
  (await client.of(resourceClaims).list({ namespace })).items.filter(({ metadata }) => metadata.annotations?.[specialAnnotation] === 'true')

test('DRA-05 an extended resource that a device class gives is taken from a driver; the claim made for it goes with the pod', () =>
  withDevices(async (cluster, driver) => {
    const { client, until } = cluster
    await addGpuPod(cluster, 'first', gpuResource, 2)
    assert.match(await messageOf(cluster, 'first'), /Insufficient example\.com\/gpu/)
    await driver.publish('n2', [model('g0', 'a100'), model('g1', 'a100'), model('g2', 'k80')])
    const gpuClass = await client.of(deviceClasses).get({ name: 'gpu' })
    await client.of(deviceClasses).update({ ...gpuClass, spec: { ...gpuClass.spec, extendedResourceName: gpuResource } })

    const first = await running(cluster, 'first')
    assert.equal(first.spec.nodeName, 'n2')
    const [claim, ...others] = await specialClaims(cluster)
    assert.deepEqual(others, [])
    assert.match(claim?.metadata.name ?? '', /^first-extended-resources-/)
    assert.deepEqual(
      claim?.metadata.ownerReferences?.map(({ kind, name, uid, controller }) => ({ kind, name, uid, controller })),
      [{ kind: 'Pod', name: 'first', uid: first.metadata.uid, controller: true }],
    )
    assert.deepEqual(first.status?.extendedResourceClaimStatus, {
      requestMappings: [{ containerName: 'c', requestName: 'container-0-request-0', resourceName: gpuResource }],
      resourceClaimName: claim?.metadata.name,
    })
    assert.deepEqual(claim?.status?.allocation?.devices?.results?.map(({ device }) => device).sort(), ['g0', 'g1'])
    assert.deepEqual(claim?.status?.reservedFor, [{ resource: 'pods', name: 'first', uid: first.metadata.uid }])

    // By the name that every class has, and no device is left.
    await addGpuPod(cluster, 'second', 'deviceclass.resource.kubernetes.io/gpu', 1)
    assert.match(await messageOf(cluster, 'second'), /2 cannot allocate all claims/)
    await client.of(pods).delete({ namespace, name: 'first' })
    assert.equal((await running(cluster, 'second')).spec.nodeName, 'n2')
    await until(async () => (await specialClaims(cluster)).every(({ metadata }) => metadata.name?.startsWith('second-')))
    assert.deepEqual(cluster.complaints, [])
  }))

test('DRA-05 a node that has the resource from a device plugin gives that, without a claim', () =>
  withDevices(async (cluster, driver) => {
    const { client } = cluster
    const gpuClass = await client.of(deviceClasses).get({ name: 'gpu' })
    await client.of(deviceClasses).update({ ...gpuClass, spec: { ...gpuClass.spec, extendedResourceName: gpuResource } })
    const amounts = { capacity: { [gpuResource]: '1' }, allocatable: { [gpuResource]: '1' } }
    await client.of(nodes).patch({ name: 'n1' }, 'strategic', { status: amounts }, { subresource: 'status' })
    await addGpuPod(cluster, 'plugged', gpuResource, 1)
    assert.equal((await placed(cluster, 'plugged')).spec.nodeName, 'n1')
    assert.deepEqual(await specialClaims(cluster), [])
    await driver.publish('n2', [model('g0', 'a100')])
    await addGpuPod(cluster, 'driven', gpuResource, 1)
    assert.equal((await placed(cluster, 'driven')).spec.nodeName, 'n2')
    assert.equal((await specialClaims(cluster)).length, 1)
  }))

/** Placed, whether or not it runs. */
const placed = ({ client, until }: TestCluster, name: string) =>
  until(async () => {
    const pod = await client.of(pods).get({ namespace, name })
    return pod.spec.nodeName !== undefined && pod
  })

test('DRA-05 a claim that a broken try has left is deleted before the pod is tried again', () =>
  withDevices(async (cluster, driver) => {
    const { client } = cluster
    await addGpuPod(cluster, 'p', 'deviceclass.resource.kubernetes.io/gpu', 1)
    assert.match(await messageOf(cluster, 'p'), /cannot allocate all claims/)
    const { uid = '' } = (await client.of(pods).get({ namespace, name: 'p' })).metadata
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid, controller: true }]
    const metadata = { namespace, name: 'left', annotations: { [specialAnnotation]: 'true' }, ownerReferences }
    await client.of(resourceClaims).create({ metadata, spec: { devices: { requests } } })
    await driver.publish('n1', [model('g0', 'a100')])
    assert.equal((await running(cluster, 'p')).spec.nodeName, 'n1')
    assert.deepEqual(
      (await specialClaims(cluster)).map(({ metadata: { name } }) => name?.startsWith('p-extended-resources-')),
      [true],
    )
  }))
