import assert from 'node:assert/strict'
import { test } from 'node:test'
import { copyOf, kindsLeftOut, kindsToCopy, reasonToLeave } from './forkPlan.ts'
import type { Kind, PastObject } from './objects.ts'

function kind(name: string): Kind {
  const [resource = '', ...group] = name.split('.')
  return {
    group: group.join('.'),
    version: 'v1',
    resource,
    kind: resource,
    namespaced: true,
    singularName: '',
    shortNames: [],
    categories: [],
    verbs: ['create', 'list'],
    subresources: [],
  }
}

const object = (more: object, metadata: object = {}): PastObject =>
  ({ apiVersion: 'v1', kind: 'X', metadata: { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1', ...metadata }, ...more }) as unknown as PastObject

test('X5 a fork creates namespaces and definitions first, dependents before owners, and what may refuse objects last', () => {
  const names = [
    'validatingadmissionpolicies.admissionregistration.k8s.io',
    'deployments.apps',
    'replicasets.apps',
    'pods',
    'serviceaccounts',
    'nodes',
    'customresourcedefinitions.apiextensions.k8s.io',
    'namespaces',
  ]
  assert.deepEqual(
    kindsToCopy(names.map(kind)).map(({ resource }) => resource),
    ['customresourcedefinitions', 'namespaces', 'serviceaccounts', 'pods', 'replicasets', 'deployments', 'validatingadmissionpolicies'],
  )
  assert.deepEqual(kindsLeftOut(names.map(kind)), ['nodes'])
})

const left = [
  {
    name: 'a binding for users without a name',
    of: 'clusterrolebindings.rbac.authorization.k8s.io',
    it: object({
      subjects: [
        { kind: 'User', name: 'jane' },
        { kind: 'Group', name: 'system:unauthenticated' },
      ],
    }),
  },
  { name: 'the root certificates', of: 'configmaps', it: object({}, { name: 'kube-root-ca.crt' }) },
  { name: 'a webhook', of: 'validatingwebhookconfigurations.admissionregistration.k8s.io', it: object({ webhooks: [] }) },
  { name: 'a token Secret', of: 'secrets', it: object({ type: 'kubernetes.io/service-account-token' }) },
  { name: 'a bootstrap token', of: 'secrets', it: object({ type: 'bootstrap.kubernetes.io/token' }) },
  { name: 'the kubernetes Service', of: 'services', it: object({}, { name: 'kubernetes', namespace: 'default' }) },
  { name: 'an object that is being deleted', of: 'pods', it: object({}, { deletionTimestamp: '2026-01-01T00:00:00Z' }) },
  { name: 'a finished pod', of: 'pods', it: object({ status: { phase: 'Succeeded' } }) },
  { name: 'a finished Job', of: 'jobs.batch', it: object({ status: { conditions: [{ type: 'Complete', status: 'True' }] } }) },
  { name: 'a pod of a DaemonSet', of: 'pods', it: object({}, { ownerReferences: [{ kind: 'DaemonSet', uid: 'd' }] }) },
]
for (const { name, of, it } of left) test(`X5 a fork leaves out ${name}`, () => assert.notEqual(reasonToLeave(kind(of), it), undefined))

test('X5 a fork copies other objects', () => {
  for (const of of ['pods', 'secrets', 'configmaps', 'jobs.batch', 'services']) assert.equal(reasonToLeave(kind(of), object({ type: 'Opaque' })), undefined)
})

test('X5 a copy has what the user set, without the fields of the old cluster', () => {
  const pod = object(
    { spec: { nodeName: 'old', containers: [], ephemeralContainers: [{ name: 'debug' }] }, status: { phase: 'Running' } },
    { labels: { a: 'b' }, ownerReferences: [{ uid: 'o' }], managedFields: [] },
  )
  assert.deepEqual(copyOf(kind('pods'), pod), {
    apiVersion: 'v1',
    kind: 'X',
    metadata: { name: 'a', namespace: 'n', labels: { a: 'b' } },
    spec: { containers: [] },
  })
  const service = object({ spec: { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'], ports: [{ port: 80, nodePort: 30_000 }] } })
  assert.deepEqual(copyOf(kind('services'), service).spec, { ports: [{ port: 80 }] })
  const headless = object({ spec: { clusterIP: 'None', ports: [] } })
  assert.deepEqual(copyOf(kind('services'), headless).spec, { clusterIP: 'None', ports: [] })
  const claim = object(
    { spec: { volumeName: 'pv' } },
    { annotations: { 'pv.kubernetes.io/bind-completed': 'yes', mine: '1' }, finalizers: ['kubernetes.io/pvc-protection'] },
  )
  assert.deepEqual(copyOf(kind('persistentvolumeclaims'), claim), {
    apiVersion: 'v1',
    kind: 'X',
    metadata: { name: 'a', namespace: 'n', annotations: { mine: '1' } },
    spec: {},
  })
  const definition = object({ spec: { group: 'x', conversion: { strategy: 'Webhook' } } })
  assert.deepEqual(copyOf(kind('customresourcedefinitions.apiextensions.k8s.io'), definition).spec, { group: 'x' })
  const job = object({ spec: { selector: {}, template: { metadata: { labels: { 'job-name': 'a', app: 'x', 'controller-uid': 'u' } } } } })
  assert.deepEqual(copyOf(kind('jobs.batch'), job).spec, { template: { metadata: { labels: { app: 'x' } } } })
})
