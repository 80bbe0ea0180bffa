import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ContainerStatus, PodStatus } from '#api/gen/types/core.v1'
import { cutStatus, maxCutLevel } from './statusSize.ts'

const message = 'x'.repeat(4096)
const one: ContainerStatus = {
  name: 'c',
  image: 'app:1',
  imageID: 'app@sha256:1',
  containerID: 'containerd://1',
  ready: false,
  started: false,
  restartCount: 3,
  state: { waiting: { reason: 'CrashLoopBackOff', message } },
  lastState: { terminated: { exitCode: 1, reason: 'Error', message, containerID: 'containerd://0' } },
  volumeMounts: [{ name: 'v', mountPath: '/v' }],
}
const running = { running: { startedAt: '2026-01-01T00:00:00Z' } }
const status: PodStatus = {
  phase: 'Running',
  conditions: [{ type: 'Ready', status: 'False', message: 'containers with unready status: [c]' }],
  containerStatuses: [one],
  initContainerStatuses: [{ ...one, name: 'i', state: { terminated: { exitCode: 0, reason: 'Completed', message, containerID: 'containerd://2' } } }],
  ephemeralContainerStatuses: [{ ...one, name: 'e', state: running }],
}
const { phase, conditions } = status
const short = { image: '', imageID: '', ready: false, started: false, restartCount: 3 }

test('KUB-12 a status that is not cut stays the same', () => assert.equal(cutStatus(status, 0), status))

test('KUB-12 the first cut leaves out the messages of containers only', () => {
  const cut = cutStatus(status, 1)
  assert.deepEqual(cut.containerStatuses, [
    {
      ...one,
      state: { waiting: { reason: 'CrashLoopBackOff' } },
      lastState: { terminated: { exitCode: 1, reason: 'Error', containerID: 'containerd://0' } },
    },
  ])
  assert.deepEqual(cut.ephemeralContainerStatuses?.[0]?.state, running)
  assert.deepEqual([cut.phase, cut.conditions], [phase, conditions])
})

test('KUB-12 the second cut leaves out what a container had before and how it is made up', () => {
  const { lastState: _last, volumeMounts: _mounts, ...rest } = one
  assert.deepEqual(cutStatus(status, 2).containerStatuses, [{ ...rest, state: { waiting: { reason: 'CrashLoopBackOff' } } }])
})

test('KUB-12 the third cut leaves the state of each container', () => {
  assert.deepEqual(JSON.parse(JSON.stringify(cutStatus(status, 3))), {
    phase,
    conditions,
    containerStatuses: [{ name: 'c', ...short, state: { waiting: { reason: 'CrashLoopBackOff' } } }],
    initContainerStatuses: [{ name: 'i', ...short, state: { terminated: { exitCode: 0, reason: 'Completed' } } }],
    ephemeralContainerStatuses: [{ name: 'e', ...short, state: running }],
  })
})

test('KUB-12 the last cut leaves the pod’s own phase and conditions', () => assert.deepEqual(cutStatus(status, maxCutLevel), { phase, conditions }))
