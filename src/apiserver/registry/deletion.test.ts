import assert from 'node:assert/strict'
import test from 'node:test'
import { namespace as namespaceStrategy } from '#api/kinds/core/namespace'
import type { KubeObject } from '#api/machinery/meta'
import { type DeleteRequest, planDeletion, readyToDelete } from './deletion.ts'
import type { StoredResource } from './storedResource.ts'

const nowMs = Date.parse('2026-01-01T00:00:00Z')
const plain = { group: '', kind: 'ConfigMap', strategy: { group: '', kind: 'ConfigMap' } } as unknown as StoredResource
const graceful = {
  group: '',
  kind: 'Pod',
  strategy: { group: '', kind: 'Pod', deletion: { gracePeriodSeconds: (_: unknown, requested: number | undefined) => requested ?? 30 } },
} as unknown as StoredResource
const namespace = { group: '', kind: 'Namespace', strategy: namespaceStrategy } as unknown as StoredResource
const orphaning = { group: '', kind: 'X', strategy: { group: '', kind: 'X', defaultPropagation: 'orphan' } } as unknown as StoredResource

interface Case {
  name: string
  resource: StoredResource
  metadata?: object
  extra?: object
  request?: Partial<DeleteRequest>
  want: 'now' | 'pending' | object
}

const started = { deletionTimestamp: '2026-01-01T00:00:20Z', deletionGracePeriodSeconds: 30 }
const marked = { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 }
const cases: Case[] = [
  { name: 'nothing holds it', resource: plain, want: 'now' },
  { name: 'a finalizer holds it', resource: plain, metadata: { finalizers: ['a/b'] }, want: { finalizers: ['a/b'], ...marked } },
  { name: 'a finalizer still holds it', resource: plain, metadata: { finalizers: ['a/b'], ...marked }, want: 'pending' },
  {
    name: 'marking the object increments its generation',
    resource: plain,
    metadata: { finalizers: ['a/b'], generation: 4 },
    want: { finalizers: ['a/b'], generation: 5, ...marked },
  },
  { name: 'foreground', resource: plain, request: { propagationPolicy: 'Foreground' }, want: { finalizers: ['foregroundDeletion'], ...marked } },
  { name: 'orphan', resource: plain, request: { orphanDependents: true }, want: { finalizers: ['orphan'], ...marked } },
  {
    name: 'background overrides an earlier foreground',
    resource: plain,
    metadata: { finalizers: ['foregroundDeletion'], ...marked },
    request: { propagationPolicy: 'Background' },
    want: 'now',
  },
  { name: 'an earlier foreground stands when nothing is said', resource: plain, metadata: { finalizers: ['foregroundDeletion'], ...marked }, want: 'pending' },
  { name: 'the kind orphans by default', resource: orphaning, want: { finalizers: ['orphan'], ...marked } },
  { name: 'the kind dies slowly', resource: graceful, want: { deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 } },
  {
    name: 'a shorter period',
    resource: graceful,
    metadata: started,
    request: { gracePeriodSeconds: 5 },
    want: { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 1 },
  },
  {
    name: 'a shorter period that ends later',
    resource: graceful,
    metadata: started,
    request: { gracePeriodSeconds: 20 },
    want: { deletionTimestamp: '2026-01-01T00:00:10Z', deletionGracePeriodSeconds: 20 },
  },
  { name: 'a longer period changes nothing', resource: graceful, metadata: started, request: { gracePeriodSeconds: 60 }, want: 'pending' },
  { name: 'again without a period changes nothing', resource: graceful, metadata: started, want: 'pending' },
  { name: 'at once', resource: graceful, metadata: started, request: { gracePeriodSeconds: 0 }, want: marked },
  { name: 'at once, never marked', resource: graceful, metadata: { generation: 1 }, request: { gracePeriodSeconds: 0 }, want: { generation: 2, ...marked } },
  { name: 'a period of 0 that is marked', resource: graceful, metadata: marked, want: 'now' },
  {
    name: 'a pending deletion keeps its finalizers',
    resource: graceful,
    metadata: started,
    request: { propagationPolicy: 'Foreground' },
    want: 'pending',
  },
  {
    name: 'at once, but the object has a finalizer',
    resource: graceful,
    metadata: { finalizers: ['a/b'], ...started },
    request: { gracePeriodSeconds: 0 },
    want: { finalizers: ['a/b'], ...marked },
  },
  { name: 'a namespace with content', resource: namespace, extra: { spec: { finalizers: ['kubernetes'] } }, want: marked },
  { name: 'a namespace without finalizers', resource: namespace, extra: { spec: {} }, want: 'now' },
  {
    name: 'a namespace that is terminating',
    resource: namespace,
    metadata: marked,
    extra: { spec: { finalizers: ['kubernetes'] }, status: { phase: 'Terminating' } },
    want: 'pending',
  },
]

for (const { name, resource, metadata = {}, extra = {}, request = {}, want } of cases) {
  test(`API-25 a delete plans the deletion: ${name}`, () => {
    const object = { apiVersion: 'v1', kind: resource.kind, metadata: { name: 'x', ...metadata }, ...extra } as KubeObject
    const plan = planDeletion(resource, { name: 'x', ...request }, object, nowMs)
    assert.deepEqual(typeof plan === 'string' ? plan : plan.metadata, typeof want === 'string' ? want : { name: 'x', ...want })
    if (resource === namespace && typeof plan !== 'string') assert.deepEqual((plan as { status?: object }).status, { phase: 'Terminating' })
  })
}

const ready: readonly [string, StoredResource, object, object, boolean][] = [
  ['not being deleted', plain, {}, {}, false],
  ['no finalizer left', plain, marked, {}, true],
  ['a finalizer left', plain, { ...marked, finalizers: ['a/b'] }, {}, false],
  ['a period that runs', graceful, started, {}, false],
  ['a namespace whose content goes', namespace, marked, { spec: { finalizers: ['kubernetes'] } }, false],
  ['an empty namespace', namespace, marked, { spec: {} }, true],
]
for (const [name, resource, metadata, extra, want] of ready) {
  test(`API-25 an update finishes a deletion or not: ${name}`, () => {
    assert.equal(readyToDelete(resource, { apiVersion: 'v1', kind: resource.kind, metadata, ...extra } as KubeObject), want)
  })
}
