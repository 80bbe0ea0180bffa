import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container, Pod } from '#api/gen/types/core.v1'
import type { ContainerRecord, PodRuntimeStatus } from '../runtime/podRuntimeStatus.ts'
import { planResize } from './resize.ts'

const status: PodRuntimeStatus = { uid: 'u', sandboxes: [], containers: [{ id: 'id', name: 'c', state: 'running' } as ContainerRecord] }
const has = { requests: { cpu: '100m', memory: '64Mi' } }
const allocatable = { cpu: '1', memory: '1Gi' }

function pod(requests: Record<string, string>, resizePolicy?: Container['resizePolicy'], name = 'p'): Pod {
  const containers = [{ name: 'c', resources: { requests }, resizePolicy }]
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, uid: name }, spec: { containers }, status: {} }
}

const restartForMemory = [{ resourceName: 'memory', restartPolicy: 'RestartContainer' }]
const cases = [
  { name: 'the same in other words', pod: pod({ cpu: '0.1', memory: '65536Ki' }), want: {} },
  { name: 'more cpu', pod: pod({ cpu: '200m', memory: '64Mi' }), want: { update: ['c'] } },
  { name: 'more memory, with a restart', pod: pod({ cpu: '100m', memory: '128Mi' }, restartForMemory), want: { restart: ['c'] } },
  { name: 'more cpu, where only memory restarts', pod: pod({ cpu: '200m', memory: '64Mi' }, restartForMemory), want: { update: ['c'] } },
  { name: 'more than the node has', pod: pod({ cpu: '2' }), want: { pending: 'Infeasible' } },
  { name: 'more than is free', pod: pod({ cpu: '900m' }), want: { pending: 'Deferred' } },
]
for (const c of cases) {
  test(`KUB-22 resize: ${c.name}`, () => {
    const plan = planResize(c.pod, status, () => has, [pod({ cpu: '200m' }, undefined, 'other')], allocatable)
    const names = (list: typeof plan.update) => list.map(({ container }) => container.name)
    const got = {
      ...(plan.update.length ? { update: names(plan.update) } : {}),
      ...(plan.restart.length ? { restart: names(plan.restart) } : {}),
      ...(plan.pending ? { pending: plan.pending.reason } : {}),
    }
    assert.deepEqual(got, c.want)
  })
}
