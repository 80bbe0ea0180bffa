import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mostSpeed, mostStepMs } from '#api/debug/clock'
import { isMoving, motionText, speeds, steps, timeText } from './clusterClock.ts'

const still = { now: '2026-01-01T00:05:00.250Z', speed: 0, stepMs: 0 }

test('ARC-16 the clock of a cluster says its time and how it passes', () => {
  assert.equal(timeText(still), '2026-01-01 00:05:00 UTC')
  const texts = [still, { ...still, speed: 1 }, { ...still, speed: 60 }, { ...still, speed: 60, stepMs: 90_000 }, { ...still, failure: 'no rest' }]
  assert.deepEqual(texts.map(motionText), ['stands still', 'passes as on the machine', 'passes up to 60 times as fast', 'advances by 90s', 'stopped: no rest'])
  assert.deepEqual(texts.map(isMoving), [false, true, true, true, false])
})

test('ARC-16 the server takes every speed and every step that the page offers', () => {
  assert.ok(speeds.every((speed) => speed <= mostSpeed))
  assert.ok(steps.every(({ ms }) => ms <= mostStepMs))
})
