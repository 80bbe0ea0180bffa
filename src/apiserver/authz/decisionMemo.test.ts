import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UserInfo } from '../core/request.ts'
import type { AuthorizationAttributes } from './authorizer.ts'
import { DecisionMemo } from './decisionMemo.ts'

const everybody = 'system:authenticated'
const asked = (user: UserInfo): AuthorizationAttributes => ({
  user,
  verb: 'get',
  isResourceRequest: true,
  path: '',
  namespace: 'a',
  apiGroup: '',
  apiVersion: 'v1',
  resource: 'secrets',
  subresource: '',
  name: 'x',
})

test('AUZ-01 a user name that contains another user’s name and groups gets none of their cached decisions', () => {
  const memo = new DecisionMemo()
  const work = ({ user }: AuthorizationAttributes) => ({
    decision: { decision: user.groups.includes('admins') ? ('allow' as const) : ('noOpinion' as const), reason: '' },
    isOfName: false,
  })
  assert.equal(memo.decide(asked({ name: 'jane', groups: ['admins', everybody] }), work).decision, 'allow')
  assert.equal(memo.decide(asked({ name: 'jane\nadmins', groups: [everybody] }), work).decision, 'noOpinion')
  assert.equal(memo.decide(asked({ name: 'jane', groups: [`admins\n${everybody}`] }), work).decision, 'noOpinion')
  assert.equal(memo.decide(asked({ name: 'jane', groups: ['admins', everybody] }), work).decision, 'allow')
})
