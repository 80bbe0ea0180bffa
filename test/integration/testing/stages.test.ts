/** Nodes and pods without a kubelet, which change by Stages. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { events, jobs, nodes, pods } from '#client/builtIn'
import type { Client } from '#client/client'
import { stages } from '#testing/stages/stageDefinition'
import { withCluster } from './withCluster.ts'
import { addDeployment, podSpec } from './workloads.ts'

const fake = { 'kwok.x-k8s.io/node': 'fake' }

async function addFakeNodes(client: Client, ...names: readonly string[]): Promise<void> {
  for (const name of names) await client.of(nodes).create({ metadata: { name, annotations: fake }, spec: {} })
}

const isReady = (object: Frozen<Pod> | Frozen<Node>) => object.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false

const podsOf = async (client: Client): Promise<readonly Frozen<Pod>[]> => (await client.of(pods).list({ namespace: 'default' })).items

test('X2 nodes without a kubelet become ready, run pods, end Jobs and stay alive, by the built-in Stages', () =>
  withCluster({ nodes: 0, stages: true }, async ({ client, until, clock, complaints }) => {
    await addFakeNodes(client, 'fake-1', 'fake-2')
    await until(async () => (await client.of(nodes).list()).items.every(isReady))
    await addDeployment(client, 'web', 4)
    await client.of(jobs).create({
      metadata: { namespace: 'default', name: 'batch' },
      spec: { completions: 3, template: { spec: podSpec({ restartPolicy: 'Never' }) } },
    })
    await until(async () => (await client.of(jobs).get({ namespace: 'default', name: 'batch' })).status?.succeeded === 3)
    await until(async () => (await podsOf(client)).filter((pod) => pod.metadata.labels?.app === 'web').every(isReady))
    const addresses = (await podsOf(client)).map(({ status }) => status?.podIP)
    assert.equal(new Set(addresses).size, addresses.length)
    await clock.advance(30 * 60_000)
    assert.ok((await client.of(nodes).list()).items.every(isReady))
    for (const { metadata } of await podsOf(client)) await client.of(pods).delete({ namespace: 'default', name: metadata.name ?? '' })
    await until(async () => (await podsOf(client)).every(({ metadata }) => metadata.labels?.app === 'web' && metadata.deletionTimestamp === undefined))
    assert.deepEqual(complaints, [])
  }))

test('X2 an annotation sets how long a pod takes, and one seed always gives the same history', async () => {
  const historyOf = async (seed: number) => {
    let text = ''
    await withCluster({ seed, nodes: 0, stages: true, recordHistory: true }, async ({ client, until, clock, history }) => {
      await addFakeNodes(client, 'fake-1')
      await until(async () => (await client.of(nodes).list()).items.every(isReady))
      const slow = { namespace: 'default', name: 'slow', annotations: { 'pod-ready.stage.kwok.x-k8s.io/delay': '1h' } }
      await client.of(pods).create({ metadata: slow, spec: podSpec() })
      await clock.advance(59 * 60_000)
      assert.equal((await client.of(pods).get(slow)).status?.phase, 'Pending')
      await clock.advance(60_000)
      assert.equal((await client.of(pods).get(slow)).status?.phase, 'Running')
      await addDeployment(client, 'web', 3)
      await clock.advance(30_000)
      text = JSON.stringify(history())
    })
    return text
  }
  const first = await historyOf(3)
  assert.ok(first === (await historyOf(3)), 'the same seed made another history')
  assert.notEqual(first, await historyOf(4))
})

const ownStages = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: { name: node }
spec:
  resourceRef: { apiGroup: v1, kind: Node }
  selector: { matchExpressions: [{ cel: { expression: '!has(self.status.phase)' } }] }
  steps:
  - patch: { subresource: status, root: status, template: 'phase: Running' }
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: { name: guarded }
spec:
  resourceRef: { apiGroup: v1, kind: Pod }
  selector:
    matchLabels: { app: guarded }
    matchExpressions: [{ jq: { key: .status.podIP, operator: DoesNotExist } }]
  delay: { durationMilliseconds: 5000 }
  next:
    event: { type: Warning, reason: Guarded, message: it is guarded now }
    finalizers: { add: [{ value: example.com/guard }] }
    statusTemplate: |
      phase: Running
      podIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: { name: released }
spec:
  resourceRef: { apiGroup: v1, kind: Pod }
  selector: { matchExpressions: [{ key: .metadata.deletionTimestamp, operator: Exists }] }
  delay: { durationMilliseconds: 60000 }
  next:
    finalizers: { remove: [{ value: example.com/guard }] }
    delete: true
`

test('X2 Stages of one’s own: events, finalizers, deletion, with CEL and paths to select by', () =>
  withCluster({ nodes: 0, stages: ownStages, scheduler: false }, async ({ client, clock }) => {
    await addFakeNodes(client, 'fake-1')
    await clock.advance(1_000)
    const [{ status } = {}] = (await client.of(nodes).list()).items
    assert.equal(status?.phase, 'Running')
    const ref = { namespace: 'default', name: 'guarded' }
    await client.of(pods).create({ metadata: { ...ref, labels: { app: 'guarded' } }, spec: podSpec({ nodeName: 'fake-1' }) })
    await clock.advance(5_000)
    const guarded = await client.of(pods).get(ref)
    assert.deepEqual([guarded.status?.phase, guarded.metadata.finalizers], ['Running', ['example.com/guard']])
    assert.ok((await client.of(events).list({ namespace: 'default' })).items.some(({ reason, type }) => reason === 'Guarded' && type === 'Warning'))
    await client.of(pods).delete(ref)
    await clock.advance(59_000)
    assert.ok((await client.of(pods).get(ref)).metadata.deletionTimestamp)
    await clock.advance(1_000)
    await assert.rejects(client.of(pods).get(ref), /not found/)
  }))

test('X2 a Stage made while the cluster runs is played; one that is not understood is refused where it was brought, or complained of', () =>
  withCluster({ nodes: 0, stages: ownStages }, async ({ client, clock, complaints }) => {
    await addFakeNodes(client, 'fake-1')
    const stage = (name: string, template: string) => ({
      metadata: { name },
      spec: {
        resourceRef: { apiGroup: 'v1', kind: 'Node' },
        selector: { matchExpressions: [{ key: '.metadata.labels.mark', operator: 'DoesNotExist' }] },
        steps: [{ patch: { root: 'metadata', template } }],
      },
    })
    await client.of(stages).create(stage('mark', 'labels: { mark: "yes" }'))
    await client.of(stages).create(stage('odd', '{{ explode . }}'))
    await clock.advance(1_000)
    assert.equal((await client.of(nodes).get({ name: 'fake-1' })).metadata.labels?.mark, 'yes')
    assert.match(complaints.join('\n'), /Stage .*odd.*function .*explode.* is not supported/)
    await assert.rejects(
      withCluster({ nodes: 0, stages: ownStages.replace('operator: Exists', 'operator: Near') }, async () => {}),
      /Stage "released": operator "Near" is not supported/,
    )
  }))
