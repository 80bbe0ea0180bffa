import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { ObjectReader } from '../core/objectReader.ts'
import { createNodeGraph, type RelatedKind } from './nodeGraph.ts'

type Change = Parameters<Parameters<ObjectReader['onChange']>[1]>[0]

/** A reader with objects that the test changes, and its listeners. */
function world() {
  const listeners = new Map<string, (change: Change) => void>()
  const objects = new Map<string, Frozen<KubeObject>>()
  const reader = {
    get: () => undefined,
    list: () => [],
    onChange: ({ resource }: { resource: string }, fn: (change: Change) => void) => {
      listeners.set(resource, fn)
      return () => {}
    },
  } as unknown as ObjectReader
  return {
    reader,
    set(resource: string, name: string, fields: { metadata?: object; spec?: object; status?: object }) {
      const namespace = resource === 'pods' ? 'a' : undefined
      const object = { ...fields, metadata: { name, uid: 'u1', ...(namespace ? { namespace } : {}), ...fields.metadata } } as unknown as Frozen<KubeObject>
      const key = `${resource}/${name}`
      const old = objects.get(key)
      objects.set(key, object)
      listeners.get(resource)?.({ type: old ? 'MODIFIED' : 'ADDED', object, old })
    },
    remove(resource: string, name: string) {
      const object = objects.get(`${resource}/${name}`) as Frozen<KubeObject>
      listeners.get(resource)?.({ type: 'DELETED', object, old: object })
    },
  }
}

const spec = {
  nodeName: 'one',
  serviceAccountName: 'sa',
  imagePullSecrets: [{ name: 'pull' }],
  containers: [
    {
      name: 'c',
      env: [{ name: 'E', valueFrom: { secretKeyRef: { name: 'env', key: 'k' } } }],
      envFrom: [{ configMapRef: { name: 'all' } }],
    },
  ],
  initContainers: [{ name: 'i', envFrom: [{ secretRef: { name: 'init' } }] }],
  volumes: [
    { name: 'v', persistentVolumeClaim: { claimName: 'claim' } },
    { name: 'scratch', ephemeral: { volumeClaimTemplate: {} } },
    { name: 'p', projected: { sources: [{ secret: { name: 'projected' } }, { configMap: { name: 'projected' } }] } },
    { name: 'x', csi: { driver: 'd', nodePublishSecretRef: { name: 'csi' } } },
  ],
  resourceClaims: [{ name: 'direct', resourceClaimName: 'direct' }, { name: 'made' }, { name: 'unmade' }],
}
const status = { resourceClaimStatuses: [{ name: 'made', resourceClaimName: 'made-7' }] }
const volume = {
  spec: {
    claimRef: { namespace: 'a', name: 'claim' },
    csi: { driver: 'd', nodeStageSecretRef: { namespace: 'vault', name: 'stage' }, controllerPublishSecretRef: { namespace: 'vault', name: 'controller' } },
  },
}

const cases: readonly (readonly [kind: RelatedKind, namespace: string, name: string, want: boolean])[] = [
  ['pod', 'a', 'p', true],
  ['pod', 'b', 'p', false],
  ['serviceaccount', 'a', 'sa', true],
  ...['pull', 'env', 'init', 'projected', 'csi'].map((name) => ['secret', 'a', name, true] as const),
  ['secret', 'b', 'env', false],
  ['secret', 'a', 'all', false],
  ['configmap', 'a', 'all', true],
  ['configmap', 'a', 'projected', true],
  ['persistentvolumeclaim', 'a', 'claim', true],
  ['persistentvolumeclaim', 'a', 'p-scratch', true],
  ['persistentvolumeclaim', 'a', 'scratch', false],
  ['persistentvolume', '', 'pv', true],
  ['secret', 'vault', 'stage', true],
  ['secret', 'vault', 'controller', false],
  ['resourceclaim', 'a', 'direct', true],
  ['resourceclaim', 'a', 'made-7', true],
  ['resourceclaim', 'a', 'unmade', false],
  ['volumeattachment', '', 'va', true],
  ['resourceslice', '', 'slice', true],
]

function populated() {
  const { reader, set, remove } = world()
  const graph = createNodeGraph(reader)
  set('pods', 'p', { spec, status })
  set('persistentvolumes', 'pv', volume)
  set('volumeattachments', 'va', { spec: { nodeName: 'one' } })
  set('resourceslices', 'slice', { spec: { nodeName: 'one' } })
  return { graph, set, remove }
}

const { graph } = populated()
for (const [kind, namespace, name, want] of cases) {
  test(`AUZ-04 ${kind} ${namespace}/${name} is ${want ? '' : 'not '}related to the node of the pod, and to no other`, () => {
    assert.deepEqual([graph.isRelated('one', kind, namespace, name), graph.isRelated('two', kind, namespace, name)], [want, false])
  })
}

test('AUZ-04 a deleted pod removes its relations, except those of another pod', () => {
  const { graph, set, remove } = populated()
  const related = () =>
    (['pull', 'env'] as const).map((name) => graph.isRelated('one', 'secret', 'a', name)).concat(graph.isRelated('one', 'secret', 'vault', 'stage'))
  set('pods', 'q', { spec: { nodeName: 'one', imagePullSecrets: [{ name: 'pull' }] } })
  assert.deepEqual(related(), [true, true, true])
  remove('pods', 'p')
  assert.deepEqual(related(), [true, false, false])
  set('pods', 'p', { metadata: { uid: 'u2' }, spec, status })
  set('persistentvolumes', 'pv', { spec: { claimRef: { namespace: 'a', name: 'other' } } })
  assert.deepEqual(related(), [true, true, false])
  remove('volumeattachments', 'va')
  set('resourceslices', 'slice', { spec: { nodeName: 'two' } })
  assert.deepEqual([graph.isRelated('one', 'volumeattachment', '', 'va'), graph.isRelated('two', 'resourceslice', '', 'slice')], [false, true])
})

test('AUZ-04 a pod gains relations by debugging containers and by claims that are made later; a mirror pod never has any', () => {
  const { reader, set } = world()
  const graph = createNodeGraph(reader)
  const bare = { nodeName: 'one', resourceClaims: [{ name: 'made' }] }
  set('pods', 'p', { spec: bare })
  set('pods', 'p', { spec: bare, status })
  assert.equal(graph.isRelated('one', 'resourceclaim', 'a', 'made-7'), true)
  set('pods', 'p', { spec: { ...bare, ephemeralContainers: [{ name: 'd', envFrom: [{ secretRef: { name: 'debug' } }] }] }, status })
  assert.equal(graph.isRelated('one', 'secret', 'a', 'debug'), true)
  set('pods', 'm', { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } }, spec: { nodeName: 'one', imagePullSecrets: [{ name: 'wanted' }] } })
  assert.deepEqual([graph.isRelated('one', 'pod', 'a', 'm'), graph.isRelated('one', 'secret', 'a', 'wanted')], [true, false])
})
