import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ComponentStatus } from '#api/gen/types/core.v1'
import { VirtualClock } from '#base/virtualClock'
import { type ComponentProbe, componentStatuses, healthy } from './componentStatuses.ts'

const clock = new VirtualClock()
const probes: readonly ComponentProbe[] = [
  { name: 'scheduler', probe: () => healthy },
  { name: 'controller-manager', probe: async () => ({ status: 'False', message: 'HTTP probe failed with statuscode: 500' }) },
  {
    name: 'etcd-0',
    probe: async () => {
      throw new Error('the disk is gone')
    },
  },
  { name: 'hanging', probe: () => new Promise(() => {}) },
]
const resource = componentStatuses(probes, clock)
const common = { user: { name: 'u', groups: [] }, namespace: '', signal: new AbortController().signal }
const shown = (status: unknown) => (status as ComponentStatus).conditions?.[0]

test('API-01 component statuses are probed at once, sorted by name, and one that hangs ends after 20 seconds', async () => {
  const listing = Promise.resolve(resource.list?.({ ...common, selects: () => true }))
  await clock.advance(19_999)
  assert.equal(await Promise.race([listing, 'none yet']), 'none yet')
  await clock.advance(1)
  const all = (await listing) ?? []
  assert.deepEqual(
    all.map((status) => [status.metadata.name, shown(status)]),
    [
      ['controller-manager', { type: 'Healthy', status: 'False', message: 'HTTP probe failed with statuscode: 500' }],
      ['etcd-0', { type: 'Healthy', status: 'False', error: 'the disk is gone' }],
      ['hanging', { type: 'Healthy', status: 'False', error: 'context deadline exceeded' }],
      ['scheduler', { type: 'Healthy', status: 'True', message: 'ok' }],
    ],
  )
})

test('API-01 a component status is read by name, selected components alone are probed, and an unknown one is not found', async () => {
  assert.deepEqual(shown(await resource.get?.({ ...common, name: 'scheduler' })), { type: 'Healthy', status: 'True', message: 'ok' })
  const selected = await resource.list?.({ ...common, selects: ({ name }) => name === 'scheduler' })
  assert.deepEqual(
    selected?.map(({ metadata }) => metadata.name),
    ['scheduler'],
  )
  assert.throws(() => resource.get?.({ ...common, name: 'none' }), { code: 404, message: 'componentstatus "none" not found' })
})
