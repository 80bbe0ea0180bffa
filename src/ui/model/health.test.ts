import assert from 'node:assert/strict'
import { test } from 'node:test'
import { problemsOf, toneOf, warningsByObject } from './health.ts'

const old = '2026-01-01T00:00:00Z'
const nowMs = Date.UTC(2026, 0, 1, 1)

function found(resource: string, cells: Readonly<Record<string, unknown>>, creationTimestamp = old) {
  const columns = Object.keys(cells).map((name) => ({ name, type: 'string' }))
  const rows = new Map([['1', { cells: Object.values(cells), object: { metadata: { name: 'x', namespace: 'a', creationTimestamp } } }]])
  const [problem] = problemsOf(resource, { columns, rows }, nowMs)
  return problem && `${problem.tone} ${problem.status}: ${problem.text}`
}

const cases: readonly (readonly [string, string, Readonly<Record<string, unknown>>, string | undefined])[] = [
  ['a pod that runs', 'pods', { Ready: '1/1', Status: 'Running', Restarts: 0 }, undefined],
  ['a pod that has ended well', 'pods', { Ready: '0/1', Status: 'Completed', Restarts: 0 }, undefined],
  [
    'a pod that fails again and again',
    'pods',
    { Ready: '0/1', Status: 'CrashLoopBackOff', Restarts: '3 (2m ago)' },
    'bad CrashLoopBackOff: restarted 3 (2m ago)',
  ],
  ['a pod without its image', 'pods', { Ready: '0/1', Status: 'ErrImagePull', Restarts: 0 }, 'bad ErrImagePull: has not started'],
  ['a pod of which an init container failed', 'pods', { Ready: '0/1', Status: 'Init:CrashLoopBackOff', Restarts: 1 }, 'bad Init:CrashLoopBackOff: restarted 1'],
  ['a pod without a node', 'pods', { Ready: '0/1', Status: 'Pending', Restarts: 0 }, 'busy Pending: not started on any node yet'],
  ['a pod that is not ready', 'pods', { Ready: '1/2', Status: 'Running', Restarts: 0 }, 'bad NotReady: 1 of 2 containers are ready'],
  ['a node that does not answer', 'nodes', { Status: 'NotReady' }, 'bad NotReady: its pods are not updated, and may be evicted'],
  ['a cordoned node', 'nodes', { Status: 'Ready,SchedulingDisabled' }, 'busy Ready,SchedulingDisabled: takes no new pods'],
  ['a ready node', 'nodes', { Status: 'Ready' }, undefined],
  ['a Deployment without a ready pod', 'deployments', { Ready: '0/3' }, 'bad 0/3: 0 of 3 replicas are ready'],
  ['a Deployment on its way', 'deployments', { Ready: '2/3' }, 'busy 2/3: 2 of 3 replicas are ready'],
  ['a Deployment of no replicas', 'deployments', { Ready: '0/0' }, undefined],
  ['a DaemonSet that is missing on a node', 'daemonsets', { Desired: 3, Ready: 2 }, 'busy 2/3: 2 of 3 nodes have a ready pod'],
  ['a Job that failed', 'jobs', { Status: 'Failed', Completions: '0/1' }, 'bad Failed: 0/1 completions'],
  ['a claim without a volume', 'persistentvolumeclaims', { Status: 'Pending' }, 'busy Pending: has no volume'],
  ['a namespace that does not end', 'namespaces', { Status: 'Terminating' }, 'busy Terminating: is being deleted'],
  ['a kind whose table has no status', 'configmaps', { Data: 3 }, undefined],
]
for (const [name, resource, cells, want] of cases) {
  test(`ARC-16 the overview judges ${name}`, () => assert.equal(found(resource, cells), want))
}

test('ARC-16 a new object is reported only when its status is a failure', () => {
  const justNow = new Date(nowMs - 5_000).toISOString()
  assert.equal(found('pods', { Ready: '0/1', Status: 'Pending', Restarts: 0 }, justNow), undefined)
  assert.match(found('pods', { Ready: '0/1', Status: 'ErrImagePull', Restarts: 0 }, justNow) ?? '', /^bad/)
})

test('ARC-16 words of status that are not known are shown without a colour', () => {
  assert.deepEqual(['Running', 'Terminating', 'OOMKilled', '<script>', 'Whatever'].map(toneOf), ['good', 'busy', 'bad', 'quiet', 'quiet'])
})

test('ARC-16 the last warning about an object explains it, unless it only repeats the status', () => {
  const event = (message: string, lastTimestamp: string, type = 'Warning') => ({
    ...{ metadata: {}, type, message, lastTimestamp },
    involvedObject: { kind: 'Pod', namespace: 'a', name: 'x' },
  })
  const echo = event('Error: ImagePullBackOff', '2026-01-01T00:09:00Z')
  const warnings = warningsByObject([
    echo,
    event('second', '2026-01-01T00:02:00Z'),
    event('first', '2026-01-01T00:01:00Z'),
    event('fine', '2026-01-01T00:03:00Z', 'Normal'),
  ])
  assert.equal(warnings.get('Pod/a/x')?.message, 'second')
  assert.equal(warningsByObject([echo]).get('Pod/a/x'), echo)
})
