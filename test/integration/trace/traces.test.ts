import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ExplainedRequest, TraceList } from '#api/debug/traces'
import { configMaps, namespaces, roleBindings, roles, secrets, serviceAccounts } from '#client/builtIn'
import { createHttpTransport } from '#client/httpTransport'
import { startTestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { TraceBook } from '#trace/traceBook'
import { bob, lastOf, refusedWith, startExplained } from './support.ts'

const read = async (
  transport: { request(request: { method: 'GET'; path: string; query?: Record<string, string> }): Promise<{ body: unknown }> },
  path: string,
  query = {},
) => (await transport.request({ method: 'GET', path: `/skiff/traces${path}`, query })).body

test('LRN-03 a request with the header is recorded with what each stage decided, by which rule, in order', async (t) => {
  const api = await startTestApiServer({})
  t.after(() => api.close())
  const { url, ca, token } = await api.listen()
  const transport = createHttpTransport({ server: url, tls: { ca }, bearerToken: token, clock: realClock })
  t.after(() => transport.close())
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { k: 'v' } }
  const call = { method: 'POST', target: '/api/v1/namespaces/default/configmaps', body: Buffer.from(JSON.stringify(body)) } as const
  const answer = await transport.forward({ ...call, headers: { 'content-type': 'application/json', 'skiff-explain': 'true' } })
  assert.equal(answer.status, 201)
  const found = (await read(transport, `/${answer.headers['audit-id']}`)) as ExplainedRequest
  const { stages, ...rest } = found
  assert.deepEqual(
    stages.map(({ stage, decision }) => `${stage}: ${decision}`),
    [
      'requestInfo: create configmaps',
      'authentication: test-admin',
      'priorityAndFairness: executing',
      'authorization: allow',
      'decoding: no field was defaulted',
      'mutatingAdmission: passed',
      'validation: valid',
      'validatingAdmission: passed',
      `storage: revision ${rest.revision}`,
      `watchFanOut: passed to ${rest.watchers} watches`,
      'handler: 201',
    ],
  )
  assert.equal(stages[2]?.rule, 'FlowSchema exempt')
  assert.equal(stages[3]?.rule, 'group system:masters')
  assert.ok(stages.every(({ atMs }, at) => at === 0 || atMs >= (stages[at - 1]?.atMs ?? 0)))
  assert.deepEqual(rest.object, { group: '', resource: 'configmaps', namespace: 'default', name: 'a' })
  assert.equal(rest.code, 201)
})

test('X7 without the header, a rule or sampling nothing but refusals is kept', async (t) => {
  const api = await startExplained(t)
  await api.client.of(configMaps).create({ metadata: { namespace: 'default', name: 'a' } })
  await refusedWith(409, api.client.of(configMaps).create({ metadata: { namespace: 'default', name: 'a' } }))
  const { requests } = (await read(api.client.transport, '', { limit: '10' })) as TraceList
  assert.deepEqual(
    requests.map(({ verb, code, stages }) => [verb, code, stages.length]),
    [['create', 409, 0]],
  )
})

test('X7 a user reads their own refusals, and those of others only with a role for the path', async (t) => {
  const api = await startExplained(t)
  const asBob = api.clientAs(bob)
  await refusedWith(403, asBob.of(secrets).list({ namespace: 'default' }))
  const refused = await lastOf(asBob.transport)
  assert.deepEqual([refused.user, refused.code, refused.refusedBy], ['bob', 403, 'authorization'])
  const eve = api.clientAs({ name: 'eve', groups: ['system:authenticated'] })
  await refusedWith(404, read(eve.transport, `/${refused.id}`))
  assert.deepEqual(((await read(eve.transport, '', { user: 'bob' })) as TraceList).requests, [])
  assert.equal(((await read(api.client.transport, `/${refused.id}`)) as ExplainedRequest).user, 'bob')
  const nobody = api.clientAs({ name: 'system:anonymous', groups: ['system:unauthenticated'] })
  await refusedWith(403, read(nobody.transport, `/${refused.id}`))
})

test('X7 rules record a user or an object until they end; those about others need a role', async (t) => {
  const api = await startExplained(t)
  const post = (client: typeof api.client, body: unknown) => client.transport.request({ method: 'POST', path: '/skiff/traces/rules', body })
  await refusedWith(403, post(api.clientAs(bob), { object: 'configmaps/default/a' }))
  await refusedWith(403, post(api.clientAs(bob), { user: 'eve' }))
  for (const body of [{}, { user: 'a', object: 'pods/a/b' }, { user: 7 }, { object: 'x' }, { user: 'a', seconds: 1e9 }, { user: 'a', seconds: 'x' }, [], 'x'])
    await refusedWith(400, post(api.client, body))
  await post(api.clientAs(bob), { user: 'bob' })
  await api.clientAs(bob).transport.request({ method: 'GET', path: '/version' })
  assert.equal((await lastOf(api.clientAs(bob).transport)).uri, '/version')
  await post(api.client, { object: 'configmaps/default/a' })
  await api.client.of(configMaps).create({ metadata: { namespace: 'default', name: 'a' } })
  await api.client.of(configMaps).get({ namespace: 'default', name: 'a' })
  await api.client.of(configMaps).patch({ namespace: 'default', name: 'a' }, 'merge', { data: { a: 'b' } })
  const { requests } = (await read(api.client.transport, '', { object: 'configmaps/default/a' })) as TraceList
  assert.deepEqual(
    requests.map(({ verb }) => verb),
    ['patch', 'get', 'create'],
  )
  const changes = (await read(api.client.transport, '', { object: 'configmaps/default/a', changes: '1' })) as TraceList
  assert.deepEqual(
    changes.requests.map(({ verb }) => verb),
    ['patch', 'create'],
  )
})

test('X9 a rule for a sample records requests of all users, for readers with a role for the path', async (t) => {
  const api = await startExplained(t)
  const post = (client: typeof api.client, body: unknown) => client.transport.request({ method: 'POST', path: '/skiff/traces/rules', body })
  await refusedWith(403, post(api.clientAs(bob), { perSecond: 5 }))
  for (const body of [{ perSecond: 0 }, { perSecond: 51 }, { perSecond: 'x' }, { perSecond: 5, user: 'bob' }]) await refusedWith(400, post(api.client, body))
  await refusedWith(400, read(api.client.transport, '', { since: 'x' }))
  const { nowMs } = (await read(api.client.transport, '', { since: '0' })) as TraceList
  await post(api.client, { perSecond: 50 })
  await api.clientAs(bob).transport.request({ method: 'GET', path: '/version' })
  await api.client.of(configMaps).create({ metadata: { namespace: 'default', name: 'a' } })
  const all = (await read(api.client.transport, '', { since: String(nowMs) })) as TraceList
  // The refusals above may be noted only after their answers.
  const answered = all.requests.filter(({ code }) => code < 400)
  assert.deepEqual(new Set(answered.map(({ user, verb }) => `${user} ${verb}`)), new Set(['test-admin create', 'bob get']))
  assert.deepEqual(all.sampled, { seen: 2, kept: 2 })
  const own = (await read(api.clientAs(bob).transport, '', { since: '0' })) as TraceList
  assert.deepEqual([own.requests.map(({ uri }) => uri), own.events, own.sampled], [['/version', '/skiff/traces/rules'], [], undefined])
  assert.deepEqual(((await read(api.client.transport, '', { since: String(all.nowMs) })) as TraceList).requests, [])
})

test('X7 each mutating plugin is shown with what it changed, and never a value of a Secret', async (t) => {
  const book = new TraceBook(realClock)
  const stamping = {
    name: 'Stamping',
    handles: () => true,
    admit: ({ object }: { object?: object | undefined }) => {
      const secret = object as { data?: Record<string, string>; metadata: { labels?: Record<string, string> } }
      secret.metadata.labels = { stamped: 'yes' }
      if (secret.data) secret.data.added = Buffer.from('hidden-by-plugin').toString('base64')
    },
  }
  const api = await startTestApiServer({ deps: () => ({ admission: [stamping], trace: book }) })
  t.after(() => api.close())
  book.addRule({ user: 'test-admin', seconds: 60 })
  await api.client.of(secrets).create({ metadata: { namespace: 'default', name: 's' }, data: { given: Buffer.from('hidden-by-user').toString('base64') } })
  const last = await lastOf(api.client.transport)
  const plugins = last.stages.find(({ stage }) => stage === 'mutatingAdmission')?.plugins
  assert.deepEqual(plugins?.[0]?.changes, ['+ metadata.labels: {"stamped":"yes"}', '+ data.added: ***'])
  assert.doesNotMatch(JSON.stringify(last), /hidden|aGlkZGVu/)
})

test('LRN-08 a refusal names the missing verb, the nearest binding and what would allow it', async (t) => {
  const api = await startExplained(t)
  await api.client.of(namespaces).create({ metadata: { name: 'a' }, spec: {} })
  await api.client.of(roles).create({ metadata: { namespace: 'a', name: 'reader' }, rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] }] })
  await api.client.of(roleBindings).create({
    metadata: { namespace: 'a', name: 'dev' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'bob' }],
  })
  const asBob = api.clientAs(bob)
  await refusedWith(403, asBob.transport.request({ method: 'POST', path: '/api/v1/namespaces/a/pods', body: {} }))
  assert.deepEqual((await lastOf(asBob.transport)).advice, [
    'needs verb create on pods in namespace a: no binding of user bob grants it',
    'nearest: RoleBinding a/dev (Role reader) lacks verb create',
    'allow with: kubectl create role NAME -n a --verb=create --resource=pods; kubectl create rolebinding NAME -n a --role=NAME --user=bob',
  ])
  await refusedWith(403, asBob.transport.request({ method: 'GET', path: '/api/v1/namespaces/b/pods' }))
  assert.equal((await lastOf(asBob.transport)).advice?.[1], 'nearest: RoleBinding a/dev (Role reader) grants it only in namespace a')
})

test('X7 the advice names nothing of other namespaces to those who may not read them', async (t) => {
  const api = await startExplained(t)
  for (const name of ['a', 'victim']) await api.client.of(namespaces).create({ metadata: { name }, spec: {} })
  const post = (path: string, body: unknown) => api.client.transport.request({ method: 'POST', path, body })
  await post('/api/v1/namespaces/victim/limitranges', { metadata: { name: 'hidden' }, spec: { limits: [{ type: 'Pod', min: { cpu: '1' } }] } })
  await api.client.of(roles).create({ metadata: { namespace: 'victim', name: 'hidden' }, rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }] })
  await api.client.of(roleBindings).create({
    metadata: { namespace: 'victim', name: 'hidden' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'hidden' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:authenticated' }],
  })
  const asBob = api.clientAs(bob).transport
  for (const path of ['/api/v1/namespaces/victim/pods/\nminimum x usage per Pod', '/api/v1/namespaces/a/secrets/s']) {
    await refusedWith(403, asBob.request({ method: 'GET', path }))
    const { advice = [] } = await lastOf(asBob)
    assert.match(advice[0] ?? '', /^needs verb get on /, path)
    assert.doesNotMatch(advice.join(), /hidden/, path)
  }
})

test('X7 one user that is refused all the time does not push out the refusals of another', async (t) => {
  const api = await startExplained(t)
  await refusedWith(403, api.clientAs(bob).of(secrets).list({ namespace: 'default' }))
  for (let n = 0; n < 200; n++)
    await refusedWith(
      403,
      api
        .clientAs({ name: 'loud', groups: ['system:authenticated'] })
        .of(serviceAccounts)
        .list({ namespace: 'default' }),
    )
  assert.equal((await lastOf(api.clientAs(bob).transport)).code, 403)
  const loud = (await read(api.client.transport, '', { user: 'loud' })) as TraceList
  assert.equal(loud.requests.length, 32)
})

test('X7 the fields that the server defaulted are named, without their values', async (t) => {
  const book = new TraceBook(realClock)
  const api = await startTestApiServer({ deps: () => ({ trace: book }) })
  t.after(() => api.close())
  book.addRule({ user: 'test-admin', seconds: 60 })
  const body = { apiVersion: 'v1', kind: 'Service', metadata: { name: 's' }, spec: { ports: [{ port: 80 }], selector: { app: 's' } } }
  await api.client.transport.request({ method: 'POST', path: '/api/v1/namespaces/default/services', body })
  const decoding = (await lastOf(api.client.transport)).stages.find(({ stage }) => stage === 'decoding')
  assert.match(decoding?.decision ?? '', /^defaulted .*spec\.type, spec\.sessionAffinity/)
})

test('X7 an anonymous user records and follows nothing', async (t) => {
  const book = new TraceBook(realClock)
  const api = await startTestApiServer({
    deps: () => ({
      trace: book,
      authenticators: [
        { name: 'anyone', authenticate: () => ({ decision: 'authenticated', user: { name: 'system:anonymous', groups: ['system:unauthenticated'] } }) },
      ],
    }),
  })
  t.after(() => api.close())
  const { url, ca } = await api.listen()
  const transport = createHttpTransport({ server: url, tls: { ca }, clock: realClock })
  t.after(() => transport.close())
  const answer = await transport.forward({
    method: 'GET',
    target: '/api/v1/namespaces/default/configmaps/x',
    headers: { 'skiff-explain': 'true' },
    body: undefined,
  })
  assert.equal(answer.status, 404)
  assert.deepEqual(
    book.requests(() => true),
    [],
  )
})

test('X7 a proxy that impersonates users shows each user only their own requests', async (t) => {
  const tracesOfAdminOnly = {
    name: 'test',
    authorize: ({ user, path }: { user: { name: string }; path: string }) =>
      ({ decision: path.startsWith('/skiff/') && user.name !== 'test-admin' ? 'noOpinion' : 'allow', reason: '' }) as const,
  }
  const api = await startTestApiServer({ deps: () => ({ authorizers: [tracesOfAdminOnly] }) })
  t.after(() => api.close())
  const { url, ca, token } = await api.listen()
  const proxied = (user: string) => {
    const impersonate = { user, groups: ['system:authenticated'] }
    const transport = createHttpTransport({ server: url, tls: { ca }, bearerToken: token, clock: realClock, impersonate })
    t.after(() => transport.close())
    return transport
  }
  // A user with the right to impersonate could use up the rules with one for each of many users.
  await refusedWith(403, proxied('jane').request({ method: 'POST', path: '/skiff/traces/rules', body: { user: 'jane' } }))
  const [mia, eve] = [proxied('mia'), proxied('eve')]
  await refusedWith(400, mia.request({ method: 'POST', path: '/api/v1/namespaces/default/configmaps', body: 'x' }))
  const { id, as } = await lastOf(mia)
  assert.equal(as, 'mia')
  assert.equal((await lastOf(api.client.transport)).id, id)
  await refusedWith(404, read(eve, `/${id}`))
  for (const user of ['mia', 'test-admin']) assert.deepEqual(((await read(eve, '', { user })) as TraceList).requests, [])
})
