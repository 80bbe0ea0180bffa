/** Budgets over pods of any controller, and marks of evictions that never came, with the rights of the controller's service account. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import type { PodDisruptionBudget } from '#api/gen/types/policy.v1'
import { formatTime } from '#base/time'
import { configMaps, customResourceDefinitions, deployments, events, namespaced, podDisruptionBudgets, pods } from '#client/builtIn'
import { realClock } from '#testing/realClock'
import { eventually, startTestCluster, type TestCluster } from './cluster.ts'

let cluster: TestCluster
before(async () => {
  cluster = await startTestCluster()
})
after(() => cluster.close())

const namespace = 'default'
const spec = { containers: [{ name: 'c', image: 'a' }] }
const budget = (name: string, more: Partial<PodDisruptionBudget['spec']>) =>
  cluster.client.of(podDisruptionBudgets).create({ metadata: { namespace, name }, spec: { selector: { matchLabels: { app: name } }, ...more } })
const statusOf = async (name: string) => (await cluster.client.of(podDisruptionBudgets).get({ namespace, name })).status
const allows = (name: string, want: [allowed: number, healthy: number, desired: number, expected: number]) =>
  eventually(async () => {
    const status = await statusOf(name)
    assert.deepEqual([status?.disruptionsAllowed, status?.currentHealthy, status?.desiredHealthy, status?.expectedPods], want)
    return true
  })
const reasonOf = async (name: string) => (await statusOf(name))?.conditions?.find(({ type }) => type === 'DisruptionAllowed')?.reason
const controllerPod = (app: string, name: string, owner: { apiVersion: string; kind: string; name: string; uid: string }): Parameters<typeof create>[0] => ({
  metadata: { namespace, name, labels: { app }, ownerReferences: [{ ...owner, controller: true }] },
  spec,
})
const create = (pod: { metadata: Pod['metadata']; spec: Pod['spec'] }) => cluster.client.of(pods).create(pod)

test("CTL-17 a percentage refers to the deployment's replicas", async () => {
  const labels = { app: 'web' }
  await budget('web', { minAvailable: '50%' })
  await cluster.client
    .of(deployments)
    .create({ metadata: { namespace, name: 'web' }, spec: { replicas: 4, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } } })
  await allows('web', [2, 4, 2, 4])
  assert.equal(await reasonOf('web'), 'SufficientPods')
})

test("CTL-17 a percentage refers to a custom resource's replicas, through its scale", async () => {
  type Fleet = { apiVersion: string; kind: string; metadata: Pod['metadata']; spec: { replicas: number } }
  const fleets = namespaced<Fleet>('example.com', 'v1', 'fleets', 'Fleet')
  const integer = { type: 'integer' }
  const part = { type: 'object', properties: { replicas: integer } }
  await cluster.client.of(customResourceDefinitions).create({
    metadata: { name: 'fleets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'fleets', kind: 'Fleet' },
      versions: [
        {
          ...{ name: 'v1', served: true, storage: true },
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: part, status: part } } },
          subresources: { scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } },
        },
      ],
    },
  })
  const fleet = await eventually(() => cluster.client.of(fleets).create({ metadata: { namespace, name: 'f' }, spec: { replicas: 2 } }))
  const owner = { apiVersion: 'example.com/v1', kind: 'Fleet', name: 'f', uid: fleet.metadata.uid ?? '' }
  for (const name of ['f-0', 'f-1']) await create(controllerPod('fleet', name, owner))
  await budget('fleet', { maxUnavailable: 1 })
  await allows('fleet', [1, 2, 1, 2])
})

test('CTL-17 a share of what does not scale cannot be counted, and allows nothing', async () => {
  const owner = await cluster.client.of(configMaps).create({ metadata: { namespace, name: 'j' } })
  await create(controllerPod('odd', 'j-0', { apiVersion: 'v1', kind: 'ConfigMap', name: 'j', uid: owner.metadata.uid ?? '' }))
  await budget('odd', { maxUnavailable: 1 })
  await eventually(async () => (await reasonOf('odd')) === 'SyncFailed')
  const condition = (await statusOf('odd'))?.conditions?.find(({ type }) => type === 'DisruptionAllowed')
  assert.equal(condition?.message, 'configmaps does not implement the scale subresource')
  await eventually(async () =>
    (await cluster.client.of(events).list({ namespace })).items.some(
      ({ reason, message }) =>
        reason === 'CalculateExpectedPodCountFailed' &&
        message === 'Failed to calculate the number of expected pods: configmaps does not implement the scale subresource',
    ),
  )
})

test('CTL-17 pods without a controller are reported by an event', async () => {
  await create({ metadata: { namespace, name: 'alone', labels: { app: 'alone' } }, spec })
  await budget('alone', { maxUnavailable: 1 })
  const recorded = await eventually(
    async () => (await cluster.client.of(events).list({ namespace })).items.find(({ reason }) => reason === 'UnmanagedPods')?.message ?? false,
  )
  assert.match(recorded, /selector: &LabelSelector\{MatchLabels:map\[string\]string\{app: alone,\},MatchExpressions:\[\]LabelSelectorRequirement\{\},\}\)/)
})

test('CTL-17 a mark for an eviction that never came is taken back', async () => {
  await create({ metadata: { namespace, name: 'marked' }, spec })
  const lastTransitionTime = formatTime(realClock.now() - 3 * 60_000)
  const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI', lastTransitionTime }]
  await cluster.client.of(pods).patch({ namespace, name: 'marked' }, 'strategic', { status: { conditions } }, { subresource: 'status' })
  await eventually(async () => {
    const { status } = await cluster.client.of(pods).get({ namespace, name: 'marked' })
    const condition = status?.conditions?.find(({ type }) => type === 'DisruptionTarget')
    return condition?.status === 'False' && condition.reason === undefined
  })
})
