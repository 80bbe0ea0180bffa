/** Reads of the past (X5): kubectl through the read-only server, versions of an object, differences between revisions, who may read, and compacted history. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import https from 'node:https'
import os from 'node:os'
import path from 'node:path'
import test, { after, before } from 'node:test'
import { describeChanges } from '#api/debug/fieldChanges'
import type { RevisionHistory } from '#api/debug/revisions'
import { StatusError } from '#api/machinery/status'
import { createSecurity } from '#apiserver/security'
import { seededRandom } from '#base/random'
import type { CommandContext } from '#cli/command'
import type { CommandError } from '#cli/exitCodes'
import { connectionError, pointOf, withConnection } from '#cli/past/connection'
import { differences } from '#cli/past/differences'
import { kindNamed, listableKinds, nameOf, objectsAt } from '#cli/past/objects'
import { type PastServer, servePast } from '#cli/past/pastServer'
import { managerOf, versionsOf } from '#cli/past/versions'
import { clusterRoleBindings, clusterRoles, configMaps, namespaces, secrets } from '#client/builtIn'
import type { PluginRunner } from '#client/execCredential'
import { createHttpTransport, type HttpTransport } from '#client/httpTransport'
import type { ApiRequest } from '#client/transport'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { testCertificates } from '#testing/testCertificates'
import { type TestKubectl, testKubectl, withoutKubectl } from '../../support/kubectl.ts'
import { testServiceAccountKey } from '../controllers/cluster.ts'

let api: TestApiServer
let listener: TestListener
let transport: HttpTransport
let certificate: Awaited<ReturnType<typeof testCertificates>>
/** Maps a and b as they were before b was deleted and a changed. */
let then: number

before(async () => {
  api = await startTestApiServer({
    deps: ({ reader }) => {
      const { authorizers, postStartHooks } = createSecurity({ reader, clock: realClock, random: seededRandom(1), serviceAccountKey: testServiceAccountKey() })
      return { authorizers, postStartHooks }
    },
  })
  listener = await api.listen()
  const { url, ca, token } = listener
  transport = createHttpTransport({ server: url, tls: { ca }, bearerToken: token, clock: realClock })
  certificate = await testCertificates()
  const maps = api.client.of(configMaps)
  await api.client.of(namespaces).create({ metadata: { name: 'case' }, spec: {} })
  for (const name of ['a', 'b', 'c']) await maps.create({ metadata: { namespace: 'case', name }, data: { color: 'red' } })
  const secret = await api.client.of(secrets).create({ metadata: { namespace: 'case', name: 's' }, data: { p: 'b25l' } })
  then = Number(secret.metadata.resourceVersion)
  await maps.patch({ namespace: 'case', name: 'a' }, 'merge', { data: { color: 'blue' } })
  await api.client.of(secrets).patch({ namespace: 'case', name: 's' }, 'merge', { data: { p: 'dHdv' } })
  await maps.delete({ namespace: 'case', name: 'b' })
  await maps.create({ metadata: { namespace: 'case', name: 'd' } })
})

after(async () => {
  await transport.close()
  await api.close()
})

async function inThePast(revision: number, work: (kubectl: TestKubectl, server: PastServer) => Promise<void>): Promise<void> {
  const server = await servePast({ transport, revision, certificate })
  const kubectl = testKubectl({ url: server.url, ca: certificate.cert, token: server.token })
  try {
    await work(kubectl, server)
  } finally {
    kubectl.remove()
    await server.close()
  }
}

const only = { skip: withoutKubectl }
const names = 'get cm -n case -o name'

test('X5 kubectl lists, gets and describes the objects of a revision, in tables, as YAML and by pages', only, async () => {
  await inThePast(then, async ({ must }) => {
    assert.equal(await must(names), 'configmap/a\nconfigmap/b\nconfigmap/c\n')
    assert.equal(await must(`${names} --chunk-size=1`), 'configmap/a\nconfigmap/b\nconfigmap/c\n')
    assert.match(await must('get cm b -n case'), /^NAME +DATA +AGE\nb +1 +/)
    assert.equal(await must('get cm a -n case -o jsonpath={.kind}/{.data.color}'), 'ConfigMap/red')
    assert.match(await must('describe cm b -n case'), /color:\n----\nred/)
    assert.equal(await must('get ns case -o jsonpath={.metadata.name}'), 'case')
  })
  await inThePast(then + 3, async ({ must }) => assert.equal(await must(names), 'configmap/a\nconfigmap/c\n'))
})

test('X5 kubectl gets the errors of the past: not found, read-only, no watches, no logs', only, async () => {
  await inThePast(then, async ({ run }) => {
    for (const [args, want] of [
      ['get cm d -n case', /NotFound.*configmaps "d" not found/],
      ['delete cm a -n case', /MethodNotAllowed.*the past is read-only: DELETE/],
      ['create cm x -n case', /the past is read-only: POST/],
      ['label cm a -n case x=y', /MethodNotAllowed.*read-only: PATCH/],
      ['get cm -n case -w', /cannot be watched in the past/],
      ['get --raw /api/v1/namespaces/case/pods/p/log', /log of pods has no history/],
      ['get componentstatuses', /componentstatuses has no history/],
    ] as const) {
      const { code, stderr } = await run(args)
      assert.notEqual(code, 0, args)
      assert.match(stderr, want)
    }
  })
  assert.equal((await api.client.of(configMaps).get({ namespace: 'case', name: 'a' })).data?.color, 'blue')
})

test('X5 the rights of now decide: a user who may not list a kind may not read its past, secrets included', only, async () => {
  const { client } = api
  const rule = { apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }
  const apiGroup = 'rbac.authorization.k8s.io'
  await client.of(clusterRoles).create({ metadata: { name: 'reader' }, rules: [rule] })
  const roleRef = { apiGroup, kind: 'ClusterRole', name: 'reader' }
  const binding = await client.of(clusterRoleBindings).create({ metadata: { name: 'bob' }, roleRef, subjects: [{ kind: 'User', name: 'bob', apiGroup }] })
  const bound = Number(binding.metadata.resourceVersion)
  await inThePast(bound, async ({ run, must }) => {
    assert.match(await must(`${names} --as bob`), /configmap\/a/)
    assert.match((await run('get secrets -n case --as bob')).stderr, /Forbidden.*User "bob" cannot list resource "secrets"/)
    await client.of(clusterRoleBindings).delete({ name: 'bob' })
    assert.match((await run(`${names} --as bob`)).stderr, /Forbidden.*User "bob" cannot list resource "configmaps"/)
  })
})

test('X5 without the token of the server nothing is answered', async () => {
  await inThePast(then, async (_, { url }) => {
    const status = (headers: Record<string, string>) =>
      new Promise((resolve, reject) => {
        https.get(`${url}/api/v1/configmaps`, { ca: certificate.cert, headers }, (answer) => resolve(answer.resume().statusCode)).once('error', reject)
      })
    assert.deepEqual([await status({}), await status({ authorization: 'Bearer x' })], [401, 401])
  })
})

test('X5 the revisions of the server are for users with its path, and deny others', async () => {
  const { body } = await transport.request({ method: 'GET', path: '/skiff/revisions', query: { revisions: `${then},${then + 99_999}` } })
  const { revision, oldestTime = '', times = {} } = body as RevisionHistory
  assert.ok(revision > then && Date.parse(oldestTime) <= Date.now())
  assert.ok(Math.abs(Date.parse(times[then] ?? '') - Date.now()) < 60_000)
  assert.equal(times[then + 99_999], null)
  const now = await transport.request({ method: 'GET', path: '/skiff/revisions', query: { time: new Date().toISOString() } })
  assert.equal((now.body as RevisionHistory).at, (now.body as RevisionHistory).revision)
  const early = await transport.request({ method: 'GET', path: '/skiff/revisions', query: { time: '2001-01-01T00:00:00Z' } })
  assert.equal((early.body as RevisionHistory).at, undefined)
  for (const query of [{ time: 'noon' }, { revisions: 'x' }, { revisions: Array.from({ length: 501 }, () => '1').join(',') }] as Record<string, string>[]) {
    await assert.rejects(transport.request({ method: 'GET', path: '/skiff/revisions', query }), /expected|at most/)
  }
  const user = api.clientAs({ name: 'carol', groups: ['system:authenticated'] })
  await assert.rejects(user.transport.request({ method: 'GET', path: '/skiff/revisions' }), /forbidden: User "carol" cannot get path "\/skiff\/revisions"/)
})

/** A kubeconfig whose user gets the token from a program. */
async function withPlugin<T>(work: (context: CommandContext, flags: { readonly kubeconfig: string }) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'skiff-past-'))
  const kubeconfig = path.join(directory, 'kubeconfig')
  const { url, ca, token } = listener
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'credentials', interactiveMode: 'Never' }
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
      users: [{ name: 'u', user: { exec } }],
      contexts: [{ name: 'one', context: { cluster: 'c', user: 'u', namespace: 'case' } }],
      'current-context': 'one',
    }),
  )
  const answer = JSON.stringify({ apiVersion: exec.apiVersion, kind: 'ExecCredential', status: { token } })
  const plugins: PluginRunner = { interactive: false, run: async (command) => (command === 'credentials' ? answer : assert.fail(command)) }
  try {
    return await work({ clock: realClock, env: {}, home: directory, local: { plugins } } as unknown as CommandContext, { kubeconfig })
  } finally {
    rmSync(directory, { recursive: true })
  }
}

test('X5 a kubeconfig with a credential plugin is read as its user, and now is the newest revision, whatever the clock of the user says', async () => {
  const newest = await api.store.latestRevision()
  await withPlugin((context, flags) =>
    withConnection(context, flags, async (connection) => {
      assert.equal(connection.namespace, 'case')
      assert.equal((await pointOf(connection, 'now', Date.parse('2001-01-01T00:00:00Z'))).revision, newest)
      await assert.rejects(pointOf(connection, '-10h', Date.now()), /there is no history of -10h: the oldest is of 20\S+Z \(revision \d+\)/)
      await assert.rejects(pointOf(connection, String(newest + 1), Date.now()), /the newest revision is/)
    }),
  )
})

test('X5 a user without the path of the revisions reads at a revision, and the error for a time says so', async () => {
  const user = { ...transport, request: async (request: ApiRequest) => (request.path === '/skiff/revisions' ? forbidden() : transport.request(request)) }
  const connection = { transport: user, namespace: 'case', cluster: undefined }
  assert.deepEqual(await pointOf(connection, '5', Date.now()), { revision: 5, text: '5' })
  const error = connectionError(await pointOf(connection, '-1m', Date.now()).catch((refusal: unknown) => refusal), connection)
  assert.match((error as CommandError).hint ?? '', /name revisions: skiff at REVISION/)
})

function forbidden(): never {
  throw new StatusError('Forbidden', 'forbidden: User "carol" cannot get path "/skiff/revisions"')
}

async function versions(name: string, limit = 50) {
  const { revision: newest } = (await transport.request({ method: 'GET', path: '/skiff/revisions' })).body as RevisionHistory
  const kind = kindNamed(await listableKinds(transport), 'cm')
  return versionsOf(transport, { kind, namespace: 'case', name, oldest: 1, newest, limit })
}

test('LRN-02 the versions of an object are listed from the newest to its creation, deleted and created again', async () => {
  const maps = api.client.of(configMaps)
  const ref = { namespace: 'case', name: 'v' }
  await maps.create({ metadata: ref, data: { n: '1' } })
  await maps.patch(ref, 'merge', { data: { n: '2' } })
  await maps.delete(ref)
  await maps.create({ metadata: ref, data: { n: '3' } })
  await maps.delete(ref)
  const found = await versions('v')
  assert.deepEqual(
    found.versions.map(({ object, before }) => [object?.data, before?.data]),
    [
      [undefined, { n: '3' }],
      [{ n: '3' }, undefined],
      [undefined, { n: '2' }],
      [{ n: '2' }, { n: '1' }],
      [{ n: '1' }, undefined],
    ],
  )
  assert.equal(found.isCut, false)
  assert.match(managerOf(found.versions[3] as (typeof found.versions)[number]) ?? '', /^test \(Update\)$/)
  const some = await versions('v', 2)
  assert.deepEqual([some.versions.length, some.isCut], [2, true])
  assert.deepEqual((await versions('never')).versions, [])
})

test('X5 two revisions differ in the objects that were created, changed and deleted between them', async () => {
  const kinds = await listableKinds(transport)
  const lines: string[] = []
  for (const name of ['configmaps', 'secrets']) {
    const kind = kindNamed(kinds, name)
    for await (const one of differences(transport, kind, { from: then, to: then + 4, namespace: 'case', showSecrets: false })) {
      lines.push(`${one.type} ${nameOf(kind)} ${one.key}`, ...describeChanges(one.changes))
    }
  }
  assert.deepEqual(lines, [
    'changed configmaps case/a',
    '~ data.color: "red" -> "blue"',
    'deleted configmaps case/b',
    'created configmaps case/d',
    'changed secrets case/s',
    '~ data.p: *** (before) -> *** (after)',
  ])
})

test('X5 compacted history is refused in upstream words, and kubectl shows them', only, async () => {
  await api.store.compact(then + 1)
  const kind = kindNamed(await listableKinds(transport), 'cm')
  const expired = /The resourceVersion for the provided list is too old/
  await assert.rejects(objectsAt(transport, kind, then).next(), expired)
  await inThePast(then, async ({ run }, server) => {
    assert.match((await run(names)).stderr, expired)
    assert.equal(server.hasExpired, true)
  })
})
