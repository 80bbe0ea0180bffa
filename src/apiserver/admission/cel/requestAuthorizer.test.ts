/** ADM-02, ADM-06: expressions ask authorizers that answer late as well as those that answer at once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AdmissionCompiler } from '#api/cel/admissionCompiler'
import type { AuthorizationAttributes, Authorizer } from '../../authz/authorizer.ts'
import type { AdmissionAttributes } from '../admission.ts'
import { compileMatchConditions, evaluateMatchConditions, type MatchConditions } from './matchConditions.ts'
import { RequestAuthorizer } from './requestAuthorizer.ts'

const kind = { group: '', version: 'v1', kind: 'Pod', resource: 'pods' }
const attributes: AdmissionAttributes = {
  operation: 'CREATE',
  resource: kind,
  kind,
  subresource: '',
  namespace: 'd',
  name: 'p',
  user: { name: 'me', groups: ['g'] },
  dryRun: false,
  warn: () => undefined,
}

const late = "authorizer.group('apps').resource('deployments').subresource('scale').namespace('n').name('x')"
const cases: [expression: string, wanted: { matches: boolean; error?: RegExp }][] = [
  [`${late}.check('get').allowed()`, { matches: true }],
  [`${late}.check('get').allowed() && ${late}.check('delete').allowed()`, { matches: false }],
  ["authorizer.path('/healthz').check('get').allowed()", { matches: true }],
  ["authorizer.requestResource.check('create').reason() == 'because create me'", { matches: true }],
  ["authorizer.serviceAccount('ns', 'robot').path('/x').check('get').reason().contains('system:serviceaccount:ns:robot')", { matches: true }],
  ["authorizer.path('/broken').check('get').errored() && authorizer.path('/broken').check('get').error() == 'out of order'", { matches: true }],
]

function authorizerOf(isLate: boolean, asked: AuthorizationAttributes[]): Authorizer {
  return {
    name: 'test',
    authorize(question) {
      asked.push(question)
      if (question.path === '/broken') throw new Error('out of order')
      const decision = { decision: question.verb === 'delete' ? 'deny' : 'allow', reason: `because ${question.verb} ${question.user.name}` } as const
      return isLate ? new Promise((resolve) => setImmediate(resolve, decision)) : decision
    },
  }
}

for (const isLate of [false, true]) {
  for (const [expression, wanted] of cases) {
    test(`${isLate ? 'late' : 'at once'}: ${expression}`, async () => {
      const asked: AuthorizationAttributes[] = []
      const authorizer = new RequestAuthorizer([authorizerOf(isLate, asked)], attributes, 'd')
      const compiled = compileMatchConditions(new AdmissionCompiler({ hasParams: false }, false), [{ name: 'c', expression }]) as MatchConditions
      const input = { attributes, resource: kind, kind, object: undefined, oldObject: undefined, authorizer }
      assert.deepEqual(await evaluateMatchConditions(compiled, input, 'Fail'), { ...wanted, failures: 0 })
      // Each question is asked once, however often it is evaluated.
      assert.equal(new Set(asked.map((one) => JSON.stringify(one))).size, asked.length)
    })
  }
}

test('ADM-06 checks carry their selectors, and one that does not parse narrows nothing', async () => {
  const asked: AuthorizationAttributes[] = []
  const authorizer = new RequestAuthorizer([authorizerOf(false, asked)], attributes, 'd')
  const check = "authorizer.group('').resource('pods')"
  const expression = `${check}.fieldSelector('spec.nodeName=a').labelSelector('app=web').check('list').allowed() && ${check}.fieldSelector('broken').check('list').allowed()`
  const compiled = compileMatchConditions(new AdmissionCompiler({ hasParams: false }, false), [{ name: 'c', expression }]) as MatchConditions
  const input = { attributes, resource: kind, kind, object: undefined, oldObject: undefined, authorizer }
  assert.deepEqual(await evaluateMatchConditions(compiled, input, 'Fail'), { matches: true, failures: 0 })
  assert.deepEqual(
    asked.map(({ fieldSelector, labelSelector }) => [fieldSelector?.map(({ field }) => field), labelSelector]),
    [
      [['spec.nodeName'], 'app=web'],
      [undefined, undefined],
    ],
  )
})
