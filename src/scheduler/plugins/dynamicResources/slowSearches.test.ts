/** Searches for devices that are too long for one scheduling cycle: the real plugin in the default profile, with slices and claims that tests hand in. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Device, ResourceClaim } from '#api/gen/types/resource.v1'
import type { KubeObject } from '#api/machinery/meta'
import { deviceClasses, resourceClaims, resourceSlices } from '#client/builtIn'
import type { Resource } from '#client/client'
import { podInfo } from '#scheduler/framework/podInfo'
import { nodeOf, podOf, schedulerFixture } from '#testing/schedulerFixture'

const driver = 'gpu.example.com'
const apiVersion = 'resource.k8s.io/v1'
const strings = (values: Record<string, string>) => Object.fromEntries(Object.entries(values).map(([name, string]) => [name, { string }]))
const list = <T>(count: number, item: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => item(index))
const gpus = (count: number, attributes: (index: number) => Record<string, string> = () => ({})): Device[] =>
  list(count, (index) => ({ name: `g${index}`, attributes: strings({ name: `g${index}`, ...attributes(index) }) }))

type Exactly = Partial<NonNullable<NonNullable<ResourceClaim['spec']['devices']>['requests']>[number]['exactly']>
const request = (name: string, more: Exactly = {}) => ({ name, exactly: { deviceClassName: 'gpu', ...more } })
const selecting = (expression: string) => [{ cel: { expression } }]
const attribute = (name: string) => `device.attributes["${driver}"].${name}`

function claimOf(name: string, devices: ResourceClaim['spec']['devices'], status: ResourceClaim['status'] = {}): ResourceClaim {
  return { apiVersion, kind: 'ResourceClaim', metadata: { name, namespace: 'default', uid: name, resourceVersion: '1' }, spec: { devices }, status }
}

const allocated = (...devices: string[]): ResourceClaim['status'] => ({
  allocation: { devices: { results: devices.map((device) => ({ request: 'r', driver, pool: 'a', device })) } },
})

const pod = podOf('p', { resourceClaims: [{ name: 'c', resourceClaimName: 'c' }] })

function cluster(devices: Device[], claims: ResourceClaim[]) {
  const spec = { driver, nodeName: 'a', pool: { name: 'a', generation: 1, resourceSliceCount: 1 }, devices }
  const gpuClass = { apiVersion, kind: 'DeviceClass', metadata: { name: 'gpu' }, spec: {} }
  const objects: [Resource<KubeObject>, KubeObject[]][] = [
    [deviceClasses, [gpuClass]],
    [resourceSlices, [{ apiVersion, kind: 'ResourceSlice', metadata: { name: 's' }, spec } as KubeObject]],
    [resourceClaims, claims],
  ]
  const fixture = schedulerFixture({ nodes: [nodeOf({ name: 'a' })], objects })
  /** The devices that Reserve promises, in the order of the requests. */
  const reserve = (): string[] => {
    const result = fixture.schedule(pod)
    assert.ok('placed' in result)
    const { state, node } = result.placed
    for (const plugin of fixture.profile.points.reserve) plugin.reserve(state, podInfo(pod), node.name)
    const { allocations } = state.read({ name: 'DynamicResources' }) as unknown as {
      allocations: Map<string, NonNullable<ResourceClaim['status']['allocation']>>
    }
    return [...allocations.values()].flatMap(({ devices }) => devices?.results ?? []).map(({ device }) => device)
  }
  /** Makes the clock advance by `stepMs` with every reading. */
  const passTime = (stepMs: number) => {
    let nowMs = 0
    Object.defineProperty(fixture.clock, 'monotonicMs', { value: () => (nowMs += stepMs) })
    return { pass: (ms: number) => (nowMs += ms) }
  }
  return { ...fixture, reserve, passTime }
}

const searching = { message: '0/1 nodes are available: 1 still searching for devices of the resource claims.' }
const cannotAllocate = { message: '0/1 nodes are available: 1 cannot allocate all claims.' }

/** Upstream: an error, which brings the pod back after a wait, not a refusal, which waits for a change of the cluster. */
const timedOut = { message: 'running "DynamicResources" filter plugin: node a: timed out trying to allocate devices' }

/** Twenty racks among forty devices: found after some thousand steps. */
const longDevices = () => gpus(40, (index) => ({ numa: `${index}`, rack: `${index % 20}` }))
const longClaim = () =>
  claimOf('c', {
    requests: [request('r', { count: 20 })],
    constraints: [{ distinctAttribute: `${driver}/numa` }, { distinctAttribute: `${driver}/rack` }],
  })

/** Eleven models for twelve requests that each refuse some devices: the search cannot end before its timeout. */
const endlessDevices = () => gpus(64, (index) => ({ numa: `${index % 5}`, model: `m${index % 11}` }))
const endlessClaim = () =>
  claimOf('c', {
    requests: list(12, (index) => request(`r${index}`, { selectors: selecting(`${attribute('model')} != "m${index % 11}" || ${attribute('numa')} == "9"`) })),
    constraints: [{ distinctAttribute: `${driver}/model` }],
  })

/** Processor time of this process: others may use the machine, too. */
const processorMs = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

test('DRA-04 a search of exponential size leaves the cycle to others and ends with upstream’s timeout', async () => {
  const fixture = cluster(endlessDevices(), [endlessClaim()])
  fixture.passTime(4)
  const startMs = processorMs()
  assert.deepEqual(fixture.decide(pod), searching)
  assert.ok(processorMs() - startMs < 250)
  for (let slices = 0; slices < 1100; slices++) {
    const sliceMs = processorMs()
    await fixture.clock.advance(10)
    assert.ok(processorMs() - sliceMs < 250)
  }
  assert.throws(() => fixture.decide(pod), timedOut)
})

test('DRA-04 a search that continues between cycles gives its answer to the next cycle of its pod', async () => {
  const fixture = cluster(longDevices(), [longClaim()])
  fixture.passTime(40)
  assert.deepEqual(fixture.decide(pod), searching)
  await fixture.clock.advance(20_000)
  assert.deepEqual(fixture.decide(pod), { on: 'a' })
})

test('DRA-04 the timeout of a search counts its own time, also when each of its turns is late', async () => {
  const fixture = cluster(longDevices(), [longClaim()])
  const time = fixture.passTime(40)
  assert.deepEqual(fixture.decide(pod), searching)
  for (let turns = 0; turns < 2000; turns++) {
    time.pass(15_000)
    await fixture.clock.advance(10)
  }
  assert.deepEqual(fixture.decide(pod), { on: 'a' })
})

test('DRA-04 a search continues from its last state while other claims get devices and give them back, and its node’s status changes', async () => {
  const fixture = cluster([...endlessDevices(), { name: 'other', attributes: strings({ numa: '0', model: 'm0' }) }], [endlessClaim(), claimOf('other', {})])
  fixture.passTime(4)
  assert.deepEqual(fixture.decide(pod), searching)
  for (let slices = 0; slices < 1100; slices++) {
    await fixture.clock.advance(10)
    fixture.put(resourceClaims, claimOf('other', {}, slices % 2 === 0 ? allocated('other') : {}))
    fixture.cache.setNode(nodeOf({ name: 'a', status: { conditions: [{ type: 'Ready', status: 'True', message: `${slices}` }] } }))
    if (slices % 100 === 0 && slices < 500) assert.deepEqual(fixture.decide(pod), searching)
  }
  assert.throws(() => fixture.decide(pod), timedOut)
})

test('DRA-04 a search that timed out begins again after a wait that doubles, also when devices are given back meanwhile', async () => {
  const other = { name: 'other', attributes: strings({ numa: '0', model: 'm0' }) }
  const fixture = cluster([...endlessDevices(), other], [endlessClaim(), claimOf('other', {}, allocated('other'))])
  const time = fixture.passTime(4)
  for (const waitMs of [10_000, 20_000]) {
    assert.deepEqual(fixture.decide(pod), searching)
    for (let slices = 0; slices < 1100; slices++) await fixture.clock.advance(10)
    assert.throws(() => fixture.decide(pod), timedOut)
    fixture.put(resourceClaims, claimOf('other', {}))
    fixture.put(resourceClaims, claimOf('other', {}, allocated('other')))
    time.pass(waitMs - 1000)
    assert.throws(() => fixture.decide(pod), timedOut)
    time.pass(1000)
  }
  assert.deepEqual(fixture.decide(pod), searching)
})

test('DRA-04 devices that a search found and another claim got meanwhile are searched for again', async () => {
  const fixture = cluster(longDevices(), [longClaim(), claimOf('other', {})])
  fixture.passTime(40)
  assert.deepEqual(fixture.decide(pod), searching)
  await fixture.clock.advance(20_000)
  fixture.put(resourceClaims, claimOf('other', {}, allocated('g0')))
  assert.deepEqual(fixture.decide(pod), searching)
  await fixture.clock.advance(20_000)
  const devices = fixture.reserve()
  assert.equal(devices.length, 20)
  assert.ok(!devices.includes('g0'), devices.join())
})

test('DRA-04 a device that its driver withdrew after a search found it is not promised', async () => {
  const fixture = cluster(longDevices(), [longClaim()])
  fixture.passTime(40)
  assert.deepEqual(fixture.decide(pod), searching)
  await fixture.clock.advance(20_000)
  const spec = { driver, nodeName: 'a', pool: { name: 'a', generation: 2, resourceSliceCount: 1 }, devices: longDevices().slice(1) }
  fixture.put(resourceSlices, { apiVersion, kind: 'ResourceSlice', metadata: { name: 's' }, spec } as never)
  assert.deepEqual(fixture.decide(pod), searching)
  await fixture.clock.advance(20_000)
  assert.ok(!fixture.reserve().includes('g0'))
})

test('DRA-04 a refusal holds while claims get devices, and ends when one gives devices back', async () => {
  const constraints = [{ distinctAttribute: `${driver}/rack` }]
  const devices = gpus(18, (index) => ({ rack: `${Math.min(index, 15)}` }))
  const held = (...names: string[]) => claimOf('other', {}, allocated(...names))
  const fixture = cluster(devices, [claimOf('c', { requests: [request('r', { count: 16 })], constraints }), held('g0')])
  fixture.passTime(4)
  assert.deepEqual(fixture.decide(pod), searching)
  for (let slices = 0; slices < 500; slices++) await fixture.clock.advance(10)
  fixture.put(resourceClaims, held('g0'))
  assert.deepEqual(fixture.decide(pod), cannotAllocate)
  fixture.put(resourceClaims, claimOf('third', {}, allocated('g1')))
  assert.deepEqual(fixture.decide(pod), cannotAllocate)
  fixture.put(resourceClaims, claimOf('third', {}))
  fixture.put(resourceClaims, held())
  assert.deepEqual(fixture.decide(pod), searching)
  await fixture.clock.advance(5_000)
  assert.deepEqual(fixture.decide(pod), { on: 'a' })
})

test('DRA-04 Reserve fails when another claim got the devices after the decision', () => {
  const fixture = cluster(gpus(1), [claimOf('c', { requests: [request('r')] }), claimOf('other', {})])
  const result = fixture.schedule(pod)
  assert.ok('placed' in result)
  fixture.put(resourceClaims, claimOf('other', {}, allocated('g0')))
  const { state, node } = result.placed
  const reserve = () => {
    for (const plugin of fixture.profile.points.reserve) plugin.reserve(state, podInfo(pod), node.name)
  }
  assert.throws(reserve, /node a: devices of the claims were allocated to other claims meanwhile/)
})

test('DRA-04 a request that leaves the next one without its only devices is given up at once', () => {
  const only = (...names: string[]) => selecting(`${attribute('name')} in ${JSON.stringify(names)}`)
  const eight = list(8, (index) => `g${index + 1}`)
  const startMs = processorMs()
  const first = cluster(gpus(20), [claimOf('c', { requests: [request('r', { count: 8 }), request('s', { selectors: only('g0') })] })])
  assert.deepEqual(first.reserve(), [...eight, 'g0'])
  const two = [request('r', { count: 8 }), request('s', { selectors: only('g0', 'g1') }), request('t', { selectors: only('g0', 'g1') })]
  assert.deepEqual(cluster(gpus(20), [claimOf('c', { requests: two })]).reserve(), [...list(8, (index) => `g${index + 2}`), 'g0', 'g1'])
  const none = cluster(gpus(23), [claimOf('c', { requests: list(24, (index) => request(`r${index}`)) })])
  assert.deepEqual(none.decide(pod), cannotAllocate)
  assert.ok(processorMs() - startMs < 1000, `${processorMs() - startMs} ms`)
})

test('DRA-04 requests that must share a value are refused by counting, also where no value has enough devices', () => {
  const requests = list(12, (index) => request(`r${index}`))
  const decide = (values: number) =>
    cluster(
      gpus(64, (index) => ({ numa: `${index % values}` })),
      [claimOf('c', { requests, constraints: [{ matchAttribute: `${driver}/numa` }] })],
    ).decide(pod)
  const startMs = performance.now()
  assert.deepEqual(decide(6), cannotAllocate)
  assert.deepEqual(decide(64), cannotAllocate)
  assert.deepEqual(decide(5), { on: 'a' })
  assert.ok(performance.now() - startMs < 1000)
})
