/** Users of other issuers, over TLS, by flags and by file (AUN-04): what makes them, what refuses them, and how keys and files change. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { createPrometheusMetrics } from '#main/prometheus'
import type { TestApiServer, TestListener } from '#testing/apiServer'
import { type CannedServer, startCannedServer } from '../../support/cannedServer.ts'
import { httpsCall } from '../../support/httpsCall.ts'
import { openSsl } from '../../support/openssl.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'
import { confusedToken, forgedToken, idToken, issuerDocuments, issuerKey } from '../../support/tokenIssuer.ts'
import { until } from '../../support/until.ts'

const ssl = openSsl()
const authority = ssl.authority('issuers')
const authorityFile = ssl.file('issuers.pem', authority.cert)
const keys = { rsa: issuerKey('rsa'), pss: issuerKey('pss', 'PS384'), ec: issuerKey('ec', 'ES512'), foreign: issuerKey('rsa'), next: issuerKey('next') }
const now = Math.floor(Date.now() / 1000)
let issuer: CannedServer
let other: CannedServer

before(async () => {
  const tls = ssl.sign(authority, { subject: '/CN=issuer', usage: 'serverAuth', names: 'IP:127.0.0.1' })
  issuer = await startCannedServer(tls)
  other = await startCannedServer(tls)
  await issuer.answer(issuerDocuments(issuer.url, [keys.rsa, keys.pss, keys.ec]))
  await other.answer(issuerDocuments(other.url, [keys.next]))
})
after(async () => {
  await Promise.all([issuer.close(), other.close()])
  ssl.remove()
})

const claimsOf = (more: object = {}) => ({ iss: issuer.url, aud: 'kubectl', sub: 'jane', exp: now + 600, iat: now, ...more })

interface Who {
  readonly username?: string
  readonly uid?: string
  readonly groups?: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** The token's user, or the reason of the refusal, from a TokenReview. */
async function review(api: TestApiServer, token: string): Promise<Who | string> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } }
  const transport = api.server.transport({ name: 'admin', groups: ['system:masters'] }, 'test')
  const answer = await transport.request({ method: 'POST', path: '/apis/authentication.k8s.io/v1/tokenreviews', body })
  const { status } = answer.body as { readonly status: { readonly authenticated?: boolean; readonly user?: Who; readonly error?: string } }
  return status.authenticated ? (status.user ?? {}) : (status.error ?? '').replace(/^\[invalid bearer token, (.*)\]$/s, '$1')
}

/** Until the issuer has been found. */
async function ready(api: TestApiServer, token: string): Promise<void> {
  const untilMs = Date.now() + 20_000
  while ((await review(api, token)) === 'oidc: authenticator not initialized' && Date.now() < untilMs) await new Promise(setImmediate)
}

describe('by flags', () => {
  let api: TestApiServer
  let server: TestListener
  before(async () => {
    const flags = {
      'issuer-url': issuer.url,
      'client-id': 'kubectl',
      'ca-file': authorityFile,
      'groups-claim': 'roles',
      'groups-prefix': 'oidc:',
      'required-claim': 'tenant=blue',
    }
    api = await startServerWithFlags(Object.entries(flags).map(([name, value]) => `--oidc-${name}=${value}`))
    server = await api.listen()
    await ready(api, idToken(keys.rsa, claimsOf({ tenant: 'blue' })))
  })
  after(() => api.close())

  const blue = (more: object = {}) => claimsOf({ tenant: 'blue', ...more })
  const name = () => `${issuer.url}#jane`
  const all = 'system:authenticated'

  test('a user with groups, over the wire', async () => {
    const authorization = `Bearer ${idToken(keys.rsa, blue({ roles: ['dev', 'ops'], jti: 'x1' }))}`
    const answer = await httpsCall(server, '/apis/authentication.k8s.io/v1/selfsubjectreviews', { headers: { authorization }, body: {} })
    const extra = { 'authentication.kubernetes.io/credential-id': ['JTI=x1'] }
    assert.deepEqual(answer.json.status.userInfo, { username: name(), groups: ['oidc:dev', 'oidc:ops', all], extra })
  })

  const cases: { name: string; token: () => string; want: () => Who | RegExp }[] = [
    { name: 'one group as a text', token: () => idToken(keys.rsa, blue({ roles: 'dev' })), want: () => ({ username: name(), groups: ['oidc:dev', all] }) },
    { name: 'one of several audiences', token: () => idToken(keys.rsa, blue({ aud: ['x', 'kubectl'] })), want: () => ({ username: name(), groups: [all] }) },
    { name: 'groups that are no texts', token: () => idToken(keys.rsa, blue({ roles: [1] })), want: () => /^oidc: parse groups claim "roles"/ },
    { name: 'no required claim', token: () => idToken(keys.rsa, claimsOf()), want: () => /^oidc: required claim tenant not present in ID token$/ },
    { name: 'another value', token: () => idToken(keys.rsa, blue({ tenant: 'red' })), want: () => /value does not match. Got = red, want = blue$/ },
    { name: 'no subject', token: () => idToken(keys.rsa, blue({ sub: undefined })), want: () => /^oidc: parse username claims "sub": claim not present$/ },
    {
      name: 'expired',
      token: () => idToken(keys.rsa, blue({ exp: now - 5 })),
      want: () => /^oidc: verify token: oidc: token is expired \(Token Expiry: \d{4}-/,
    },
    { name: 'never expiring', token: () => idToken(keys.rsa, blue({ exp: undefined })), want: () => /oidc: token is expired/ },
    { name: 'not valid yet', token: () => idToken(keys.rsa, blue({ nbf: now + 600 })), want: () => /before the nbf \(not before\) time/ },
    { name: 'another audience', token: () => idToken(keys.rsa, blue({ aud: 'vault' })), want: () => /oidc: expected audience "kubectl" got \["vault"\]$/ },
    { name: 'another issuer', token: () => idToken(keys.rsa, blue({ iss: 'https://else' })), want: () => /^invalid bearer token$/ },
    {
      name: 'a foreign key under a known id',
      token: () => idToken(keys.foreign, blue()),
      want: () => /failed to verify signature: failed to verify id token signature$/,
    },
    { name: 'an unknown key id', token: () => idToken({ ...keys.foreign, id: 'else' }, blue()), want: () => /failed to verify id token signature$/ },
    {
      name: 'no algorithm',
      token: () => forgedToken({ alg: 'none', kid: 'rsa' }, blue(), () => ''),
      want: () => /unsupported algorithm, expected \["RS256"\] got "none"$/,
    },
    {
      name: 'the public key as a secret',
      token: () => confusedToken(keys.rsa, blue()),
      want: () => /unsupported algorithm, expected \["RS256"\] got "HS256"$/,
    },
    {
      name: 'an algorithm that was not asked for',
      token: () => idToken(keys.ec, blue()),
      want: () => /unsupported algorithm, expected \["RS256"\] got "ES512"$/,
    },
    { name: 'half a megabyte of claims', token: () => idToken(keys.foreign, blue({ roles: 'x'.repeat(500_000) })), want: () => /failed to verify/ },
  ]
  for (const { name: title, token, want } of cases) {
    test(title, async () => {
      const [found, wanted] = [await review(api, token()), want()]
      if (wanted instanceof RegExp) assert.match(String(found), wanted)
      else assert.deepEqual(found, wanted)
    })
  }

  test('a new key is noticed with its first token, and many tokens fetch once', async () => {
    await issuer.received()
    const tokens = Array.from({ length: 20 }, (_, at) => idToken(keys.next, blue({ sub: `user-${at}` })))
    await issuer.answer(issuerDocuments(issuer.url, [keys.rsa, keys.next]))
    const found = await Promise.all(tokens.map((token) => review(api, token)))
    assert.deepEqual(
      (found as Who[]).map((one) => one.username),
      tokens.map((_, at) => `${issuer.url}#user-${at}`),
    )
    assert.deepEqual(
      (await issuer.received()).map((one) => one.path),
      ['/keys'],
    )
    await issuer.answer(issuerDocuments(issuer.url, [keys.rsa, keys.pss, keys.ec]))
  })

  test('groups that stand elsewhere', async () => {
    const sources = (endpoint: string) => ({ _claim_names: { roles: 'one' }, _claim_sources: { one: { endpoint, access_token: 'secret' } } })
    await other.received()
    await other.answer({
      ...issuerDocuments(other.url, [keys.next]),
      '/groups': { text: idToken(keys.next, { ...claimsOf({ roles: ['far'] }), iss: other.url }) },
    })
    const token = (at: number) => idToken(keys.rsa, blue({ jti: String(at), ...sources(`${other.url}/groups`) }))
    // The other issuer's discovery starts at the first token that names it.
    assert.match(String(await review(api, token(0))), /verifier not initialized for issuer|^\[object/)
    let found: Who | string = ''
    for (let at = 1; typeof found === 'string' && at < 200; at++) {
      found = await review(api, token(at))
      if (typeof found === 'string') await new Promise((resolve) => setTimeout(resolve, 20))
    }
    assert.deepEqual((found as Who).groups, ['oidc:far', all])
    assert.ok((await other.received()).some((one) => one.path === '/groups' && one.headers.authorization === 'Bearer secret'))
    assert.match(String(await review(api, idToken(keys.rsa, blue(sources(`${other.url}/missing`))))), /error while getting distributed claim JWT: 404/)
  })
})

describe('by file', () => {
  let api: TestApiServer
  const file = `${ssl.folder}/authentication.yaml`
  const metrics = createPrometheusMetrics()
  const indented = (text: string) => text.replace(/^/gm, '      ')
  const configuration = (extra = '', second = '') => `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
  - path: /livez
jwt:
- issuer:
    url: ${issuer.url}
    audiences: [kubectl, web]
    audienceMatchPolicy: MatchAny
    certificateAuthority: |
${indented(authority.cert)}
  claimValidationRules:
  - expression: "claims.?hd.orValue('') == 'example.com'"
    message: only people of example.com
  claimMappings:
    username:
      expression: "claims.sub + '@' + claims.hd"
    groups:
      expression: "claims.roles.split(',')"
    uid:
      expression: claims.number
    extra:
    - key: example.org/team
      valueExpression: claims.teams.example__dot__org
  userValidationRules:
  - expression: "!user.username.startsWith('system:')"
    message: reserved${extra}
${second}`
  const person = (more: object = {}) => claimsOf({ hd: 'example.com', roles: 'dev,ops', number: '7', teams: { 'example.org': ['a', 'b'] }, ...more })

  before(async () => {
    writeFileSync(file, configuration())
    api = await startServerWithFlags([`--authentication-config=${file}`], { metrics })
    await ready(api, idToken(keys.rsa, person()))
  })
  after(() => api.close())

  test('expressions make the user, of any signature that is safe', async () => {
    for (const key of [keys.rsa, keys.pss, keys.ec]) {
      assert.deepEqual(await review(api, idToken(key, person())), {
        username: 'jane@example.com',
        uid: '7',
        groups: ['dev', 'ops', 'system:authenticated'],
        extra: { 'example.org/team': ['a', 'b'] },
      })
    }
  })

  const refused: { name: string; claims: object; why: RegExp }[] = [
    {
      name: 'a rule of claims',
      claims: { hd: 'else.com' },
      why: /validation expression 'claims.\?hd.orValue\(''\) == 'example.com'' failed: only people of example.com$/,
    },
    { name: 'a rule of users', claims: { sub: 'system:admin' }, why: /^oidc: error evaluating user info validation rule: .* failed: reserved$/ },
    {
      name: 'a claim that is not there',
      claims: { roles: undefined },
      why: /^oidc: error evaluating group claim expression: expression 'claims.roles.split\(','\)' resulted in error: no such key/,
    },
    { name: 'a uid that is no text', claims: { number: 7 }, why: /uid claim expression must return a string$/ },
    { name: 'none of the audiences', claims: { aud: 'vault' }, why: /oidc: expected audience in \["kubectl" "web"\] got \["vault"\]$/ },
  ]
  for (const { name, claims, why } of refused)
    test(`refused by ${name}`, async () => assert.match(String(await review(api, idToken(keys.rsa, person(claims)))), why))

  test('AUN-06 anonymous requests are allowed only on the paths in the file', async () => {
    const server = await api.listen()
    assert.equal((await httpsCall(server, '/livez')).status, 200)
    assert.equal((await httpsCall(server, '/readyz')).status, 401)
    assert.equal((await httpsCall(server, '/api')).status, 401)
  })

  test('a changed file takes over, a bad one does not, and both are counted', async () => {
    const second = `- issuer: {url: "${other.url}", audiences: [kubectl], certificateAuthority: ${JSON.stringify(authority.cert)}}\n  claimMappings: {username: {claim: sub, prefix: "two:"}}\n`
    const token = idToken(keys.next, { ...claimsOf(), iss: other.url })
    assert.equal(await review(api, token), 'invalid bearer token')
    writeFileSync(file, configuration('', second))
    await until('the second key counts', async () => typeof (await review(api, token)) !== 'string')
    assert.deepEqual(await review(api, token), { username: 'two:jane', groups: ['system:authenticated'] })
    const reloads = (status: string) => Number(new RegExp(`automatic_reloads_total\\{status="${status}",[^}]*\\} (\\d+)`).exec(metrics.render())?.[1] ?? 0)
    assert.deepEqual([reloads('success'), reloads('failure')], [1, 0])
    writeFileSync(file, configuration('\n  - expression: user.nonsense'))
    await until('the failure is counted', () => reloads('failure') === 1)
    assert.equal(reloads('failure'), 1)
    assert.equal(typeof (await review(api, token)), 'object')
    assert.match(
      metrics.render(),
      /apiserver_authentication_config_controller_last_config_info\{apiserver_id_hash="sha256:[0-9a-f]{64}",hash="sha256:[0-9a-f]{64}"\} 1/,
    )
    assert.match(metrics.render(), /apiserver_authentication_jwt_authenticator_latency_seconds_count\{result="success",jwt_issuer_hash="sha256:[0-9a-f]{64}"\}/)
  })
})

describe('an invalid configuration keeps the server from starting', () => {
  const start = (flags: readonly string[]) =>
    startServerWithFlags(flags).then(
      async (api) => {
        await api.close()
        return 'started'
      },
      (error: Error) => error.message,
    )
  const content = (jwt: string) => ssl.file('bad.yaml', `apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\njwt:\n${jwt}`)
  const cases: { name: string; flags: () => string[]; why: RegExp }[] = [
    {
      name: 'an issuer without a client',
      flags: () => ['--oidc-issuer-url=https://x'],
      why: /^oidc-issuer-url and oidc-client-id must be specified together when any oidc-\* flags are set$/,
    },
    {
      name: 'plain http',
      flags: () => ['--oidc-issuer-url=http://x', '--oidc-client-id=y'],
      why: /^invalid authentication configuration: jwt\[0\].issuer.url: Invalid value: "http:\/\/x": URL scheme must be https$/,
    },
    {
      name: 'a shared secret',
      flags: () => ['--oidc-issuer-url=https://x', '--oidc-client-id=y', '--oidc-signing-algs=HS256'],
      why: /^oidc: unsupported signing alg: "HS256"$/,
    },
    {
      name: 'flags and file',
      flags: () => ['--oidc-issuer-url=https://x', '--oidc-client-id=y', `--authentication-config=${content('')}`],
      why: /mutually exclusive$/,
    },
    {
      name: "the server's own issuer",
      flags: () => [
        '--service-account-issuer=https://own',
        `--authentication-config=${content('- {issuer: {url: https://own, audiences: [x]}, claimMappings: {username: {claim: sub, prefix: ""}}}\n')}`,
      ],
      why: /jwt\[0\].issuer.url: Invalid value: "https:\/\/own": URL must not overlap with disallowed issuers: \[https:\/\/own\]$/,
    },
    {
      name: 'an unknown field',
      flags: () => [`--authentication-config=${content('- {issuer: {uri: x}}\n')}`],
      why: /strict decoding error: unknown field "jwt\[0\].issuer.uri"$/,
    },
  ]
  for (const { name, flags, why } of cases) test(name, async () => assert.match(await start(flags()), why))
})
