import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { createClient } from '#client/clientOverTransport'
import { anObject, HistoryTransport } from '#testing/historyTransport'
import { createObjectCache, referencedObjects } from '../core/objectCache.ts'
import { podsOfManifest } from './manifests.ts'
import { isMirrorOf, mirrorPod, withoutDuplicates } from './staticPods.ts'

function staticPod(text: string, nodeName: string, nowMs: number, source: 'file' | 'http' = 'file'): Pod {
  const [pod] = podsOfManifest(text, { source, nodeName, nowMs })
  assert.ok(pod)
  return pod
}

const manifest = 'apiVersion: v1\nkind: Pod\nmetadata:\n  name: Web\n  labels: {a: b}\nspec:\n  containers: [{name: c, image: "i:1"}]\n'

test('KUB-16 a manifest becomes a pod of this node, the same each time', () => {
  const pod = staticPod(manifest, 'n1', 0)
  assert.deepEqual([pod.metadata.name, pod.metadata.namespace, pod.spec.nodeName], ['web-n1', 'default', 'n1'])
  assert.deepEqual(pod.spec.tolerations, [{ operator: 'Exists', effect: 'NoExecute' }])
  assert.equal(staticPod(manifest, 'n1', 99).metadata.uid, pod.metadata.uid)
  assert.notEqual(staticPod(manifest, 'n2', 0).metadata.uid, pod.metadata.uid)
})

for (const text of ['', 'kind: Pod', 'apiVersion: v1\nkind: Service\nmetadata: {name: x}', '{"a": 1}']) {
  test(`KUB-16 ${JSON.stringify(text.slice(0, 20))} is no static pod`, () => assert.throws(() => staticPod(text, 'n', 0), /not a v1 Pod/))
}

test('KUB-16 a mirror belongs to its node and to this version of the manifest', () => {
  const pod = staticPod(manifest, 'n1', 0)
  const mirror = mirrorPod(pod, { name: 'n1', uid: 'node-uid' })
  assert.deepEqual(mirror.metadata.ownerReferences, [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'node-uid', controller: true }])
  assert.equal(mirror.metadata.uid, undefined)
  assert.equal(isMirrorOf(mirror, pod), true)
  assert.equal(isMirrorOf(mirror, staticPod(`${manifest}#`, 'n1', 0)), false)
  assert.equal(isMirrorOf({ ...mirror, metadata: { ...mirror.metadata, deletionTimestamp: 'now' } }, pod), false)
})

test('every config map and secret that a pod names is found once', () => {
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {},
    status: {},
    spec: {
      imagePullSecrets: [{ name: 'pull' }],
      containers: [
        {
          name: 'c',
          envFrom: [{ configMapRef: { name: 'cm' } }, { secretRef: { name: 's1' } }],
          env: [
            { name: 'X', valueFrom: { secretKeyRef: { name: 's2', key: 'k' } } },
            { name: 'Y', valueFrom: { configMapKeyRef: { name: 'cm', key: 'k' } } },
          ],
        },
      ],
      volumes: [
        { name: 'a', secret: { secretName: 's3' } },
        { name: 'b', projected: { sources: [{ configMap: { name: 'root-ca' } }, { secret: { name: 's1' } }] } },
      ],
    },
  }
  assert.deepEqual(
    referencedObjects(pod).map((named) => named.join('/')),
    ['secrets/pull', 'configmaps/cm', 'secrets/s1', 'secrets/s2', 'secrets/s3', 'configmaps/root-ca'],
  )
})

test('KUB-16 a list behind a URL becomes pods with the API’s defaults, without the tolerations of files', () => {
  const item = (name: string) => ({ metadata: { name }, spec: { containers: [{ name: 'c', image: 'i' }] } })
  const text = JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items: [item('a'), item('b'), item('a')] })
  const pods = podsOfManifest(text, { source: 'http', nodeName: 'n', nowMs: 0 })
  assert.deepEqual([pods.length, pods[0]?.spec.tolerations, pods[0]?.spec.restartPolicy, pods[0]?.status.qosClass], [3, undefined, 'Always', 'BestEffort'])
  assert.equal(pods[0]?.metadata.annotations?.['kubernetes.io/config.source'], 'http')
  const ignored: string[] = []
  const distinct = withoutDuplicates(pods, (pod) => void ignored.push(pod.metadata.name ?? ''))
  assert.deepEqual([distinct.map(({ metadata }) => metadata.name), ignored], [['a-n', 'b-n'], ['a-n']])
})

const unusable: [text: string, want: RegExp][] = [
  ['containers: [{name: C, image: i}]', /invalid pod: \[spec\.containers\[0\]\.name: Invalid value/],
  ['containers: [{name: c, image: i, envFrom: [{secretRef: {name: s}}]}]', /static pods may not reference secrets$/],
  ['{serviceAccountName: who, containers: [{name: c, image: i}]}', /static pods may not reference serviceaccounts$/],
  [
    'containers: [{name: c, image: i}], volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]',
    /static pods may not reference serviceaccounts \(via projected volumes\)$/,
  ],
  ['containers: [{name: c, image: i}], volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]', /static pods may not reference persistentvolumeclaims$/],
]
for (const [spec, want] of unusable) {
  const text = `apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: ${spec.startsWith('{') ? spec : `{${spec}}`}`
  test(`KUB-16 refused as a static pod: ${spec}`, () => assert.throws(() => staticPod(text, 'n', 0), want))
}

const badMetadata: [metadata: string, want: RegExp][] = [
  ['{name: x, uid: ../../x}', /metadata\.uid: Invalid value: "\.\.\/\.\.\/x": must be the name of a directory/],
  ['{name: x, uid: ".."}', /metadata\.uid/],
  ['{name: ../../x}', /metadata\.name: Invalid value/],
  ['{name: x, namespace: ../x}', /metadata\.namespace: Invalid value/],
]
for (const [metadata, want] of badMetadata)
  test(`KUB-16 refused as a static pod: metadata ${metadata}`, () =>
    assert.throws(() => staticPod(`apiVersion: v1\nkind: Pod\nmetadata: ${metadata}\nspec: {containers: [{name: c, image: i}]}`, 'n', 0), want))

test('KUB-26 pods are woken by changes of objects that they name, not by the first list, for which they wait', async () => {
  const server = new HistoryTransport()
  const clock = new VirtualClock()
  const path = '/api/v1/namespaces/shop/configmaps/settings'
  server.put(path, anObject('ConfigMap', { namespace: 'shop', name: 'settings' }))
  const stop = new AbortController()
  const heard: string[][] = []
  const cache = createObjectCache({ client: createClient(server), clock, log: noLog }, (uids) => heard.push([...uids]), stop.signal)
  const naming = (uid: string, namespace: string, name: string): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: uid, namespace, uid },
    spec: { containers: [{ name: 'c', envFrom: [{ configMapRef: { name } }] }] },
    status: {},
  })
  cache.registerPod(naming('p1', 'shop', 'settings'))
  cache.registerPod(naming('p2', 'shop', 'settings'))
  cache.registerPod(naming('p3', 'market', 'later'))
  await clock.advance(100)
  assert.equal((await cache.configMap('shop', 'settings')).metadata.name, 'settings')
  await assert.rejects(cache.configMap('market', 'later'), { message: 'configmap "later" not found' })
  assert.deepEqual(heard, [])
  server.put(path, anObject('ConfigMap', { namespace: 'shop', name: 'settings' }))
  server.put('/api/v1/namespaces/market/configmaps/later', anObject('ConfigMap', { namespace: 'market', name: 'later' }))
  await clock.advance(100)
  assert.deepEqual(heard, [['p1', 'p2'], ['p3']])
  stop.abort()
  await clock.advance(1)
})

test('KUB-11 a pod that names many Secrets has a bounded number of watches, and all of its Secrets are found', async () => {
  const clock = new VirtualClock()
  const server = new HistoryTransport()
  const name = (index: number) => `s${index}`
  for (const index of [0, 999]) server.put(`/api/v1/namespaces/shop/secrets/${name(index)}`, anObject('Secret', { namespace: 'shop', name: name(index) }))
  const stop = new AbortController()
  const cache = createObjectCache({ client: createClient(server), clock, log: noLog }, () => {}, stop.signal)
  const imagePullSecrets = Array.from({ length: 1000 }, (_, index) => ({ name: name(index) }))
  cache.registerPod({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'shop', uid: 'p' },
    spec: { containers: [{ name: 'c' }], imagePullSecrets },
    status: {},
  })
  await clock.advance(100)
  const selections = new Set(server.requests.map(({ query }) => query?.fieldSelector))
  assert.equal(selections.size, 256)
  for (const index of [0, 999]) assert.equal((await cache.secret('shop', name(index))).metadata.name, name(index))
  stop.abort()
  await clock.advance(1)
})
