/** A webhook that is asked about bearer tokens, over TLS (AUN-05): its requests, its answers, their caching, and failures. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { createPrometheusMetrics } from '#main/prometheus'
import { type CannedServer, startCannedServer } from '../../support/cannedServer.ts'
import { httpsCall } from '../../support/httpsCall.ts'
import { openSsl } from '../../support/openssl.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

const ssl = openSsl()
const authority = ssl.authority('webhooks')
const stranger = ssl.authority('webhooks')
let webhook: CannedServer
before(async () => {
  webhook = await startCannedServer(ssl.sign(authority, { subject: '/CN=webhook', usage: 'serverAuth', names: 'IP:127.0.0.1' }))
})
after(async () => {
  await webhook.close()
  ssl.remove()
})

const kubeconfig = (ca: string) =>
  ssl.file(
    'webhook.yaml',
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'w', cluster: { server: `${webhook.url}/ask`, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
      users: [{ name: 'u', user: { token: 'credential' } }],
      contexts: [{ name: 'c', context: { cluster: 'w', user: 'u' } }],
      'current-context': 'c',
    }),
  )

for (const version of ['v1', 'v1beta1']) {
  describe(version, () => {
    const apiVersion = `authentication.k8s.io/${version}`
    const review = (status: object) => ({ text: JSON.stringify({ apiVersion, kind: 'TokenReview', status }) })
    const user = { username: 'jane', uid: '7', groups: ['dev'], extra: { 'example.org/team': ['a'] } }
    const answers = {
      '/ask good': review({ authenticated: true, user }),
      '/ask ours': review({ authenticated: true, user, audiences: ['api', 'more'] }),
      '/ask vault': review({ authenticated: true, user, audiences: ['vault'] }),
      '/ask bad': review({ authenticated: false, error: 'stolen' }),
      '/ask unknown': review({ authenticated: false }),
      '/ask strange': { text: '{"kind":"Pod","apiVersion":"v1"}' },
      '/ask broken': { text: '<html>' },
      '/ask forbidden': { status: 403, text: '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"go away","reason":"Forbidden","code":403}' },
    }
    let api: Awaited<ReturnType<typeof startServerWithFlags>>
    let server: Awaited<ReturnType<typeof api.listen>>
    before(async () => {
      await webhook.answer(answers)
      const flags = [
        `--authentication-token-webhook-config-file=${kubeconfig(authority.cert)}`,
        `--authentication-token-webhook-version=${version}`,
        '--api-audiences=api',
      ]
      api = await startServerWithFlags(flags)
      server = await api.listen()
    })
    after(() => api.close())
    beforeEach(() => webhook.received())

    const whoAmI = async (token: string) => {
      const answer = await httpsCall(server, '/apis/authentication.k8s.io/v1/selfsubjectreviews', { headers: { authorization: `Bearer ${token}` }, body: {} })
      return answer.status === 201 ? answer.json.status.userInfo : answer.status
    }
    const reviewed = async (token: string) => {
      const transport = api.server.transport({ name: 'admin', groups: ['system:masters'] }, 'test')
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } }
      return ((await transport.request({ method: 'POST', path: '/apis/authentication.k8s.io/v1/tokenreviews', body })).body as { status: { error: string } })
        .status
    }
    const jane = { ...user, groups: ['dev', 'system:authenticated'] }

    test('it decides, is sent the token and the audiences, and is asked once', async () => {
      assert.deepEqual(await Promise.all([whoAmI('good'), whoAmI('good'), whoAmI('ours')]), [jane, jane, jane])
      assert.deepEqual(await whoAmI('good'), jane)
      const received = await webhook.received()
      assert.deepEqual(received.map(({ body }) => JSON.parse(body).spec.token).sort(), ['good', 'ours'])
      const [first] = received.filter(({ body }) => body.includes('"good"'))
      assert.deepEqual([first?.method, first?.path, first?.headers.authorization], ['POST', '/ask', 'Bearer credential'])
      assert.deepEqual(JSON.parse(first?.body ?? ''), { kind: 'TokenReview', apiVersion, metadata: {}, spec: { token: 'good', audiences: ['api'] } })
    })

    test('a token for other audiences and an unknown token are refused, and both answers are cached', async () => {
      for (const token of ['vault', 'unknown', 'vault', 'unknown']) assert.equal(await whoAmI(token), 401)
      assert.equal((await webhook.received()).length, 2)
    })

    const refused: { token: string; why: RegExp }[] = [
      { token: 'bad', why: /^\[invalid bearer token, stolen\]$/ },
      { token: 'forbidden', why: /go away/ },
      { token: 'strange', why: /instead of a TokenReview/ },
      { token: 'broken', why: /./ },
      { token: 'missing', why: /./ },
    ]
    for (const { token, why } of refused) {
      test(`refused: ${token}`, async () => {
        assert.equal(await whoAmI(token), 401)
        assert.match((await reviewed(token)).error, why)
      })
    }

    test('trouble is not the last word', async () => {
      await webhook.answer({
        ...answers,
        '/ask busy': { status: 500, text: '{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}' },
      })
      const pending = whoAmI('busy')
      while ((await webhook.received()).length === 0) await new Promise(setImmediate)
      await webhook.answer({ ...answers, '/ask busy': answers['/ask good'] })
      assert.deepEqual(await pending, jane)
    })
  })
}

test('a webhook with a certificate of another authority is not believed', async () => {
  await webhook.answer({
    '/ask': {
      text: '{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"authenticated":true,"user":{"username":"root","groups":["system:masters"]}}}',
    },
  })
  const api = await startServerWithFlags([
    `--authentication-token-webhook-config-file=${kubeconfig(stranger.cert)}`,
    '--authentication-token-webhook-version=v1',
  ])
  await webhook.received()
  const answer = await httpsCall(await api.listen(), '/api', { headers: { authorization: 'Bearer any' } })
  assert.deepEqual([answer.status, await webhook.received()], [401, []])
  await api.close()
})

test('another version keeps the server from starting', async () => {
  const flags = [`--authentication-token-webhook-config-file=${kubeconfig(authority.cert)}`, '--authentication-token-webhook-version=v2']
  await assert.rejects(startServerWithFlags(flags), { message: 'unsupported authentication webhook version "v2", supported versions are "v1", "v1beta1"' })
})

test('AUN-05 how often tokens were known is counted, and how the others were looked up', async (t) => {
  const status = { authenticated: true, user: { username: 'jane' } }
  const review = (more: object) => ({ text: JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', status: more }) })
  await webhook.answer({ '/ask good': review(status), '/ask strange': { text: '{"kind":"Pod","apiVersion":"v1"}' } })
  const metrics = createPrometheusMetrics()
  const flags = [`--authentication-token-webhook-config-file=${kubeconfig(authority.cert)}`, '--authentication-token-webhook-version=v1']
  const api = await startServerWithFlags(flags, { metrics })
  t.after(() => api.close())
  const server = await api.listen()
  const ask = (token: string) => httpsCall(server, '/api', { headers: { authorization: `Bearer ${token}` } })
  const before = metrics.render()
  assert.doesNotMatch(before, /token_cache_request_total\{[^}]*\} [1-9]/)
  assert.deepEqual(
    (await Promise.all([ask('good'), ask('good')])).map((one) => one.status),
    [200, 200],
  )
  assert.deepEqual([(await ask('good')).status, (await ask('strange')).status], [200, 401])
  const counted = (name: string, status: string) =>
    Number(new RegExp(`^authentication_token_cache_${name}\\{status="${status}"\\} (\\d+)$`, 'm').exec(metrics.render())?.[1])
  // The second of two concurrent requests may arrive after the answer.
  assert.equal(counted('request_total', 'hit') + counted('request_total', 'miss'), 4)
  assert.ok(counted('request_total', 'miss') >= 2)
  assert.deepEqual(
    [counted('fetch_total', 'ok'), counted('fetch_total', 'error'), counted('active_fetch_count', 'in_flight'), counted('active_fetch_count', 'blocked')],
    [1, 1, 0, 0],
  )
  assert.equal(counted('request_duration_seconds_count', 'hit'), counted('request_total', 'hit'))
})
