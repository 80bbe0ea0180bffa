import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, PodSpec } from '#api/gen/types/core.v1'
import { podLevelStatus } from './podLevelStatus.ts'

const pod = (spec: Partial<PodSpec>, phase = 'Running'): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'n', uid: 'u' },
  spec: { containers: [], ...spec },
  status: { phase },
})
const container = (name: string, requests?: Record<string, string>, limits?: Record<string, string>) => ({ name, resources: { requests, limits } }) as never
const small = container('a', { cpu: '100m', memory: '1G' }, { cpu: '5m', memory: '2G' })

const cases = [
  { says: 'a pod that asks for nothing has empty resources', spec: { containers: [container('a')] }, want: { resources: {} } },
  {
    says: 'a pod that waits has the sums of its containers',
    spec: { containers: [small, container('b', { cpu: '1', 'example.com/gpu': '1' })] },
    phase: 'Pending',
    want: {
      resources: { requests: { cpu: '1100m', memory: '1G', 'example.com/gpu': '1' }, limits: { cpu: '5m', memory: '2G' } },
      allocatedResources: { cpu: '1100m', memory: '1G', 'example.com/gpu': '1' },
    },
  },
  {
    says: 'a pod that runs has the limits of its cgroup: none when a container has none',
    spec: { containers: [small, container('b', { cpu: '1' })] },
    want: { resources: { requests: { cpu: '1100m', memory: '1G' } }, allocatedResources: { cpu: '1100m', memory: '1G' } },
  },
  {
    says: 'a pod that runs has no CPU limit that is the minimum of the kernel',
    spec: { containers: [small] },
    want: { resources: { requests: { cpu: '100m', memory: '1G' }, limits: { memory: '2G' } }, allocatedResources: { cpu: '100m', memory: '1G' } },
  },
  {
    says: 'a pod with resources as a whole has these, with overhead in what the cgroup enforces',
    spec: { containers: [small], resources: { requests: { cpu: '2' }, limits: { cpu: '3', memory: '4Gi' } }, overhead: { cpu: '100m' } },
    want: {
      resources: { requests: { cpu: '2100m', memory: '1G' }, limits: { cpu: '3100m', memory: '4Gi' } },
      allocatedResources: { cpu: '2100m', memory: '1G' },
    },
  },
  {
    says: 'a resize as a whole shows in resources when it is written, in allocatedResources when it is set aside',
    spec: { containers: [small], resources: { requests: { cpu: '2' } } },
    actuated: { requests: { cpu: '1' } },
    want: { resources: { requests: { cpu: '1', memory: '1G' }, limits: { memory: '2G' } }, allocatedResources: { cpu: '2', memory: '1G' } },
  },
]
for (const { says, spec, phase, actuated, want } of cases) test(`KUB-22 ${says}`, () => assert.deepEqual(podLevelStatus(pod(spec, phase), actuated), want))
