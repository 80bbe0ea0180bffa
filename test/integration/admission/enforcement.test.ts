/** ADM-06, ADM-07: policies warn, annotate the audit event and are reinvoked; their parameters are custom resources. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refused } from '../../support/refused.ts'
import { jsonPatch } from '../../support/webhookServer.ts'
import { crdPath, definition, establish, group, object, version } from '../crd/support.ts'
import { configMap, configMaps, configure, webhook, withCluster } from './cluster.ts'
import { dropPolicies, makePolicy } from './policies.ts'
import { postForHeaders } from './wire.ts'

test('ADM-06: Warn and Audit report a violation and admit the object', () =>
  withCluster(async (cluster) => {
    const { api, notes } = cluster
    const spec = {
      validations: [{ expression: 'object.data.own == "y"', message: 'not y' }],
      auditAnnotations: [
        { key: 'own', valueExpression: "'own is ' + string(object.data.own)" },
        { key: 'nothing', valueExpression: "'  '" },
      ],
    }
    await makePolicy(cluster, 'Validating', 'p', { spec, binding: { validationActions: ['Warn', 'Audit'] } })
    const { url, ca, token } = await api.listen()
    const headers = await postForHeaders({ url: `${url}${configMaps()}`, ca, token }, configMap('one'))
    assert.equal(headers.warning, `299 - "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p-b': not y"`)
    const failure = [{ message: 'not y', policy: 'p', binding: 'p-b', expressionIndex: 0, validationActions: ['Warn', 'Audit'] }]
    assert.deepEqual(notes, [
      ['validation.policy.admission.k8s.io/validation_failure', JSON.stringify(failure), 'Metadata'],
      ['p/own', 'own is x', 'Metadata'],
    ])
  }))

test('ADM-06: all bindings are asked, the first denial answers', () =>
  withCluster(async (cluster) => {
    const { request } = cluster
    const bindings = { a: { validationActions: ['Audit'] }, b: { matchResources: { objectSelector: { matchLabels: { app: 'a' } } } }, c: {} }
    await makePolicy(cluster, 'Validating', 'p', { spec: { validations: [{ expression: 'false' }] }, bindings })
    const refusalOf = async (labels: Record<string, string>) => (await refused(request('POST', configMaps(), configMap('x', undefined, labels)))).message
    const denied = (binding: string) =>
      `configmaps "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding '${binding}' denied request: failed expression: false`
    assert.deepEqual([await refusalOf({ app: 'a' }), await refusalOf({})], [denied('b'), denied('c')])
  }))

test('ADM-02: what webhooks do is noted', () =>
  withCluster(async (cluster) => {
    const { hooks, notes, request } = cluster
    hooks.on('/mutate', () => ({ ...jsonPatch([{ op: 'add', path: '/data/a', value: '1' }]), auditAnnotations: { why: 'because' } }))
    hooks.on('/open', () => ({ allowed: true, patch: 'W10=' }))
    await configure(cluster, 'mutating', 'm', [webhook(hooks, '/mutate'), webhook(hooks, '/open', { failurePolicy: 'Ignore' })])
    await request('POST', configMaps(), configMap('one'))
    const names = (of: string) => ({ configuration: 'm', webhook: `${of}.example.com` })
    const patch = [{ op: 'add', path: '/data/a', value: '1' }]
    assert.deepEqual(notes, [
      ['mutate.example.com/why', 'because', 'Metadata'],
      ['patch.webhook.admission.k8s.io/round_0_index_0', JSON.stringify({ ...names('mutate'), patch, patchType: 'JSONPatch' }), 'Request'],
      ['mutation.webhook.admission.k8s.io/round_0_index_0', JSON.stringify({ ...names('mutate'), mutated: true }), 'Metadata'],
      ['mutation.webhook.admission.k8s.io/round_0_index_1', JSON.stringify({ ...names('open'), mutated: false }), 'Metadata'],
      ['failed-open.mutation.webhook.admission.k8s.io/round_0_index_1', 'open.example.com', 'Metadata'],
    ])
  }))

test('ADM-07: a policy with reinvocationPolicy IfNeeded runs again when a webhook changes the object after it', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/late', ({ object }) => (object.data.late ? { allowed: true } : jsonPatch([{ op: 'add', path: '/data/late', value: 'yes' }])))
    await configure(cluster, 'mutating', 'm', [webhook(hooks, '/late')])
    const expression = 'Object{data: {"rounds": (has(object.data.rounds) ? object.data.rounds : "") + "1"}}'
    const mutations = [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }]
    for (const [reinvocationPolicy, rounds] of [
      ['Never', '1'],
      ['IfNeeded', '11'],
    ]) {
      await makePolicy(cluster, 'Mutating', 'p', { spec: { mutations, reinvocationPolicy } })
      assert.equal((await request('POST', `${configMaps()}?dryRun=All`, configMap('one'))).data.rounds, rounds)
      await dropPolicies(cluster, 'Mutating')
    }
  }))

test('ADM-06: parameters are custom resources, in the version that the policy names, and their definition may be created later', () =>
  withCluster(async (cluster) => {
    const { api, request } = cluster
    const spec = {
      paramKind: { apiVersion: `${group}/v2`, kind: 'Limit' },
      validations: [{ expression: "params.apiVersion == 'example.com/v2' && params.max > 3" }],
    }
    const parameterNotFoundAction = 'Deny'
    await makePolicy(cluster, 'Validating', 'p', { spec, binding: { paramRef: { name: 'l', parameterNotFoundAction } } })
    const denial = async () => (await refused(request('POST', configMaps(), configMap('one')))).message.replace(/.* denied request: /, '')
    assert.equal(await denial(), "failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v2, Kind=Limit'")
    const schema = { type: 'object', properties: { max: { type: 'integer' } } }
    await establish(api.client, definition('limits', 'Limit', [version('v1', schema), version('v2', schema, { storage: false })], { scope: 'Cluster' }))
    assert.equal(await denial(), 'failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction')
    await request('POST', `/apis/${group}/v1/limits`, { ...object('Limit', 'l', undefined), max: 3 })
    assert.match(await denial(), /^failed expression: params\.apiVersion/)
    await request('PATCH', `/apis/${group}/v1/limits/l`, { max: 4 }, { contentType: 'application/merge-patch+json' })
    await request('POST', configMaps(), configMap('one'))
    await request('DELETE', `${crdPath}/limits.${group}`)
  }))
