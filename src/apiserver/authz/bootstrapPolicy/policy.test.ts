/**
 * Holds the bootstrap policy to the one that v1.36 writes with its default feature gates: how much there is, and a fingerprint of the roles
 * that are easily changed by accident. A changed fingerprint is either a mistake or a new upstream version.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import type { ClusterRole, PolicyRule } from '#api/gen/types/rbac.v1'
import { bootstrapClusterRoleBindings, bootstrapClusterRoles, bootstrapRoleBindings, bootstrapRoles } from './objects.ts'

/** One line per rule, its words sorted, so that only the meaning counts. */
const line = ({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule) =>
  [verbs, apiGroups, resources, resourceNames, nonResourceURLs].map((words) => [...(words ?? [])].sort().join(',')).join('|')
const fingerprint = (rules: readonly PolicyRule[] | undefined) =>
  createHash('sha256')
    .update((rules ?? []).map(line).join('\n'))
    .digest('hex')
    .slice(0, 12)
const roles = new Map<string, ClusterRole>(bootstrapClusterRoles().map((role) => [role.metadata.name ?? '', role]))
const rulesOf = (name: string) => (roles.get(name)?.rules ?? []).map(line)

test('AUZ-02 bootstrap policy: as many roles and bindings as v1.36 has', () => {
  const controllers = [...roles.keys()].filter((name) => name.startsWith('system:controller:'))
  assert.deepEqual(
    {
      clusterRoles: roles.size,
      ofControllers: controllers.length,
      rules: [...roles.values()].reduce((sum, role) => sum + (role.rules?.length ?? 0), 0),
      clusterRoleBindings: bootstrapClusterRoleBindings().length,
      roles: bootstrapRoles().length,
      roleBindings: bootstrapRoleBindings().length,
    },
    { clusterRoles: 69, ofControllers: 38, rules: 309, clusterRoleBindings: 50, roles: 7, roleBindings: 7 },
  )
})

const fingerprints: Readonly<Record<string, string>> = {
  'system:aggregate-to-admin': 'e140fd0b0dd7',
  'system:aggregate-to-edit': 'a1d5c27c03b7',
  'system:aggregate-to-view': '32921c924899',
  'system:discovery': '90da6213b8ca',
  'system:kube-controller-manager': 'a5bd053af469',
  'system:kube-scheduler': '435435285c5e',
  'system:kubelet-api-admin': '339f3e138d04',
  'system:monitoring': '2c9464358685',
  'system:node': 'd665c1831ffc',
  'system:node-proxier': '81a13d679c2a',
  'system:controller:device-taint-eviction-controller': 'bc4d87563f92',
  'system:controller:namespace-controller': 'e89a920ee7c2',
  'system:controller:persistent-volume-binder': '62f272f6a5f2',
  'system:controller:resource-claim-controller': '562560af6622',
  'system:controller:statefulset-controller': '505939add9d2',
}
for (const [name, want] of Object.entries(fingerprints))
  test(`AUZ-02 bootstrap policy: the rules of ${name}`, () => assert.equal(fingerprint(roles.get(name)?.rules), want, rulesOf(name).join('\n')))

test('AUZ-02 bootstrap policy: gates that are on in v1.36 show, gates that are off do not', () => {
  assert.ok(rulesOf('system:monitoring').includes('get||||/flagz,/healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*,/statusz'))
  assert.ok(rulesOf('system:monitoring').includes('get||nodes/metrics||'))
  assert.ok(rulesOf('system:aggregate-to-view').includes('get,list,watch|,events.k8s.io|events||'))
  assert.ok(rulesOf('system:node').includes('get||serviceaccounts||'))
  assert.ok(rulesOf('system:kube-scheduler').includes('patch,update|resource.k8s.io|resourceclaims/binding||'))
  const off = ['clustertrustbundles', 'podcertificaterequests', 'devicetaintrules', 'podgroups', 'storageversionmigrations', 'storageversions']
  const all = [...roles.values()].flatMap((role) => role.rules ?? [])
  for (const resource of off) assert.ok(!all.some((rule) => rule.resources?.includes(resource)), resource)
})

test('AUZ-02 bootstrap policy: admin, edit and view gather what carries their label', () => {
  for (const name of ['admin', 'edit', 'view'])
    assert.deepEqual(roles.get(name)?.aggregationRule, {
      clusterRoleSelectors: [{ matchLabels: { [`rbac.authorization.k8s.io/aggregate-to-${name}`]: 'true' } }],
    })
  assert.equal(roles.get('edit')?.metadata.labels?.['rbac.authorization.k8s.io/aggregate-to-admin'], 'true')
  assert.equal(roles.get('view')?.metadata.labels?.['rbac.authorization.k8s.io/aggregate-to-edit'], 'true')
})
