import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClusterRole, PolicyRule } from '#api/gen/types/rbac.v1'
import { aggregatedRules } from './clusterRoleAggregation.ts'

const rule = (resource: string): PolicyRule => ({ apiGroups: [''], resources: [resource], verbs: ['get'] })
const role = (name: string, labels: Record<string, string>, rules: PolicyRule[]): ClusterRole => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name, labels },
  rules,
})
const view: ClusterRole = { ...role('view', { toEdit: 'true' }, []), aggregationRule: { clusterRoleSelectors: [{ matchLabels: { toView: 'true' } }] } }

test('AUZ-02 an aggregated role gains the rules of the chosen roles, each once, in the order of the names', () => {
  const all = [
    role('b', { toView: 'true' }, [rule('pods'), rule('services')]),
    role('a', { toView: 'true' }, [rule('pods')]),
    role('c', {}, [rule('secrets')]),
    view,
  ]
  assert.deepEqual(aggregatedRules(view, all), [rule('pods'), rule('services')])
})

test('AUZ-02 a role never aggregates itself', () => {
  const self = { ...view, metadata: { name: 'view', labels: { toView: 'true' } }, rules: [rule('nodes')] }
  assert.deepEqual(aggregatedRules(self, [self]), [])
})
