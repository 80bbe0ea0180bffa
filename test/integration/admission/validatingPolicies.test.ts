/** ADM-06: validating admission policies, as clients meet them: one table of what is refused and how. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refused } from '../../support/refused.ts'
import { type AdmissionCluster, configMap, configMaps, withCluster } from './cluster.ts'
import { dropPolicies, makePolicy, type PolicyTrial } from './policies.ts'

interface Case extends PolicyTrial {
  readonly name: string
  readonly data?: Record<string, string>
  readonly labels?: Record<string, string>
  readonly namespace?: string
  /** The end of the refusal's message; undefined: it is let pass. */
  readonly refusal?: string
  readonly reason?: string
  readonly code?: number
}

const validations = (expression: string, more: object = {}) => ({ validations: [{ expression, ...more }] })
/** Costs far more than a policy may. */
const bomb =
  '[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a+b+c+d+e+f >= 0))))))'
const limits = { paramKind: { apiVersion: 'v1', kind: 'ConfigMap' } }

const cases: Case[] = [
  { name: 'holds', spec: validations("object.data.a == '1'"), data: { a: '1' } },
  { name: 'does not hold', spec: validations("object.data.a == '1'"), data: { a: '2' }, refusal: "failed expression: object.data.a == '1'" },
  { name: 'message', spec: validations('false', { message: 'no such thing' }), refusal: 'no such thing' },
  { name: 'message expression', spec: validations('false', { messageExpression: "'got ' + object.metadata.name", message: 'x' }), refusal: 'got x' },
  { name: 'message of several lines falls back', spec: validations('false', { messageExpression: "'a\\nb'", message: 'fallback' }), refusal: 'fallback' },
  {
    name: 'message that fails falls back',
    spec: validations('false', { messageExpression: 'string(object.data.none)', message: 'fallback' }),
    refusal: 'fallback',
  },
  { name: 'reason', spec: validations('false', { reason: 'Forbidden' }), refusal: 'failed expression: false', reason: 'Forbidden', code: 403 },
  {
    name: 'too large',
    spec: validations('false', { reason: 'RequestEntityTooLarge' }),
    refusal: 'failed expression: false',
    reason: 'RequestEntityTooLarge',
    code: 413,
  },
  {
    name: 'an error fails closed',
    spec: validations("object.data.none == '1'"),
    refusal: "expression 'object.data.none == '1'' resulted in error: no such key: none",
  },
  { name: 'an error fails open', spec: { ...validations("object.data.none == '1'"), failurePolicy: 'Ignore' } },
  { name: 'a denial does not fail open', spec: { ...validations('false'), failurePolicy: 'Ignore' }, refusal: 'failed expression: false' },
  {
    name: 'variables are worked out from each other',
    spec: {
      variables: [
        { name: 'a', expression: 'size(object.data)' },
        { name: 'b', expression: 'variables.a + 1' },
      ],
      ...validations('variables.b == 3'),
    },
    data: { x: '1' },
    refusal: 'failed expression: variables.b == 3',
  },
  {
    name: 'an error in an unused variable is ignored',
    spec: { variables: [{ name: 'bad', expression: 'object.data.none' }], ...validations('true || variables.bad') },
  },
  {
    name: 'a variable fails',
    spec: { variables: [{ name: 'bad', expression: 'object.data.none' }], ...validations("variables.bad == ''") },
    refusal: 'composited variable "bad" fails to evaluate: no such key: none',
  },
  { name: 'a false condition passes by', spec: { ...validations('false'), matchConditions: [{ name: 'no', expression: "object.metadata.name == 'other'" }] } },
  {
    name: 'a true condition does not',
    spec: { ...validations('false'), matchConditions: [{ name: 'yes', expression: "object.metadata.name == 'x'" }] },
    refusal: 'failed expression: false',
  },
  {
    name: 'a condition that fails',
    spec: { ...validations('true'), matchConditions: [{ name: 'bad', expression: "object.data.none == ''" }] },
    refusal: "expression 'object.data.none == ''' resulted in error: no such key: none",
  },
  {
    name: 'a bomb of conditions',
    spec: { ...validations('true'), matchConditions: [{ name: 'bomb', expression: bomb }] },
    refusal: 'resulted in error: operation cancelled: actual cost limit exceeded',
  },
  { name: 'a bomb', spec: validations(bomb), refusal: 'resulted in error: operation cancelled: actual cost limit exceeded' },
  {
    name: 'many bombs share one budget',
    spec: { validations: Array.from({ length: 12 }, () => ({ expression: bomb })) },
    refusal: 'validation failed due to running out of cost budget, no further validation rules will be run',
  },
  {
    name: 'messages cost, even of what holds',
    spec: { validations: Array.from({ length: 12 }, () => ({ expression: 'true', messageExpression: `string(${bomb})` })) },
    refusal: 'failed messageExpression: validation failed due to running out of cost budget, no further validation rules will be run',
  },
  {
    name: 'annotations may not ask the authorizer',
    spec: { ...validations('true'), auditAnnotations: [{ key: 'a', valueExpression: "string(authorizer.path('/x').check('get').allowed())" }] },
    refusal: 'no such attribute(s): authorizer',
  },
  { name: 'the namespace', spec: validations("namespaceObject.metadata.name == 'default' && namespaceObject.metadata.labels.size() > 0") },
  {
    name: 'the request',
    spec: validations(
      "request.operation == 'CREATE' && request.userInfo.username == 'test-admin' && request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps' && !request.dryRun && request.namespace == 'default' && request.name == 'x'",
    ),
  },
  { name: 'options', spec: validations("request.options.kind == 'CreateOptions'") },
  { name: 'no old object on create', spec: validations('oldObject == null') },
  {
    name: 'authorizer',
    spec: validations(
      "authorizer.group('').resource('pods').namespace('default').check('delete').allowed() && authorizer.requestResource.check('custom').allowed()",
    ),
  },
  {
    name: 'binding selects another namespace',
    spec: validations('false'),
    binding: { matchResources: { namespaceSelector: { matchLabels: { no: 'such' } } } },
  },
  {
    name: 'binding selects by label',
    spec: validations('false'),
    binding: { matchResources: { objectSelector: { matchLabels: { app: 'a' } } } },
    labels: { app: 'a' },
    refusal: 'failed expression: false',
  },
  {
    name: 'binding does not select by label',
    spec: validations('false'),
    binding: { matchResources: { objectSelector: { matchLabels: { app: 'b' } } } },
    labels: { app: 'a' },
  },
  {
    name: 'excluded by name',
    spec: { ...validations('false') },
    binding: {
      matchResources: { excludeResourceRules: [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], resourceNames: ['x'] }] },
    },
  },
  {
    name: 'param by name',
    spec: { ...limits, ...validations("params.data.max == '3'") },
    binding: { paramRef: { name: 'limits', parameterNotFoundAction: 'Deny' } },
  },
  {
    name: 'param by name in another namespace',
    spec: { ...limits, ...validations("params.data.max == '3'") },
    binding: { paramRef: { name: 'limits', namespace: 'other', parameterNotFoundAction: 'Deny' } },
    refusal: "failed expression: params.data.max == '3'",
  },
  {
    name: 'params by selector: every one counts',
    spec: { ...limits, ...validations("params.data.max == '3'", { messageExpression: "'limited by ' + params.metadata.name" }) },
    binding: { paramRef: { selector: { matchLabels: { role: 'limits' } }, parameterNotFoundAction: 'Deny' } },
    refusal: 'limited by more-limits',
  },
  {
    name: 'a missing param denies',
    spec: { ...limits, ...validations('true') },
    binding: { paramRef: { name: 'nobody', parameterNotFoundAction: 'Deny' } },
    refusal: 'failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction',
  },
  { name: 'a missing param allows', spec: { ...limits, ...validations('false') }, binding: { paramRef: { name: 'nobody', parameterNotFoundAction: 'Allow' } } },
  { name: 'no paramRef: params are null', spec: { ...limits, ...validations('params == null') } },
  {
    name: 'an unknown kind of params',
    spec: { paramKind: { apiVersion: 'example.com/v1', kind: 'Nothing' }, ...validations('true') },
    binding: { paramRef: { name: 'a', parameterNotFoundAction: 'Deny' } },
    refusal:
      "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Nothing'",
  },
  {
    name: 'an annotation that fails denies',
    spec: { auditAnnotations: [{ key: 'k', valueExpression: 'string(object.data.none)' }] },
    refusal: "expression 'string(object.data.none)' resulted in error: no such key: none",
  },
]

async function prepare({ request }: AdmissionCluster): Promise<void> {
  await request('POST', '/api/v1/namespaces', { metadata: { name: 'other' } })
  await request('POST', configMaps(), configMap('limits', { max: '3' }, { role: 'limits' }))
  await request('POST', configMaps(), configMap('more-limits', { max: '4' }, { role: 'limits' }))
  await request('POST', configMaps('other'), configMap('limits', { max: '9' }))
}

test('ADM-06: validating policies', () =>
  withCluster(async (cluster) => {
    await prepare(cluster)
    const wrong: string[] = []
    for (const { name, data, labels, namespace = 'default', refusal, reason = 'Invalid', code = 422, ...trial } of cases) {
      try {
        await makePolicy(cluster, 'Validating', 'p', trial)
        const made = cluster.request('POST', configMaps(namespace), configMap('x', data, labels))
        if (refusal === undefined) {
          await made
        } else {
          const status = await refused(made)
          const head = refusal.startsWith('Validating') ? '' : "ValidatingAdmissionPolicy 'p' with binding 'p-b' denied request: "
          assert.ok(status.message.startsWith(`configmaps "x" is forbidden: ${head}`) && status.message.includes(refusal), status.message)
          assert.deepEqual([status.reason, status.code], [reason, code])
        }
      } catch (error) {
        wrong.push(`${name}: ${(error as Error).message}`)
      }
      await dropPolicies(cluster, 'Validating')
      await cluster.request('DELETE', configMaps(namespace, 'x')).catch(() => undefined)
    }
    assert.deepEqual(wrong, [])
  }))

test('ADM-06 API-16: a list that Go never omits is there to expressions, as null', () =>
  withCluster(async (cluster) => {
    const resourceRules = [{ operations: ['CREATE'], apiGroups: ['rbac.authorization.k8s.io'], apiVersions: ['v1'], resources: ['clusterroles'] }]
    await makePolicy(cluster, 'Validating', 'p', { spec: { matchConstraints: { resourceRules }, ...validations('has(object.rules) && object.rules != null') } })
    const path = '/apis/rbac.authorization.k8s.io/v1/clusterroles'
    const status = await refused(cluster.request('POST', path, { metadata: { name: 'empty' } }))
    assert.match(status.message, /failed expression: has\(object\.rules\) && object\.rules != null$/)
    await cluster.request('POST', path, { metadata: { name: 'filled' }, rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }] })
  }))
