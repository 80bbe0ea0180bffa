import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PolicyRule } from '#api/gen/types/rbac.v1'
import type { AuthorizationAttributes } from './authorizer.ts'
import { bootstrapClusterRoleBindings, bootstrapClusterRoles, bootstrapRoleBindings, bootstrapRoles } from './bootstrapPolicy/objects.ts'
import { mergePolicy } from './bootstrapPolicy/reconcile.ts'
import { uncovered } from './coverage.ts'
import { printRule, ruleAllows } from './rules.ts'

const attributes = (some: Partial<AuthorizationAttributes>): AuthorizationAttributes => ({
  user: { name: 'u', groups: [] },
  verb: 'get',
  isResourceRequest: some.path === undefined,
  path: '',
  namespace: '',
  apiGroup: '',
  apiVersion: 'v1',
  resource: 'pods',
  subresource: '',
  name: '',
  ...some,
})
const rule = (verbs: string, apiGroups: string, resources: string, names?: string): PolicyRule => ({
  verbs: verbs.split(' '),
  apiGroups: apiGroups.split(' '),
  resources: resources.split(' '),
  ...(names ? { resourceNames: names.split(' ') } : {}),
})
const urls = (verbs: string, paths: string): PolicyRule => ({ verbs: verbs.split(' '), nonResourceURLs: paths.split(' ') })

const decisions: readonly [string, PolicyRule, Partial<AuthorizationAttributes>, boolean][] = [
  ['the exact thing', rule('get', '', 'pods'), {}, true],
  ['another verb', rule('list', '', 'pods'), {}, false],
  ['another group', rule('get', 'apps', 'pods'), {}, false],
  ['a subresource is not its resource', rule('get', '', 'pods'), { subresource: 'exec' }, false],
  ['a resource is not its subresource', rule('get', '', 'pods/exec'), {}, false],
  ['every resource includes subresources', rule('get', '', '*'), { subresource: 'exec' }, true],
  ['a subresource of anything', rule('get', '*', '*/scale'), { apiGroup: 'apps', resource: 'deployments', subresource: 'scale' }, true],
  ['a subresource of anything is no resource', rule('get', '*', '*/scale'), { resource: 'scale' }, false],
  ['a named object', rule('get', '', 'pods', 'a b'), { name: 'b' }, true],
  ['a name does not cover lists', rule('list', '', 'pods', 'a'), { verb: 'list' }, false],
  ['a resource rule does not open paths', rule('*', '*', '*'), { path: '/metrics' }, false],
  ['a path rule does not open resources', urls('*', '*'), {}, false],
  ['a path below', urls('get', '/apis/*'), { path: '/apis/apps' }, true],
  ['a path outside the pattern', urls('get', '/apis/*'), { path: '/apiserver' }, false],
  ['a path itself', urls('get', '/version'), { path: '/version/' }, false],
]
for (const [name, one, some, want] of decisions) test(`AUZ-01 a rule decides: ${name}`, () => assert.equal(ruleAllows(attributes(some), one), want))

const covers: readonly [string, readonly PolicyRule[], readonly PolicyRule[], readonly string[]][] = [
  ['parts of several rules together', [rule('get', '', 'pods'), rule('list', '', 'pods')], [rule('get list', '', 'pods')], []],
  ['a missing verb', [rule('get', '', 'pods')], [rule('get delete', '', 'pods')], ['{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}']],
  ['a star is not the sum of its parts', [rule('get list watch', '', 'pods')], [rule('*', '', 'pods')], ['{APIGroups:[""], Resources:["pods"], Verbs:["*"]}']],
  ['one name is not all names', [rule('get', '', 'pods', 'a')], [rule('get', '', 'pods')], ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}']],
  ['all names are one name', [rule('get', '', 'pods')], [rule('get', '', 'pods', 'a')], []],
  ['a wider path', [urls('get', '/a/*')], [urls('get', '/*')], ['{NonResourceURLs:["/*"], Verbs:["get"]}']],
  ['a narrower path', [urls('get', '/a/*')], [urls('get', '/a/b/*')], []],
]
for (const [name, held, wanted, want] of covers) test(`AUZ-01 coverage: ${name}`, () => assert.deepEqual(uncovered(held, wanted).map(printRule), want))

test('the bootstrap policy has unique names, and every binding names an existing role', () => {
  const names = (objects: readonly { metadata: { namespace?: string | undefined; name?: string | undefined } }[]) =>
    objects.map((one) => `${one.metadata.namespace ?? ''}/${one.metadata.name}`)
  const clusterRoles = names(bootstrapClusterRoles())
  const roles = names(bootstrapRoles())
  assert.equal(new Set(clusterRoles).size, clusterRoles.length)
  assert.equal(new Set(roles).size, roles.length)
  for (const binding of bootstrapClusterRoleBindings()) assert.ok(clusterRoles.includes(`/${binding.roleRef.name}`), binding.metadata.name)
  for (const binding of bootstrapRoleBindings()) assert.ok(roles.includes(`${binding.metadata.namespace}/${binding.roleRef.name}`), binding.metadata.name)
})

test("reconciling adds missing rules, keeps users' additions, and obeys the autoupdate annotation", () => {
  const [wanted] = bootstrapClusterRoles().filter((role) => role.metadata.name === 'system:basic-user')
  assert.ok(wanted)
  assert.equal(mergePolicy(wanted, wanted), undefined)
  const added = rule('get', '', 'pods')
  const changed = { ...wanted, rules: [added, ...(wanted.rules ?? []).slice(1)] }
  const merged = mergePolicy(wanted, changed)
  assert.ok(merged && merged !== 'replace')
  assert.deepEqual(uncovered(merged.rules ?? [], [added, ...(wanted.rules ?? [])]), [])
  const off = { ...changed, metadata: { ...changed.metadata, annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'false' } } }
  assert.equal(mergePolicy(wanted, off), undefined)
  const [binding] = bootstrapClusterRoleBindings()
  assert.ok(binding)
  assert.equal(mergePolicy(binding, { ...binding, roleRef: { kind: 'ClusterRole', name: 'other' } }), 'replace')
})
