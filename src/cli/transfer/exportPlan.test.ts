import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Kind, PastObject } from '../past/objects.ts'
import { type ExportChoice, exportedOf, isChosen, kindsToExport, reasonToLeaveOut } from './exportPlan.ts'

const clusterKinds: ReadonlySet<string> = new Set(['namespaces', 'nodes', 'clusterroles', 'priorityclasses', 'customresourcedefinitions'])

function kind(name: string): Kind {
  const [resource = '', ...group] = name.split('.')
  const none = { singularName: '', shortNames: [], categories: [], subresources: [] }
  return { group: group.join('.'), version: 'v1', resource, kind: resource, namespaced: !clusterKinds.has(resource), verbs: ['create', 'list'], ...none }
}

const object = (metadata: object = {}, more: object = {}): PastObject =>
  ({ apiVersion: 'v1', kind: 'X', metadata: { name: 'a', namespace: 'n', uid: 'u', ...metadata }, ...more }) as unknown as PastObject

const all: ExportChoice = { namespaces: new Set(), included: new Set() }
const controlled = (apiVersion: string, controller = true) => ({ ownerReferences: [{ apiVersion, kind: 'Owner', name: 'o', uid: 'o', controller }] })

const cases: readonly { readonly name: string; readonly of: string; readonly it: PastObject; readonly isLeft: boolean }[] = [
  { name: 'the root certificates', of: 'configmaps', it: object({ name: 'kube-root-ca.crt' }), isLeft: true },
  { name: 'the cluster information of bootstrapping', of: 'configmaps', it: object({ namespace: 'kube-public', name: 'cluster-info' }), isLeft: true },
  { name: 'a ConfigMap', of: 'configmaps', it: object(), isLeft: false },
  { name: 'a default ServiceAccount', of: 'serviceaccounts', it: object({ name: 'default' }), isLeft: true },
  {
    name: 'a default ServiceAccount with the credentials of a registry',
    of: 'serviceaccounts',
    it: object({ name: 'default' }, { imagePullSecrets: [{ name: 'x' }] }),
    isLeft: false,
  },
  { name: 'another ServiceAccount', of: 'serviceaccounts', it: object(), isLeft: false },
  { name: 'a token Secret', of: 'secrets', it: object({}, { type: 'kubernetes.io/service-account-token' }), isLeft: true },
  { name: 'a Secret', of: 'secrets', it: object({}, { type: 'Opaque' }), isLeft: false },
  { name: 'a system namespace', of: 'namespaces', it: object({ name: 'kube-system' }), isLeft: true },
  { name: 'a namespace', of: 'namespaces', it: object({ name: 'shop' }), isLeft: false },
  {
    name: 'a role of the API server',
    of: 'clusterroles.rbac.authorization.k8s.io',
    it: object({ labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' } }),
    isLeft: true,
  },
  { name: 'a role of the cluster itself', of: 'roles.rbac.authorization.k8s.io', it: object({ name: 'kubeadm:kubelet-config' }), isLeft: true },
  { name: 'the class of local volumes', of: 'storageclasses.storage.k8s.io', it: object({}, { provisioner: 'skiff.dev/local-path' }), isLeft: true },
  { name: 'a role', of: 'clusterroles.rbac.authorization.k8s.io', it: object(), isLeft: false },
  { name: 'a system priority', of: 'priorityclasses.scheduling.k8s.io', it: object({ name: 'system-node-critical' }), isLeft: true },
  {
    name: 'a priority level that the server updates',
    of: 'flowschemas.flowcontrol.apiserver.k8s.io',
    it: object({ annotations: { 'apf.kubernetes.io/autoupdate-spec': 'true' } }),
    isLeft: true,
  },
  { name: 'a ReplicaSet of a Deployment', of: 'replicasets.apps', it: object(controlled('apps/v1')), isLeft: true },
  { name: 'a ReplicaSet of a custom resource', of: 'replicasets.apps', it: object(controlled('argoproj.io/v1alpha1')), isLeft: false },
  { name: 'a ReplicaSet with an owner that is no controller', of: 'replicasets.apps', it: object(controlled('apps/v1', false)), isLeft: false },
  { name: 'a pod of a ReplicaSet', of: 'pods', it: object(controlled('apps/v1')), isLeft: true },
  { name: 'a pod', of: 'pods', it: object(), isLeft: false },
  { name: 'a ConfigMap of a StatefulSet', of: 'configmaps', it: object(controlled('apps/v1')), isLeft: false },
  { name: 'a webhook', of: 'validatingwebhookconfigurations.admissionregistration.k8s.io', it: object(), isLeft: false },
  { name: 'an object that is being deleted', of: 'configmaps', it: object({ deletionTimestamp: '2026-01-01T00:00:00Z' }), isLeft: true },
]

for (const { name, of, it, isLeft } of cases)
  test(`SDR-04 an export ${isLeft ? 'leaves out' : 'has'} ${name}`, () => {
    assert.equal(reasonToLeaveOut(all, kind(of), it) !== undefined, isLeft)
    assert.equal(reasonToLeaveOut({ ...all, included: new Set([of]) }, kind(of), it), undefined, 'its kind is asked for')
  })

test('SDR-04 an export has definitions first, webhooks last, and kinds of the machines where they are asked for', () => {
  const kinds = ['validatingwebhookconfigurations.admissionregistration.k8s.io', 'resourcequotas', 'deployments.apps', 'nodes', 'events', 'namespaces'].map(
    kind,
  )
  const names = (choice: ExportChoice) => kindsToExport(kinds, choice).map(({ resource }) => resource)
  assert.deepEqual(names(all), ['namespaces', 'deployments', 'resourcequotas', 'validatingwebhookconfigurations'])
  assert.deepEqual(names({ ...all, included: new Set(['events']) }), [
    'namespaces',
    'deployments',
    'events',
    'resourcequotas',
    'validatingwebhookconfigurations',
  ])
})

test('SDR-04 an export of some namespaces has these, and nothing of others', () => {
  const some: ExportChoice = { ...all, namespaces: new Set(['shop']) }
  assert.deepEqual(
    kindsToExport(['nodes', 'namespaces', 'clusterroles.rbac.authorization.k8s.io', 'pods'].map(kind), some).map(({ resource }) => resource),
    ['namespaces', 'pods'],
  )
  const chosen = [
    isChosen(some, kind('namespaces'), object({ name: 'shop', namespace: undefined })),
    isChosen(some, kind('namespaces'), object({ name: 'other', namespace: undefined })),
    isChosen(some, kind('pods'), object({ namespace: 'shop' })),
    isChosen(some, kind('pods'), object({ namespace: 'other' })),
  ]
  assert.deepEqual(chosen, [true, false, true, false])
})

test('SDR-04 an exported object has its UID and owners, and no other fields of the server', () => {
  const owners = controlled('x/v1')
  const exported = exportedOf(
    kind('configmaps'),
    object({ ...owners, resourceVersion: '5', managedFields: [], creationTimestamp: 'x', generation: 1 }, { data: { a: 'b' }, status: {} }),
  )
  assert.deepEqual(exported, { apiVersion: 'v1', kind: 'X', metadata: { name: 'a', namespace: 'n', uid: 'u', ...owners }, data: { a: 'b' } })
  const conversion = { strategy: 'Webhook' }
  assert.deepEqual(exportedOf(kind('customresourcedefinitions.apiextensions.k8s.io'), object({}, { spec: { conversion } })).spec, { conversion })
})
