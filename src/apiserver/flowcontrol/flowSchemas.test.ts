import assert from 'node:assert/strict'
import test from 'node:test'
import { mandatoryFlowSchemas, mandatoryPriorityLevels, suggestedFlowSchemas, suggestedPriorityLevels } from '#api/kinds/flowcontrol/bootstrapObjects'
import { VirtualClock } from '#base/virtualClock'
import { parseRequestInfo } from '../core/requestInfo.ts'
import { FlowSchemas } from './flowSchemas.ts'
import { PriorityLevels } from './priorityLevels.ts'
import { metrics } from './testFlows.ts'

const levels = new PriorityLevels({ clock: new VirtualClock(), metrics }, 600)
levels.digest([...mandatoryPriorityLevels, ...suggestedPriorityLevels])
const custom = {
  ...{ apiVersion: 'flowcontrol.apiserver.k8s.io/v1', kind: 'FlowSchema', metadata: { name: 'custom', uid: 'custom-uid' }, status: {} },
  spec: {
    priorityLevelConfiguration: { name: 'workload-low' },
    matchingPrecedence: 300,
    rules: [
      {
        subjects: [{ kind: 'User', user: { name: 'carol' } }],
        resourceRules: [{ verbs: ['get'], apiGroups: ['apps'], resources: ['deployments', 'deployments/scale'], namespaces: ['a'] }],
        nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/metrics', '/logs/*'] }],
      },
    ],
  },
}
const sorted = [...mandatoryFlowSchemas, ...suggestedFlowSchemas, custom].sort((a, b) => (a.spec.matchingPrecedence ?? 0) - (b.spec.matchingPrecedence ?? 0))
const schemas = new FlowSchemas(
  sorted.map((object) => {
    const level = levels.desired(object.spec.priorityLevelConfiguration.name) ?? assert.fail()
    return { object, level, metrics: metrics.schema(object.metadata.name ?? '', level.name) }
  }),
)

const everybody = 'system:authenticated'
const users = {
  admin: { name: 'admin', groups: ['system:masters', everybody] },
  alice: { name: 'alice', groups: [everybody] },
  carol: { name: 'carol', groups: [everybody] },
  nobody: { name: 'nobody', groups: [] },
  kubelet: { name: 'system:node:n1', groups: ['system:nodes', everybody] },
  scheduler: { name: 'system:kube-scheduler', groups: [everybody] },
  dns: { name: 'system:serviceaccount:kube-system:dns', groups: ['system:serviceaccounts', everybody] },
  app: { name: 'system:serviceaccount:kube-systemic:app', groups: ['system:serviceaccounts', everybody] },
}
const cases: { user: keyof typeof users; method?: string; path: string; want: string }[] = [
  { user: 'admin', path: '/api/v1/pods', want: 'exempt/' },
  { user: 'alice', path: '/healthz', want: 'probes/' },
  { user: 'alice', path: '/livez/ping', want: 'probes/' },
  { user: 'alice', method: 'POST', path: '/healthz', want: 'global-default/alice' },
  { user: 'alice', path: '/api/v1/namespaces/a/pods', want: 'global-default/alice' },
  { user: 'nobody', path: '/api/v1/pods', want: 'catch-all/' },
  { user: 'kubelet', method: 'PATCH', path: '/api/v1/nodes/n1/status', want: 'system-node-high/system:node:n1' },
  { user: 'kubelet', method: 'PUT', path: '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1', want: 'system-node-high/system:node:n1' },
  { user: 'kubelet', path: '/api/v1/pods', want: 'system-nodes/system:node:n1' },
  {
    user: 'scheduler',
    method: 'PUT',
    path: '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/s',
    want: 'system-leader-election/system:kube-scheduler',
  },
  { user: 'scheduler', method: 'PATCH', path: '/apis/coordination.k8s.io/v1/namespaces/a/leases/s', want: 'kube-scheduler/a' },
  { user: 'scheduler', method: 'POST', path: '/api/v1/namespaces/b/pods/p/binding', want: 'kube-scheduler/b' },
  { user: 'dns', path: '/api/v1/services', want: 'kube-system-service-accounts/' },
  { user: 'app', path: '/api/v1/services', want: 'service-accounts/system:serviceaccount:kube-systemic:app' },
  { user: 'carol', path: '/apis/apps/v1/namespaces/a/deployments/d', want: 'custom/' },
  { user: 'carol', path: '/apis/apps/v1/namespaces/a/deployments/d/scale', want: 'custom/' },
  { user: 'carol', path: '/apis/apps/v1/namespaces/a/deployments/d/status', want: 'global-default/carol' },
  { user: 'carol', path: '/apis/apps/v1/namespaces/b/deployments/d', want: 'global-default/carol' },
  { user: 'carol', path: '/apis/apps/v1/deployments', want: 'global-default/carol' },
  { user: 'carol', path: '/logs/kube', want: 'custom/' },
  { user: 'carol', path: '/metrics/slis', want: 'custom/' },
  { user: 'carol', path: '/metricsx', want: 'global-default/carol' },
]
for (const { user, method = 'GET', path, want } of cases) {
  test(`API-18 ${user} ${method} ${path} is classified as ${want}`, () => {
    const info = parseRequestInfo(method, path, new URLSearchParams())
    const { flow, level } = schemas.classify(users[user], info)
    assert.equal(`${flow.flowSchema}/${flow.distinguisher}`, want)
    // The same for a user object of the same content, and the same flow object.
    assert.equal(schemas.classify({ ...users[user] }, info).flow, flow)
    assert.equal(flow.hand.length, level.queuing.queues > 0 ? level.queuing.handSize : 0)
  })
}
