import assert from 'node:assert/strict'
import { test } from 'node:test'
import { podOf } from '#testing/schedulerFixture'
import { createDecisionLog, nodeReasons, type RefusedDecision } from './decisions.ts'
import { NodeRefusals } from './framework/nodeRefusals.ts'
import { unschedulable } from './framework/status.ts'

function refusedBy(nodes: number, message = 'no'): RefusedDecision {
  const refusals = new NodeRefusals()
  for (let i = 0; i < nodes; i++) refusals.add(`n${i}`, { refusal: unschedulable('too small'), plugin: 'NodeResourcesFit' })
  return { atMs: 1, message, totalNodes: nodes, evaluatedNodes: nodes, refusals, preFilterMessage: undefined, refusedBy: [], nominatedNodeName: undefined }
}

test('LRN-04 the last refusal and the placement of a pod are kept, with the number of attempts', () => {
  const log = createDecisionLog()
  log.refused(podOf('p'), refusedBy(2, 'first'))
  log.refused(podOf('p'), refusedBy(3, 'second'))
  log.placed(podOf('p'), { atMs: 2, nodeName: 'n1', evaluatedNodes: 3, feasibleNodes: 2, scores: [{ plugin: 'ImageLocality', score: 7 }] })
  const kept = log.find('default', 'p')
  assert.deepEqual([kept?.attempts, kept?.refused?.message, kept?.placed?.nodeName, kept?.uid], [3, 'second', 'n1', 'p'])
  assert.deepEqual(kept?.refused && nodeReasons(kept.refused, 1), [{ node: 'n0', plugin: 'NodeResourcesFit', reasons: ['too small'] }])
  log.forget('p')
  assert.equal(log.of('p'), undefined)
})

test('LRN-04 old decisions make room: by the number of pods, and by the nodes that their refusals name', () => {
  const log = createDecisionLog({ maxPods: 3, maxNodeReasons: 10 })
  const names = () => ['a', 'b', 'c', 'd'].filter((name) => log.of(name)).join('')
  for (const name of ['a', 'b', 'c']) log.refused(podOf(name), refusedBy(2))
  assert.equal(names(), 'abc')
  log.refused(podOf('a'), refusedBy(2))
  log.refused(podOf('d'), refusedBy(2))
  assert.equal(names(), 'acd', 'the one that was decided longest ago goes')
  log.refused(podOf('c'), refusedBy(8))
  assert.equal(names(), 'cd')
  log.refused(podOf('b'), refusedBy(50))
  assert.equal(names(), 'b', 'a big one is kept alone')
})
