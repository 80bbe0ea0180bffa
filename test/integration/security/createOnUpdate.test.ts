/**
 * An update or apply of a missing object creates it and needs the right to create (AUZ-01): each resource, each way to write, users with each
 * combination of verbs, over the wire; and the theft of a token that this check prevents.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { builtInResources, type ResourceFacts } from '#api/discovery/resources'
import { strategyFor } from '#api/kinds/index'
import { StatusError } from '#api/machinery/status'
import type { TestApiServer, TestListener } from '#testing/apiServer'
import { type HttpsAnswer, httpsCall } from '../../support/httpsCall.ts'
import { oneOfEachKind, type Sample } from '../../support/oneOfEachKind.ts'
import { openSsl } from '../../support/openssl.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

const group = 'rbac.authorization.k8s.io'
const rbac = `/apis/${group}/v1`
const ssl = openSsl()

/** User name, which is also the token → verbs on all resources. */
const people: Readonly<Record<string, readonly string[]>> = {
  patcher: ['get', 'patch', 'update', 'bind', 'escalate'],
  maker: ['get', 'patch', 'update', 'create', 'bind', 'escalate'],
  creator: ['create', 'bind', 'escalate'],
}
/** These users hold patch and update on all names, and create on one name. */
const namedPeople = { ofThisName: 'mine', ofAnotherName: 'theirs' } as const

let api: TestApiServer
let server: TestListener

const admin = (method: string, path: string, body?: unknown) => call('admin', method, path, body)

function call(who: string, method: string, path: string, body?: unknown, contentType = 'application/json'): Promise<HttpsAnswer> {
  return httpsCall(server, path, { method, body, headers: { authorization: `Bearer ${who}`, 'content-type': contentType } })
}

async function grant(who: string, rules: readonly object[]): Promise<void> {
  const subjects = [{ kind: 'User', apiGroup: group, name: who }]
  const answers = [
    await admin('POST', `${rbac}/clusterroles`, { metadata: { name: who }, rules }),
    await admin('POST', `${rbac}/clusterrolebindings`, { metadata: { name: who }, roleRef: { apiGroup: group, kind: 'ClusterRole', name: who }, subjects }),
  ]
  for (const { status, text } of answers) assert.equal(status, 201, text)
}

const everything = { apiGroups: ['*'], resources: ['*'] }

before(async () => {
  const names = ['admin', ...Object.keys(people), ...Object.keys(namedPeople), 'thief']
  const tokens = names.map((name) => `${name},${name},uid-${name}${name === 'admin' ? ',system:masters' : ''}\n`).join('')
  api = await startServerWithFlags([`--token-auth-file=${ssl.file('tokens.csv', tokens)}`])
  server = await api.listen()
  for (const [who, verbs] of Object.entries(people)) await grant(who, [{ ...everything, verbs }])
  for (const [who, name] of Object.entries(namedPeople)) {
    await grant(who, [
      { ...everything, verbs: ['get', 'patch', 'update'] },
      { ...everything, verbs: ['create'], resourceNames: [name] },
    ])
  }
  for (const name of ['default', 'robot']) await admin('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name } })
})
after(async () => {
  await api.close()
  ssl.remove()
})

const apiVersionOf = ({ group: of, version }: ResourceFacts) => (of === '' ? version : `${of}/${version}`)

function pathOf(facts: ResourceFacts, name: string): string {
  const root = facts.group === '' ? '/api/v1' : `/apis/${apiVersionOf(facts)}`
  return `${root}/${facts.namespaced ? 'namespaces/default/' : ''}${facts.resource}/${name}?dryRun=All&fieldManager=test&force=true`
}

/** `force` is apply's alone. */
const put = (path: string) => path.replace('&force=true', '')
const applyType = 'application/apply-patch+yaml'
const refused = (who: string, { resource, group: of }: ResourceFacts) => `User "${who}" cannot create resource "${resource}" in API group "${of}"`

const patchable = builtInResources().filter(({ verbs, storage }) => storage && verbs.includes('patch'))
const samples = new Map(oneOfEachKind.map((sample) => [`${sample.apiVersion}/${sample.kind}`, sample]))

describe('AUZ-01 writing a missing object needs create', () => {
  test('there is a sample of each kind', () => {
    const missing = patchable.filter((facts) => !samples.has(`${apiVersionOf(facts)}/${facts.kind}`)).map(({ resource }) => resource)
    assert.deepEqual(missing, [])
  })

  for (const facts of patchable) {
    const sample = samples.get(`${apiVersionOf(facts)}/${facts.kind}`) as Sample
    const createsOnUpdate = strategyFor(facts.group, facts.kind)?.allowCreateOnUpdate === true
    const where = `${apiVersionOf(facts)} ${facts.resource}`
    // The service account of the sample's name exists: a test below needs it.
    const name = facts.resource === 'serviceaccounts' ? 'android' : sample.metadata.name
    const body = { ...sample, metadata: { ...sample.metadata, name } }

    test(`AUZ-01 apply of ${where} creates only for a user who holds patch and create`, async () => {
      const apply = (who: string) => call(who, 'PATCH', pathOf(facts, name), body, applyType)
      const without = await apply('patcher')
      assert.equal(without.status, 403, without.text)
      assert.ok(without.json.message.includes(refused('patcher', facts)), without.text)
      assert.equal((await apply('creator')).status, 403)
      const within = await apply('maker')
      assert.equal(within.status, 201, within.text)
    })

    test(`AUZ-01 PUT of ${where} ${createsOnUpdate ? 'creates only for a user who holds update and create' : 'finds nothing'}`, async () => {
      const update = (who: string) => call(who, 'PUT', put(pathOf(facts, name)), body)
      const without = await update('patcher')
      assert.equal(without.status, createsOnUpdate ? 403 : 404, without.text)
      if (createsOnUpdate) assert.ok(without.json.message.includes(refused('patcher', facts)), without.text)
      assert.equal((await update('creator')).status, 403)
      const within = await update('maker')
      assert.equal(within.status, createsOnUpdate ? 201 : 404, within.text)
    })
  }
})

const maps = '/api/v1/namespaces/default/configmaps'
const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
const map = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })
const lease = (name: string) => ({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name } })

test('AUZ-01 a right to create one name does not create another', async () => {
  const apply = (who: string) => call(who, 'PATCH', `${maps}/mine?fieldManager=t`, map('mine'), applyType)
  const update = (who: string) => call(who, 'PUT', `${leases}/mine`, lease('mine'))
  assert.deepEqual([(await apply('ofAnotherName')).status, (await apply('ofThisName')).status], [403, 201])
  assert.deepEqual([(await update('ofAnotherName')).status, (await update('ofThisName')).status], [403, 201])
})

test('AUZ-01 a field selector gives a POST no name for authorization', async () => {
  const body = map('stranger')
  for (const query of ['', '?fieldSelector=metadata.name%3Dmine', '?watch=true&fieldSelector=metadata.name%3Dmine']) {
    assert.equal((await call('ofThisName', 'POST', `${maps}${query}`, body)).status, 403, query)
  }
})

test('AUZ-01 a user without create still changes existing objects, and gets 404 from patches that never create', async () => {
  await admin('POST', maps, map('there'))
  const changed = { ...map('there'), data: { a: 'b' } }
  assert.equal((await call('patcher', 'PATCH', `${maps}/there?fieldManager=t`, changed, applyType)).status, 200)
  assert.equal((await call('patcher', 'PATCH', `${maps}/missing`, { data: {} }, 'application/merge-patch+json')).status, 404)
  assert.equal((await call('patcher', 'PATCH', `${maps}/missing/status?fieldManager=t`, map('missing'), applyType)).status, 404)
  const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'missing' }, spec: { replicas: 1 } }
  const scalePath = '/apis/apps/v1/namespaces/default/deployments/missing/scale?fieldManager=t'
  assert.equal((await call('patcher', 'PATCH', scalePath, scale, applyType)).status, 404)
})

test('AUZ-01 an invalid object gets 422 before the missing right is reported, as upstream', async () => {
  const faulty = { ...map('faulty'), data: { 'not/a/key': '' } }
  assert.equal((await call('patcher', 'PATCH', `${maps}/faulty?fieldManager=t`, faulty, applyType)).status, 422)
})

test('AUZ-01 PUT with a uid of a missing object creates nothing', async () => {
  const meant = { ...lease('gone'), metadata: { name: 'gone', uid: '11111111-2222-3333-4444-555555555555' } }
  const answer = await call('maker', 'PUT', `${leases}/gone`, meant)
  assert.equal(answer.status, 409, answer.text)
  assert.match(answer.json.message, /Precondition failed: UID in precondition: 11111111-2222-3333-4444-555555555555, UID in object meta: $/)
})

test('AUZ-01 the in-process transport checks create in the same way', async () => {
  const as = (name: string) => api.server.transport({ name, groups: ['system:authenticated'] }, 'test')
  const status = async (work: Promise<{ readonly status: number }>) => {
    try {
      return (await work).status
    } catch (error) {
      if (error instanceof StatusError) return error.code
      throw error
    }
  }
  const apply = (who: string) =>
    as(who).request({ method: 'PATCH', path: `${maps}/inside`, query: { fieldManager: 't' }, body: map('inside'), contentType: applyType })
  const update = (who: string) => as(who).request({ method: 'PUT', path: `${leases}/inside`, body: lease('inside') })
  assert.deepEqual([await status(apply('patcher')), await status(apply('maker'))], [403, 201])
  assert.deepEqual([await status(update('patcher')), await status(update('maker'))], [403, 201])
})

test('AUZ-01 apply of a custom resource is refused without the right to create', async () => {
  const definition = {
    metadata: { name: 'things.stolen.example' },
    spec: {
      group: 'stolen.example',
      scope: 'Namespaced',
      names: { plural: 'things', kind: 'Thing' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  }
  await admin('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
  const things = '/apis/stolen.example/v1/namespaces/default/things'
  const untilMs = Date.now() + 20_000
  while ((await admin('GET', things)).status !== 200 && Date.now() < untilMs);
  const thing = { apiVersion: 'stolen.example/v1', kind: 'Thing', metadata: { name: 'one' } }
  const apply = (who: string) => call(who, 'PATCH', `${things}/one?fieldManager=t`, thing, applyType)
  assert.deepEqual([(await apply('patcher')).status, (await apply('maker')).status], [403, 201])
})

test("AUZ-01 applying a token Secret for another account is refused, so its token stays the account's", async () => {
  // The thief may manage one Secret by its name; the Secret does not exist yet.
  await grant('thief', [{ apiGroups: [''], resources: ['secrets'], resourceNames: ['certificate'], verbs: ['get', 'patch', 'update'] }])
  const secrets = '/api/v1/namespaces/default/secrets'
  const stolen = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'certificate', annotations: { 'kubernetes.io/service-account.name': 'robot' } },
    type: 'kubernetes.io/service-account-token',
  }
  assert.equal((await call('thief', 'POST', secrets, stolen)).status, 403)
  const applied = await call('thief', 'PATCH', `${secrets}/certificate?fieldManager=t`, stolen, applyType)
  assert.equal(applied.status, 403, applied.text)
  assert.equal(
    applied.json.message,
    'secrets "certificate" is forbidden: User "thief" cannot create resource "secrets" in API group "" in the namespace "default"',
  )
  assert.equal((await admin('GET', `${secrets}/certificate`)).status, 404)
})
