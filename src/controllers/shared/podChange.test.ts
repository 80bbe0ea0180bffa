import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { changesCounts } from './podChange.ts'

const base: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web-1', uid: 'u', resourceVersion: '1', labels: { app: 'web' }, finalizers: ['batch.kubernetes.io/job-tracking'] },
  spec: { containers: [] },
  status: { phase: 'Pending' },
}
const workload = {
  selector: { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'track', operator: 'DoesNotExist' }] },
  template: { metadata: { labels: { app: 'web', tier: 'front' } } },
}
const changed = ({ metadata, spec, status }: { metadata?: Partial<Pod['metadata']>; spec?: Partial<Pod['spec']>; status?: Pod['status'] }): Pod => ({
  ...base,
  metadata: { ...base.metadata, resourceVersion: '2', ...metadata },
  spec: { ...base.spec, ...spec },
  status: { ...base.status, ...status },
})
const ready = { type: 'Ready', status: 'True' }
const scheduled = { type: 'PodScheduled', status: 'True' }
const container = { name: 'c', image: '', imageID: '', ready: false, restartCount: 1 }

const cases: { readonly name: string; readonly pod: Pod; readonly concerns: boolean }[] = [
  {
    name: 'it is bound and takes labels of its node',
    pod: changed({ spec: { nodeName: 'n1' }, status: { conditions: [scheduled] }, metadata: { labels: { app: 'web', 'topology.kubernetes.io/zone': 'z' } } }),
    concerns: false,
  },
  { name: 'it has an address', pod: changed({ status: { podIP: '10.0.0.1', hostIP: '10.1.0.1' } }), concerns: false },
  { name: 'it runs', pod: changed({ status: { phase: 'Running' } }), concerns: true },
  { name: 'it is ready', pod: changed({ status: { conditions: [scheduled, ready] } }), concerns: true },
  { name: 'a container of it has been restarted', pod: changed({ status: { containerStatuses: [container] } }), concerns: true },
  { name: 'an init container of it has been restarted', pod: changed({ status: { initContainerStatuses: [container] } }), concerns: true },
  { name: 'it goes', pod: changed({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }), concerns: true },
  { name: 'its finalizer has gone', pod: changed({ metadata: { finalizers: [] } }), concerns: true },
  { name: 'it loses a label of the selector', pod: changed({ metadata: { labels: {} } }), concerns: true },
  { name: 'it gets a label that the selector forbids', pod: changed({ metadata: { labels: { app: 'web', track: 'canary' } } }), concerns: true },
  { name: 'it gets a label of the template', pod: changed({ metadata: { labels: { app: 'web', tier: 'front' } } }), concerns: true },
  { name: 'another owner joins', pod: changed({ metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'n' }] } }), concerns: true },
]

for (const { name, pod, concerns } of cases) {
  test(`CTL-03 a pod's change ${concerns ? 'concerns' : 'does not concern'} who counts it when ${name}`, () => {
    assert.equal(changesCounts(base, pod, workload), concerns)
  })
}
