import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeviceTaint, DeviceToleration, ResourceClaim, ResourceSlice } from '#api/gen/types/resource.v1'
import { formatTime } from '#base/time'
import { evictionTime } from './plan.ts'

const nowMs = 1_000_000_000
const since = formatTime(nowMs - 30_000)
const taint = (more: Partial<DeviceTaint> = {}): DeviceTaint => ({ key: 'k', value: 'v', effect: 'NoExecute', timeAdded: since, ...more })
const toleration = (more: Partial<DeviceToleration> = {}): DeviceToleration => ({ key: 'k', operator: 'Exists', ...more })

function slice(taints: DeviceTaint[], generation = 1): ResourceSlice {
  const spec = { driver: 'd', pool: { name: 'p', generation, resourceSliceCount: 1 }, devices: [{ name: 'g', taints }] }
  return { apiVersion: 'resource.k8s.io/v1', kind: 'ResourceSlice', metadata: { name: `s${generation}` }, spec }
}

function claim(tolerations: DeviceToleration[]): ResourceClaim {
  const status = { allocation: { devices: { results: [{ request: 'r', driver: 'd', pool: 'p', device: 'g', tolerations }] } } }
  return { apiVersion: 'resource.k8s.io/v1', kind: 'ResourceClaim', metadata: { name: 'c' }, spec: {}, status }
}

const cases = [
  { name: 'no taint', slices: [slice([])], tolerations: [], want: undefined },
  { name: 'one that is not tolerated', slices: [slice([taint()])], tolerations: [], want: -30_000 },
  { name: 'one that only keeps others away', slices: [slice([taint({ effect: 'NoSchedule' })])], tolerations: [], want: undefined },
  { name: 'tolerated for good', slices: [slice([taint()])], tolerations: [toleration()], want: undefined },
  { name: 'tolerated for a while, from when the taint came', slices: [slice([taint()])], tolerations: [toleration({ tolerationSeconds: 40 })], want: 10_000 },
  {
    name: 'the shortest toleration counts',
    slices: [slice([taint()])],
    tolerations: [toleration({ tolerationSeconds: 90 }), toleration({ tolerationSeconds: 40 })],
    want: 10_000,
  },
  {
    name: 'a taint whose value the toleration does not have',
    slices: [slice([taint()])],
    tolerations: [toleration({ operator: 'Equal', value: 'w' })],
    want: -30_000,
  },
  { name: 'in an older generation only', slices: [slice([taint()]), slice([], 2)], tolerations: [], want: undefined },
  { name: 'no slice any more', slices: [], tolerations: [], want: undefined },
]
for (const { name, slices, tolerations, want } of cases)
  test(`DRA-04 device taints: ${name}`, () => {
    const dueMs = evictionTime(claim(tolerations), (pool) => (pool === 'd/p' ? slices : []), nowMs)
    assert.equal(dueMs === undefined ? undefined : dueMs - nowMs, want)
  })
