/** Where Go's JSON has null: fields that are never left out, by upstream's struct tags. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { withNils, withoutNils } from './nils.ts'

const rbac = 'rbac.authorization.k8s.io/v1'
const cases = [
  {
    name: 'a list that is absent',
    object: { apiVersion: rbac, kind: 'ClusterRole', metadata: {}, aggregationRule: {} },
    json: { apiVersion: rbac, kind: 'ClusterRole', metadata: {}, aggregationRule: {}, rules: null },
  },
  {
    name: 'a list that is omitted when empty',
    object: { apiVersion: rbac, kind: 'ClusterRoleBinding' },
    json: { apiVersion: rbac, kind: 'ClusterRoleBinding' },
  },
  {
    name: 'times of conditions, and lists in items of lists',
    object: { apiVersion: 'v1', kind: 'Node', status: { conditions: [{ type: 'Ready', lastHeartbeatTime: 'x' }], images: [{ sizeBytes: 1 }] } },
    json: {
      apiVersion: 'v1',
      kind: 'Node',
      status: { conditions: [{ type: 'Ready', lastHeartbeatTime: 'x', lastTransitionTime: null }], images: [{ sizeBytes: 1, names: null }] },
    },
  },
  {
    name: 'bytes and free-form values',
    object: { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', spec: { signerName: 'x' } },
    json: { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', spec: { signerName: 'x', request: null } },
  },
  {
    name: 'a controller revision without data',
    object: { apiVersion: 'apps/v1', kind: 'ControllerRevision', revision: 1 },
    json: { apiVersion: 'apps/v1', kind: 'ControllerRevision', revision: 1, data: null },
  },
] as const

for (const { name, object, json } of cases) {
  test(`API-16 null on the wire: ${name}`, () => {
    const given = structuredClone(object)
    assert.deepEqual(withNils(given), json)
    assert.deepEqual(given, object, 'the object itself stays as it is')
    assert.deepEqual(withoutNils(structuredClone(json)), object)
  })
}

test('API-16 what has nothing to show as null is not copied', () => {
  const map = { apiVersion: 'v1', kind: 'ConfigMap', data: { a: 'b' } }
  assert.equal(withNils(map), map)
  const role = { apiVersion: rbac, kind: 'Role', rules: [{ verbs: ['get'] }] }
  assert.equal(withNils(role), role)
  const custom = { apiVersion: 'example.com/v1', kind: 'ClusterRole', metadata: {} }
  assert.equal(withNils(custom), custom)
})

test('API-16 an empty list is nil where it was kept as protobuf, and stays empty where it was kept as JSON', () => {
  const slice = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', endpoints: [], ports: [{ port: 80 }] }
  assert.deepEqual(withNils(slice), { ...slice, endpoints: null })
  const definition = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', status: { conditions: [] } }
  assert.deepEqual(withNils(definition), { ...definition, status: { conditions: [], storedVersions: null } })
})

test('API-16 a required list is empty again when it comes back', () => {
  const node = { apiVersion: 'storage.k8s.io/v1', kind: 'CSINode', spec: { drivers: null } }
  assert.deepEqual(withoutNils(structuredClone(node)), { ...node, spec: { drivers: [] } })
})
