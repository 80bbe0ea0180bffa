/**
 * Scenarios that take the control plane many calls, and what must be true at the end of each, however often a component died meanwhile.
 * Every run has a namespace of its own, so that one cluster serves many.
 */
import assert from 'node:assert/strict'
import type { PodSpec } from '#api/gen/types/core.v1'
import { requestedRemovals } from '#api/helpers/localPath'
import type { KubeObject } from '#api/machinery/meta'
import {
  configMaps,
  controllerRevisions,
  deployments,
  endpointSlices,
  events,
  jobs,
  namespaces,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  replicaSets,
  secrets,
  serviceAccounts,
  services,
  statefulSets,
  storageClasses,
} from '#client/builtIn'
import type { Client, Resource } from '#client/client'
import { ensureLocalPathAccess } from '#main/layouts/localPathStorage'

export interface Scenario {
  readonly name: string
  /** The row that it proves. */
  readonly row: string
  /** Makes what has to be there before. */
  prepare(client: Client, namespace: string): Promise<void>
  /** True when the preparations are done. */
  isReady(client: Client, namespace: string): Promise<boolean>
  /** What sets the control plane to work. */
  act(client: Client, namespace: string): Promise<void>
  /** Throws while something is not as it must be in the end. */
  check(client: Client, namespace: string): Promise<void>
}

const labels = { app: 'web' }
const podSpec = (image: string, fields: Partial<PodSpec> = {}): PodSpec => ({
  terminationGracePeriodSeconds: 2,
  containers: [{ name: 'main', image }],
  ...fields,
})
const template = (image: string) => ({ metadata: { labels }, spec: podSpec(image) })
const workload = (replicas: number) => ({ replicas, selector: { matchLabels: labels }, template: template('example.com/app:1') })
const newImage = { spec: { template: template('example.com/app:2') } }
const imagesOf = async (client: Client, namespace: string) => (await client.of(pods).list({ namespace })).items.map(({ spec }) => spec.containers[0]?.image)

async function addNamespace(client: Client, name: string): Promise<void> {
  await client.of(namespaces).create({ metadata: { name }, spec: {} })
}

const rollout: Scenario = {
  name: 'rollout',
  row: 'CTL-04',
  async prepare(client, namespace) {
    await addNamespace(client, namespace)
    await client.of(deployments).create({ metadata: { namespace, name: 'web' }, spec: workload(4) })
  },
  isReady: async (client, namespace) => (await client.of(deployments).get({ namespace, name: 'web' })).status?.availableReplicas === 4,
  async act(client, namespace) {
    await client.of(deployments).patch({ namespace, name: 'web' }, 'strategic', { spec: { ...newImage.spec, replicas: 6 } })
  },
  async check(client, namespace) {
    const { status, metadata } = await client.of(deployments).get({ namespace, name: 'web' })
    const counts = [status?.replicas, status?.updatedReplicas, status?.availableReplicas, status?.unavailableReplicas, status?.observedGeneration]
    assert.deepEqual(counts, [6, 6, 6, undefined, metadata.generation])
    assert.deepEqual([...new Set(await imagesOf(client, namespace))], ['example.com/app:2'])
    const sets = (await client.of(replicaSets).list({ namespace })).items
    assert.deepEqual(sets.map(({ spec }) => spec.replicas).sort(), [0, 6])
    assert.equal((await client.of(pods).list({ namespace })).items.length, 6)
  },
}

const job: Scenario = {
  name: 'job',
  row: 'CTL-07',
  prepare: addNamespace,
  isReady: async () => true,
  async act(client, namespace) {
    const spec = podSpec('example.com/task:1', { restartPolicy: 'Never' })
    await client.of(jobs).create({ metadata: { namespace, name: 'batch' }, spec: { completions: 8, parallelism: 3, template: { spec } } })
    const completionMode = 'Indexed'
    await client.of(jobs).create({ metadata: { namespace, name: 'indexed' }, spec: { completions: 4, parallelism: 2, completionMode, template: { spec } } })
  },
  async check(client, namespace) {
    for (const [name, completions] of [
      ['batch', 8],
      ['indexed', 4],
    ] as const) {
      const { status } = await client.of(jobs).get({ namespace, name })
      assert.equal(status.conditions?.find(({ type }) => type === 'Complete')?.status, 'True')
      assert.deepEqual([status.succeeded, status.failed, status.active, status.terminating], [completions, undefined, undefined, 0])
      assert.deepEqual(status.uncountedTerminatedPods, {})
    }
    const all = (await client.of(pods).list({ namespace })).items
    assert.deepEqual(
      all.flatMap(({ metadata }) => metadata.finalizers ?? []),
      [],
    )
    assert.equal(all.length, 12)
    assert.ok(all.every(({ status }) => status.phase === 'Succeeded'))
  },
}

const statefulUpdate: Scenario = {
  name: 'statefulset',
  row: 'CTL-05',
  async prepare(client, namespace) {
    await addNamespace(client, namespace)
    await client.of(statefulSets).create({ metadata: { namespace, name: 'db' }, spec: { serviceName: 'db', ...workload(3) } })
  },
  isReady: async (client, namespace) => (await client.of(statefulSets).get({ namespace, name: 'db' })).status?.availableReplicas === 3,
  async act(client, namespace) {
    await client.of(statefulSets).patch({ namespace, name: 'db' }, 'strategic', { spec: { ...newImage.spec, replicas: 4 } })
  },
  async check(client, namespace) {
    const { status } = await client.of(statefulSets).get({ namespace, name: 'db' })
    assert.deepEqual([status?.replicas, status?.updatedReplicas, status?.currentReplicas, status?.availableReplicas], [4, 4, 4, 4])
    assert.equal(status?.currentRevision, status?.updateRevision)
    assert.deepEqual([...new Set(await imagesOf(client, namespace))], ['example.com/app:2'])
    const names = (await client.of(pods).list({ namespace })).items.map(({ metadata }) => metadata.name)
    assert.deepEqual(names.sort(), ['db-0', 'db-1', 'db-2', 'db-3'])
    const revisions = (await client.of(controllerRevisions).list({ namespace })).items.map(({ revision }) => revision)
    assert.deepEqual(revisions.sort(), [1, 2])
  },
}

const held = { finalizers: ['example.com/held'] }

const namespaceDeletion: Scenario = {
  name: 'namespace',
  row: 'CTL-10',
  async prepare(client, namespace) {
    await addNamespace(client, namespace)
    await client.of(deployments).create({ metadata: { namespace, name: 'web' }, spec: workload(2) })
    await client.of(statefulSets).create({ metadata: { namespace, name: 'db' }, spec: { serviceName: 'db', ...workload(1) } })
    const annotations = { 'skiff.dev/simulated-exit-after-seconds': '3600' }
    const spec = podSpec('example.com/task:1', { restartPolicy: 'Never' })
    await client
      .of(jobs)
      .create({ metadata: { namespace, name: 'batch' }, spec: { parallelism: 2, completions: 2, template: { metadata: { annotations }, spec } } })
    await client.of(services).create({ metadata: { namespace, name: 'web' }, spec: { selector: labels, ports: [{ port: 80 }] } })
    await client.of(configMaps).create({ metadata: { namespace, name: 'kept', ...held } })
    const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
    await client.of(persistentVolumeClaims).create({ metadata: { namespace, name: 'data' }, spec: claim })
  },
  isReady: async (client, namespace) => {
    const all = (await client.of(pods).list({ namespace })).items
    return all.length === 5 && all.every(({ status }) => status.phase === 'Running')
  },
  async act(client, namespace) {
    await client.of(deployments).patch({ namespace, name: 'web' }, 'merge', { spec: { replicas: 5 } })
    // The namespace is deleted while pods are created and scheduled. Controllers may have died, and then no more pods are created while time stands still.
    for (let looks = 0, there = 0; there < 7 && looks < 200; looks++) there = (await client.of(pods).list({ namespace })).items.length
    await client.of(namespaces).delete({ name: namespace })
    // Only after the namespace has begun to go: its end must wait for the one who holds something in it.
    await client.of(configMaps).patch({ namespace, name: 'kept' }, 'merge', { metadata: { finalizers: null } })
  },
  async check(client, namespace) {
    const there = (await client.of(namespaces).list()).items.map(({ metadata }) => metadata.name)
    assert.ok(!there.includes(namespace), 'the namespace is gone')
    const kinds: Resource<KubeObject>[] = [
      pods,
      replicaSets,
      deployments,
      statefulSets,
      jobs,
      services,
      endpointSlices,
      configMaps,
      secrets,
      serviceAccounts,
      persistentVolumeClaims,
    ]
    for (const kind of kinds) {
      const left = (await client.of(kind).list({ namespace })).items
      assert.deepEqual(
        left.map(({ metadata }) => metadata.name),
        [],
      )
    }
  },
}

const atOnce = 14
const withPods = 6
const volumeClaims = Array.from({ length: atOnce + withPods }, (_, index) => ({ name: `claim-${index}`, waits: index >= atOnce }))

/** The controller binds some claims alone, for others the scheduler chooses the volume; there are as many volumes as claims. */
const volumeBinding: Scenario = {
  name: 'volumes',
  row: 'STO-04',
  async prepare(client, namespace) {
    await addNamespace(client, namespace)
    const provisioner = 'kubernetes.io/no-provisioner'
    await client.of(storageClasses).create({ metadata: { name: `${namespace}-late` }, provisioner, volumeBindingMode: 'WaitForFirstConsumer' })
    for (const { name, waits } of volumeClaims) {
      const storageClassName = `${namespace}-${waits ? 'late' : 'now'}`
      const spec = { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, storageClassName, hostPath: { path: '/data' } }
      await client.of(persistentVolumes).create({ metadata: { name: `${namespace}-${name}`, labels: { run: namespace } }, spec })
    }
  },
  isReady: async (client, namespace) => {
    const { items } = await client.of(persistentVolumes).list({ labelSelector: `run=${namespace}` })
    return items.every(({ status }) => status?.phase === 'Available')
  },
  async act(client, namespace) {
    for (const { name, waits } of volumeClaims) {
      const storageClassName = `${namespace}-${waits ? 'late' : 'now'}`
      const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName }
      await client.of(persistentVolumeClaims).create({ metadata: { namespace, name }, spec })
      const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: name } }]
      if (waits) await client.of(pods).create({ metadata: { namespace, name }, spec: podSpec('example.com/app:1', { volumes }) })
    }
  },
  async check(client, namespace) {
    const claims = (await client.of(persistentVolumeClaims).list({ namespace })).items
    const volumes = (await client.of(persistentVolumes).list({ labelSelector: `run=${namespace}` })).items
    assert.deepEqual([...new Set([...claims, ...volumes].map(({ status }) => status?.phase))], ['Bound'])
    const fromClaims = claims.map(({ metadata, spec }) => `${metadata.uid} ${spec.volumeName}`).sort()
    const fromVolumes = volumes.map(({ metadata, spec }) => `${spec.claimRef?.uid} ${metadata.name}`).sort()
    assert.equal(claims.length, volumeClaims.length)
    assert.deepEqual(fromVolumes, fromClaims)
    const told = (await client.of(events).list({ namespace })).items.map(({ reason }) => reason)
    assert.deepEqual(
      told.filter((reason) => reason === 'ClaimMisbound' || reason === 'ClaimLost'),
      [],
    )
    const phases = (await client.of(pods).list({ namespace })).items.map(({ status }) => status.phase)
    assert.deepEqual([...new Set(phases)], ['Running'])
  },
}

const leaving = ['old-0', 'old-1', 'old-2']
const coming = ['new-0', 'new-1', 'new-2']
const ofLocalClass = async (client: Client, namespace: string) => {
  const { items } = await client.of(persistentVolumes).list()
  return items.filter(({ spec }) => spec.storageClassName === `${namespace}-local`)
}

async function addLocalClaims(client: Client, namespace: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: `${namespace}-local` }
    await client.of(persistentVolumeClaims).create({ metadata: { namespace, name }, spec })
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: name } }]
    await client.of(pods).create({ metadata: { namespace, name }, spec: podSpec('example.com/app:1', { volumes }) })
  }
}

/** Claims get local volumes while others are deleted, whose directories the nodes remove. */
const localVolumes: Scenario = {
  name: 'localVolumes',
  row: 'STO-06',
  async prepare(client, namespace) {
    await addNamespace(client, namespace)
    await ensureLocalPathAccess(client, new AbortController().signal)
    const provisioner = 'skiff.dev/local-path'
    await client.of(storageClasses).create({ metadata: { name: `${namespace}-local` }, provisioner, volumeBindingMode: 'WaitForFirstConsumer' })
    await addLocalClaims(client, namespace, leaving)
  },
  isReady: async (client, namespace) => {
    const phases = (await client.of(pods).list({ namespace })).items.map(({ status }) => status.phase)
    return phases.every((phase) => phase === 'Running')
  },
  async act(client, namespace) {
    for (const resource of [pods, persistentVolumeClaims] as const) {
      for (const name of leaving) await client.of(resource as Resource<KubeObject>).delete({ namespace, name })
    }
    await addLocalClaims(client, namespace, coming)
  },
  async check(client, namespace) {
    const claims = (await client.of(persistentVolumeClaims).list({ namespace })).items
    assert.deepEqual(
      claims.map(({ metadata, status }) => `${metadata.name} ${status.phase}`).sort(),
      coming.map((name) => `${name} Bound`),
    )
    const volumes = await ofLocalClass(client, namespace)
    assert.deepEqual(volumes.map(({ metadata }) => metadata.name).sort(), claims.map(({ metadata }) => `pvc-${metadata.uid}`).sort())
    const phases = (await client.of(pods).list({ namespace })).items.map(({ metadata, status }) => `${metadata.name} ${status.phase}`)
    assert.deepEqual(
      phases.sort(),
      coming.map((name) => `${name} Running`),
    )
    assert.deepEqual((await client.of(nodes).list()).items.flatMap(requestedRemovals), [])
  },
}

export const scenarios: readonly Scenario[] = [rollout, job, statefulUpdate, namespaceDeletion, volumeBinding, localVolumes]
