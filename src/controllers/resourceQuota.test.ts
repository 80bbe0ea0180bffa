import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, ResourceQuota } from '#api/gen/types/core.v1'
import { quotaNamesOf } from '#api/helpers/quotaUsage'
import { quotaUsed } from './resourceQuota.ts'

const nowMs = Date.UTC(2026, 0, 1)
const quota = (hard: Record<string, string>, scopes?: string[]): ResourceQuota => ({
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { namespace: 'n', name: 'q' },
  spec: { hard, ...(scopes ? { scopes } : {}) },
  status: {},
})
const pod = (cpu: string | undefined, more: Partial<Pod['metadata']> = {}, phase = 'Running'): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'n', name: 'p', ...more },
  spec: { containers: [{ name: 'c', ...(cpu ? { resources: { requests: { cpu } } } : {}) }] },
  status: { phase },
})
const pods = { group: '', resource: 'pods' }
const gone = { deletionTimestamp: '2025-12-31T23:59:00Z', deletionGracePeriodSeconds: 30 }
const cases = [
  { name: 'nothing there is zero, not absent', hard: { pods: '2' }, objects: [], want: { pods: '0' } },
  { name: 'what nothing served can use is left out', hard: { pods: '2', 'count/widgets.example.com': '1' }, objects: [], want: { pods: '0' } },
  { name: 'pods add up', hard: { 'requests.cpu': '2', cpu: '2' }, objects: [pod('300m'), pod('700m')], want: { cpu: '1', 'requests.cpu': '1' } },
  {
    name: 'pods that have ended hold their place only',
    hard: { pods: '2', 'count/pods': '9' },
    objects: [pod('1', {}, 'Failed')],
    want: { 'count/pods': '1', pods: '0' },
  },
  { name: 'pods that should be gone are not charged', hard: { pods: '2' }, objects: [pod('1', gone)], want: { pods: '0' } },
  { name: 'scopes choose', hard: { pods: '2' }, scopes: ['BestEffort'], objects: [pod('1'), pod(undefined)], want: { pods: '1' } },
]
for (const { name, hard, objects, want, scopes } of cases as {
  name: string
  hard: Record<string, string>
  objects: Pod[]
  want: object
  scopes?: string[]
}[]) {
  test(`CTL-18 quota usage: ${name}`, () => assert.deepEqual(quotaUsed(quota(hard, scopes), [{ resource: pods, objects }], nowMs), want))
}

test('CTL-18 each name is used by objects of one resource', () => {
  const names = [
    'cpu',
    'pods',
    'services.nodeports',
    'requests.storage',
    'count/services',
    'count/widgets.example.com',
    'g.deviceclass.resource.k8s.io/devices',
    'requests.cpu',
  ]
  const of = (group: string, resource: string) => quotaNamesOf({ group, resource }, names)
  assert.deepEqual(of('', 'pods'), ['cpu', 'pods', 'requests.cpu'])
  assert.deepEqual(of('', 'services'), ['services.nodeports', 'count/services'])
  assert.deepEqual(of('', 'persistentvolumeclaims'), ['requests.storage'])
  assert.deepEqual(of('example.com', 'widgets'), ['count/widgets.example.com'])
  assert.deepEqual(of('resource.k8s.io', 'resourceclaims'), ['g.deviceclass.resource.k8s.io/devices'])
  assert.deepEqual(of('metrics.k8s.io', 'pods'), [])
})
