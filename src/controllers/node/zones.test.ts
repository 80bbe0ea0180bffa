import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node } from '#api/gen/types/core.v1'
import { VirtualClock } from '#base/virtualClock'
import { censusOf, createZoneEvictor, defaultZoneOptions, evictionRateOf, zoneKey, zoneState } from './zones.ts'

const node = (name: string, labels: Record<string, string>, ready = 'True'): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels },
  spec: {},
  status: { conditions: [{ type: 'Ready', status: ready }] },
})
const zone = (name: string) => ({ 'topology.kubernetes.io/region': 'r', 'topology.kubernetes.io/zone': name })

const states = [
  { size: 0, notReady: 0, want: 'Normal', rate: 0.1 },
  { size: 3, notReady: 2, want: 'Normal', rate: 0.1 },
  { size: 2, notReady: 2, want: 'FullDisruption', rate: 0.1 },
  { size: 10, notReady: 5, want: 'Normal', rate: 0.1 },
  { size: 10, notReady: 6, want: 'PartialDisruption', rate: 0 },
  { size: 50, notReady: 40, want: 'PartialDisruption', rate: 0 },
  { size: 51, notReady: 40, want: 'PartialDisruption', rate: 0.01 },
  { size: 51, notReady: 51, want: 'FullDisruption', rate: 0.1 },
] as const
for (const { size, notReady, want, rate } of states) {
  test(`CTL-09 a zone with ${notReady} of ${size} nodes silent is ${want}`, () => {
    assert.equal(zoneState(size, notReady, defaultZoneOptions), want)
    assert.equal(evictionRateOf(want, size, defaultZoneOptions), rate)
  })
}

test('CTL-09 nodes are counted by region and zone, except those that ask not to be', () => {
  const nodes = [node('a', zone('x')), node('b', zone('x'), 'Unknown'), node('c', {}), node('d', { 'node.kubernetes.io/exclude-disruption': '' }, 'Unknown')]
  assert.deepEqual(
    [...censusOf(nodes)],
    [
      ['r:\0:x', { size: 2, notReady: 1 }],
      ['', { size: 1, notReady: 0 }],
    ],
  )
  assert.equal(zoneKey(node('o', { 'failure-domain.beta.kubernetes.io/zone': 'old' })), ':\0:old')
})

test('CTL-09 one node of a zone at a time, ten seconds apart', async () => {
  const clock = new VirtualClock()
  const evictor = createZoneEvictor(clock, defaultZoneOptions)
  evictor.update(new Map([['x', { size: 9, notReady: 2 }]]))
  for (const name of ['a', 'b', 'a', 'c']) evictor.add('x', name)
  const taken = () => evictor.take().map((one) => one.node)
  assert.deepEqual([taken(), taken()], [['a'], []])
  await clock.advance(9_900)
  assert.deepEqual(taken(), [])
  await clock.advance(200)
  assert.deepEqual(taken(), ['b'])
  evictor.remove('c')
  assert.equal(evictor.isWaiting(), false)
})

test('CTL-09 no pod is evicted while every zone is disrupted, until one recovers', async () => {
  const clock = new VirtualClock()
  const evictor = createZoneEvictor(clock, defaultZoneOptions)
  evictor.add('x', 'a')
  evictor.update(new Map([['x', { size: 2, notReady: 2 }]]))
  assert.deepEqual([evictor.allOut(), evictor.take(), evictor.isWaiting()], [true, [], false])
  assert.equal(evictor.update(new Map([['x', { size: 2, notReady: 1 }]])).recovered, true)
  assert.deepEqual([evictor.allOut(), evictor.take()], [false, [{ zone: 'x', node: 'a' }]])
  // One zone of two being out is no reason to stop there.
  evictor.update(
    new Map([
      ['x', { size: 2, notReady: 2 }],
      ['y', { size: 1, notReady: 0 }],
    ]),
  )
  assert.deepEqual([evictor.allOut(), evictor.stateOf('x'), evictor.stateOf('y')], [false, 'FullDisruption', 'Normal'])
})
