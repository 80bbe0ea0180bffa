/** The time of searches whose selectors are expensive: real selectors, and a clock that each evaluation advances. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Device, DeviceClass, ResourceClaim, ResourceSlice } from '#api/gen/types/resource.v1'
import { nodeOf } from '#testing/schedulerFixture'
import type { AllocationOutcome } from './allocation.ts'
import { createAllocation } from './allocator.ts'
import { DeviceSelectors, InterruptedError } from './deviceSelectors.ts'
import { DevicesInUse } from './devicesInUse.ts'
import { PoolIndex } from './pools.ts'
import { slice } from './slowSearches.ts'

const driver = 'd.example.com'
const apiVersion = 'resource.k8s.io/v1'
const sliceMs = 10
const evaluationMs = 15
const selectorsPerRequest = 32
const deviceCount = 32
const list = <T>(count: number, item: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => item(index))

type Selectors = NonNullable<DeviceClass['spec']['selectors']>
const selecting = (...expressions: string[]): Selectors => expressions.map((expression) => ({ cel: { expression } }))
/** Distinct selectors that all devices match. */
const matching = selecting(...list(selectorsPerRequest, (index) => `device.driver == "${driver}" && ${index} >= 0`))
const request = (name: string, selectors: Selectors, more: object = {}) => ({ name, exactly: { deviceClassName: 'any', selectors, ...more } })

/** Counts evaluations, each of which takes its time. */
class SlowSelectors extends DeviceSelectors {
  readonly time = { nowMs: 0, evaluations: 0 }

  constructor() {
    super(() => this.time.nowMs)
  }

  override match(...args: Parameters<DeviceSelectors['match']>): boolean {
    this.time.nowMs += evaluationMs
    this.time.evaluations++
    return super.match(...args)
  }
}

/** Runs the search in slices until it ends. */
function search(requests: readonly object[], constraints: readonly object[] = [], classSelectors: Selectors = [], selectors = new SlowSelectors()) {
  const devices = list(deviceCount, (index): Device => ({ name: `g${index}`, attributes: { numa: { int: index % 2 } } }))
  const pool = { name: 'p', generation: 1, resourceSliceCount: 1 }
  const resourceSlice: ResourceSlice = { apiVersion, kind: 'ResourceSlice', metadata: { name: 's' }, spec: { driver, nodeName: 'a', pool, devices } }
  const deviceClass: DeviceClass = { apiVersion, kind: 'DeviceClass', metadata: { name: 'any' }, spec: { selectors: classSelectors } }
  const metadata = { name: 'c', namespace: 'default', uid: 'c' }
  const claim = { apiVersion, kind: 'ResourceClaim', metadata, spec: { devices: { requests, constraints } } } as ResourceClaim
  const node = nodeOf({ name: 'a' })
  const pools = new PoolIndex([resourceSlice]).poolsOf(node)
  const allocation = createAllocation({ pools, node, inUse: new DevicesInUse(), selectors, classOf: () => deviceClass }, [claim])
  const { time } = selectors
  let longestMs = 0
  let outcome: AllocationOutcome | undefined
  while (!outcome) {
    const startedMs = time.nowMs
    outcome = allocation.run(slice(() => time.nowMs, sliceMs))
    longestMs = Math.max(longestMs, time.nowMs - startedMs)
  }
  const taken = 'solution' in outcome ? outcome.solution.flatMap(({ taken }) => taken.map(({ device }) => device.device.name)) : []
  return { longestMs, taken, evaluations: time.evaluations }
}

const sameNuma = [{ matchAttribute: `${driver}/numa` }]
const refusing = (index: number) => [...matching.slice(1), ...selecting(`device.attributes["${driver}"].numa == ${index}`)]

const cases = [
  { name: 'one request for each of two devices', requests: [request('r', matching), request('s', refusing(1))], taken: ['g0', 'g1'] },
  { name: 'a request for all devices', requests: [request('r', matching, { allocationMode: 'All' })], taken: list(deviceCount, (index) => `g${index}`) },
  { name: 'requests that must share an attribute', requests: [request('r', refusing(1)), request('s', matching)], constraints: sameNuma, taken: ['g1', 'g3'] },
  { name: 'a class with as many selectors', requests: [request('r', []), request('s', [])], classSelectors: matching, taken: ['g0', 'g1'] },
]

for (const { name, requests, constraints, classSelectors, taken } of cases)
  test(`DRA-04 a slice of a search exceeds its time by one selector at most, ${name}`, () => {
    const found = search(requests, constraints, classSelectors)
    assert.deepEqual(found.taken, taken)
    assert.ok(found.longestMs <= sliceMs + evaluationMs, `${found.longestMs} ms`)
  })

test('DRA-04 requests with the same selectors evaluate each of them once for a device', () => {
  const { taken, evaluations } = search([request('r', matching, { count: 2 }), request('s', matching, { count: 2 })], sameNuma)
  assert.deepEqual(taken, ['g0', 'g2', 'g4', 'g6'])
  // All devices that share the attribute of the first are counted; the others are tried up to the last one that is taken.
  assert.equal(evaluations, selectorsPerRequest * (deviceCount / 2 + 3))
})

test('DRA-04 a selector that fails on a device ends the search with its error, after selectors that took a slice each', () => {
  const selectors = [...matching.slice(1), ...selecting('1 / int(size(device.driver) - size(device.driver)) > 0')]
  assert.throws(() => search([request('r', selectors)]), /claim default\/c: selector #31: CEL runtime error: division by zero/)
})

/** Interrupts evaluations of the one device `times` times. */
class InterruptedSelectors extends SlowSelectors {
  times = 0

  override match(...args: Parameters<DeviceSelectors['match']>): boolean {
    const isMatch = super.match(...args)
    if (args[2].name === 'g1' && this.times-- > 0) throw new InterruptedError('operation interrupted')
    return isMatch
  }
}

test('DRA-04 an interrupted evaluation is repeated in a later slice, and fails the claim after ten in a row', () => {
  const selectors = (times: number) => Object.assign(new InterruptedSelectors(), { times })
  const { taken, longestMs } = search([request('r', refusing(1))], [], [], selectors(9))
  assert.deepEqual(taken, ['g1'])
  assert.ok(longestMs <= sliceMs + evaluationMs, `${longestMs} ms`)
  assert.throws(() => search([request('r', refusing(1))], [], [], selectors(10)), InterruptedError)
})

test('DRA-04 a selector within the cost limit that takes too long is interrupted on its device', () => {
  const ones = `[${list(40, () => 1).join()}]`
  const loops = `${ones}.all(a,${ones}.all(b,${ones}.all(c,true)))`
  const readings = { count: 0 }
  const selectors = new DeviceSelectors(() => readings.count++)
  const match = () => selectors.match({ cel: { expression: loops } }, 3, { name: 'g0' }, driver, 'claim default/c')
  assert.throws(match, /^Error: claim default\/c: selector #3: CEL runtime error: operation interrupted$/)
  // One reading at the beginning, and one for each millisecond.
  assert.equal(readings.count, 151)
})
