import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container, Node, Pod, PodSpec, Service, Taint, Toleration } from '#api/gen/types/core.v1'
import { nodeSelectorMatches, podMatchesNodeSelectorAndAffinity } from './nodes.ts'
import { controllerOf, controllerReference, isControlledBy } from './owners.ts'
import { podLimits, podRequests, qosClass } from './podResources.ts'
import { isPodActive, isPodAvailable, msUntilAvailable } from './pods.ts'
import { findTargetPort } from './services.ts'
import { findUntoleratedTaint, tolerationToleratesTaint } from './taints.ts'

const pod = (spec: Partial<PodSpec>, rest: Partial<Pod> = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p' },
  spec: { containers: [], ...spec },
  status: {},
  ...rest,
})
const container = (name: string, requests?: Record<string, string>, limits?: Record<string, string>, restartPolicy?: string): Container => ({
  name,
  resources: { requests, limits },
  restartPolicy,
})

test('RES-01 a pod requests the largest init step or all containers, plus its sidecars and its overhead', () => {
  const subject = pod({
    containers: [container('a', { cpu: '100m', memory: '64Mi' }), container('b', { cpu: '200m' })],
    initContainers: [container('i1', { cpu: '500m' }), container('s', { cpu: '50m' }, undefined, 'Always'), container('i2', { memory: '256Mi', cpu: '10m' })],
    overhead: { memory: '1Mi' },
  })
  assert.deepEqual(podRequests(subject), { cpu: 500, memory: 257 * 1024 * 1024 })
  assert.deepEqual(podRequests(subject, { excludeOverhead: true }), { cpu: 500, memory: 256 * 1024 * 1024 })
})

test('RES-01 pod-level resources replace the sum; overhead joins only existing limits', () => {
  const subject = pod({
    containers: [container('a', { cpu: '1' }, { cpu: '1' })],
    resources: { requests: { cpu: '3' } },
    overhead: { cpu: '1', memory: '1Mi' },
  })
  assert.deepEqual(podRequests(subject), { cpu: 4000, memory: 1024 * 1024 })
  assert.deepEqual(podLimits(subject), { cpu: 2000 })
})

test('RES-01 a resize in progress counts the larger of wanted and allocated', () => {
  const subject = pod(
    { containers: [container('a', { cpu: '100m' })] },
    {
      status: { containerStatuses: [{ name: 'a', allocatedResources: { cpu: '300m' }, resources: {}, image: '', imageID: '', ready: true, restartCount: 0 }] },
    },
  )
  assert.deepEqual([podRequests(subject), podRequests(subject, { useStatusResources: true })], [{ cpu: 100 }, { cpu: 300 }])
})

const both = { cpu: '1', memory: '1Gi' }
const qos: [string, Container[], string][] = [
  ['nothing', [container('a')], 'BestEffort'],
  ['only storage', [container('a', { 'ephemeral-storage': '1Gi' })], 'BestEffort'],
  ['zero requests', [container('a', { cpu: '0' })], 'BestEffort'],
  ['requests', [container('a', { cpu: '1' })], 'Burstable'],
  ['equal', [container('a', { cpu: '1000m', memory: '1024Mi' }, both)], 'Guaranteed'],
  ['limits alone', [container('a', undefined, both)], 'Guaranteed'],
  ['one of two', [container('a', both, both), container('b')], 'Burstable'],
]
for (const [name, containers, want] of qos) test(`RES-01 quality of service: ${name}`, () => assert.equal(qosClass(pod({ containers })), want))

const taint: Taint = { key: 'k', value: 'v', effect: 'NoSchedule' }
const tolerations: [Toleration, boolean][] = [
  [{ key: 'k', value: 'v', effect: 'NoSchedule' }, true],
  [{ key: 'k', operator: 'Exists' }, true],
  [{ operator: 'Exists' }, true],
  [{ key: 'k', operator: 'Equal', value: 'w' }, false],
  [{ key: 'k', value: 'v', effect: 'NoExecute' }, false],
  [{ key: 'j', operator: 'Exists' }, false],
]
for (const [toleration, want] of tolerations)
  test(`${JSON.stringify(toleration)} tolerates: ${want}`, () => assert.equal(tolerationToleratesTaint(toleration, taint), want))

test('the first untolerated taint that counts', () => {
  const other: Taint = { key: 'o', effect: 'PreferNoSchedule' }
  assert.equal(findUntoleratedTaint([other, taint], []), other)
  assert.equal(
    findUntoleratedTaint([other, taint], [], ({ effect }) => effect === 'NoSchedule'),
    taint,
  )
  assert.equal(findUntoleratedTaint([taint], [{ operator: 'Exists' }]), undefined)
})

test('node selectors', () => {
  const node: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n', labels: { zone: 'a', cores: '8' } }, spec: {}, status: {} }
  const terms = (operator: string, key: string, values?: string[]) => ({ nodeSelectorTerms: [{ matchExpressions: [{ key, operator, values }] }] })
  assert.deepEqual(
    [
      terms('In', 'zone', ['a', 'b']),
      terms('NotIn', 'rack', ['1']),
      terms('Gt', 'cores', ['4']),
      terms('Lt', 'cores', ['4']),
      terms('DoesNotExist', 'zone'),
    ].map((selector) => nodeSelectorMatches(selector, node)),
    [true, true, true, false, false],
  )
  assert.equal(nodeSelectorMatches({ nodeSelectorTerms: [{}] }, node), false)
  assert.equal(nodeSelectorMatches({ nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] }] }, node), true)
  assert.equal(podMatchesNodeSelectorAndAffinity(pod({ nodeSelector: { zone: 'b' } }), node), false)
})

test('owners', () => {
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: { name: 'r', uid: 'u' } }
  const owned = pod({}, { metadata: { ownerReferences: [controllerReference(owner)] } })
  assert.deepEqual(controllerOf(owned), { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: 'u', controller: true, blockOwnerDeletion: true })
  assert.equal(isControlledBy(owned, owner), true)
})

test('availability waits for minReadySeconds', () => {
  const ready = pod({}, { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '1970-01-01T00:00:10Z' }] } })
  assert.deepEqual([isPodAvailable(ready, 0, 0), isPodAvailable(ready, 5, 14_999), isPodAvailable(ready, 5, 15_000)], [true, false, true])
  assert.equal(msUntilAvailable(ready, 5, 12_000), 3000)
  assert.equal(isPodActive(pod({}, { status: { phase: 'Failed' } })), false)
})

test('a named target port is found by name and protocol', () => {
  const subject = pod({
    containers: [
      {
        name: 'a',
        ports: [
          { name: 'dns', containerPort: 53, protocol: 'UDP' },
          { name: 'dns', containerPort: 5353 },
        ],
      },
    ],
  })
  const port = (targetPort: number | string) => ({ port: 80, targetPort }) as unknown as NonNullable<Service['spec']['ports']>[number]
  assert.deepEqual(
    [port('dns'), port(8080), port('web')].map((p) => findTargetPort(subject, p)),
    [5353, 8080, undefined],
  )
})
