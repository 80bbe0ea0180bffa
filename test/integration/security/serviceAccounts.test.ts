/** Service accounts over the wire (AUN-03, 07, 09): their tokens, what those are bound to and die with, tokens of secrets, and acting as others. */
import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { signToken } from '#apiserver/tokens/jwt'
import { signingKey } from '#apiserver/tokens/keys'
import { VirtualClock } from '#base/virtualClock'
import type { ApiRequest } from '#client/transport'
import type { TestApiServer, TestListener } from '#testing/apiServer'
import { type HttpsAnswer, httpsCall } from '../../support/httpsCall.ts'
import { sinceKubectl, type TestKubectl, testKubectl, withoutKubectl } from '../../support/kubectl.ts'
import { openSsl } from '../../support/openssl.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

const ssl = openSsl()
const newKey = (type: 'rsa' | 'ec') => {
  const { privateKey } = type === 'ec' ? generateKeyPairSync('ec', { namedCurve: 'P-384' }) : generateKeyPairSync('rsa', { modulusLength: 2048 })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}
const current = newKey('ec')
const last = newKey('rsa')
const publicOf = (pem: string) => createPublicKey(pem).export({ type: 'spki', format: 'pem' }).toString()
const issuer = 'https://issuer.example.com'
const lastIssuer = 'https://last.example.com'
const clock = new VirtualClock(new Date(Math.floor(Date.now() / 1000) * 1000).toISOString())

let api: TestApiServer
let server: TestListener
before(async () => {
  const flags = [
    `--service-account-issuer=${issuer}`,
    `--service-account-issuer=${lastIssuer}`,
    '--api-audiences=api,konnectivity',
    `--service-account-signing-key-file=${ssl.file('current.key', current)}`,
    `--service-account-key-file=${ssl.file('keys.pem', publicOf(current) + publicOf(last))}`,
    '--service-account-max-token-expiration=2h',
    `--token-auth-file=${ssl.file('tokens.csv', 'admin-token,admin,1,system:masters\njoe-token,joe,2\n')}`,
  ]
  api = await startServerWithFlags(flags, { clock })
  server = await api.listen()
  for (const name of ['app', 'other']) await write('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name } })
})
after(async () => {
  await api.close()
  ssl.remove()
})

interface Written {
  readonly metadata: { readonly name: string; readonly uid: string; readonly labels?: Readonly<Record<string, string>> }
  readonly data?: Readonly<Record<string, string>>
  readonly status?: { readonly token: string; readonly expirationTimestamp: string }
  readonly spec?: { readonly audiences: readonly string[]; readonly expirationSeconds: number }
}

async function write(method: ApiRequest['method'], path: string, body?: unknown): Promise<Written> {
  const transport = api.server.transport({ name: 'admin', groups: ['system:masters'] }, 'test')
  return (await transport.request({ method, path, body, ...(method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {}) })).body as Written
}

async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'allowed'
  } catch (error) {
    if (isStatus(error)) return `${error.code} ${error.message}`
    throw error
  }
}

const tokens = '/api/v1/namespaces/default/serviceaccounts/app/token'
const request = (spec: object, metadata: object = {}) => write('POST', tokens, { metadata, spec })
const tokenFor = async (spec: object = {}) => (await request(spec)).status?.token ?? ''
const bound = (kind: string, name: string, uid?: string) => ({ boundObjectRef: { apiVersion: 'v1', kind, name, uid } })
const call = (token: string, path = '/apis/authentication.k8s.io/v1/selfsubjectreviews', body: unknown = {}): Promise<HttpsAnswer> =>
  httpsCall(server, path, { headers: { authorization: `Bearer ${token}` }, body })
const statusOf = async (token: string) => (await call(token)).status
const pod = (name: string) =>
  write('POST', '/api/v1/namespaces/default/pods', { metadata: { name }, spec: { serviceAccountName: 'app', containers: [{ name: 'c', image: 'i' }] } })
const remove = (path: string) => write('DELETE', path, { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0 })
const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

describe('AUN-03 TokenRequest', () => {
  const cases: { name: string; spec: () => Promise<object> | object; metadata?: object; want: RegExp }[] = [
    {
      name: 'too short',
      spec: () => ({ expirationSeconds: 599 }),
      want: /^422 TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes$/,
    },
    { name: 'too long', spec: () => ({ expirationSeconds: 2 ** 32 + 1 }), want: /may not specify a duration larger than 2\^32 seconds$/ },
    {
      name: 'another name',
      spec: () => ({}),
      metadata: { name: 'other' },
      want: /^422 TokenRequest.authentication.k8s.io "app" is invalid: metadata.name: Invalid value: "other": must match the service account name if specified$/,
    },
    {
      name: 'another uid',
      spec: () => ({}),
      metadata: { uid: 'x' },
      want: /^409 .*the UID in the token request \(x\) does not match the UID of the service account/,
    },
    { name: 'a pod that is not there', spec: () => bound('Pod', 'gone'), want: /^404 pods "gone" not found$/ },
    { name: 'a kind that cannot carry tokens', spec: () => bound('ConfigMap', 'x'), want: /^400 cannot bind token to object of type \/v1, Kind=ConfigMap$/ },
    {
      name: 'a pod of another account',
      spec: async () => {
        const spec = { serviceAccountName: 'other', containers: [{ name: 'c', image: 'i' }] }
        await write('POST', '/api/v1/namespaces/default/pods', { metadata: { name: 'others' }, spec })
        return bound('Pod', 'others')
      },
      want: /^400 cannot bind token for serviceaccount "app" to pod running with different serviceaccount name.$/,
    },
    {
      name: 'a recreated pod',
      spec: async () => bound('Pod', (await pod('renewed')).metadata.name, 'old-uid'),
      want: /^409 .*the UID in the bound object reference \(old-uid\) does not match the UID in record. The object might have been deleted and then recreated$/,
    },
  ]
  for (const { name, spec, metadata, want } of cases) test(name, async () => assert.match(await refusal(request(await spec(), metadata)), want))

  test('defaults, and more than the longest', async () => {
    const { spec, status } = await request({})
    assert.deepEqual([spec?.audiences, spec?.expirationSeconds], [['api', 'konnectivity'], 3600])
    assert.deepEqual([claimsOf(status?.token ?? '').iss, claimsOf(status?.token ?? '').exp], [issuer, clock.now() / 1000 + 3600])
    const shortened = await httpsCall(server, tokens, { headers: { authorization: 'Bearer admin-token' }, body: { spec: { expirationSeconds: 86_400 } } })
    assert.equal(shortened.json.spec.expirationSeconds, 7200)
    assert.equal(shortened.headers.warning, '299 - "requested expiration of 86400 seconds shortened to 7200 seconds"')
  })
})

describe('AUN-03 what kills a token', () => {
  test('deleting the pod kills it at once, and a recreated pod does not revive it', async () => {
    const { metadata } = await pod('worker')
    const token = await tokenFor(bound('Pod', 'worker', metadata.uid))
    const who = (await call(token)).json.status.userInfo
    assert.deepEqual(who.extra['authentication.kubernetes.io/pod-uid'], [metadata.uid])
    assert.match(who.extra['authentication.kubernetes.io/credential-id'][0], /^JTI=[0-9a-f-]{36}$/)
    await remove('/api/v1/namespaces/default/pods/worker')
    assert.equal(await statusOf(token), 401)
    await pod('worker')
    assert.equal(await statusOf(token), 401)
  })

  test('the secret, the node, the account', async () => {
    await write('POST', '/api/v1/namespaces/default/secrets', { metadata: { name: 'bond' } })
    await write('POST', '/api/v1/nodes', { metadata: { name: 'n1' } })
    await write('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'brief' } })
    const brief = (await write('POST', tokens.replace('/app/', '/brief/'), { spec: {} })).status?.token ?? ''
    const cases = [
      {
        token: await tokenFor(bound('Secret', 'bond')),
        path: '/api/v1/namespaces/default/secrets/bond',
        list: '/api/v1/namespaces/default/secrets',
        name: 'bond',
      },
      { token: await tokenFor(bound('Node', 'n1')), path: '/api/v1/nodes/n1', list: '/api/v1/nodes', name: 'n1' },
      { token: brief, path: '/api/v1/namespaces/default/serviceaccounts/brief', list: '/api/v1/namespaces/default/serviceaccounts', name: 'brief' },
    ]
    for (const { token, path, list, name } of cases) {
      assert.equal(await statusOf(token), 201, path)
      await remove(path)
      assert.equal(await statusOf(token), 401, path)
      await write('POST', list, { metadata: { name } })
      assert.equal(await statusOf(token), 401, `${path}, made anew`)
    }
  })

  test('time, audiences, foreign keys; not the issuer and key of last year', async () => {
    const account = await write('GET', '/api/v1/namespaces/default/serviceaccounts/app')
    const now = clock.now() / 1000
    const claims = {
      ...{ iss: lastIssuer, aud: ['api'], exp: now + 600, iat: now, nbf: now, jti: 'x', sub: 'system:serviceaccount:default:app' },
      'kubernetes.io': { namespace: 'default', serviceaccount: { name: 'app', uid: account.metadata.uid } },
    }
    const signed = (changes: object, pem = last) => signToken({ ...claims, ...changes }, signingKey(pem))
    assert.equal(await statusOf(signed({})), 201)
    assert.equal(await statusOf(signed({}, newKey('rsa'))), 401)
    assert.equal(await statusOf(signed({ iss: 'https://else' })), 401)
    assert.equal(await statusOf(signed({ aud: ['vault'] })), 401)
    assert.equal(await statusOf(signed({ exp: now - 61 })), 401)
    assert.equal(await statusOf(signed({ nbf: now + 61 })), 401)
    assert.equal(await statusOf(await tokenFor({ audiences: ['vault'] })), 401)
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token: await tokenFor({ audiences: ['vault'] }), audiences: ['vault', 'x'] },
    }
    assert.deepEqual((await call('admin-token', '/apis/authentication.k8s.io/v1/tokenreviews', body)).json.status.audiences, ['vault'])
    const expired = { ...body, spec: { token: signed({ exp: now - 61 }) } }
    assert.equal(
      (await call('admin-token', '/apis/authentication.k8s.io/v1/tokenreviews', expired)).json.status.error,
      '[invalid bearer token, service account token has expired]',
    )
  })
})

describe('AUN-03 tokens of secrets', () => {
  const path = '/api/v1/namespaces/default/secrets/old'
  let token = ''
  before(async () => {
    const { metadata } = await write('GET', '/api/v1/namespaces/default/serviceaccounts/app')
    const prefix = 'kubernetes.io/serviceaccount/'
    const named = { 'service-account.name': 'app', 'service-account.uid': metadata.uid, 'secret.name': 'old', namespace: 'default' }
    const claims = {
      iss: 'kubernetes/serviceaccount',
      sub: 'system:serviceaccount:default:app',
      ...Object.fromEntries(Object.entries(named).map(([key, value]) => [prefix + key, value])),
    }
    token = signToken(claims, signingKey(last))
    const annotations = { 'kubernetes.io/service-account.name': 'app', 'kubernetes.io/service-account.uid': metadata.uid }
    const data = { token: Buffer.from(token).toString('base64') }
    await write('POST', '/api/v1/namespaces/default/secrets', { metadata: { name: 'old', annotations }, type: 'kubernetes.io/service-account-token', data })
  })

  test('are good, and their use is written down', async () => {
    const answer = await call(token)
    assert.deepEqual(answer.json.status.userInfo.username, 'system:serviceaccount:default:app')
    const today = new Date(clock.now()).toISOString().slice(0, 10)
    const untilMs = Date.now() + 10_000
    let label: string | undefined
    while (label === undefined && Date.now() < untilMs) {
      label = (await write('GET', path)).metadata.labels?.['kubernetes.io/legacy-token-last-used']
      await new Promise(setImmediate)
    }
    assert.equal(label, today)
    const tracking = await write('GET', '/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking')
    assert.deepEqual(tracking.data, { since: today })
  })

  test('give a warning when they were created automatically, and are refused when labelled invalid', async () => {
    await write('PATCH', '/api/v1/namespaces/default/serviceaccounts/app', { secrets: [{ name: 'old' }] })
    assert.match(
      String((await call(token)).headers.warning),
      /Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated/,
    )
    await write('PATCH', path, { metadata: { labels: { 'kubernetes.io/legacy-token-invalid-since': '2026-01-01' } } })
    assert.equal(await statusOf(token), 401)
    await write('PATCH', path, { metadata: { labels: { 'kubernetes.io/legacy-token-invalid-since': null } } })
    assert.equal(await statusOf(token), 201)
    await remove(path)
    assert.equal(await statusOf(token), 401)
  })
})

test('AUN-09 the published discovery documents suffice to verify a token', async () => {
  const get = (path: string) => httpsCall(server, path, { headers: { authorization: `Bearer ${jwt}` } })
  const jwt = await tokenFor()
  const discovery = await get('/.well-known/openid-configuration')
  assert.deepEqual(discovery.json, {
    issuer,
    jwks_uri: `${issuer}/openid/v1/jwks`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES384', 'RS256'],
  })
  const keys = await get('/openid/v1/jwks')
  assert.deepEqual([keys.headers['content-type'], keys.headers['cache-control']], ['application/jwk-set+json', 'public, max-age=3600'])
  const [header = '', payload = '', signature = ''] = jwt.split('.')
  const { kid } = JSON.parse(Buffer.from(header, 'base64url').toString())
  const key = createPublicKey({ key: keys.json.keys.find((one: { kid: string }) => one.kid === kid), format: 'jwk' })
  assert.ok(verify('sha384', Buffer.from(`${header}.${payload}`), { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url')))
  assert.equal((await httpsCall(server, '/openid/v1/jwks')).status, 403)
})

describe('kubectl', { skip: withoutKubectl }, () => {
  let kubectl: TestKubectl
  const whoAmI = async (...args: string[]) => {
    const { code, stdout, stderr } = await kubectl.run(['auth', 'whoami', '-o', 'json', ...args])
    return code === 0 ? JSON.parse(stdout).status.userInfo : stderr.trim()
  }
  before(() => {
    kubectl = testKubectl({ ...server, token: 'admin-token' })
  })
  after(() => kubectl.remove())

  test('AUN-01 auth whoami', { skip: sinceKubectl(28).skip }, async () => {
    assert.deepEqual(await whoAmI(), { username: 'admin', uid: '1', groups: ['system:masters', 'system:authenticated'] })
  })

  test('AUN-03 create token', async () => {
    const { stdout } = await kubectl.run('create token app -n default --duration 20m --audience api')
    assert.equal((await call(stdout.trim())).json.status.userInfo.username, 'system:serviceaccount:default:app')
  })

  test('AUN-07 --as, --as-group, --as-uid', { skip: sinceKubectl(28).skip }, async () => {
    assert.deepEqual(await whoAmI('--as=jürgen', '--as-group=dev', '--as-group=ops, too', '--as-uid=7'), {
      username: 'jürgen',
      uid: '7',
      groups: ['dev', 'ops, too', 'system:authenticated'],
    })
    const groups = ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated']
    assert.deepEqual(await whoAmI('--as=system:serviceaccount:default:app'), { username: 'system:serviceaccount:default:app', groups })
  })

  test('AUN-07 a role may act as one user, for one verb', { skip: sinceKubectl(28).skip }, async () => {
    const apiGroup = 'rbac.authorization.k8s.io'
    const rules = [
      { apiGroups: ['authentication.k8s.io'], resources: ['users'], resourceNames: ['jane'], verbs: ['impersonate:user-info'] },
      { apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'], verbs: ['impersonate-on:user-info:create'] },
    ]
    await write('POST', `/apis/${apiGroup}/v1/clusterroles`, { metadata: { name: 'as-jane' }, rules })
    const subjects = [{ kind: 'User', apiGroup, name: 'joe' }]
    await write('POST', `/apis/${apiGroup}/v1/clusterrolebindings`, {
      metadata: { name: 'as-jane' },
      roleRef: { apiGroup, kind: 'ClusterRole', name: 'as-jane' },
      subjects,
    })
    const asJane = { authorization: 'Bearer joe-token', 'impersonate-user': 'jane' }
    const review = (headers: Record<string, string>) => httpsCall(server, '/apis/authentication.k8s.io/v1/selfsubjectreviews', { headers, body: {} })
    assert.deepEqual((await review(asJane)).json.status.userInfo, { username: 'jane', groups: ['system:authenticated'] })
    assert.match(
      (await review({ ...asJane, 'impersonate-user': 'admin' })).json.message,
      /users.authentication.k8s.io "admin" is forbidden: User "joe" cannot impersonate:user-info/,
    )
    assert.match(
      (await httpsCall(server, '/api/v1/nodes', { headers: asJane })).json.message,
      /^nodes is forbidden: User "joe" cannot impersonate-on:user-info:list resource "nodes"/,
    )
  })
})
