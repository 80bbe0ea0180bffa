import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { abacAuthorizer, parseAbacPolicies } from './abac.ts'
import type { AuthorizationAttributes, AuthorizationDecision } from './authorizer.ts'

const spec = (fields: object) => JSON.stringify({ apiVersion: 'abac.authorization.kubernetes.io/v1beta1', kind: 'Policy', spec: fields })
const ask = (some: Partial<AuthorizationAttributes>): AuthorizationAttributes => ({
  user: { name: 'alice', groups: ['dev', 'system:authenticated'] },
  verb: 'get',
  isResourceRequest: some.path === undefined,
  path: '',
  namespace: 'a',
  apiGroup: '',
  apiVersion: 'v1',
  resource: 'pods',
  subresource: '',
  name: '',
  ...some,
})
const bob = { user: { name: 'bob', groups: [] } }

const cases: readonly [name: string, line: string, asked: Partial<AuthorizationAttributes>, allowed: boolean][] = [
  ['a user, everything', spec({ user: 'alice', namespace: '*', resource: '*', apiGroup: '*' }), { verb: 'delete' }, true],
  ['another user', spec({ user: 'alice', namespace: '*', resource: '*', apiGroup: '*' }), bob, false],
  ['a resource policy opens no paths', spec({ user: 'alice', namespace: '*', resource: '*', apiGroup: '*' }), { path: '/metrics' }, false],
  ['a group', spec({ group: 'dev', namespace: 'a', resource: 'pods' }), {}, true],
  ['a user who is not in the group', spec({ user: 'alice', group: 'ops', namespace: 'a', resource: 'pods' }), {}, false],
  ['another namespace', spec({ group: 'dev', namespace: 'b', resource: 'pods' }), {}, false],
  ['another API group', spec({ group: 'dev', namespace: 'a', resource: 'pods', apiGroup: 'apps' }), {}, false],
  ['read only: reading', spec({ user: 'alice', namespace: '*', resource: '*', readonly: true }), { verb: 'watch' }, true],
  ['read only: writing', spec({ user: 'alice', namespace: '*', resource: '*', readonly: true }), { verb: 'update' }, false],
  ['user * matches an authenticated user', spec({ user: '*', namespace: '*', resource: '*' }), {}, true],
  ['a star is not for others', spec({ user: '*', namespace: '*', resource: '*' }), bob, false],
  ['a policy without a user or group matches no request', spec({ namespace: '*', resource: '*' }), {}, false],
  ['a path', spec({ user: 'alice', nonResourcePath: '/version' }), { path: '/version' }, true],
  ['paths below', spec({ user: 'alice', nonResourcePath: '/api*' }), { path: '/apis/apps' }, true],
  ['a path outside the pattern', spec({ user: 'alice', nonResourcePath: '/api/*' }), { path: '/apis' }, false],
  ['v0: an empty policy allows authenticated users everything', '{}', { path: '/x' }, true],
  ['v0: an empty policy allows others nothing', '{}', bob, false],
  ['v0: a user and a resource', '{"user":"alice","resource":"pods"}', {}, true],
  ['v0: a resource in any API group', '{"user":"alice","resource":"pods"}', { apiGroup: 'metrics.k8s.io' }, true],
  ['v0: a resource allows no paths', '{"user":"alice","resource":"pods"}', { path: '/x' }, false],
]
describe('AUZ-05 a policy decides', () => {
  for (const [name, line, asked, allowed] of cases) {
    const want: AuthorizationDecision = allowed ? { decision: 'allow', reason: '' } : { decision: 'noOpinion', reason: 'No policy matched.' }
    test(name, () => assert.deepEqual(abacAuthorizer(parseAbacPolicies(line, 'f')).authorize(ask(asked)), want))
  }
})

test('AUZ-05 blank lines and comments are skipped, and errors name their line', () => {
  assert.deepEqual(parseAbacPolicies('# a comment\n\n', 'f'), [])
  assert.throws(() => parseAbacPolicies('{}\n{"user":1}', 'f'), /^Error: error reading policy file f, line 2: \{"user":1\}: json: cannot unmarshal number/)
  assert.throws(() => parseAbacPolicies('nonsense', 'f'), /^Error: error reading policy file f, line 1: nonsense: /)
})

test('AUZ-05 rules of a user', () => {
  const lines = [
    spec({ user: 'alice', namespace: 'a', resource: 'pods', readonly: true }),
    spec({ group: 'dev', namespace: '*', nonResourcePath: '/logs*' }),
    spec({ user: 'alice', namespace: 'b', resource: 'secrets' }),
  ]
  assert.deepEqual(abacAuthorizer(parseAbacPolicies(lines.join('\n'), 'f')).rulesFor?.({ name: 'alice', groups: ['dev'] }, 'a'), {
    rules: [
      { verbs: ['get', 'list', 'watch'], apiGroups: [''], resources: ['pods'] },
      { verbs: ['*'], nonResourceURLs: ['/logs*'] },
    ],
    incomplete: false,
  })
})
