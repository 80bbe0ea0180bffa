/** Impersonation (AUN-07): what the constrained modes and the legacy mode allow and refuse. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { type Labels, type Metrics, noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import type { AuthorizationAttributes } from '../../authz/authorizer.ts'
import type { UserInfo } from '../../core/request.ts'
import { requestOf } from '../../core/testRequest.ts'
import { createImpersonator } from './impersonator.ts'
import { impersonationMetrics } from './metrics.ts'
import { wantedUser } from './wantedUser.ts'

const nodeName = 'authentication.kubernetes.io/node-name'
const jane: UserInfo = { name: 'jane', groups: ['dev'] }
const agent = (node: string): UserInfo => ({ name: 'system:serviceaccount:kube-system:agent', groups: [], extra: { [nodeName]: [node], pod: ['p'] } })

const listPods = (user: UserInfo): AuthorizationAttributes => ({
  ...{ user, verb: 'list', isResourceRequest: true, path: '/api/v1/pods', namespace: '', apiGroup: '', apiVersion: 'v1' },
  ...{ resource: 'pods', subresource: '', name: '' },
})

/** A world where just these are allowed, as `verb group/resource[/subresource][:name]`; it remembers what it was asked. */
function world(...allowed: string[]) {
  const asked: string[] = []
  const users: UserInfo[] = []
  const clock = new VirtualClock()
  const counted: string[] = []
  const counter: Metrics['counter'] = ({ name }) => ({
    ...noMetrics.counter({ name, help: '' }),
    inc: (labels: Labels = {}) => counted.push(`${name} ${Object.values(labels).join(' ')}`),
  })
  const authorizer = {
    name: 'test',
    authorize({ user, verb, apiGroup, resource, subresource, namespace, name }: AuthorizationAttributes) {
      const place = [apiGroup, resource, subresource].filter((part) => part !== '').join('/')
      const text = `${verb} ${place}${name === '' ? '' : `:${namespace === '' ? '' : `${namespace}/`}${name}`}`
      asked.push(text)
      users.push(user)
      return { decision: allowed.includes(text) ? ('allow' as const) : ('noOpinion' as const), reason: '' }
    },
  }
  const impersonate = createImpersonator({ authorizers: [authorizer], clock, metrics: impersonationMetrics({ ...noMetrics, counter }) })
  const act = async (headers: Record<string, string | string[]>, user = jane, verb = 'list') => {
    try {
      const wanted = wantedUser(requestOf({ headers }))
      if (!wanted) return 'nobody else'
      return await impersonate(wanted, { ...listPods(user), verb })
    } catch (error) {
      if (isStatus(error)) return error.message
      throw error
    }
  }
  return { act, asked, users, clock, counted }
}

const g = 'authentication.k8s.io'
const all = 'system:authenticated'
const extra = (pairs: Record<string, string | string[]>) => Object.fromEntries(Object.entries(pairs).map(([key, value]) => [`impersonate-extra-${key}`, value]))

const cases: { name: string; allowed: string[]; headers: Record<string, string | string[]>; user?: UserInfo; want: unknown }[] = [
  { name: 'a request without impersonation headers keeps its own user', allowed: [], headers: { authorization: 'x' }, want: 'nobody else' },
  {
    name: 'groups without a user name are refused',
    allowed: [],
    headers: { 'impersonate-group': ['a'], ...extra({ 'B%2fc': 'd' }) },
    want: 'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"a"}, Extra:map[string][]string{"B/c":[]string{"d"}}} without impersonating a user name',
  },
  {
    name: 'legacy mode grants name, groups, uid and extra',
    allowed: ['impersonate users:joe', 'impersonate groups:dev', 'impersonate groups:ops', `impersonate ${g}/uids:7`, `impersonate ${g}/userextras/a/b:x`],
    headers: { 'impersonate-user': 'joe', 'impersonate-group': ['dev', 'ops'], 'impersonate-uid': '7', ...extra({ 'a%2fb': 'x' }) },
    want: { user: { name: 'joe', groups: ['dev', 'ops', all], uid: '7', extra: { 'a/b': ['x'] } }, constraint: '' },
  },
  {
    name: 'legacy mode adds the groups of a service account',
    allowed: ['impersonate serviceaccounts:ns/app'],
    headers: { 'impersonate-user': 'system:serviceaccount:ns:app' },
    want: { user: { name: 'system:serviceaccount:ns:app', groups: ['system:serviceaccounts', 'system:serviceaccounts:ns', all] }, constraint: '' },
  },
  {
    name: 'legacy mode treats a malformed service account name as a user',
    allowed: ['impersonate users:system:serviceaccount:ns:a:b'],
    headers: { 'impersonate-user': 'system:serviceaccount:ns:a:b' },
    want: { user: { name: 'system:serviceaccount:ns:a:b', groups: [all] }, constraint: '' },
  },
  {
    name: 'legacy mode gives anonymous the group system:unauthenticated',
    allowed: ['impersonate users:system:anonymous'],
    headers: { 'impersonate-user': 'system:anonymous' },
    want: { user: { name: 'system:anonymous', groups: ['system:unauthenticated'] }, constraint: '' },
  },
  {
    name: 'legacy mode grants system:masters to a user with that permission',
    allowed: ['impersonate users:joe', 'impersonate groups:system:masters'],
    headers: { 'impersonate-user': 'joe', 'impersonate-group': 'system:masters' },
    want: { user: { name: 'joe', groups: ['system:masters', all] }, constraint: '' },
  },
  {
    name: 'a refusal names the constrained verb, without any permission',
    allowed: [],
    headers: { 'impersonate-user': 'joe' },
    want: 'pods is forbidden: User "jane" cannot impersonate-on:user-info:list resource "pods" in API group "" at the cluster scope',
  },
  {
    name: 'user-info mode grants a user and a group for lists of pods',
    allowed: ['impersonate-on:user-info:list pods', `impersonate:user-info ${g}/users:joe`, `impersonate:user-info ${g}/groups:dev`],
    headers: { 'impersonate-user': 'joe', 'impersonate-group': 'dev' },
    want: { user: { name: 'joe', groups: ['dev', all] }, constraint: 'impersonate:user-info' },
  },
  {
    name: 'user-info mode refuses a group without its permission',
    allowed: ['impersonate-on:user-info:list pods', `impersonate:user-info ${g}/users:joe`],
    headers: { 'impersonate-user': 'joe', 'impersonate-group': 'dev' },
    want: 'groups.authentication.k8s.io "dev" is forbidden: User "jane" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope',
  },
  {
    name: 'user-info mode always refuses system:masters',
    allowed: ['impersonate-on:user-info:list pods', `impersonate:user-info ${g}/users:joe`, `impersonate:user-info ${g}/groups:system:masters`],
    headers: { 'impersonate-user': 'joe', 'impersonate-group': 'system:masters' },
    want: 'groups.authentication.k8s.io "system:masters" is forbidden: User "jane" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed',
  },
  {
    name: 'user-info mode grants many groups by one permission for all',
    allowed: ['impersonate-on:user-info:list pods', `impersonate:user-info ${g}/users:joe`, `impersonate:user-info ${g}/groups:*`],
    headers: { 'impersonate-user': 'joe', 'impersonate-group': ['a', 'b', 'c', 'd'] },
    want: { user: { name: 'joe', groups: ['a', 'b', 'c', 'd', all] }, constraint: 'impersonate:user-info' },
  },
  {
    name: 'user-info mode refuses an extra key without a domain',
    allowed: ['impersonate-on:user-info:list pods', `impersonate:user-info ${g}/users:joe`],
    headers: { 'impersonate-user': 'joe', ...extra({ scopes: 'x' }) },
    want: 'userextras.authentication.k8s.io is forbidden: User "jane" cannot impersonate:user-info resource "userextras" in API group "authentication.k8s.io" at the cluster scope: impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scopes": must be a domain-prefixed path (such as "acme.io/foo")',
  },
  {
    name: 'serviceaccount mode grants a service account',
    allowed: ['impersonate-on:serviceaccount:list pods', `impersonate:serviceaccount ${g}/serviceaccounts:ns/app`],
    headers: { 'impersonate-user': 'system:serviceaccount:ns:app' },
    want: {
      user: { name: 'system:serviceaccount:ns:app', groups: ['system:serviceaccounts', 'system:serviceaccounts:ns', all] },
      constraint: 'impersonate:serviceaccount',
    },
  },
  {
    name: 'user-info permissions do not grant a service account',
    allowed: ['impersonate-on:user-info:list pods', `impersonate:user-info ${g}/users:system:serviceaccount:ns:app`],
    headers: { 'impersonate-user': 'system:serviceaccount:ns:app' },
    want: 'pods is forbidden: User "jane" cannot impersonate-on:serviceaccount:list resource "pods" in API group "" at the cluster scope',
  },
  {
    name: 'arbitrary-node mode grants any node',
    allowed: ['impersonate-on:arbitrary-node:list pods', `impersonate:arbitrary-node ${g}/nodes:n1`],
    headers: { 'impersonate-user': 'system:node:n1' },
    want: { user: { name: 'system:node:n1', groups: ['system:nodes', all] }, constraint: 'impersonate:arbitrary-node' },
  },
  {
    name: 'a node with extra groups needs legacy permission',
    allowed: ['impersonate-on:arbitrary-node:list pods', `impersonate:arbitrary-node ${g}/nodes:n1`],
    headers: { 'impersonate-user': 'system:node:n1', 'impersonate-group': 'a' },
    want: 'users "system:node:n1" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope',
  },
  {
    name: 'associated-node mode grants the node on which the service account runs',
    allowed: ['impersonate-on:associated-node:list pods', `impersonate:associated-node ${g}/nodes:*`],
    headers: { 'impersonate-user': 'system:node:n1' },
    user: agent('n1'),
    want: { user: { name: 'system:node:n1', groups: ['system:nodes', all] }, constraint: 'impersonate:associated-node' },
  },
  {
    name: 'associated-node mode refuses another node',
    allowed: ['impersonate-on:associated-node:list pods', `impersonate:associated-node ${g}/nodes:*`],
    headers: { 'impersonate-user': 'system:node:n2' },
    user: agent('n1'),
    want: 'pods is forbidden: User "system:serviceaccount:kube-system:agent" cannot impersonate-on:arbitrary-node:list resource "pods" in API group "" at the cluster scope',
  },
]
for (const { name, allowed, headers, user, want } of cases) {
  test(`AUN-07 ${name}`, async () => assert.deepEqual(await world(...allowed).act(headers, user), want))
}

test('AUN-07 what was allowed is remembered for ten seconds, for the same request; the way that worked is tried first', async () => {
  const { act, asked, clock } = world('impersonate-on:user-info:list pods', 'impersonate-on:user-info:watch pods', `impersonate:user-info ${g}/users:joe`)
  const joe = { 'impersonate-user': 'joe' }
  const asks = async (verb: string) => {
    asked.length = 0
    await act(joe, jane, verb)
    return [...asked]
  }
  const userCheck = `impersonate:user-info ${g}/users:joe`
  assert.deepEqual(await asks('list'), ['impersonate-on:user-info:list pods', userCheck])
  assert.deepEqual(await asks('list'), [])
  assert.deepEqual(await asks('watch'), ['impersonate-on:user-info:watch pods'])
  await clock.advance(10_000)
  assert.deepEqual(await asks('list'), ['impersonate-on:user-info:list pods', userCheck])
  assert.deepEqual(await asks('delete'), ['impersonate-on:user-info:delete pods', 'impersonate users:joe'])
})

test('AUN-07 an agent acts as the node of each of its pods by one permission, which sees no node', async () => {
  const { act, asked, users } = world('impersonate-on:associated-node:list pods', `impersonate:associated-node ${g}/nodes:*`)
  const nameOf = async (node: string) => ((await act({ 'impersonate-user': `system:node:${node}` }, agent(node))) as { user: UserInfo }).user.name
  assert.deepEqual([await nameOf('n1'), await nameOf('n2')], ['system:node:n1', 'system:node:n2'])
  assert.deepEqual(asked, ['impersonate-on:associated-node:list pods', `impersonate:associated-node ${g}/nodes:*`])
  for (const { extra: seen } of users) assert.deepEqual(seen, { 'authentication.kubernetes.io/associated-node-keys': [nodeName, 'pod'] })
  assert.match(String(await act({ 'impersonate-user': 'system:node:n1' }, agent('n2'))), /cannot impersonate-on:arbitrary-node:list/)
})

test('AUN-07 one requestor does not profit from what another may', async () => {
  const { act } = world('impersonate-on:user-info:list pods', `impersonate:user-info ${g}/users:joe`)
  const joe = { 'impersonate-user': 'joe' }
  assert.notEqual(typeof (await act(joe)), 'string')
  assert.match(String(await act({ ...joe, 'impersonate-group': 'ops' })), /groups.authentication.k8s.io "ops" is forbidden/)
  assert.match(String(await act({ 'impersonate-user': 'jim' })), /users.authentication.k8s.io "jim" is forbidden/)
})

test('AUN-07 checks are counted by way', async () => {
  const { act, counted } = world('impersonate users:joe')
  await act({ 'impersonate-user': 'joe' })
  assert.deepEqual(
    counted,
    ['user-info denied', 'legacy allowed'].map((labels) => `apiserver_impersonation_authorization_attempts_total ${labels}`),
  )
})
