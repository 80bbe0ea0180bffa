/**
 * Names that every JavaScript object answers to without having them, as keys of whatever a client may name: headers, parameters, paths, fields, map
 * keys, rules. Each is treated as any other name, no answer is above 499, and the objects of the process stay as they were.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { definition, establish, version } from '../../integration/crd/support.ts'
import { startTokenServer, type TokenServer } from './tokenServer.ts'

const keys = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'] as const
/** Label keys and resource names start and end with a letter or digit. */
const words = keys.filter((key) => key !== '__proto__')
const namespaced = '/api/v1/namespaces/default'
const configMaps = `${namespaced}/configmaps`
const pods = `${namespaced}/pods`

let server: TokenServer
const members = Object.getOwnPropertyNames(Object.prototype)

before(async () => {
  server = await startTokenServer({}, ['--enable-admission-plugins=ResourceQuota,LimitRanger,PodNodeSelector,PodTolerationRestriction,ServiceAccount'])
})
after(async () => {
  await server.close()
  assert.deepEqual(Object.getOwnPropertyNames(Object.prototype), members)
})

const send = (method: string, target: string, body?: unknown, headers?: Record<string, string>) => server.send('admin', method, target, body, headers)
const json = (method: string, target: string, body?: unknown, headers?: Record<string, string>) => server.json('admin', method, target, body, headers)
const statusOf = (method: string, target: string, body?: unknown, headers?: Record<string, string>) => server.statusOf('admin', method, target, body, headers)

/** Every key with this value, as JSON. */
const all = (value: string, of: readonly string[] = keys) => `{${of.map((key) => `"${key}":${value}`).join()}}`
const encoded = (key: string) => Array.from(key, (letter) => (/[a-z]/.test(letter) ? letter : `%${letter.charCodeAt(0).toString(16)}`)).join('')
const spec = (more: string) => `{"containers":[{"name":"a","image":"b"}],${more}}`
const pod = (name: string, podSpec: string, metadata = '') => `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"${name}"${metadata}},"spec":${podSpec}}`

test('AUN-07 every key of an impersonated user arrives as sent', async () => {
  for (const key of keys) {
    const headers = { 'impersonate-user': 'alice', [`impersonate-extra-${encoded(key)}`]: 'a', 'content-type': 'application/json' }
    const review = await json('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', '{}', headers)
    assert.equal(JSON.stringify(review.status.userInfo.extra), `{"${key}":["a"]}`)
  }
})

test('API-02 inherited names as headers and parameters have no effect', async () => {
  for (const key of keys) {
    assert.equal(await statusOf('GET', `${configMaps}?${key}=a&${key}=b`, undefined, { [key]: 'a' }), 200)
    assert.equal(await statusOf('GET', `${configMaps}?fieldSelector=${key}=a`), 400)
    assert.equal(await statusOf('POST', `${configMaps}?dryRun=${key}`, '{"metadata":{"name":"a"}}'), 422)
    assert.equal(await statusOf('POST', `${configMaps}?fieldValidation=${key}`, '{"metadata":{"name":"a"}}'), 422)
    await statusOf('GET', configMaps, undefined, { accept: `application/json;as=${key};g=${key};v=${key}` })
    await statusOf('POST', configMaps, '{"metadata":{"name":"a"}}', { 'content-type': `application/${key}` })
    await statusOf('PATCH', `${configMaps}/a`, '{}', { 'content-type': `application/${key}` })
  }
})

test('API-01 every key in a path is not found', async () => {
  const places = ['/KEY', '/apis/KEY', '/apis/KEY/v1', '/apis/apps/KEY', '/api/KEY', '/api/v1/KEY', `${namespaced}/KEY`, `${pods}/KEY`, `${pods}/a/KEY`]
  const more = ['/openapi/v3/apis/KEY/v1', '/openapi/v3/KEY', '/metrics/KEY', '/healthz/KEY', '/readyz/KEY', '/debug/pprof/KEY', '/apis/apps/v1/KEY/a/scale']
  for (const key of keys) {
    for (const place of [...places, ...more]) assert.equal(await statusOf('GET', place.replace('KEY', key)), 404, `${place} ${key}`)
    assert.equal(await statusOf('GET', `/readyz?exclude=${key}`), 200)
  }
})

test('API-11 every key of a map is kept by each way of writing it', async () => {
  const path = `${configMaps}/written`
  const data = async (method: string, body: string, type = 'application/json', query = '') =>
    JSON.stringify((await json(method, `${method === 'POST' ? configMaps : path}${query}`, body, { 'content-type': type })).data)
  const whole = (map: string) => `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"written"},"data":${map}}`
  assert.equal(await data('POST', whole('{"z":"z"}')), '{"z":"z"}')
  for (const key of keys) {
    const two = `{"z":"z","${key}":"a"}`
    assert.equal(await data('PUT', whole(two)), two, 'a key that comes')
    assert.equal(JSON.stringify((await json('GET', path)).data), two, 'is stored')
    assert.equal(await data('PUT', whole('{"z":"z"}')), '{"z":"z"}', 'and goes')
    for (const type of ['application/merge-patch+json', 'application/strategic-merge-patch+json']) {
      assert.equal(await data('PATCH', `{"data":{"${key}":"a"}}`, type), two)
      assert.equal(await data('PATCH', `{"data":{"${key}":null}}`, type), '{"z":"z"}')
    }
    const patch = (operation: string) => data('PATCH', `[${operation}]`, 'application/json-patch+json')
    assert.equal(await patch(`{"op":"add","path":"/data/${key}","value":"a"}`), two)
    assert.equal(await patch(`{"op":"remove","path":"/data/${key}"}`), '{"z":"z"}')
    const apply = (map: string) => data('PATCH', whole(map), 'application/apply-patch+yaml', '?fieldManager=b&force=true')
    assert.equal(await apply(`{"${key}":"a"}`), two)
    const other = await send('PATCH', `${path}?fieldManager=c`, whole(`{"${key}":"b"}`), { 'content-type': 'application/apply-patch+yaml' })
    assert.equal(other.status, 409, 'another manager owns it')
    const entry = (await json('GET', path)).metadata.managedFields.find(({ manager }: { manager: string }) => manager === 'b')
    assert.equal(JSON.stringify(entry.fieldsV1), `{"f:data":{"f:${key}":{}}}`)
    assert.equal(await apply('{}'), '{"z":"z"}')
    const yaml = await data('PUT', `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: written}\ndata: {z: z, ${key}: a}`, 'application/yaml')
    assert.equal(yaml, two)
  }
})

test('API-05 every key survives protobuf', async () => {
  await json('POST', configMaps, `{"metadata":{"name":"encoded"},"data":${all('"a"')}}`)
  const type = 'application/vnd.kubernetes.protobuf'
  const { body } = await send('GET', `${configMaps}/encoded`, undefined, { accept: type })
  await json('DELETE', `${configMaps}/encoded`)
  const created = await send('POST', configMaps, withoutVersion(body), { 'content-type': type })
  assert.ok(created.status < 300, created.body.toString())
  const { data } = await json('GET', `${configMaps}/encoded`)
  assert.deepEqual(Object.keys(data).sort(), [...keys].sort())
})

/** A resource version may not be given on create: its field gets a number that is unknown and skipped. */
function withoutVersion(body: Buffer): Buffer {
  const copy = Buffer.from(body)
  const uid = /\*\$[0-9a-f-]{36}2/.exec(copy.toString('latin1'))
  assert.ok(uid)
  copy[uid.index + uid[0].length - 1] = 0x7a
  return copy
}

test('API-08 labels and selectors of every word', async () => {
  await json('POST', configMaps, `{"metadata":{"name":"labelled","labels":${all('"a"', words)},"annotations":${all('"a"', words)}}}`)
  const found = async (selector: string) => {
    const list = await json('GET', `${configMaps}?labelSelector=${encodeURIComponent(selector)}`)
    return list.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)
  }
  for (const word of words) {
    for (const selector of [word, `${word}=a`, `${word} in (a)`]) assert.deepEqual(await found(selector), ['labelled'])
    for (const selector of [`!${word}`, `${word}!=a`, `${word} notin (a)`]) assert.ok(!(await found(selector)).includes('labelled'))
    assert.ok((await found(`!${word}`)).includes('kube-root-ca.crt') || (await found(`!${word}`)).length > 0)
  }
})

test('API-04 every key where one of a few words belongs is refused', async () => {
  const template = (name: string, more: string) => pod(name, spec(more))
  const quota = (more: string) => `{"metadata":{"name":"q"},"spec":{${more}}}`
  const claim = (mode: string) => `{"metadata":{"name":"c"},"spec":{"accessModes":["${mode}"],"resources":{"requests":{"storage":"1"}}}}`
  const deployment = (operator: string) =>
    `{"metadata":{"name":"d"},"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"${operator}"}]},"template":{"metadata":{"labels":{"a":"b"}},"spec":${spec('"restartPolicy":"Always"')}}}}`
  const cronJob = (schedule: string) =>
    `{"metadata":{"name":"j"},"spec":{"schedule":"${schedule}","jobTemplate":{"spec":{"template":{"spec":${spec('"restartPolicy":"Never"')}}}}}}`
  const request = (usage: string) => `{"metadata":{"name":"r"},"spec":{"request":"YQ==","signerName":"a.b/c","usages":["${usage}"]}}`
  for (const key of keys) {
    const cases: readonly (readonly [string, string])[] = [
      [pods, pod('a', `{"containers":[{"name":"a","image":"b","resources":{"requests":{"${key}":"1"},"limits":{"cpu":"1"}}}]}`)],
      [pods, pod('a', `{"containers":[{"name":"a","image":"b","resources":{"limits":{"${key}":"1"}}}]}`)],
      [pods, template('a', `"resources":{"requests":{"${key}":"1"}}`)],
      [pods, template('a', `"overhead":{"${key}":"1"}`)],
      [pods, template('a', `"restartPolicy":"${key}"`)],
      [pods, template('a', `"volumes":[{"name":"v","hostPath":{"path":"/a","type":"${key}"}}]`)],
      [pods, template('a', `"tolerations":[{"key":"a","operator":"${key}"}]`)],
      [pods, template('a', `"securityContext":{"seccompProfile":{"type":"${key}"}}`)],
      [`${namespaced}/resourcequotas`, quota(`"hard":{"${key}":"1"}`)],
      [`${namespaced}/resourcequotas`, quota(`"hard":{"pods":"1"},"scopes":["${key}"]`)],
      [`${namespaced}/resourcequotas`, quota(`"hard":{"pods":"1"},"scopeSelector":{"matchExpressions":[{"scopeName":"${key}","operator":"Exists"}]}`)],
      [`${namespaced}/limitranges`, `{"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","default":{"${key}":"1"}}]}}`],
      [`${namespaced}/persistentvolumeclaims`, claim(key)],
      ['/apis/apps/v1/namespaces/default/deployments', deployment(key)],
      ['/apis/batch/v1/namespaces/default/cronjobs', cronJob(`@${key}`)],
      ['/apis/batch/v1/namespaces/default/cronjobs', cronJob(`* * * ${key} *`)],
      ['/apis/certificates.k8s.io/v1/certificatesigningrequests', request(key)],
    ]
    for (const [path, body] of cases) {
      const status = await statusOf('POST', path, body)
      assert.ok([400, 403, 422].includes(status), `${status} ${path} ${body}`)
    }
  }
})

test('ADM-04 limit ranges and quotas of extended resources count only what is asked for', async () => {
  await json('POST', '/api/v1/namespaces', '{"metadata":{"name":"counted"}}')
  await json('POST', '/api/v1/namespaces/counted/serviceaccounts', '{"metadata":{"name":"default"}}')
  const limits = '{"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","max":{"cpu":"1"},"default":{"cpu":"1"}}]}}'
  await json('POST', '/api/v1/namespaces/counted/limitranges', limits)
  await json('POST', '/api/v1/namespaces/counted/resourcequotas', '{"metadata":{"name":"q"},"spec":{"hard":{"requests.cpu":"10"}}}')
  for (const key of keys) {
    const body = pod('a', `{"containers":[{"name":"a","image":"b","resources":{"requests":{"${key}":"1","cpu":"1"}}}]}`)
    assert.ok([403, 422].includes(await statusOf('POST', '/api/v1/namespaces/counted/pods', body)))
  }
})

test('AUZ-01 rules, reviews and names of every word', async () => {
  const rbac = '/apis/rbac.authorization.k8s.io/v1/clusterroles'
  for (const [index, key] of keys.entries()) {
    const rules = `[{"verbs":["${key}"],"apiGroups":["${key}"],"resources":["${key}"],"resourceNames":["${key}"]}]`
    await json('POST', rbac, `{"metadata":{"name":"r${index}"},"rules":${rules}}`)
    const about = `{"verb":"${key}","group":"${key}","resource":"${key}","subresource":"${key}","namespace":"${key}","name":"${key}"}`
    const review = `{"spec":{"user":"${key}","groups":["${key}"],"extra":{"${key}":["a"]},"resourceAttributes":${about}}}`
    const answer = await json('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', review)
    assert.equal(answer.status.allowed, false)
    assert.equal(JSON.stringify(answer.spec.extra), `{"${key}":["a"]}`)
    await statusOf('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', `{"spec":{"namespace":"${key}"}}`)
    await statusOf('POST', '/apis/authentication.k8s.io/v1/tokenreviews', `{"spec":{"token":"${key}","audiences":["${key}"]}}`)
  }
  await json('POST', '/api/v1/namespaces', '{"metadata":{"name":"constructor"}}')
  await json('POST', '/api/v1/namespaces/constructor/serviceaccounts', '{"metadata":{"name":"default"}}')
  await json('POST', '/api/v1/namespaces/constructor/pods', pod('constructor', '{"containers":[{"name":"constructor","image":"constructor"}]}'))
  await json('POST', '/apis/scheduling.k8s.io/v1/priorityclasses', '{"metadata":{"name":"constructor"},"value":1}')
})

test('CRD-01 fields of every name are pruned, defaulted, validated and selected as any other', async () => {
  const text = { type: 'string', default: 'd' } as const
  const properties = Object.fromEntries(words.map((word) => [word, text]))
  const rules = words.map((word) => ({ rule: `has(self.${word}) && self.${word} != 'bad'`, message: word }))
  const item = { type: 'object', properties: { constructor: { type: 'string' }, v: { type: 'string' } }, required: ['constructor'] } as never
  const list = { type: 'array', items: item, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['constructor'] }
  const fields = { type: 'object', properties, 'x-kubernetes-validations': rules }
  const schema = { type: 'object', properties: { spec: fields, list, free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } } }
  const more = {
    additionalPrinterColumns: words.map((word) => ({ name: word, type: 'string', jsonPath: `.spec.${word}` })),
    selectableFields: words.map((word) => ({ jsonPath: `.spec.${word}` })),
  }
  await establish(server.api.client, definition('names', 'Name', [version('v1', schema as never, more)]))
  const path = '/apis/example.com/v1/namespaces/default/names'
  const body = (name: string, rest: string) => `{"apiVersion":"example.com/v1","kind":"Name","metadata":{"name":"${name}"},${rest}}`
  const made = await json('POST', path, body('a', `"spec":{"__proto__":"x","isPrototypeOf":"x"},"__proto__":{"x":1},"free":${all('1')}`))
  assert.equal(JSON.stringify(made.free), all('1'))
  assert.deepEqual(made.spec, Object.fromEntries(words.map((word) => [word, 'd'])))
  assert.equal(await statusOf('POST', path, body('b', '"spec":{"constructor":"bad"}')), 422)
  assert.equal(await statusOf('POST', path, body('c', '"spec":{},"list":[{"v":"a"},{"v":"b"}]')), 422)
  for (const word of words) assert.equal((await json('GET', `${path}?fieldSelector=spec.${word}=d`)).items.length, 1)
  const table = await json('GET', path, undefined, { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' })
  assert.deepEqual(
    table.rows[0].cells.slice(1),
    words.map(() => 'd'),
  )
  const changed = await json('PUT', `${path}/a`, JSON.stringify({ ...made, free: { z: 1 }, constructor: undefined }))
  assert.equal(JSON.stringify(changed.free), '{"z":1}')
  const again = await json('PATCH', `${path}/a`, '{"free":{"constructor":1}}', { 'content-type': 'application/merge-patch+json' })
  assert.equal(JSON.stringify(again.free), '{"z":1,"constructor":1}')
  assert.equal(again.metadata.generation, 3)
})

test('CRD-05 the path of a scale subresource leads to fields of the object only', async () => {
  for (const [index, key] of keys.entries()) {
    const free = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const
    const subresources = { scale: { specReplicasPath: `.spec.${key}.polluted`, statusReplicasPath: `.status.${key}.polluted` } }
    const plural = `scaled${index}s`
    const schema = { type: 'object', properties: { spec: free, status: free } }
    const created = await send(
      'POST',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      JSON.stringify(definition(plural, `Scaled${index}`, [version('v1', schema as never, { subresources })])),
    )
    if (created.status !== 201) {
      assert.equal(created.status, 422)
      continue
    }
    const path = `/apis/example.com/v1/namespaces/default/${plural}`
    await established(path)
    await json('POST', path, `{"apiVersion":"example.com/v1","kind":"Scaled${index}","metadata":{"name":"a"},"spec":{}}`)
    await statusOf('PUT', `${path}/a/scale`, `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"},"spec":{"replicas":7}}`)
    await statusOf('PATCH', `${path}/a/scale`, '{"spec":{"replicas":8}}', { 'content-type': 'application/merge-patch+json' })
    assert.equal('polluted' in {}, false, key)
    assert.equal(Object.hasOwn(Object, 'polluted') || Object.hasOwn(Object.prototype.toString, 'polluted'), false, key)
    assert.equal((await json('GET', `${path}/a`)).spec[key]?.polluted, 8, key)
  }
})

async function established(path: string): Promise<void> {
  const end = Date.now() + 10_000
  while ((await send('GET', path)).status !== 200) assert.ok(Date.now() < end, `${path} is not served`)
}

test('ADM-07 policies read, name and annotate every key', async () => {
  const policies = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies'
  const bindings = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings'
  const variables = words.map((word) => `{"name":"${word}","expression":"object.data['${word}']"}`)
  const validations = words.map((word) => `{"expression":"!has(object.data) || variables.${word} == 'a'"}`)
  const notes = words.map((word) => `{"key":"${word}","valueExpression":"'a'"}`)
  const matchConstraints = '{"resourceRules":[{"apiGroups":[""],"apiVersions":["*"],"operations":["CREATE"],"resources":["configmaps"]}]}'
  const made = `{"metadata":{"name":"words"},"spec":{"failurePolicy":"Fail","matchConstraints":${matchConstraints},"variables":[${variables}],"validations":[${validations}],"auditAnnotations":[${notes}]}}`
  await json('POST', policies, made)
  await json('POST', bindings, '{"metadata":{"name":"words"},"spec":{"policyName":"words","validationActions":["Deny","Audit"]}}')
  assert.equal(await statusOf('POST', configMaps, `{"metadata":{"name":"policed"},"data":${all('"a"')}}`), 201)
  const end = Date.now() + 10_000
  for (const word of words) {
    const data = all('"a"').replace(`"${word}":"a"`, `"${word}":"b"`)
    while ((await statusOf('POST', `${configMaps}?dryRun=All`, `{"metadata":{"name":"refused"},"data":${data}}`)) !== 422) assert.ok(Date.now() < end, word)
  }
  // A key that is not there is an error of the expression, not a member that every object has.
  assert.equal(await statusOf('POST', `${configMaps}?dryRun=All`, '{"metadata":{"name":"refused"},"data":{"z":"z"}}'), 422)
  await json('DELETE', `${bindings}/words`)
})

test('KUB-19 secrets of every key', async () => {
  const made = await json('POST', `${namespaced}/secrets`, `{"metadata":{"name":"s"},"stringData":${all('"a"')}}`)
  assert.equal(JSON.stringify(made.data), all('"YQ=="'))
})
