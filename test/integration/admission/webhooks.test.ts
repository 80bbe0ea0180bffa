/** ADM-02, ADM-03: webhooks allow, refuse and change what is written, each behaviour of upstream's conformance suite that needs no pod. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '#api/machinery/meta'
import { refused } from '../../support/refused.ts'
import { jsonPatch } from '../../support/webhookServer.ts'
import { definition, establish, group, object, version } from '../crd/support.ts'
import { type AdmissionCluster, configMap, configMaps, configurationPath, configure, webhook, withCluster } from './cluster.ts'
import { postForHeaders } from './wire.ts'

const deny = () => ({ allowed: false, status: { message: 'no' } })
const allow = () => ({ allowed: true })
const denied = 'admission webhook "deny.example.com" denied the request: no'
const adding = (name: string) => () => jsonPatch([{ op: 'add', path: `/data/${name}`, value: 'yes' }])

test('ADM-03: a webhook refuses in its own words', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    const cases: [status: object | undefined, wanted: unknown[]][] = [
      [{ message: 'bad data', code: 418, reason: 'Teapot' }, [418, 'Teapot', 'admission webhook "deny.example.com" denied the request: bad data']],
      [{ reason: 'Why' }, [400, 'Why', 'admission webhook "deny.example.com" denied the request: Why']],
      [undefined, [400, '', 'admission webhook "deny.example.com" denied the request without explanation']],
      [{ code: 200, message: 'a code that is no refusal' }, [400, '', 'admission webhook "deny.example.com" denied the request: a code that is no refusal']],
    ]
    await configure(cluster, 'validating', 'deny', [webhook(hooks, '/deny')])
    for (const [status, wanted] of cases) {
      hooks.on('/deny', () => ({ allowed: false, status }))
      const refusal = await refused(request('POST', configMaps(), configMap('bad')))
      assert.deepEqual([refusal.code, refusal.reason, refusal.message], wanted)
    }
  }))

test('ADM-03: create, update, patch and delete are refused; an exempt namespace is not', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/deny', ({ object, oldObject, operation }) =>
      operation === 'DELETE' ? { allowed: oldObject.data.own !== 'bad' } : { allowed: object.data.own !== 'bad' },
    )
    await request('POST', configMaps(), configMap('old', { own: 'bad' }))
    await request('POST', '/api/v1/namespaces', { metadata: { name: 'exempt', labels: { skip: 'yes' } } })
    const namespaceSelector = { matchExpressions: [{ key: 'skip', operator: 'DoesNotExist' }] }
    await configure(cluster, 'validating', 'deny', [webhook(hooks, '/deny', { namespaceSelector })])
    const mustFail = async (call: Promise<unknown>) => assert.match((await refused(call)).message, /^admission webhook "deny\.example\.com" denied the request/)
    await mustFail(request('POST', configMaps(), configMap('bad', { own: 'bad' })))
    await request('POST', configMaps(), configMap('good'))
    await mustFail(request('PUT', configMaps('default', 'good'), configMap('good', { own: 'bad' })))
    await mustFail(request('PATCH', configMaps('default', 'good'), { data: { own: 'bad' } }, { contentType: 'application/merge-patch+json' }))
    await mustFail(request('DELETE', configMaps('default', 'old')))
    await mustFail(request('DELETE', `${configMaps()}?fieldSelector=metadata.name=old`))
    await request('POST', configMaps('exempt'), configMap('bad', { own: 'bad' }))
    await request('DELETE', configMaps('default', 'good'))
  }))

test('ADM-02: every field of a review', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/look', allow)
    await configure(cluster, 'validating', 'look', [webhook(hooks, '/look', { sideEffects: 'NoneOnDryRun', timeoutSeconds: 3 })])
    await request('POST', `${configMaps()}?dryRun=All&fieldManager=me`, configMap('one'))
    const [asked] = hooks.askedAt('/look')
    const { uid, object, ...rest } = asked
    assert.match(uid, /^[0-9a-f-]{36}$/)
    assert.deepEqual([object.kind, object.apiVersion, object.data], ['ConfigMap', 'v1', { own: 'x' }])
    assert.deepEqual(rest, {
      kind: { group: '', version: 'v1', kind: 'ConfigMap' },
      resource: { group: '', version: 'v1', resource: 'configmaps' },
      requestKind: { group: '', version: 'v1', kind: 'ConfigMap' },
      requestResource: { group: '', version: 'v1', resource: 'configmaps' },
      name: 'one',
      namespace: 'default',
      operation: 'CREATE',
      userInfo: { username: 'test-admin', groups: ['system:masters', 'system:authenticated'] },
      oldObject: null,
      dryRun: true,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1', dryRun: ['All'], fieldManager: 'me' },
    })
    assert.equal(hooks.asked[0]?.url, '/look?timeout=3s')
    assert.equal(hooks.asked[0]?.review.apiVersion, 'admission.k8s.io/v1')
  }))

test('ADM-02: a webhook gets the digits of an int64, and its patch compares and adds them', () =>
  withCluster(async (cluster) => {
    const { hooks, request, notes } = cluster
    const [long, most] = ['9007199254740993', '9223372036854775807']
    const patch = `[{"op":"test","path":"/data/n","value":${long}},{"op":"add","path":"/data/m","value":${most}}]`
    hooks.on('/long', () => ({ allowed: true, patchType: 'JSONPatch', patch: Buffer.from(patch).toString('base64') }))
    const rules = [{ operations: ['*'], apiGroups: ['apps'], apiVersions: ['v1'], resources: ['controllerrevisions'] }]
    await configure(cluster, 'mutating', 'long', [webhook(hooks, '/long', { rules })])
    const path = '/apis/apps/v1/namespaces/default/controllerrevisions'
    const made = await request('POST', path, `{"metadata":{"name":"r"},"revision":1,"data":{"n":${long}}}`)
    assert.deepEqual(made.data, { n: BigInt(long), m: BigInt(most) })
    assert.ok(hooks.asked[0]?.text.includes(`"data":{"n":${long}}`))
    assert.ok(notes.some(([, value]) => value.includes(patch)))
  }))

test('ADM-02: mutating webhooks follow each other, by the names of their configurations', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/first', ({ object }) => jsonPatch([{ op: 'add', path: '/data/order', value: `${object.data.order ?? ''}1` }]))
    hooks.on('/second', ({ object }) => jsonPatch([{ op: 'add', path: '/data/order', value: `${object.data.order ?? ''}2` }]))
    await configure(cluster, 'mutating', 'b', [webhook(hooks, '/second')])
    await configure(cluster, 'mutating', 'a', [webhook(hooks, '/first')])
    assert.deepEqual((await request('POST', configMaps(), configMap('one'))).data, { own: 'x', order: '12' })
    assert.deepEqual((await request('PUT', configMaps('default', 'one'), configMap('one'))).data, { own: 'x', order: '12' })
  }))

test('ADM-02: a webhook with reinvocationPolicy IfNeeded is called again when a later one changes the object', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/again', ({ object }) => (object.data.late ? jsonPatch([{ op: 'add', path: '/data/seen', value: 'yes' }]) : allow()))
    hooks.on('/once', allow)
    hooks.on('/late', ({ object }) => (object.data.late ? allow() : jsonPatch([{ op: 'add', path: '/data/late', value: 'yes' }])))
    await configure(cluster, 'mutating', 'all', [
      webhook(hooks, '/again', { reinvocationPolicy: 'IfNeeded' }),
      webhook(hooks, '/once'),
      webhook(hooks, '/late'),
    ])
    assert.deepEqual((await request('POST', configMaps(), configMap('one'))).data, { own: 'x', late: 'yes', seen: 'yes' })
    assert.deepEqual([hooks.askedAt('/again').length, hooks.askedAt('/once').length, hooks.askedAt('/late').length], [2, 1, 1])
  }))

test('ADM-02: configurations are listed and deleted together, and their effect ends', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/mutate', adding('added'))
    hooks.on('/deny', deny)
    await configure(cluster, 'mutating', 'm', [webhook(hooks, '/mutate')])
    await configure(cluster, 'validating', 'v', [webhook(hooks, '/deny')])
    assert.equal((await request('GET', configurationPath('mutating'))).items.length, 1)
    assert.equal((await refused(request('POST', configMaps(), configMap('one')))).message, denied)
    await request('DELETE', configurationPath('validating'))
    assert.deepEqual((await request('POST', configMaps(), configMap('one'))).data, { own: 'x', added: 'yes' })
    await request('DELETE', configurationPath('mutating'))
    assert.deepEqual((await request('POST', configMaps(), configMap('two'))).data, { own: 'x' })
  }))

test('ADM-02: an updated or patched configuration counts at once', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/deny', deny)
    await configure(cluster, 'validating', 'deny', [webhook(hooks, '/deny')])
    const path = configurationPath('validating', 'deny')
    const found = structuredClone(await request('GET', path))
    found.webhooks[0].rules[0].operations = ['UPDATE']
    await request('PUT', path, found)
    await request('POST', configMaps(), configMap('one'))
    const patch = [{ op: 'replace', path: '/webhooks/0/rules/0/operations', value: ['CREATE'] }]
    await request('PATCH', path, patch, { contentType: 'application/json-patch+json' })
    assert.equal((await refused(request('POST', configMaps(), configMap('two')))).message, denied)
  }))

test('ADM-02: match conditions choose, and may ask who may do what', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/deny', deny)
    const tries: [expression: string, failurePolicy: string, wanted: RegExp | undefined][] = [
      ["object.metadata.name == 'other'", 'Fail', undefined],
      ["object.metadata.name == 'one'", 'Fail', /denied the request/],
      ["object.data.none == 'x'", 'Fail', /^configmaps "one" is forbidden: expression 'object.data.none == 'x'' resulted in error: no such key: none$/],
      ["object.data.none == 'x'", 'Ignore', undefined],
      ["authorizer.requestResource.check('anything').allowed()", 'Fail', /denied the request/],
      ["request.userInfo.username.startsWith('system:')", 'Fail', undefined],
    ]
    for (const [expression, failurePolicy, wanted] of tries) {
      await configure(cluster, 'validating', 'deny', [webhook(hooks, '/deny', { failurePolicy, matchConditions: [{ name: 'c', expression }] })])
      const made = request('POST', `${configMaps()}?dryRun=All`, configMap('one'))
      if (wanted) assert.match((await refused(made)).message, wanted)
      else await made
      await request('DELETE', configurationPath('validating', 'deny'))
    }
    const bad = webhook(hooks, '/deny', { matchConditions: [{ name: 'c', expression: '&' }] })
    assert.equal((await refused(configure(cluster, 'validating', 'bad', [bad]))).code, 422)
  }))

test('ADM-02: a dry run goes only past webhooks without side effects', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/some', allow)
    await configure(cluster, 'mutating', 'some', [webhook(hooks, '/some')])
    await request('POST', `${configMaps()}?dryRun=All`, configMap('one'))
    assert.equal(hooks.askedAt('/some')[0].dryRun, true)
  }))

test('ADM-02: no webhook sees configurations of webhooks', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/deny', deny)
    hooks.on('/mutate', () => jsonPatch([{ op: 'add', path: '/metadata/labels/touched', value: 'yes' }]))
    const rules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] }]
    const only = { rules, objectSelector: { matchLabels: { mine: 'yes' } } }
    await configure(cluster, 'validating', 'deny', [webhook(hooks, '/deny', only)])
    await configure(cluster, 'mutating', 'mutate', [webhook(hooks, '/mutate', only)])
    const body = { metadata: { name: 'free', labels: { mine: 'yes' } }, webhooks: [] }
    const made = await request('POST', configurationPath('validating'), body)
    assert.deepEqual(made.metadata.labels, { mine: 'yes' })
    await request('DELETE', configurationPath('validating', 'free'))
    assert.equal((await refused(request('POST', configMaps(), configMap('one', {}, { mine: 'yes' })))).message, denied)
  }))

test('ADM-02: warnings and the labels that select', () =>
  withCluster(async (cluster) => {
    const { hooks, request, api } = cluster
    hooks.on('/warn', () => ({ allowed: true, warnings: ['mind the gap'] }))
    await configure(cluster, 'validating', 'warn', [webhook(hooks, '/warn', { objectSelector: { matchLabels: { app: 'a' } } })])
    await request('POST', configMaps(), configMap('plain'))
    assert.equal(hooks.asked.length, 0)
    const { url, ca, token } = await api.listen()
    const headers = await postForHeaders({ url: `${url}${configMaps()}`, ca, token }, configMap('one', { own: '1' }, { app: 'a' }))
    assert.deepEqual(headers.warning, '299 - "mind the gap"')
    // Losing the label is an update of an object that had it.
    await request('PUT', configMaps('default', 'one'), configMap('one'))
    assert.equal(hooks.askedAt('/warn').length, 2)
  }))

const schema = { type: 'object', properties: { data: { type: 'object', additionalProperties: { type: 'string' } } } }
const widgets = `/apis/${group}/v1/namespaces/default/widgets`
const customRules = [{ operations: ['*'], apiGroups: [group], apiVersions: ['v1'], resources: ['widgets'] }]

async function makeWidgets({ api }: AdmissionCluster): Promise<void> {
  await establish(api.client, definition('widgets', 'Widget', [version('v1', schema), version('v2', schema, { storage: false })]))
}
const widget = (name: string, data: object, apiVersion = `${group}/v1`): KubeObject => ({ ...object('Widget', name, undefined, { data }, apiVersion) })

test('ADM-02: custom resources are refused and changed; what their schema does not know is pruned', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    await makeWidgets(cluster)
    hooks.on('/deny', ({ object }) => ({ allowed: object?.data?.bad === undefined }))
    hooks.on('/mutate', () =>
      jsonPatch([
        { op: 'add', path: '/data/added', value: 'yes' },
        { op: 'add', path: '/unknown', value: 'yes' },
      ]),
    )
    await configure(cluster, 'validating', 'deny', [webhook(hooks, '/deny', { rules: customRules })])
    await configure(cluster, 'mutating', 'mutate', [webhook(hooks, '/mutate', { rules: customRules })])
    const made = await request('POST', widgets, widget('one', { own: '1' }))
    assert.deepEqual([made.data, made.unknown], [{ own: '1', added: 'yes' }, undefined])
    assert.match((await refused(request('POST', widgets, widget('two', { bad: '1' })))).message, /denied the request/)
  }))

test('ADM-02: a request by another version is converted for a rule that names one, unless matchPolicy is Exact', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    await makeWidgets(cluster)
    hooks.on('/equal', ({ object }) => jsonPatch([{ op: 'add', path: '/data/seen', value: object.apiVersion }]))
    hooks.on('/exact', deny)
    const exact = webhook(hooks, '/exact', { rules: customRules, matchPolicy: 'Exact' })
    await configure(cluster, 'mutating', 'm', [webhook(hooks, '/equal', { rules: customRules }), exact])
    const made = await request('POST', widgets.replace('v1', 'v2'), widget('one', { own: '1' }, `${group}/v2`))
    assert.deepEqual([made.apiVersion, made.data], [`${group}/v2`, { own: '1', seen: `${group}/v1` }])
    const [asked] = hooks.askedAt('/equal')
    assert.deepEqual([asked.kind.version, asked.resource.version, asked.requestKind.version, asked.requestResource.version], ['v1', 'v1', 'v2', 'v2'])
  }))

test('ADM-03: the old object and the new one have the version that the rule names, for validating webhooks, too', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/look', allow)
    const rules = [{ operations: ['UPDATE'], apiGroups: ['autoscaling'], apiVersions: ['v1'], resources: ['horizontalpodautoscalers'] }]
    await configure(cluster, 'validating', 'look', [webhook(hooks, '/look', { rules })])
    const path = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers'
    const hpa = (maxReplicas: number) => ({
      metadata: { name: 'h' },
      spec: { maxReplicas, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' } },
    })
    await request('POST', path, hpa(2))
    await request('PUT', `${path}/h`, hpa(3))
    const [asked] = hooks.askedAt('/look')
    assert.deepEqual(
      [asked.object.apiVersion, asked.oldObject.apiVersion, asked.object.spec.maxReplicas, asked.oldObject.spec.maxReplicas],
      ['autoscaling/v1', 'autoscaling/v1', 3, 2],
    )
  }))

test('ADM-03: the creation of definitions can be refused', () =>
  withCluster(async (cluster) => {
    const { hooks, api } = cluster
    hooks.on('/deny', deny)
    const rules = [{ operations: ['CREATE'], apiGroups: ['apiextensions.k8s.io'], apiVersions: ['*'], resources: ['customresourcedefinitions'] }]
    await configure(cluster, 'validating', 'deny', [webhook(hooks, '/deny', { rules })])
    assert.equal((await refused(establish(api.client, definition('widgets', 'Widget', [version('v1', schema)])))).message, denied)
  }))

test('ADM-03: connecting to a pod can be refused', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/deny', deny)
    const rules = [{ operations: ['CONNECT'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods/attach'] }]
    await configure(cluster, 'validating', 'deny', [webhook(hooks, '/deny', { rules })])
    await request('POST', '/api/v1/namespaces/default/pods', { metadata: { name: 'p' }, spec: { nodeName: 'n', containers: [{ name: 'a', image: 'a' }] } })
    assert.equal((await refused(request('POST', '/api/v1/namespaces/default/pods/p/attach?stdin=true&container=a'))).message, denied)
    const [asked] = hooks.askedAt('/deny')
    assert.deepEqual(
      [asked.kind.kind, asked.subResource, asked.operation, asked.object],
      ['PodAttachOptions', 'attach', 'CONNECT', { kind: 'PodAttachOptions', apiVersion: 'v1', stdin: true, container: 'a' }],
    )
  }))

test('ADM-04: a sidecar is injected in namespaces that ask for it', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/inject', () => jsonPatch([{ op: 'add', path: '/spec/containers/-', value: { name: 'side', image: 'car' } }]))
    const rules = [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }]
    await configure(cluster, 'mutating', 'inject', [webhook(hooks, '/inject', { rules, namespaceSelector: { matchLabels: { inject: 'yes' } } })])
    await request('POST', '/api/v1/namespaces', { metadata: { name: 'mesh', labels: { inject: 'yes' } } })
    const pod = { metadata: { generateName: 'p-' }, spec: { containers: [{ name: 'a', image: 'a' }] } }
    const images = async (namespace: string) => {
      const { spec } = await request('POST', `/api/v1/namespaces/${namespace}/pods`, pod)
      return spec.containers.map(({ name, terminationMessagePath }: Record<string, string>) => `${name} ${terminationMessagePath}`)
    }
    // Injected containers are defaulted like all others.
    assert.deepEqual(await images('mesh'), ['a /dev/termination-log', 'side /dev/termination-log'])
    assert.deepEqual(await images('default'), ['a /dev/termination-log'])
  }))

test('ADM-02 API-16: a list that Go never omits is null in a review, and a patch may replace it', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    const rules = [{ apiGroups: ['rbac.authorization.k8s.io'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['clusterroles'] }]
    const made = { verbs: ['get'], apiGroups: [''], resources: ['pods'] }
    hooks.on('/fill', () => jsonPatch([{ op: 'replace', path: '/rules', value: [made] }]))
    hooks.on('/look', allow)
    await configure(cluster, 'validating', 'look', [webhook(hooks, '/look', { rules })])
    await request('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', { metadata: { name: 'empty' } })
    await configure(cluster, 'mutating', 'fill', [webhook(hooks, '/fill', { rules })])
    await request('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', { metadata: { name: 'filled' } })
    assert.deepEqual(
      hooks.askedAt('/look').map(({ object }) => (object as unknown as { rules: unknown }).rules),
      [null, [made]],
    )
    const [asked] = hooks.askedAt('/fill')
    assert.equal((asked.object as unknown as { rules: unknown }).rules, null)
  }))
