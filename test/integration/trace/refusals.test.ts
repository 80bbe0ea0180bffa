/** The table of refusals that `skiff explain` explains: each is made by a real request, and its advice is read where the command reads it. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Transport } from '#client/transport'
import type { TestApiServer } from '#testing/apiServer'
import { type Body, binding, configMap, core, fixtures, type Given, get, limited, merge, pod, post, rbac, role, rule, strict } from './refusalObjects.ts'
import { authenticated, lastOf, refusedWith, startExplained } from './support.ts'

interface Refusal {
  readonly what: string
  /** Absent: the administrator. */
  readonly as?: string
  readonly request: Given
  readonly code: number
  /** In this order, each fits one line of the advice. */
  readonly says: readonly RegExp[]
  /** So many lines the advice has. Absent: at least one for each of `says`. */
  readonly lines?: number
}

const refusals: readonly Refusal[] = [
  // Authorization
  {
    what: 'a missing verb',
    as: 'bob',
    request: post(core('a', 'pods'), pod('x')),
    code: 403,
    says: [
      /^needs verb create on pods in namespace a: no binding of user bob grants it$/,
      /^nearest: RoleBinding a\/dev \(Role reader\) lacks verb create$/,
      /^allow with: kubectl create role/,
    ],
  },
  {
    what: 'another name',
    as: 'bob',
    request: get(`${core('a', 'secrets')}/s2`),
    code: 403,
    says: [/^needs verb get on secrets/, /RoleBinding a\/dev \(Role reader\) is limited to the names s1, not s2/],
  },
  {
    what: 'another API group',
    as: 'bob',
    request: get('/apis/apps/v1/namespaces/a/deployments'),
    code: 403,
    says: [/^needs verb list on deployments\.apps in namespace a/, /has deployments of API group "", not "apps"/],
  },
  {
    what: 'a subresource',
    as: 'bob',
    request: get(`${core('a', 'pods')}/runs/log`),
    code: 403,
    says: [/^needs verb get on pods\/log/, /has pods, not the subresource pods\/log/],
  },
  {
    what: 'another namespace',
    as: 'amy',
    request: post(core('a', 'pods'), pod('x')),
    code: 403,
    says: [/no binding of user amy/, /RoleBinding b\/amy \(Role maker\) grants it only in namespace b/],
  },
  {
    what: 'no rule at all',
    as: 'zoe',
    request: get('/api/v1/nodes'),
    code: 403,
    says: [
      /^needs verb list on nodes at the cluster scope/,
      /^none of the \d+ bindings of this user is about it$/,
      /kubectl create clusterrole NAME --verb=list --resource=nodes; kubectl create clusterrolebinding/,
    ],
  },
  {
    what: 'a path',
    as: 'zoe',
    request: get('/metrics'),
    code: 403,
    says: [/^needs verb get on the path \/metrics/, /none of the/, /--non-resource-url=\/metrics/],
  },
  {
    what: 'a service account',
    as: 'system:serviceaccount:a:robot',
    request: get(core('a', 'configmaps')),
    code: 403,
    says: [/of user system:serviceaccount:a:robot/, /./, /--serviceaccount=a:robot/],
  },
  {
    what: 'the deletion of a namespace',
    as: 'bob',
    request: { method: 'DELETE', path: '/api/v1/namespaces/a' },
    code: 403,
    says: [/^needs verb delete on namespaces in namespace a/],
  },
  {
    what: 'a patch',
    as: 'bob',
    request: { method: 'PATCH', path: `${core('a', 'pods')}/runs`, body: {}, contentType: merge },
    code: 403,
    says: [/^needs verb patch on pods/, /lacks verb patch/],
  },
  {
    what: 'the deletion of many',
    as: 'bob',
    request: { method: 'DELETE', path: core('a', 'pods') },
    code: 403,
    says: [/^needs verb deletecollection on pods/, /lacks verb deletecollection/],
  },
  {
    what: 'an escalation',
    as: 'bob',
    request: post(`${rbac}/namespaces/a/roles`, role('big', [rule(['*'], ['*'], ['*'])])),
    code: 403,
    says: [/^user bob may grant only what they hold/, /the verb escalate on the role/],
  },
  {
    what: 'a binding to a larger role',
    as: 'bob',
    request: post(`${rbac}/namespaces/a/rolebindings`, {
      ...binding('big', 'maker', 'bob'),
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    }),
    code: 403,
    says: [/^user bob may grant only/, /the verb bind on the role/],
  },
  // Admission
  {
    what: 'Pod Security',
    request: post(core('strict', 'pods'), pod('x')),
    code: 403,
    says: [
      /^namespace strict enforces PodSecurity "restricted:latest"/,
      /allowPrivilegeEscalation/,
      /kubectl label namespace strict --overwrite pod-security\.kubernetes\.io\/enforce=baseline/,
    ],
  },
  {
    what: 'a full quota',
    request: post(core('full', 'pods'), pod('x')),
    code: 403,
    says: [/^ResourceQuota q has no room: requested pods=1, used pods=1, limited pods=1/, /raise spec\.hard/, /^kubectl edit resourcequota q -n full/],
  },
  {
    what: 'a quota that needs limits',
    request: post(core('quotaed', 'pods'), pod('x')),
    code: 403,
    says: [/^ResourceQuota cpu limits it, so every container must set limits\.cpu/, /LimitRange/],
  },
  {
    what: 'a LimitRange',
    request: post(core('small', 'pods'), pod('x', {}, limited('2'))),
    code: 403,
    says: [/^LimitRange bounds bounds it: maximum cpu usage per Container is 1, but limit is 2/, /kubectl edit limitrange bounds -n small/],
  },
  {
    what: 'a missing namespace',
    request: post(core('gone', 'configmaps'), configMap('x')),
    code: 404,
    says: [/^namespace gone does not exist/, /^create it: kubectl create namespace gone/],
  },
  {
    what: 'a namespace that ends',
    request: post(core('leaving', 'configmaps'), configMap('x')),
    code: 403,
    says: [/^namespace leaving is being deleted/, /skiff why ns\/leaving/],
  },
  {
    what: 'a namespace that must stay',
    request: { method: 'DELETE', path: '/api/v1/namespaces/default' },
    code: 403,
    says: [/^the cluster needs namespace default/],
  },
  {
    what: 'a missing service account',
    request: post(core('b', 'pods'), pod('x')),
    code: 403,
    says: [/^the pod names ServiceAccount b\/default, which does not exist/, /kubectl create serviceaccount default -n b/],
  },
  {
    what: 'a missing PriorityClass',
    request: post(core('a', 'pods'), pod('x', { priorityClassName: 'vip' })),
    code: 403,
    says: [/^the pod names PriorityClass vip/, /^there are: .*system-node-critical/, /kubectl create priorityclass vip/],
  },
  {
    what: 'a missing RuntimeClass',
    request: post(core('a', 'pods'), pod('x', { runtimeClassName: 'gvisor' })),
    code: 403,
    says: [/^the pod names RuntimeClass gvisor/, /there are: none/],
  },
  {
    what: 'a broken webhook',
    request: post(core('hooked', 'configmaps'), configMap('x')),
    code: 500,
    says: [
      /^webhook broken\.example\.com of validatingwebhookconfiguration broken does not answer: /,
      /failurePolicy is Fail/,
      /^kubectl edit validatingwebhookconfiguration broken/,
    ],
  },
  {
    what: 'a missing PriorityClass to a user who may not list PriorityClasses',
    as: 'cid',
    request: post(core('a', 'pods'), pod('x', { priorityClassName: 'vip' })),
    code: 403,
    says: [/^the pod names PriorityClass vip/, /^create it: kubectl create priorityclass vip/],
  },
  {
    what: 'a missing RuntimeClass to a user who may not list RuntimeClasses',
    as: 'cid',
    request: post(core('a', 'pods'), pod('x', { runtimeClassName: 'gvisor' })),
    code: 403,
    says: [/^the pod names RuntimeClass gvisor, which does not exist$/],
    lines: 1,
  },
  {
    what: 'a LimitRange to a user who may not list LimitRanges',
    as: 'cid',
    request: post(core('small', 'pods'), pod('x', {}, limited('2'))),
    code: 403,
    says: [/^a LimitRange of namespace small bounds it: maximum cpu usage per Container is 1, but limit is 2/, /^stay within$/],
  },
  {
    what: 'a broken webhook to a user who may not list configurations of webhooks',
    as: 'cid',
    request: post(core('hooked', 'configmaps'), configMap('x')),
    code: 500,
    says: [/^webhook broken\.example\.com does not answer: /, /those who run it have to repair its service$/],
    lines: 2,
  },
  {
    what: 'a policy',
    request: post(core('ruled', 'configmaps'), { ...configMap('x'), data: { blue: '1' } }),
    code: 422,
    says: [/^ValidatingAdmissionPolicy no-blue refuses it: blue is not allowed/, /validatingadmissionpolicybinding no-blue-here/],
  },
  {
    what: 'an unbound claim that shall grow',
    request: {
      method: 'PATCH',
      path: `${core('a', 'persistentvolumeclaims')}/disk`,
      body: { spec: { resources: { requests: { storage: '2Gi' } } } },
      contentType: merge,
    },
    code: 422,
    says: [/^spec: .*immutable/, /such fields cannot change/],
  },
  {
    what: 'a node that is not its own',
    as: 'system:node:n1',
    request: { method: 'PATCH', path: '/api/v1/nodes/n2/status', body: { metadata: { labels: { x: 'y' } } }, contentType: merge },
    code: 403,
    says: [/^NodeRestriction limits system:node:n1 to its own Node and to the pods that run on it$/, /^make the request as another user$/],
  },
  // State
  {
    what: 'an object that exists',
    request: post(core('a', 'configmaps'), configMap('there')),
    code: 409,
    says: [/^configmaps\/a\/there exists since 2/, /kubectl apply/],
  },
  {
    what: 'a stale resourceVersion',
    request: { method: 'PUT', path: `${core('a', 'configmaps')}/there`, body: configMap('there', { resourceVersion: '1' }) },
    code: 409,
    says: [/^configmaps\/a\/there was changed after it was read: it is at resourceVersion \d+ now/, /read it again/],
  },
  {
    what: 'a field of another manager',
    request: {
      method: 'PATCH',
      path: `${core('a', 'configmaps')}/owned`,
      body: JSON.stringify({ ...configMap('owned'), data: { k: 'mine' } }),
      contentType: 'application/apply-patch+yaml',
      query: { fieldManager: 'me' },
    },
    code: 409,
    says: [/^other managers own these fields: \.data\.k \("them"/, /--force-conflicts/],
  },
  {
    what: 'another UID',
    request: { method: 'DELETE', path: `${core('a', 'configmaps')}/there`, body: { preconditions: { uid: 'old' } } },
    code: 409,
    says: [/^the request is about UID old; configmaps\/a\/there has \S+ now/],
  },
  {
    what: 'an object that is being deleted',
    request: post(core('a', 'configmaps'), configMap('held')),
    code: 409,
    says: [/^configmaps\/a\/held is being deleted; its name is free once it is gone; it waits for the finalizers example\.com\/wait/],
  },
  {
    what: 'a disruption budget',
    request: post(`${core('a', 'pods')}/runs/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'runs' } }),
    code: 429,
    says: [/disruption budget keep/, /run more replicas/, /^kubectl get pdb -n a/],
  },
  {
    what: 'a missing object',
    request: { method: 'PATCH', path: `${core('a', 'configmaps')}/nothing`, body: {}, contentType: merge },
    code: 404,
    says: [/^configmaps "nothing" does not exist/, /kubectl get configmaps -n a/],
  },
  {
    what: 'an unknown resource',
    request: post('/api/v1/namespaces/a/widgets', {}),
    code: 404,
    says: [/^no resource is served at \/api\/v1\/namespaces\/a\/widgets/, /kubectl api-resources/],
  },
  // The request itself
  { what: 'a missing field', request: post(core('a', 'pods'), pod('x', {}, [])), code: 422, says: [/^spec\.containers: /, /correct these fields/] },
  {
    what: 'many wrong fields',
    request: post(core('a', 'pods'), pod('X_', { restartPolicy: 'Sometimes' }, [{ name: 'C_' }])),
    code: 422,
    says: [/^metadata\.name: /, /./, /^and \d+ more fields/],
  },
  {
    what: 'an immutable field',
    request: {
      method: 'PATCH',
      path: '/apis/apps/v1/namespaces/a/deployments/shop',
      body: { spec: { selector: { matchLabels: { app: 'other' } }, template: { metadata: { labels: { app: 'other' } } } } },
      contentType: merge,
    },
    code: 422,
    says: [/^spec\.selector: .*field is immutable/, /delete the object and create it again/],
  },
  {
    what: 'an immutable ConfigMap',
    request: { method: 'PATCH', path: `${core('a', 'configmaps')}/locked`, body: { data: { k: 'w' } }, contentType: merge },
    code: 422,
    says: [/^data: /, /delete the object and create it again/],
  },
  {
    what: 'an unknown field',
    request: post(core('a', 'configmaps'), { ...configMap('x'), colour: 'blue' }, strict),
    code: 400,
    says: [/^the object has fields that its kind does not know: unknown field "colour"/, /--validate=warn/],
  },
  {
    what: "another namespace than the path's",
    request: post(core('a', 'configmaps'), configMap('x', { namespace: 'b' })),
    code: 400,
    says: [/does not match the namespace/, /^metadata\.namespace must be a, or absent/],
  },
  { what: "another kind than the path's", request: post(core('a', 'configmaps'), pod('x')), code: 400, says: [/Pod/] },
  { what: 'a body that is not JSON', request: { method: 'POST', path: core('a', 'configmaps'), body: '{' }, code: 400, says: [/^the request is malformed: /] },
  {
    what: 'a verb that is not served',
    request: { method: 'PUT', path: core('a', 'configmaps'), body: configMap('x') },
    code: 405,
    says: [/does not take the verb update/, /kubectl api-resources -o wide/],
  },
  {
    what: 'an unknown media type',
    request: { method: 'PATCH', path: `${core('a', 'configmaps')}/there`, body: {}, contentType: 'text/plain' },
    code: 415,
    says: [/^the server does not read this Content-Type/],
  },
  {
    what: 'a name that does not fit the path',
    request: { method: 'PUT', path: `${core('a', 'configmaps')}/there`, body: configMap('other') },
    code: 400,
    says: [/^the request is malformed: the name of the object \(other\) does not match/],
  },
]

describe('the refusals that are explained', () => {
  let api: TestApiServer
  let ending: (() => Promise<void> | void)[]

  before(async () => {
    ending = []
    api = await startExplained({ after: ((fn: () => void) => void ending.push(fn)) as never })
    const { transport } = api.client
    for (const [path, body] of fixtures) await transport.request({ method: 'POST', path, body })
    const status = (path: string, body: Body) => transport.request({ method: 'PATCH', path: `${path}/status`, body: { status: body }, contentType: merge })
    await status(`${core('full', 'resourcequotas')}/q`, { hard: { pods: '1' }, used: { pods: '1' } })
    await status(`${core('quotaed', 'resourcequotas')}/cpu`, { hard: { 'limits.cpu': '1' }, used: { 'limits.cpu': '0' } })
    await status(`${core('a', 'pods')}/runs`, { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] })
    await status('/apis/policy/v1/namespaces/a/poddisruptionbudgets/keep', {
      observedGeneration: 1,
      currentHealthy: 1,
      desiredHealthy: 1,
      expectedPods: 1,
      disruptionsAllowed: 0,
    })
    await transport.request({ method: 'DELETE', path: `${core('a', 'configmaps')}/held` })
    await transport.request({ method: 'DELETE', path: '/api/v1/namespaces/leaving' })
    const owned = JSON.stringify({ ...configMap('owned'), data: { k: 'theirs' } })
    await transport.request({
      method: 'PATCH',
      path: `${core('a', 'configmaps')}/owned`,
      body: owned,
      contentType: 'application/apply-patch+yaml',
      query: { fieldManager: 'them' },
    })
  })

  after(async () => {
    for (const end of ending) await end()
  })

  const transportOf = (as: string | undefined): Transport => {
    if (as === undefined) return api.client.transport
    const account = as.startsWith('system:serviceaccount:') ? ['system:serviceaccounts'] : []
    return api.clientAs({ name: as, groups: [authenticated, ...account, ...(as.startsWith('system:node:') ? ['system:nodes'] : [])] }).transport
  }

  test('X7 the table has at least 40 refusals', () => assert.ok(refusals.length >= 40, String(refusals.length)))

  for (const { what, as, request, code, says, lines } of refusals) {
    test(`X7 explain says what would allow ${what}`, async () => {
      const transport = transportOf(as)
      await refusedWith(code, transport.request(request))
      const { advice = [], code: kept, message } = await lastOf(transport)
      assert.equal(kept, code)
      assert.ok(advice.length >= says.length && advice.length <= (lines ?? 3), `${message}\n${advice.join('\n')}`)
      for (const [at, expected] of says.entries()) assert.match(advice[at] ?? '', expected, `${message}\n${advice.join('\n')}`)
    })
  }

  test('LRN-08 a refusal whose rule was added since says that it is granted by now', async () => {
    const { transport } = api.clientAs({ name: 'new', groups: [authenticated] })
    await refusedWith(403, transport.request(get(core('a', 'pods'))))
    await api.client.transport.request(post(`${rbac}/namespaces/a/rolebindings`, binding('new', 'reader', 'new')))
    assert.deepEqual((await lastOf(transport)).advice, [
      'user new needed verb list on pods in namespace a',
      'it is granted by now (RBAC: allowed by RoleBinding "new/a" of Role "reader" to User "new"): repeat the request',
    ])
  })
})
