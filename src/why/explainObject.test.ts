import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '#api/machinery/meta'
import { type Answer, command, describeAnswer } from './answer.ts'
import { explainObject } from './explainObject.ts'
import type { ObjectReader } from './reader.ts'

/** Objects by path, and the paths that the reader may not read with the reason. */
function readerOf(objects: Readonly<Record<string, unknown>> = {}, hidden: Readonly<Record<string, string>> = {}): ObjectReader {
  const see = async (path: string, none: object) => {
    if (hidden[path] !== undefined) return { notShown: hidden[path] }
    return objects[path] === undefined ? none : { found: objects[path] }
  }
  return { get: (path) => see(path, {}) as never, list: (path) => see(path, { found: [] }) as never }
}

const pods = { group: '', resource: 'pods' }
const pod = (spec: object, status: object, metadata: object = {}) =>
  ({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'a', name: 'web', uid: 'u', ...metadata }, spec, status }) as unknown as KubeObject

const pulling = pod(
  { nodeName: 'n1', containers: [{ name: 'c', image: 'web:1' }] },
  {
    phase: 'Pending',
    containerStatuses: [{ name: 'c', image: 'web:1', ready: false, restartCount: 0, state: { waiting: { reason: 'ImagePullBackOff', message: 'Back-off' } } }],
  },
)
const readyNode = { metadata: { name: 'n1' }, status: { conditions: [{ type: 'Ready', status: 'True' }] } }

test('X8 what the reader may not read is said, and nothing is concluded from it', async () => {
  const hidden = { '/api/v1/nodes/n1': 'you may not get nodes', '/api/v1/namespaces/a/events': 'you may not list events in the namespace a' }
  const answer = await explainObject(pods, pulling, readerOf({}, hidden))
  assert.deepEqual(answer.notRead, ['you may not get nodes', 'you may not list events in the namespace a'])
  assert.match(answer.causes[0]?.text ?? '', /^container c: image web:1 cannot be pulled: Back-off$/)
  assert.match(describeAnswer(answer), /\nnot read: you may not get nodes\nnot read: you may not list events in the namespace a\n$/)
  const service = { kind: 'Service', metadata: { namespace: 'a', name: 'web' }, spec: { selector: { app: 'web' } } } as unknown as KubeObject
  const blind = await explainObject({ group: '', resource: 'services' }, service, readerOf({}, { '/api/v1/namespaces/a/pods': 'you may not list pods' }))
  assert.deepEqual(blind.causes, [])
  assert.match(describeAnswer(blind), /^Service a\/web: it has 0 ready endpoints; nothing that was read shows why\nnot read: you may not list pods\n$/)
})

test('X8 a pod that runs and is ready does not wait', async () => {
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }], containerStatuses: [{ name: 'c', ready: true, restartCount: 2 }] }
  const running = pod({ nodeName: 'n1', containers: [{ name: 'c', image: 'web:1' }] }, status)
  const answer = await explainObject(pods, running, readerOf({ '/api/v1/nodes/n1': readyNode }))
  assert.equal(describeAnswer(answer), 'Pod a/web does not wait: it runs on n1, ready, restarts: 2\n')
})

test('X8 a pod whose node does not exist says so', async () => {
  const answer = await explainObject(pods, pulling, readerOf())
  assert.deepEqual(answer.causes, [{ text: 'its node n1 does not exist', evidence: 'spec.nodeName n1', next: 'kubectl get nodes' }])
})

test('X8 the newest reason of a failed pull stands in the answer, and not its echo', async () => {
  const event = (message: string, second: number) => ({
    type: 'Warning',
    reason: 'Failed',
    message,
    metadata: {},
    lastTimestamp: `2026-01-01T00:00:0${second}Z`,
  })
  const events = [event('Failed to pull image "web:1": no such host', 1), event('Failed to pull image "web:1": denied', 2), event('Error: ImagePullBackOff', 3)]
  const answer = await explainObject(pods, pulling, readerOf({ '/api/v1/nodes/n1': readyNode, '/api/v1/namespaces/a/events': events }))
  assert.equal(answer.causes[0]?.text, 'container c: image web:1 cannot be pulled: denied')
})

const mounts: readonly (readonly [message: string, text: string, next: string])[] = [
  [
    'MountVolume.SetUp failed for volume "conf" : configmap "gone" not found',
    'a volume cannot be mounted: volume conf: configmap "gone" not found',
    'kubectl get configmap gone -n a',
  ],
  [
    'MountVolume.SetUp failed for volume "data" : hostPath type check failed: /x is not a directory',
    'a volume cannot be mounted: volume data: hostPath type check failed: /x is not a directory',
    'kubectl describe pod web -n a',
  ],
]
for (const [message, text, next] of mounts)
  test(`X8 a pod waits for a volume whose mount fails: ${text}`, async () => {
    const status = { phase: 'Pending', containerStatuses: [{ name: 'c', ready: false, restartCount: 0, state: { waiting: { reason: 'ContainerCreating' } } }] }
    const events = [{ type: 'Warning', reason: 'FailedMount', message, metadata: {} }]
    const mounting = pod({ nodeName: 'n1', containers: [{ name: 'c', image: 'web:1' }] }, status)
    const answer = await explainObject(pods, mounting, readerOf({ '/api/v1/nodes/n1': readyNode, '/api/v1/namespaces/a/events': events }))
    assert.deepEqual(answer.causes, [{ text, evidence: `event FailedMount: ${message}`, next }])
  })

test('X8 an answer shows three causes, each of at most three lines, and counts the others', () => {
  const causes = Array.from({ length: 5 }, (_, index) => ({ text: `cause ${index} ${'x'.repeat(400)}`, evidence: 'e', next: 'n' }))
  const answer: Answer = { object: 'Job a/b', state: '', causes, isSettled: false, notRead: [] }
  const lines = describeAnswer(answer).trimEnd().split('\n')
  assert.equal(lines.length, 10)
  assert.equal(lines[9], 'and 2 more causes, which -o json lists')
  assert.ok(lines.every((line) => line.length <= 301))
})

test('X8 a name that a tenant chose is one word of a command', () => {
  assert.equal(command('kubectl', 'get', 'configmap', "x; rm -rf '/'"), "kubectl get configmap 'x; rm -rf '\\''/'\\'''")
  assert.equal(command('kubectl', 'get', 'pod', 'web-0'), 'kubectl get pod web-0')
})

test('X8 an object of an unknown kind is explained by its conditions, of which those that name a fault are bad when True', async () => {
  const conditions = [
    { type: 'Degraded', status: 'True', reason: 'Slow', message: 'one disk is slow' },
    { type: 'Failed', status: 'False', reason: '', message: '' },
    { type: 'Progressing', status: 'False', reason: '', message: '' },
    { type: 'Ready', status: 'Unknown', reason: 'Lost', message: '' },
  ]
  const object = { apiVersion: 'example.com/v1', kind: 'Disk', metadata: { name: 'd' }, status: { conditions } } as unknown as KubeObject
  const { causes } = await explainObject({ group: 'example.com', resource: 'disks' }, object, readerOf())
  assert.deepEqual(
    causes.map(({ text }) => text),
    ['Degraded is True: one disk is slow', 'Ready is Unknown: Lost'],
  )
})

const faults: readonly (readonly [name: string, status: object, text: RegExp])[] = [
  ['an error of its own', { readyToUse: false, error: { message: 'the driver is busy' } }, /^its controller reports: the driver is busy$/],
  ['a phase', { phase: 'Failed', message: 'no power' }, /^its phase is Failed: no power$/],
  ['an old generation', { observedGeneration: 1, conditions: [] }, /^the controller of Disks has not seen its newest specification/],
  ['work that is under way', { conditions: [{ type: 'Progressing', status: 'True', reason: 'Copying' }] }, /^its controller is at work: Copying$/],
]
for (const [name, status, text] of faults)
  test(`X8 an object whose status has ${name} is explained by it`, async () => {
    const object = { apiVersion: 'example.com/v1', kind: 'Disk', metadata: { name: 'd', generation: 2 }, status } as unknown as KubeObject
    const { causes } = await explainObject({ group: 'example.com', resource: 'disks' }, object, readerOf())
    assert.match(causes[0]?.text ?? '', text)
  })
