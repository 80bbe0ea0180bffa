import assert from 'node:assert/strict'
import test from 'node:test'
import type { PolicyRule } from '#api/gen/types/rbac.v1'
import type { ObjectReader } from '../core/objectReader.ts'
import type { UserInfo } from '../core/request.ts'
import type { AuthorizationAttributes } from './authorizer.ts'
import { rbacAuthorizer } from './rbac.ts'

type Listener = (change: { readonly type: string; readonly object: unknown }) => void

/** Objects of RBAC as a cache has them; it counts how often a role is looked up. */
function setUp() {
  const listeners = new Map<string, Listener[]>()
  const roles = new Map<string, { readonly rules: readonly PolicyRule[] }>()
  let lookUps = 0
  const reader = {
    get(_: unknown, namespace: string, name: string) {
      lookUps++
      return roles.get(`${namespace}/${name}`)
    },
    list: () => [],
    onChange({ resource }: { resource: string }, listener: Listener) {
      listeners.set(resource, [...(listeners.get(resource) ?? []), listener])
      return () => {}
    },
  }
  const tell = (resource: string, type: string, object: unknown) => {
    for (const listener of listeners.get(resource) ?? []) listener({ type, object })
  }
  const authorizer = rbacAuthorizer(reader as unknown as ObjectReader)
  return {
    role(name: string, rules: readonly PolicyRule[]) {
      roles.set(`a/${name}`, { rules })
      tell('roles', 'MODIFIED', { metadata: { namespace: 'a', name }, rules })
    },
    bind(name: string, role: string, user: string, type = 'ADDED') {
      const apiGroup = 'rbac.authorization.k8s.io'
      const subjects = [{ kind: 'User', apiGroup, name: user }]
      const binding = { metadata: { namespace: 'a', name }, roleRef: { apiGroup, kind: 'Role', name: role }, subjects }
      tell('rolebindings', type, binding)
    },
    decide(user: UserInfo, verb: string, name: string) {
      const attributes: AuthorizationAttributes = {
        ...{ user, verb, name, isResourceRequest: true, path: '', namespace: 'a', apiGroup: '', apiVersion: 'v1', resource: 'pods', subresource: '' },
      }
      const { decision, reason } = authorizer.authorize(attributes) as { decision: string; reason: string }
      return `${decision} ${reason}`.trim()
    },
    lookUps: () => lookUps,
  }
}

const pods = (verbs: string[], resourceNames?: string[]): PolicyRule => ({
  verbs,
  apiGroups: [''],
  resources: ['pods'],
  ...(resourceNames ? { resourceNames } : {}),
})
const jane: UserInfo = { name: 'jane', groups: ['dev'] }
const allowed = 'allow RBAC: allowed by RoleBinding "b/a" of Role "reader" to User "jane"'

test('AUZ-01 a cached decision serves all object names, and other users with the same name and groups', () => {
  const { role, bind, decide, lookUps } = setUp()
  role('reader', [pods(['get'])])
  bind('b', 'reader', 'jane')
  assert.equal(decide(jane, 'get', 'p'), allowed)
  const before = lookUps()
  assert.deepEqual([decide(jane, 'get', 'q'), decide({ ...jane }, 'get', 'r')], [allowed, allowed])
  assert.equal(lookUps(), before)
  assert.deepEqual([decide(jane, 'list', ''), decide({ ...jane, name: 'joe' }, 'get', 'p')], ['noOpinion', 'noOpinion'])
})

test('AUZ-01 a change of any role or binding is heeded at once', () => {
  const { role, bind, decide } = setUp()
  bind('b', 'reader', 'jane')
  const missing = 'noOpinion RBAC: role.rbac.authorization.k8s.io "reader" not found'
  const seen = [decide(jane, 'get', 'p')]
  role('reader', [pods(['get'])])
  seen.push(decide(jane, 'get', 'p'))
  role('reader', [pods(['list'])])
  seen.push(decide(jane, 'get', 'p'))
  role('reader', [pods(['*'])])
  seen.push(decide(jane, 'get', 'p'))
  bind('b', 'reader', 'jane', 'DELETED')
  seen.push(decide(jane, 'get', 'p'))
  assert.deepEqual(seen, [missing, allowed, 'noOpinion', allowed, 'noOpinion'])
})

test('AUZ-01 a rule with resourceNames allows only these, in whatever order names are asked for', () => {
  const { role, bind, decide } = setUp()
  role('reader', [pods(['get'], ['p'])])
  bind('b', 'reader', 'jane')
  assert.deepEqual(
    ['p', 'q', 'p', 'q'].map((name) => decide(jane, 'get', name)),
    [allowed, 'noOpinion', allowed, 'noOpinion'],
  )
})
