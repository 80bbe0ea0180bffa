/** Authentication over TLS with real certificates, on a server set up by flags (AUN-01, 02, 06). */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { TestApiServer, TestListener } from '#testing/apiServer'
import { type HttpsCall, httpsCall } from '../../support/httpsCall.ts'
import { type Certificate, openSsl } from '../../support/openssl.ts'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'

const ssl = openSsl()
const clients = ssl.authority('clients')
const proxies = ssl.authority('proxies')
const strangers = ssl.authority('clients')
const jane = ssl.sign(clients, { subject: '/CN=jane/O=dev/O=ops' })
const proxy = ssl.sign(proxies, { subject: '/CN=gateway' })
const tokens = 'first,alice,uid-1,"dev,ops"\nsecond,bob,uid-2\n"quo""ted",carol,\n,nobody,x\n'
const past = { from: '20200101000000Z', to: '20200201000000Z' }

let api: TestApiServer
let server: TestListener
before(async () => {
  api = await startServerWithFlags([
    `--client-ca-file=${ssl.file('clients.pem', clients.cert)}`,
    `--requestheader-client-ca-file=${ssl.file('proxies.pem', proxies.cert)}`,
    '--requestheader-allowed-names=gateway',
    '--requestheader-username-headers=X-User,X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-uid-headers=X-Remote-Uid',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    `--token-auth-file=${ssl.file('tokens.csv', tokens)}`,
  ])
  server = await api.listen()
})
after(async () => {
  await api.close()
  ssl.remove()
})

interface Who {
  readonly username?: string
  readonly uid?: string
  readonly groups?: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

const selfSubjectReviews = '/apis/authentication.k8s.io/v1/selfsubjectreviews'

/** The authenticated user, without the credential's id; or the status code of a refusal. */
async function whoAmI(call: HttpsCall): Promise<Who | number> {
  const answer = await httpsCall(server, selfSubjectReviews, { ...call, body: {} })
  if (answer.status !== 201) return answer.status
  const { extra = {}, ...who } = answer.json.status.userInfo as Who
  const { 'authentication.kubernetes.io/credential-id': _, ...rest } = extra
  return Object.keys(rest).length > 0 ? { ...who, extra: rest } : who
}

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
const all = 'system:authenticated'

describe('AUN-02 client certificates', () => {
  const cases: { name: string; certificate: () => Certificate; want: Who | number }[] = [
    { name: 'name and groups', certificate: () => jane, want: { username: 'jane', groups: ['dev', 'ops', all] } },
    {
      name: 'the uid of the subject',
      certificate: () => ssl.sign(clients, { subject: '/CN=jane/userUid=1234' }),
      want: { username: 'jane', uid: '1234', groups: [all] },
    },
    { name: 'two uids', certificate: () => ssl.sign(clients, { subject: '/CN=jane/userUid=1/userUid=2' }), want: 401 },
    { name: 'another authority of the same name', certificate: () => ssl.sign(strangers, { subject: '/CN=jane/O=system:masters' }), want: 401 },
    { name: 'signed by itself', certificate: () => strangers, want: 401 },
    { name: 'expired', certificate: () => ssl.sign(clients, { subject: '/CN=jane', ...past }), want: 401 },
    { name: 'not valid yet', certificate: () => ssl.sign(clients, { subject: '/CN=jane', from: '20900101000000Z', to: '20910101000000Z' }), want: 401 },
    { name: "a server's certificate", certificate: () => ssl.sign(clients, { subject: '/CN=jane', usage: 'serverAuth' }), want: 401 },
    { name: "a front proxy's certificate", certificate: () => ssl.sign(proxies, { subject: '/CN=gateway/O=system:masters' }), want: 401 },
  ]
  for (const { name, certificate, want } of cases) test(name, async () => assert.deepEqual(await whoAmI(certificate()), want))

  test('a certificate without a name is as good as none', async () => {
    const answer = await httpsCall(server, '/api', ssl.sign(clients, { subject: '/O=system:masters' }))
    assert.match(answer.text, /User \\?"system:anonymous\\?" cannot get path/)
  })

  test('the credential has an id', async () => {
    const answer = await httpsCall(server, selfSubjectReviews, { ...jane, body: {} })
    assert.match(answer.json.status.userInfo.extra['authentication.kubernetes.io/credential-id'][0], /^X509SHA256=[0-9a-f]{64}$/)
  })
})

describe('AUN-06 tokens of a file', () => {
  test('name, uid and groups', async () => {
    assert.deepEqual(await whoAmI(bearer('first')), { username: 'alice', uid: 'uid-1', groups: ['dev', 'ops', all] })
    assert.deepEqual(await whoAmI(bearer('second')), { username: 'bob', uid: 'uid-2', groups: [all] })
    assert.deepEqual(await whoAmI(bearer('quo"ted')), { username: 'carol', groups: [all] })
  })

  test('any other token is refused, in upstream words', async () => {
    for (const token of ['third', 'firs', 'alice', 'x'.repeat(4000)]) assert.equal(await whoAmI(bearer(token)), 401, token)
    const { json, headers } = await httpsCall(server, '/api', bearer('third'))
    assert.deepEqual(json, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message: 'Unauthorized', reason: 'Unauthorized', code: 401 })
    assert.equal(headers['content-type'], 'application/json')
  })

  test('AUN-01 the certificate counts before the token, and a good one of either is enough', async () => {
    assert.equal(((await whoAmI({ ...jane, ...bearer('first') })) as Who).username, 'jane')
    assert.equal(((await whoAmI({ ...strangers, ...bearer('first') })) as Who).username, 'alice')
    assert.equal(((await whoAmI({ ...jane, ...bearer('third') })) as Who).username, 'jane')
    assert.equal(await whoAmI({ ...strangers, ...bearer('third') }), 401)
  })
})

describe('AUN-06 a front proxy sets the user by headers', () => {
  const forged = { 'x-remote-user': 'root', 'x-remote-group': 'system:masters', 'x-user': 'root' }

  test('all identity headers are used', async () => {
    const headers = {
      'x-remote-user': 'erin',
      'x-remote-uid': '42',
      'x-remote-group': ['dev', 'ops'],
      'x-remote-extra-scopes': ['a', 'b'],
      'x-remote-extra-example.com%2fteam': 'x',
    }
    const extra = { scopes: ['a', 'b'], 'example.com/team': ['x'] }
    assert.deepEqual(await whoAmI({ ...proxy, headers }), { username: 'erin', uid: '42', groups: ['dev', 'ops', all], extra })
    assert.equal(((await whoAmI({ ...proxy, headers: { ...headers, 'x-user': 'first' } })) as Who).username, 'first')
  })

  test('headers without a user name are refused', async () => assert.equal(await whoAmI({ ...proxy, headers: { 'x-remote-group': 'system:masters' } }), 401))

  test('identity headers of other clients are ignored', async () => {
    assert.equal(((await whoAmI({ ...jane, headers: forged })) as Who).username, 'jane')
    assert.equal(((await whoAmI({ headers: { ...forged, authorization: 'Bearer first' } })) as Who).username, 'alice')
    assert.equal(await whoAmI({ ...ssl.sign(proxies, { subject: '/CN=other' }), headers: forged }), 401)
    assert.equal(await whoAmI({ ...ssl.sign(proxies, { subject: '/CN=gateway', ...past }), headers: forged }), 401)
    assert.equal(await whoAmI({ ...ssl.sign(strangers, { subject: '/CN=gateway' }), headers: forged }), 401)
    assert.equal((await httpsCall(server, '/api/v1/nodes', { headers: forged })).status, 403)
  })
})
