import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node } from '#api/gen/types/core.v1'
import { VirtualClock } from '#base/virtualClock'
import { ProxyHealth } from './health.ts'

const timeoutMs = 60_000

function aNode({ taint, isDeleted = false }: { readonly taint?: string; readonly isDeleted?: boolean } = {}): Node {
  return {
    metadata: { name: 'self', ...(isDeleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
    spec: taint === undefined ? {} : { taints: [{ key: taint, effect: 'NoSchedule' }] },
  } as Node
}

function world() {
  const clock = new VirtualClock()
  const health = new ProxyHealth(clock, timeoutMs)
  health.serves(['IPv4', 'IPv6'])
  health.setNode(aNode())
  return { clock, health }
}

test('SVC-06 /healthz of a proxy that starts is healthy without a status of families, until its first rules are late', async () => {
  const { clock, health } = world()
  assert.deepEqual(health.healthz().isHealthy, true)
  assert.equal('status' in health.healthz().body, false)
  health.queued()
  await clock.advance(timeoutMs - 1)
  assert.equal(health.healthz().isHealthy, true)
  await clock.advance(1)
  const { isHealthy, body } = health.healthz()
  assert.equal(isHealthy, false)
  assert.equal(body.lastUpdated, '0001-01-01T00:00:00Z')
  assert.deepEqual(Object.keys(body.status as object), ['IPv4', 'IPv6'])
})

test('SVC-06 a family that lags makes /healthz and /livez unhealthy and names itself; they are healthy again when its rules are applied', async () => {
  const { clock, health } = world()
  for (const family of ['IPv4', 'IPv6'] as const) health.applied(family, clock.monotonicMs())
  const appliedAt = new Date(clock.now()).toISOString()
  await clock.advance(10_000)
  health.queued()
  const takenMs = clock.monotonicMs()
  health.applied('IPv4', takenMs)
  const laterAt = new Date(clock.now()).toISOString()
  await clock.advance(timeoutMs)
  for (const { isHealthy, body } of [health.healthz(), health.livez()]) {
    assert.equal(isHealthy, false)
    assert.equal(body.healthy, false)
    assert.equal(body.lastUpdated, laterAt)
    assert.deepEqual(body.status, { IPv4: { lastUpdated: laterAt, healthy: true }, IPv6: { lastUpdated: appliedAt, healthy: false } })
  }
  health.applied('IPv6', takenMs)
  const { isHealthy, body } = health.healthz()
  assert.equal(isHealthy, true)
  assert.equal(body.lastUpdated, body.currentTime)
  assert.equal(body.currentTime, new Date(clock.now()).toISOString())
})

test('SVC-06 a change that is queued while rules are applied still counts as waiting', async () => {
  const { clock, health } = world()
  health.queued()
  const takenMs = clock.monotonicMs()
  await clock.advance(50)
  health.queued()
  for (const family of ['IPv4', 'IPv6'] as const) health.applied(family, takenMs)
  await clock.advance(timeoutMs - 1)
  assert.equal(health.livez().isHealthy, true)
  await clock.advance(1)
  assert.equal(health.livez().isHealthy, false)
})

test('SVC-06 a node that is absent, is being deleted or has the autoscaler’s taint is not eligible: /healthz is unhealthy, /livez is not', () => {
  const { health } = world()
  for (const node of [undefined, aNode({ isDeleted: true }), aNode({ taint: 'ToBeDeletedByClusterAutoscaler' })]) {
    health.setNode(node)
    const { isHealthy, body } = health.healthz()
    assert.deepEqual([isHealthy, body.nodeEligible, body.healthy], [false, false, true])
    assert.equal(health.livez().isHealthy, true)
    assert.equal('nodeEligible' in health.livez().body, false)
  }
  health.setNode(aNode({ taint: 'other' }))
  assert.deepEqual([health.healthz().isHealthy, health.healthz().body.nodeEligible], [true, true])
})

test('SVC-06 a family that the host cannot serve has no part in the health', async () => {
  const { clock, health } = world()
  health.queued()
  health.serves(['IPv4'])
  health.applied('IPv4', clock.monotonicMs())
  await clock.advance(timeoutMs)
  const { isHealthy, body } = health.livez()
  assert.equal(isHealthy, true)
  assert.deepEqual(Object.keys(body.status as object), ['IPv4'])
})
