/** What users of test clusters ask for, each by its row of the list of their needs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  configMaps,
  cronJobs,
  deployments,
  jobs,
  leases,
  limitRanges,
  namespaces,
  networkPolicies,
  persistentVolumeClaims,
  podDisruptionBudgets,
  pods,
  podTemplates,
  priorityClasses,
  replicaSets,
  resourceQuotas,
  roleBindings,
  roles,
  secrets,
  serviceAccounts,
  services,
} from '#client/builtIn'
import type { Client } from '#client/client'
import { testKubectl, withoutKubectl } from '../../support/kubectl.ts'
import { withCluster } from './withCluster.ts'
import { addCronJob, addDeployment, podSpec } from './workloads.ts'

const namespace = 'default'
const isGone = (reading: Promise<unknown>) =>
  reading.then(
    () => undefined,
    (error: { readonly reason?: string }) => (error.reason === 'NotFound' ? true : undefined),
  )

test('user need 3: what an owner leaves behind is gone within half a second', () =>
  withCluster({ nodes: 0 }, async ({ client, clock, idle }) => {
    await addDeployment(client, 'web', 2)
    await clock.advance(2_000)
    assert.equal((await client.of(replicaSets).list({ namespace })).items.length, 1)
    await client.of(deployments).delete({ namespace, name: 'web' }, { propagationPolicy: 'Background' })
    await clock.advance(500)
    await idle()
    assert.deepEqual((await client.of(replicaSets).list({ namespace })).items, [])
    assert.deepEqual((await client.of(pods).list({ namespace })).items, [])
  }))

test('user need 3: an empty namespace is gone within a second', () =>
  withCluster({ nodes: 0 }, async ({ client, clock }) => {
    await client.of(namespaces).create({ metadata: { name: 'empty' }, spec: {} })
    await clock.advance(5_000)
    await client.of(namespaces).delete({ name: 'empty' })
    await clock.advance(1_000)
    assert.ok(await isGone(client.of(namespaces).get({ name: 'empty' })))
  }))

test('user need 3: controllers can be left out one by one: a status written by hand stays', () =>
  withCluster({ nodes: 1, controllers: ['*', '-deployment-controller'] }, async ({ client, clock }) => {
    const ref = { namespace, name: 'web' }
    await addDeployment(client, 'web', 2)
    await client.of(deployments).patch(ref, 'merge', { status: { replicas: 7, readyReplicas: 7 } }, { subresource: 'status' })
    await clock.advance(3_600_000)
    assert.equal((await client.of(deployments).get(ref)).status?.readyReplicas, 7)
    assert.deepEqual((await client.of(replicaSets).list({ namespace })).items, [])
    const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: (await client.of(deployments).get(ref)).metadata.uid ?? '' }
    await client.of(configMaps).create({ metadata: { namespace, name: 'owned', ownerReferences: [owner] } })
    await client.of(deployments).delete(ref)
    await clock.advance(500)
    assert.ok(await isGone(client.of(configMaps).get({ namespace, name: 'owned' })))
  }))

test('user need 8: a CronJob makes 30 Jobs in ten hours, each on its minute', () =>
  withCluster({ nodes: 0, scheduler: false, recordHistory: true }, async ({ client, clock, history }) => {
    await addCronJob(client, 'often', '*/20 * * * *')
    await clock.advance(10 * 3_600_000 + 60_000)
    const made = new Set(history().flatMap(({ type, key }) => (type === 'put' && key.startsWith('/registry/jobs/') ? [key] : [])))
    assert.equal(made.size, 30)
    assert.equal((await client.of(cronJobs).get({ namespace, name: 'often' })).status?.lastScheduleTime, '2026-01-01T10:00:00Z')
  }))

test('user need 9: idle() is enough to see the outcome of a write: no poll, no time passes', () =>
  withCluster({ nodes: 2 }, async ({ client, clock, idle }) => {
    const startMs = clock.now()
    await addDeployment(client, 'web', 5)
    await idle()
    const placed = (await client.of(pods).list({ namespace })).items.filter(({ spec }) => spec.nodeName)
    assert.deepEqual([placed.length, clock.now()], [5, startMs])
    await client.of(deployments).patch({ namespace, name: 'web' }, 'merge', { spec: { replicas: 1 } })
    await idle()
    assert.equal((await client.of(replicaSets).list({ namespace })).items[0]?.spec?.replicas, 1)
  }))

/** Fifty of each of twenty kinds. */
async function fill(client: Client, into: string): Promise<void> {
  const template = { metadata: { labels: { a: 'b' } }, spec: podSpec() }
  const selector = { matchLabels: { a: 'b' } }
  for (let number = 0; number < 50; number++) {
    const metadata = { namespace: into, name: `o-${number}` }
    await Promise.all([
      client.of(configMaps).create({ metadata }),
      client.of(secrets).create({ metadata }),
      client.of(serviceAccounts).create({ metadata }),
      client.of(services).create({ metadata, spec: { clusterIP: 'None', ports: [{ port: 80 }] } }),
      client.of(limitRanges).create({ metadata, spec: { limits: [] } }),
      client.of(resourceQuotas).create({ metadata, spec: {} }),
      client.of(podTemplates).create({ metadata, template }),
      client.of(pods).create({ metadata, spec: podSpec() }),
      client.of(persistentVolumeClaims).create({ metadata, spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } }),
      client.of(leases).create({ metadata, spec: {} }),
      client.of(roles).create({ metadata, rules: [] }),
      client.of(roleBindings).create({ metadata, roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: metadata.name } }),
      client.of(networkPolicies).create({ metadata, spec: { podSelector: {} } }),
      client.of(podDisruptionBudgets).create({ metadata, spec: { selector } }),
      client.of(deployments).create({ metadata, spec: { replicas: 0, selector, template } }),
      client.of(replicaSets).create({ metadata, spec: { replicas: 0, selector, template } }),
      client.of(jobs).create({ metadata, spec: { suspend: true, template: { spec: podSpec({ restartPolicy: 'Never' }) } } }),
      addCronJobIn(client, metadata),
    ])
  }
}

async function addCronJobIn(client: Client, metadata: { readonly namespace: string; readonly name: string }): Promise<void> {
  const template = { spec: podSpec({ restartPolicy: 'Never' }) }
  await client.of(cronJobs).create({ metadata, spec: { schedule: '0 0 1 1 *', suspend: true, jobTemplate: { spec: { template } } } })
}

test('user need 18: a namespace full of all sorts of objects is gone within two seconds', { timeout: 120_000 }, () =>
  withCluster({ nodes: 1, scheduler: false }, async ({ client, clock }) => {
    await client.of(namespaces).create({ metadata: { name: 'full' }, spec: {} })
    await clock.advance(1_000)
    await fill(client, 'full')
    await clock.advance(1_000)
    await client.of(namespaces).delete({ name: 'full' })
    await clock.advance(2_000)
    assert.ok(await isGone(client.of(namespaces).get({ name: 'full' })), 'the namespace is still there')
  }),
)

test('user need 18: the status of a stuck namespace lists the remaining objects and finalizers', () =>
  withCluster({ nodes: 0 }, async ({ client, clock }) => {
    await client.of(namespaces).create({ metadata: { name: 'stuck' }, spec: {} })
    const held = { namespace: 'stuck', name: 'held' }
    await client.of(configMaps).create({ metadata: { ...held, finalizers: ['example.com/mine'] } })
    await client.of(namespaces).delete({ name: 'stuck' })
    await clock.advance(60_000)
    const { conditions = [] } = (await client.of(namespaces).get({ name: 'stuck' })).status ?? {}
    const said = Object.fromEntries(conditions.filter(({ status }) => status === 'True').map(({ type, message }) => [type, message]))
    assert.match(said.NamespaceContentRemaining ?? '', /configmaps\. has 1 resource instances/)
    assert.match(said.NamespaceFinalizersRemaining ?? '', /example\.com\/mine in 1 resource instances/)
    await client.of(configMaps).patch(held, 'merge', { metadata: { finalizers: null } })
    await clock.advance(60_000)
    assert.ok(await isGone(client.of(namespaces).get({ name: 'stuck' })))
  }))

test('RES-07 the two classes of the system exist, with their values, and pods get them', () =>
  withCluster({ nodes: 0 }, async ({ client, idle }) => {
    await idle()
    const values = (await client.of(priorityClasses).list()).items.map(({ metadata, value }) => [metadata.name, value])
    assert.deepEqual(values.sort(), [
      ['system-cluster-critical', 2_000_000_000],
      ['system-node-critical', 2_000_001_000],
    ])
    const ref = { namespace: 'kube-system', name: 'critical' }
    const pod = await client.of(pods).create({ metadata: ref, spec: podSpec({ priorityClassName: 'system-node-critical' }) })
    assert.deepEqual([pod.spec.priority, pod.spec.preemptionPolicy], [2_000_001_000, 'PreemptLowerPriority'])
  }))

const guarded = { namespace, name: 'web' }

test('RES-05 an eviction waits until a disruption budget allows it, and unhealthyPodEvictionPolicy allows pods that are not ready', () =>
  withCluster({ nodes: 1 }, async ({ client, until, clock, node }) => {
    await addDeployment(client, 'web', 2)
    await client.of(podDisruptionBudgets).create({ metadata: guarded, spec: { minAvailable: 2, selector: { matchLabels: { app: 'web' } } } })
    const budget = async () => (await client.of(podDisruptionBudgets).get(guarded)).status
    await until(async () => ((await budget())?.currentHealthy === 2 ? true : undefined))
    const list = async () => (await client.of(pods).list({ namespace })).items
    const [{ metadata: { name = '' } = {} } = {}] = await list()
    const evict = (pod: string) => client.of(pods).createSubresource({ namespace, name: pod }, 'eviction', { metadata: { namespace, name: pod } })
    await assert.rejects(evict(name), (error: { readonly code?: number; readonly reason?: string }) => error.code === 429 && error.reason === 'TooManyRequests')
    await client.of(deployments).patch(guarded, 'merge', { spec: { replicas: 3 } })
    await until(async () => ((await budget())?.disruptionsAllowed === 1 ? true : undefined))
    await evict(name)
    await until(async () => ((await list()).some((pod) => pod.metadata.name === name) ? undefined : true))
    await until(async () => ((await budget())?.currentHealthy === 3 ? true : undefined))
    // One that is not ready is no loss; but the budget is short of two of three then, and only AlwaysAllow lets it go.
    await client.of(podDisruptionBudgets).patch(guarded, 'merge', { spec: { minAvailable: 3 } })
    const [{ metadata: { name: ill = '' } = {} } = {}] = await list()
    node('n1').exit({ namespace, name: ill }, { exitCode: 1 })
    node('n1').exit({ namespace, name: ill }, { exitCode: 1 })
    await clock.advance(200)
    await until(async () => {
      node('n1').exit({ namespace, name: ill }, { exitCode: 1 })
      const pod = (await list()).find(({ metadata }) => metadata.name === ill)
      return pod?.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CrashLoopBackOff' ? true : undefined
    })
    await assert.rejects(evict(ill), /disruption budget/)
    await client.of(podDisruptionBudgets).patch(guarded, 'merge', { spec: { unhealthyPodEvictionPolicy: 'AlwaysAllow' } })
    await evict(ill)
  }))

test('RES-05 kubectl drain keeps to the budget and ends when all pods have gone elsewhere', { skip: withoutKubectl, timeout: 60_000 }, () =>
  withCluster({ nodes: 2, clock: 'real' }, async (cluster) => {
    const { client, until } = cluster
    await client.of(podDisruptionBudgets).create({ metadata: guarded, spec: { minAvailable: 2, selector: { matchLabels: { app: 'web' } } } })
    await addDeployment(client, 'web', 3)
    const list = async () => (await client.of(pods).list({ namespace })).items
    await until(async () => ((await client.of(deployments).get(guarded)).status?.readyReplicas === 3 ? true : undefined), 30_000)
    const target = (await list())[0]?.spec.nodeName ?? ''
    const kubectl = testKubectl(await cluster.listen())
    try {
      const said = await kubectl.must(`drain ${target} --ignore-daemonsets --timeout=50s`)
      assert.match(said, new RegExp(`node/${target} (drained|evicted)`))
    } finally {
      kubectl.remove()
    }
    assert.deepEqual((await list()).filter(({ spec, metadata }) => spec.nodeName === target && !metadata.deletionTimestamp).length, 0)
    await until(async () => ((await client.of(deployments).get(guarded)).status?.readyReplicas === 3 ? true : undefined), 30_000)
  }),
)
