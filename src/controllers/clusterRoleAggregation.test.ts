import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClusterRole, PolicyRule } from '#api/gen/types/rbac.v1'
import { VirtualClock } from '#base/virtualClock'
import { aggregatedRules } from './clusterRoleAggregation.ts'

const clock = new VirtualClock()
const rule = (resource: string): PolicyRule => ({ apiGroups: [''], resources: [resource], verbs: ['get'] })
const role = (name: string, labels: Record<string, string>, rules: PolicyRule[]): ClusterRole => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name, labels },
  rules,
})
const view: ClusterRole = { ...role('view', { toEdit: 'true' }, []), aggregationRule: { clusterRoleSelectors: [{ matchLabels: { toView: 'true' } }] } }

test('AUZ-02 an aggregated role gains the rules of the chosen roles, each once, in the order of the names', async () => {
  const all = [
    role('b', { toView: 'true' }, [rule('pods'), rule('services')]),
    role('a', { toView: 'true' }, [rule('pods')]),
    role('c', {}, [rule('secrets')]),
    view,
  ]
  assert.deepEqual(await aggregatedRules(view, all, clock), [rule('pods'), rule('services')])
})

test('AUZ-02 a role never aggregates itself', async () => {
  const self = { ...view, metadata: { name: 'view', labels: { toView: 'true' } }, rules: [rule('nodes')] }
  assert.deepEqual(await aggregatedRules(self, [self], clock), [])
})

test('AUZ-02 a role with 20,000 selectors gives up its turn between them, and takes each role once', async () => {
  let turns = 0
  const counting = Object.assign(new VirtualClock(), {
    turn: async () => {
      turns++
    },
  })
  const clusterRoleSelectors = Array.from({ length: 20_000 }, (_, i) => ({ matchLabels: i % 2 === 0 ? { toView: 'true' } : { other: `${i}` } }))
  const all = [role('a', { toView: 'true' }, [rule('pods')]), role('b', { toView: 'true' }, [rule('services')])]
  assert.deepEqual(await aggregatedRules({ ...view, aggregationRule: { clusterRoleSelectors } }, all, counting), [rule('pods'), rule('services')])
  assert.equal(turns, 100)
})
