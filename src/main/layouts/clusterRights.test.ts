import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from '#client/client'
import { applyRights, type ClusterRights } from './clusterRights.ts'

const apiVersion = 'rbac.authorization.k8s.io/v1'
const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }]
const ref = (name: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name })

/** The objects that are applied, in order. */
async function applied(rights: ClusterRights): Promise<object[]> {
  const objects: object[] = []
  const patch = async ({ name }: { name: string }, type: string, body: { metadata: { name: string } }, options: object) => {
    assert.deepEqual([name, type], [body.metadata.name, 'apply'])
    assert.deepEqual(options, { fieldManager: 'skiff', force: true, signal })
    objects.push(body)
  }
  const { signal } = new AbortController()
  await applyRights({ of: () => ({ patch }) } as unknown as Client, rights, signal)
  return objects
}

const role = { apiVersion, kind: 'ClusterRole', metadata: { name: 'a' }, rules }
const subjects = [{ kind: 'User', name: 'jane', apiGroup: 'rbac.authorization.k8s.io' }]
const binding = { apiVersion, kind: 'ClusterRoleBinding', metadata: { name: 'a' }, roleRef: ref('a'), subjects }
const cases: readonly (readonly [what: string, rights: ClusterRights, want: readonly object[]])[] = [
  ['rules and a user make a role and its binding', { name: 'a', rules, subject: { user: 'jane' } }, [role, binding]],
  ['a role that exists is bound', { name: 'a', roleName: 'view', subject: { user: 'jane' } }, [{ ...binding, roleRef: ref('view') }]],
  ['rules alone make a role with its labels', { name: 'a', rules, labels: { b: 'c' } }, [{ ...role, metadata: { name: 'a', labels: { b: 'c' } } }]],
  [
    'a service account is a subject',
    { name: 'a', roleName: 'view', subject: { serviceAccount: 's', namespace: 'n' } },
    [{ ...binding, roleRef: ref('view'), subjects: [{ kind: 'ServiceAccount', namespace: 'n', name: 's' }] }],
  ],
]
for (const [what, rights, want] of cases) test(`rights of a local cluster: ${what}`, async () => assert.deepEqual(await applied(rights), want))
