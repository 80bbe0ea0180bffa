/** HorizontalPodAutoscalers over simulated nodes in virtual time: usage is measured, the scale subresource is written, status and events tell why. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import type { HorizontalPodAutoscaler } from '#api/gen/types/autoscaling.v2'
import { isPodActive } from '#api/helpers/pods'
import { findCondition } from '#api/machinery/conditions'
import { customResourceDefinitions, deployments, events, horizontalPodAutoscalers, pods } from '#client/builtIn'
import type { Resource } from '#client/client'
import { startCluster, type TestCluster } from '#testing/cluster'
import { sinceKubectl, testKubectl } from '../../support/kubectl.ts'

let cluster: TestCluster
/** What all pods of a Deployment use together, in thousandths of a core. */
const load = new Map<string, number>()
const running = new Map<string, number>()
before(async () => {
  const behave = ({ labels }: { readonly labels: Readonly<Record<string, string>> }) => {
    const { app = '' } = labels
    return { cpuMilli: (load.get(app) ?? 0) / Math.max(1, running.get(app) ?? 1) }
  }
  cluster = await startCluster({ resourceMetrics: true, profile: { behave } })
})
after(() => cluster.close())
beforeEach(() => load.clear())

const namespace = 'default'
const template = (name: string) => ({
  metadata: { labels: { app: name } },
  spec: { containers: [{ name: 'c', image: 'a:1', resources: { requests: { cpu: '100m', memory: '100Mi' } } }] },
})
const create = (name: string, replicas: number) =>
  cluster.client
    .of(deployments)
    .create({ metadata: { namespace, name }, spec: { replicas, selector: { matchLabels: { app: name } }, template: template(name) } })
const scaleTargetRef = (name: string) => ({ apiVersion: 'apps/v1', kind: 'Deployment', name })
const autoscale = (name: string, spec: Partial<HorizontalPodAutoscaler['spec']>, target = name) =>
  cluster.client
    .of(horizontalPodAutoscalers)
    .create({ metadata: { namespace, name }, spec: { maxReplicas: 10, scaleTargetRef: scaleTargetRef(target), ...spec } })
const utilization = (averageUtilization: number) => [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } } }]
const autoscaler = (name: string) => cluster.client.of(horizontalPodAutoscalers).get({ namespace, name })
const eventsOf = async (name: string) =>
  (await cluster.client.of(events).list({ namespace, fieldSelector: `involvedObject.name=${name},involvedObject.kind=HorizontalPodAutoscaler` })).items.map(
    ({ type, reason, message }) => `${type} ${reason} ${message}`,
  )
const conditions = ({ status }: Awaited<ReturnType<typeof autoscaler>>) =>
  (status?.conditions ?? []).map(({ type, status, reason, message }) => `${type} ${status} ${reason} ${message}`)

async function replicasOf(name: string): Promise<number> {
  const { items } = await cluster.client.of(pods).list({ namespace, labelSelector: `app=${name}` })
  running.set(name, items.filter(isPodActive).length)
  return (await cluster.client.of(deployments).get({ namespace, name })).spec.replicas ?? 1
}
const scaled = (name: string, replicas: number, withinMs?: number) => cluster.until(async () => (await replicasOf(name)) === replicas, withinMs)

test('AUT-01 CTL-16 an autoscaler sets the replicas by CPU utilization, up at once and down after five minutes', async () => {
  load.set('web', 160)
  await create('web', 1)
  await scaled('web', 1)
  await cluster.clock.advance(6 * 60_000)
  await autoscale('web', { metrics: utilization(50) })
  await scaled('web', 4)
  const up = await cluster.until(async () => {
    const found = await autoscaler('web')
    return found.status?.desiredReplicas === 4 && found
  })
  assert.deepEqual(up.status?.currentMetrics, [{ type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 160, averageValue: '160m' } } }])
  assert.equal(findCondition(up.status?.conditions, 'AbleToScale')?.reason, 'SucceededRescale')
  assert.deepEqual(await eventsOf('web'), ['Normal SuccessfulRescale New size: 4; reason: cpu resource utilization (percentage of request) above target'])

  load.set('web', 100)
  const begunMs = cluster.clock.now()
  await scaled('web', 2, 30 * 60_000)
  const waitedMs = cluster.clock.now() - begunMs
  assert.equal(waitedMs >= 5 * 60_000 && waitedMs < 12 * 60_000, true, `${waitedMs} ms`)
  assert.equal((await eventsOf('web')).includes('Normal SuccessfulRescale New size: 2; reason: All metrics below target'), true)
  await cluster.clock.advance(60_000)
  assert.deepEqual(conditions(await autoscaler('web')), [
    'AbleToScale True ReadyForNewScale recommended size matches current size',
    'ScalingActive True ValidMetricFound the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)',
    'ScalingLimited False DesiredWithinRange the desired count is within the acceptable range',
  ])
})

test('AUT-01 an autoscaler sets the replicas by the memory that each pod uses on average', async () => {
  await create('memory', 1)
  await cluster.clock.advance(60_000)
  // Simulated containers use a tenth of 100 MiB.
  const metrics = [{ type: 'Resource', resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '2Mi' } } }]
  await autoscale('memory', { metrics, maxReplicas: 3 })
  await scaled('memory', 3)
  assert.deepEqual(await eventsOf('memory'), ['Normal SuccessfulRescale New size: 3; reason: memory resource above target'])
  const { status } = await cluster.until(async () => {
    const found = await autoscaler('memory')
    return found.status?.desiredReplicas === 3 && found
  })
  assert.deepEqual(status?.currentMetrics, [{ type: 'Resource', resource: { name: 'memory', current: { averageValue: '10Mi' } } }])
  assert.equal(findCondition(status?.conditions, 'ScalingLimited')?.reason, 'TooManyReplicas')
})

test('AUT-01 a behavior limits how fast an autoscaler adds and removes pods', async () => {
  load.set('slow', 800)
  await create('slow', 1)
  await cluster.clock.advance(6 * 60_000)
  const onePodAMinute = { stabilizationWindowSeconds: 0, policies: [{ type: 'Pods', value: 1, periodSeconds: 60 }] }
  await autoscale('slow', { metrics: utilization(100), behavior: { scaleUp: onePodAMinute, scaleDown: { ...onePodAMinute, selectPolicy: 'Disabled' } } })
  await scaled('slow', 2)
  const begunMs = cluster.clock.now()
  await scaled('slow', 4)
  const waitedMs = cluster.clock.now() - begunMs
  assert.equal(waitedMs >= 2 * 60_000 && waitedMs <= 2.75 * 60_000, true, `${waitedMs} ms`)
  assert.equal(findCondition((await autoscaler('slow')).status?.conditions, 'ScalingLimited')?.reason, 'ScaleUpLimit')
  load.set('slow', 0)
  await cluster.clock.advance(20 * 60_000)
  assert.equal((await replicasOf('slow')) >= 4, true)
  assert.equal(findCondition((await autoscaler('slow')).status?.conditions, 'ScalingLimited')?.reason, 'ScaleDownLimit')
})

test('AUT-01 two autoscalers of the same pods change nothing, and one scales after the other is deleted', async () => {
  await create('both', 1)
  const metrics = [{ type: 'Resource', resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '4Mi' } } }]
  await autoscale('both-a', { metrics }, 'both')
  await autoscale('both-b', { metrics }, 'both')
  const refusal = await cluster.until(async () => {
    const found = findCondition((await autoscaler('both-b')).status?.conditions, 'ScalingActive')
    return found?.reason === 'AmbiguousSelector' && found
  })
  assert.equal(refusal.message, 'pods by selector app=both are controlled by multiple HPAs: [default/both-a default/both-b]')
  await cluster.client.of(horizontalPodAutoscalers).delete({ namespace, name: 'both-a' })
  await cluster.until(async () => findCondition((await autoscaler('both-b')).status?.conditions, 'ScalingActive')?.reason === 'ValidMetricFound')
})

test('AUT-01 an autoscaler scales a custom resource, and reports a target of an unknown kind', async () => {
  const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  const scale = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas', labelSelectorPath: '.status.selector' }
  const version = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema }, subresources: { scale } }
  const names = { plural: 'fleets', singular: 'fleet', kind: 'Fleet', listKind: 'FleetList' }
  const spec = { group: 'example.com', names, scope: 'Namespaced', versions: [version] }
  const target = { apiVersion: 'example.com/v1', kind: 'Fleet', name: 'f' }
  await create('ships', 2)
  const metrics = [{ type: 'Resource', resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '5Mi' } } }]
  await autoscale('fleet', { metrics, scaleTargetRef: target })
  const unknown = await cluster.until(async () => findCondition((await autoscaler('fleet')).status?.conditions, 'AbleToScale'))
  assert.equal(unknown.message, `the HPA controller was unable to get the target's current scale: no matches for kind "Fleet" in group "example.com"`)

  await cluster.client.of(customResourceDefinitions).create({ metadata: { name: 'fleets.example.com' }, spec })
  const fleets: Resource<never> = { group: 'example.com', version: 'v1', resource: 'fleets', kind: 'Fleet', namespaced: true }
  const fleet = { metadata: { namespace, name: 'f' }, spec: { replicas: 2 }, status: { replicas: 2, selector: 'app=ships' } }
  await cluster.until(() => cluster.client.of(fleets).create(fleet as never))
  await cluster.until(async () => ((await cluster.client.of(fleets).get({ namespace, name: 'f' })) as typeof fleet).spec.replicas === 4)
})

test('AUT-01 kubectl autoscale makes an autoscaler, and kubectl get shows its columns', sinceKubectl(1), async () => {
  load.set('cli', 120)
  await create('cli', 1)
  await cluster.clock.advance(6 * 60_000)
  const kubectl = testKubectl(await cluster.listen())
  try {
    await kubectl.must('autoscale deployment cli --min=1 --max=5 --cpu-percent=60')
    await scaled('cli', 2)
    await cluster.until(async () => (await autoscaler('cli')).status?.currentReplicas === 2)
    const [header, row] = (await kubectl.must('get hpa cli')).split('\n').map((line) => line.split(/ {2,}/).slice(0, 6))
    assert.deepEqual(header, ['NAME', 'REFERENCE', 'TARGETS', 'MINPODS', 'MAXPODS', 'REPLICAS'])
    assert.deepEqual(row, ['cli', 'Deployment/cli', 'cpu: 60%/60%', '1', '5', '2'])
  } finally {
    kubectl.remove()
  }
})
