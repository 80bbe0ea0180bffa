/** /debug/scheduling and `skiff why` over a real scheduler and the real API server, with authorization. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import type { SchedulingExplanation } from '#api/debug/scheduling'
import { isStatus } from '#api/machinery/status'
import { describeScheduling } from '#cli/why/scheduling'
import { pods } from '#client/builtIn'
import type { Client } from '#client/client'
import type { TestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { addNode, isBound, isUnschedulable, newNode, newPod, untilPods } from './cluster.ts'
import { type ExplainedCluster, startExplainedCluster } from './explainedCluster.ts'

let cluster: ExplainedCluster
let api: TestApiServer

beforeEach(async () => {
  cluster = await startExplainedCluster()
  ;({ api } = cluster)
})

afterEach(() => cluster.close())

async function why(pod: string, client: Client = api.client): Promise<SchedulingExplanation> {
  const answer = await client.transport.request({ method: 'GET', path: '/debug/scheduling', query: { pod } })
  return answer.body as SchedulingExplanation
}

/** Asks until the answer is as wanted: what the scheduler knows follows the API in its own time. */
async function untilWhy(pod: string, right: (found: SchedulingExplanation) => boolean): Promise<SchedulingExplanation> {
  const deadlineMs = realClock.monotonicMs() + 60_000
  for (;;) {
    const found = await why(pod).catch((error: unknown) => {
      if (!isStatus(error, 'NotFound') && !isStatus(error, 'ServiceUnavailable')) throw error
      return undefined
    })
    if (found && right(found)) return found
    assert.ok(realClock.monotonicMs() < deadlineMs, `${pod} did not become as wanted: ${JSON.stringify(found)}`)
    await realClock.sleep(10)
  }
}

/** A pod that is seen before a node is decided about without it. */
async function untilNodesSeen(count: number): Promise<void> {
  await api.client.of(pods).create(newPod('gated', '1m', { schedulingGates: [{ name: 'example.com/wait' }] }))
  await untilWhy('default/gated', ({ nodeCount }) => nodeCount === count)
}

test('LRN-04 X8 user need 29: why a pod waits: each node with all who refuse it, and the smallest changes', async () => {
  await addNode(api.client, newNode('small', { cpu: '1', memory: '8Gi', pods: '110' }))
  await addNode(api.client, newNode('tainted', { cpu: '1', memory: '8Gi', pods: '110' }, { taints: [{ key: 'team', value: 'db', effect: 'NoSchedule' }] }))
  await untilNodesSeen(2)
  await api.client.of(pods).create(newPod('big', '1500m'))
  await untilPods(api.client, ['big'], isUnschedulable)
  const found = await untilWhy('default/big', ({ state }) => state === 'Unschedulable')
  assert.deepEqual([found.state, found.waitsFor.toSorted(), found.nodeCount], ['Unschedulable', ['NodeResourcesFit', 'TaintToleration'], 2])
  assert.match(found.lastRefusal?.message ?? '', /^0\/2 nodes are available: 1 Insufficient cpu, 1 node\(s\) had untolerated taint/)
  assert.deepEqual(
    found.nodes.map(({ node, refusals, changes }) => [node, refusals.map(({ plugin }) => plugin), changes?.map(({ text }) => text)]),
    [
      ['small', ['NodeResourcesFit'], ['request 500m less of cpu: 1 instead of 1500m']],
      ['tainted', ['TaintToleration', 'NodeResourcesFit'], ['tolerate the taint team=db:NoSchedule', 'request 500m less of cpu: 1 instead of 1500m']],
    ],
  )
  const text = describeScheduling(found)
  assert.match(text, /^state: +waits for a change of the cluster$/m)
  assert.match(text, /^NODE +FITS +TaintToleration +NodeResourcesFit +REASONS NOW$/m)
  assert.match(text, /^tainted +no +no +no +/m)
  assert.match(text, /on small:\n {4}- request 500m less of cpu: 1 instead of 1500m\n/)
})

test('LRN-04 X8 user need 29: why a pod is where it is: the scores of its node with their weights', async () => {
  await addNode(api.client, newNode('a'))
  await addNode(api.client, newNode('b'))
  await untilNodesSeen(2)
  await api.client.of(pods).create(newPod('web'))
  const placed = (await untilPods(api.client, ['web'], isBound)).get('web')
  const found = await untilWhy('default/web', ({ state }) => state === 'Scheduled')
  assert.deepEqual([found.state, found.node, found.placement?.feasibleNodes], ['Scheduled', placed?.spec.nodeName, 2])
  const fit = found.placement?.scores.find(({ plugin }) => plugin === 'NodeResourcesFit')
  assert.equal(fit?.weight, 1)
  assert.ok(found.nodes.every(({ fits }) => fits))
  assert.match(describeScheduling(found), /^SCORE OF THE NODE +POINTS +WEIGHT +TOGETHER$/m)
})

test('LRN-04 an unknown pod, a missing name and a missing permission are reported as such', async () => {
  await untilNodesSeen(0)
  await assert.rejects(why('default/none'), (error) => isStatus(error, 'NotFound') && /pod "default\/none" is not known to the scheduler/.test(error.message))
  await assert.rejects(why(''), (error) => isStatus(error, 'BadRequest') && /\?pod=namespace\/name/.test(error.message))
  const nobody = api.clientAs({ name: 'jane', groups: ['system:authenticated'] })
  await assert.rejects(why('default/none', nobody), (error) => isStatus(error, 'Forbidden'))
})
