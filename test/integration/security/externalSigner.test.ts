/** Service account tokens that a separate process signs (AUN-03, AUN-09): --service-account-signing-endpoint. */
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { VirtualClock } from '#base/virtualClock'
import { createPrometheusMetrics } from '#main/prometheus'
import type { TestApiServer, TestListener } from '#testing/apiServer'
import { httpsCall } from '../../support/httpsCall.ts'
import { type JwtSigner, type SignerState, startJwtSigner } from '../../support/jwtSigner.ts'
import { openSsl } from '../../support/openssl.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

const ssl = openSsl()
const socket = join(ssl.folder, 'signer.sock')
const start: SignerState = { signsWith: 'one', keys: [{ id: 'one' }, { id: 'of-old', hidden: true }] }
const clock = new VirtualClock(new Date(Math.floor(Date.now() / 1000) * 1000).toISOString())
const metrics = createPrometheusMetrics()
const issuer = 'https://issuer.example.com'
const flags = [`--service-account-issuer=${issuer}`, `--service-account-signing-endpoint=${socket}`]

let signer: JwtSigner
let api: TestApiServer
let server: TestListener
before(async () => {
  signer = await startJwtSigner(socket, start)
  api = await startServerWithFlags(flags, { clock, metrics })
  server = await api.listen()
  await post('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'app' } })
  await post('/api/v1/namespaces/default/pods', { metadata: { name: 'p' }, spec: { serviceAccountName: 'app', containers: [{ name: 'c', image: 'i' }] } })
})
after(async () => {
  await api?.close()
  await signer?.close()
  ssl.remove()
})

async function post(path: string, body: unknown) {
  const transport = api.server.transport({ name: 'admin', groups: ['system:masters'] }, 'test')
  return (await transport.request({ method: 'POST', path, body })).body as { readonly status?: { readonly token: string } }
}

const tokenFor = async (spec: object = {}) => (await post('/api/v1/namespaces/default/serviceaccounts/app/token', { spec })).status?.token ?? ''
const refusalOf = async (spec: object = {}) => {
  try {
    return await tokenFor(spec)
  } catch (error) {
    if (isStatus(error)) return `${error.code} ${error.reason} ${error.message}`
    throw error
  }
}
const statusOf = async (token: string) =>
  (await httpsCall(server, '/apis/authentication.k8s.io/v1/selfsubjectreviews', { headers: { authorization: `Bearer ${token}` }, body: {} })).status
const part = (token: string, at: number) => JSON.parse(Buffer.from(token.split('.')[at] ?? '', 'base64url').toString())
const published = async () => {
  const answer = await httpsCall(server, '/openid/v1/jwks', { headers: { authorization: `Bearer ${await tokenFor()}` } })
  const keys = answer.json.keys as readonly { readonly kid: string; readonly alg: string; readonly use: string }[]
  return { keys: keys.map(({ kid, alg, use }) => `${kid} ${alg} ${use}`), cacheControl: answer.headers['cache-control'] }
}

describe('AUN-03 an external signer', () => {
  test('signs what is asked for, and its tokens are good', async () => {
    const token = await tokenFor()
    assert.deepEqual(part(token, 0), { alg: 'ES256', kid: 'one', typ: 'JWT' })
    assert.deepEqual([part(token, 1).iss, part(token, 1).sub], [issuer, 'system:serviceaccount:default:app'])
    assert.equal(await statusOf(token), 201)
    assert.equal(await statusOf(`${token.slice(0, -4)}AAAA`), 401)
  })

  test('no token lives longer than it allows, nor do those that are extended', async () => {
    assert.equal(part(await tokenFor({ expirationSeconds: 86_400 }), 1).exp, clock.now() / 1000 + 7200)
    const injected = await tokenFor({ expirationSeconds: 3607, boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'p' } })
    assert.deepEqual([part(injected, 1).exp, part(injected, 1)['kubernetes.io'].warnafter], [clock.now() / 1000 + 7200, clock.now() / 1000 + 3607])
  })

  test('AUN-09 its keys are published, but for those that only verify', async () => {
    assert.deepEqual(await published(), { keys: ['one ES256 sig'], cacheControl: 'public, max-age=300' })
  })

  test('an unknown key is fetched at once, and a token of a removed key is refused', async () => {
    const before = await tokenFor()
    await signer.tell({ signsWith: 'two', keys: [{ id: 'one' }, { id: 'two' }], dataSeconds: 1_700_000_100 })
    const next = await tokenFor()
    assert.deepEqual([part(next, 0).kid, await statusOf(next), await statusOf(before)], ['two', 201, 201])
    assert.deepEqual((await published()).keys, ['one ES256 sig', 'two ES256 sig'])
    await signer.tell({ keys: [{ id: 'two' }], dataSeconds: 1_700_000_200 })
    // At the signer's interval, which is 300 seconds.
    await clock.advance(300_000)
    const deadline = Date.now() + 60_000
    while ((await statusOf(before)) !== 401 && Date.now() < deadline) await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual([await statusOf(before), await statusOf(next)], [401, 201])
  })

  const headers: readonly { readonly name: string; readonly header: object; readonly want: string }[] = [
    { name: 'no algorithm', header: { alg: 'none', kid: 'two', typ: 'JWT' }, want: 'bad signing algorithm "none"' },
    { name: 'no key', header: { alg: 'ES256', typ: 'JWT' }, want: 'key id missing' },
    { name: 'another type', header: { alg: 'ES256', kid: 'two', typ: 'at+jwt' }, want: 'bad type' },
    { name: 'more', header: { alg: 'ES256', kid: 'two', typ: 'JWT', jku: 'x' }, want: 'while parsing header JSON: json: unknown field "jku"' },
    { name: 'a long key', header: { alg: 'ES256', kid: 'k'.repeat(1025), typ: 'JWT' }, want: 'key id longer than 1 kb' },
  ]
  for (const { name, header, want } of headers) {
    test(`a header that may not be: ${name}`, async () => {
      await signer.tell({ header })
      assert.equal(await refusalOf(), `500  failed to generate token: while validating header: ${want}`)
      await signer.tell({ header: null })
    })
  }

  test('a key that is not published signs nothing', async () => {
    await signer.tell({ signsWith: 'three', keys: [{ id: 'two' }, { id: 'three', hidden: true }], dataSeconds: 1_700_000_300 })
    const want = '500  failed to generate token: while validating header: key used for signing JWT (kid: three) is excluded from OIDC discovery docs'
    assert.equal(await refusalOf(), want)
    await signer.tell({ signsWith: 'two' })
  })

  test('a failure of the signer is reported and counted, and the next token is signed', async () => {
    await signer.tell({ fails: true })
    assert.equal(await refusalOf(), '500  failed to generate token: while signing jwt: rpc error: code = Unavailable desc = the vault is sealed')
    await signer.tell({ fails: false })
    assert.equal(await statusOf(await tokenFor()), 201)
    const text = metrics.render()
    assert.match(text, /^apiserver_externaljwt_sign_request_total\{code="Unavailable"\} 1$/m)
    assert.match(text, /^apiserver_externaljwt_fetch_keys_request_total\{code="OK"\} [1-9]/m)
    assert.match(text, /^apiserver_externaljwt_fetch_keys_data_timestamp 1700000300.5$/m)
    assert.match(text, /^apiserver_externaljwt_request_duration_seconds_count\{method="\/v1.ExternalJWTSigner\/Metadata",code="OK"\} 1$/m)
  })

  test('known keys verify tokens while the signer is down, and a restarted signer is used', async () => {
    const token = await tokenFor()
    await signer.close()
    assert.equal(await statusOf(token), 201)
    rmSync(socket, { force: true })
    // Other keys of its own, under a name of their own: the process keeps them in memory.
    signer = await startJwtSigner(socket, { signsWith: 'four', keys: [{ id: 'four' }] })
    assert.equal(await statusOf(await tokenFor()), 201)
  })
})

describe('AUN-03 a server that cannot use its signer does not start', () => {
  const cases: readonly { readonly name: string; readonly state?: Partial<SignerState>; readonly flags?: readonly string[]; readonly want: RegExp }[] = [
    {
      name: 'lives too short',
      state: { maxSeconds: 599 },
      want: /^max token life supported by external-jwt-signer \(599s\) is less than acceptable \(min 600s\)$/,
    },
    { name: 'no keys', state: { keys: [] }, want: /^while setting up external-jwt-signer: while fetching token verification keys: found no keys$/ },
    { name: 'never again', state: { refreshSeconds: 0 }, want: /found invalid refresh hint \(0s\)$/ },
    { name: 'a key without a name', state: { keys: [{ id: '' }] }, want: /found invalid public key id ""$/ },
    {
      name: 'more than it can',
      flags: ['--service-account-max-token-expiration=3h'],
      want: /cannot be set longer than the token expiration supported by service-account-signing-endpoint: 3h0m0s > 2h0m0s$/,
    },
    {
      name: 'a key file together with it',
      flags: ['--service-account-key-file=/x'],
      want: /^can't set `--service-account-signing-key-file` and\/or .* \(They are mutually exclusive\)$/,
    },
  ]
  for (const { name, state = {}, flags: more = [], want } of cases) {
    test(name, async () => {
      const path = join(ssl.folder, 'other.sock')
      const other = await startJwtSigner(path, { ...start, ...state })
      try {
        await assert.rejects(startServerWithFlags([`--service-account-signing-endpoint=${path}`, ...more]), { message: want })
      } finally {
        await other.close()
        rmSync(path, { force: true })
      }
    })
  }
})
