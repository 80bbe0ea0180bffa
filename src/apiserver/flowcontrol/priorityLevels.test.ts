import assert from 'node:assert/strict'
import test from 'node:test'
import { mandatoryPriorityLevels, suggestedPriorityLevels } from '#api/kinds/flowcontrol/bootstrapObjects'
import { VirtualClock } from '#base/virtualClock'
import { requestOf } from '../core/testRequest.ts'
import { PriorityLevels } from './priorityLevels.ts'
import { flowNamed, metrics, oneSeat } from './testFlows.ts'

const objects = [...mandatoryPriorityLevels, ...suggestedPriorityLevels]

function levelsOf(serverLimit = 600) {
  const clock = new VirtualClock()
  const levels = new PriorityLevels({ clock, metrics }, serverLimit)
  levels.digest(objects)
  const level = (name: string) => levels.all.get(name) ?? assert.fail(name)
  return { clock, levels, level }
}

test('API-18 the default configuration divides 600 seats as upstream does', () => {
  const { levels } = levelsOf()
  assert.deepEqual(Object.fromEntries([...levels.all].map(([name, { limits, maxSeats }]) => [name, { ...limits, maxSeats }])), {
    exempt: { nominal: 0, lower: 0, upper: 600, maxSeats: 0 },
    'catch-all': { nominal: 13, lower: 13, upper: 613, maxSeats: 0 },
    system: { nominal: 74, lower: 50, upper: 674, maxSeats: 12 },
    'node-high': { nominal: 98, lower: 73, upper: 698, maxSeats: 15 },
    'leader-election': { nominal: 25, lower: 25, upper: 625, maxSeats: 4 },
    'workload-high': { nominal: 98, lower: 49, upper: 698, maxSeats: 15 },
    'workload-low': { nominal: 245, lower: 24, upper: 845, maxSeats: 37 },
    'global-default': { nominal: 49, lower: 24, upper: 649, maxSeats: 8 },
  })
})

test('API-18 without any objects there are the mandatory levels', () => {
  const { levels } = levelsOf()
  levels.digest([])
  assert.deepEqual([...levels.all.keys()], ['exempt', 'catch-all'])
})

test('API-18 a busy level borrows seats that others do not use, and returns them when these need them', async () => {
  const { clock, levels, level } = levelsOf()
  const busy = level('global-default')
  const lender = level('workload-low')
  const flow = flowNamed('busy', busy.queuing)
  const owner = flowNamed('owner', lender.queuing)
  const entries = Array.from({ length: 200 }, () => busy.queueSet.start(flow, requestOf(), oneSeat, true))
  const executing = () => entries.filter(({ state }) => state === 'executing').length
  const before = executing()
  await clock.advance(10_000)
  levels.updateBorrowing()
  const borrowed = executing()
  assert.ok(before < 60 && borrowed > 100, `${before} ${borrowed}`)
  assert.ok(lender.currentLimit < lender.limits.nominal)
  const wanted = Array.from({ length: 300 }, () => lender.queueSet.start(owner, requestOf(), oneSeat, true))
  await clock.advance(10_000)
  levels.updateBorrowing()
  assert.ok(lender.currentLimit >= lender.limits.nominal, `${lender.currentLimit}`)
  assert.equal(wanted.filter(({ state }) => state === 'executing').length, lender.currentLimit)
  const all = [...levels.all.values()].map(({ currentLimit }) => currentLimit)
  assert.ok(Math.abs(all.reduce((sum, seats) => sum + seats, 0) - 602) <= 4, `${all}`)
})

test('API-18 a level whose object is deleted finishes what it has, and goes', () => {
  const { levels, level } = levelsOf()
  const flow = flowNamed('a', level('system').queuing)
  const { queueSet } = level('system')
  const entry = queueSet.start(flow, requestOf(), oneSeat, false)
  const without = objects.filter(({ metadata }) => metadata.name !== 'system')
  levels.digest(without)
  assert.deepEqual([levels.desired('system'), levels.all.get('system')?.quiescing, levels.someQuiescing], [undefined, true, true])
  queueSet.finish(entry)
  levels.digest(without)
  assert.deepEqual([levels.all.has('system'), levels.someQuiescing], [false, false])
})

test('API-18 an object that contradicts itself is treated as absent', () => {
  const { levels } = levelsOf()
  const broken = { ...suggestedPriorityLevels[0], metadata: { name: 'broken' }, spec: { type: 'Limited' } } as (typeof objects)[number]
  levels.digest([...objects, broken])
  assert.equal(levels.all.has('broken'), false)
})
