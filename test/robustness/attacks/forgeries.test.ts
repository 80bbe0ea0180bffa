/**
 * Credentials that are almost right, other users' names in headers, paths that lead elsewhere, and bodies and answers without end, at the real port:
 * none of them gives access, and another client is still served.
 */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import http2 from 'node:http2'
import { request } from 'node:https'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { type ServerUnderAttack, startServerUnderAttack } from './serverUnderAttack.ts'

const treasure = Buffer.from('the treasure').toString('base64')
const inDefault = '/api/v1/namespaces/default'
let server: ServerUnderAttack
let good = ''
before(async () => {
  server = await startServerUnderAttack()
  for (const [path, body] of [
    [`${inDefault}/secrets`, { metadata: { name: 'chest' }, data: { gold: treasure } }],
    [`${inDefault}/serviceaccounts`, { metadata: { name: 'app' } }],
  ] as const) {
    const { status, text } = await server.as('admin', 'POST', path, body)
    assert.equal(status, 201, text)
  }
  good = await tokenFor({})
})
after(() => server.stop())

async function tokenFor(spec: object): Promise<string> {
  const { json, text } = await server.as('admin', 'POST', `${inDefault}/serviceaccounts/app/token`, { spec })
  assert.ok(json.status?.token, text)
  return json.status.token
}

const whoAmI = (authorization: string) =>
  server.as(undefined, 'POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {}, { headers: { authorization } }).then(({ status }) => status)
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const parts = () => good.split('.') as [string, string, string]
const decoded = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())

describe('AUN-03 tokens that are almost right', () => {
  const forged: readonly (readonly [name: string, make: () => Promise<string> | string])[] = [
    ['no algorithm', () => `${encoded({ ...decoded(parts()[0]), alg: 'none' })}.${parts()[1]}.`],
    ['no algorithm, in capitals', () => `${encoded({ ...decoded(parts()[0]), alg: 'NONE' })}.${parts()[1]}.${parts()[2]}`],
    ['no signature', () => `${parts()[0]}.${parts()[1]}.`],
    ['a signature of something else', async () => `${parts()[0]}.${parts()[1]}.${(await tokenFor({})).split('.')[2]}`],
    ['other claims', () => `${parts()[0]}.${encoded({ ...decoded(parts()[1]), sub: 'system:serviceaccount:kube-system:default' })}.${parts()[2]}`],
    ['a later end', () => `${parts()[0]}.${encoded({ ...decoded(parts()[1]), exp: 9_999_999_999 })}.${parts()[2]}`],
    ['another issuer', () => `${parts()[0]}.${encoded({ ...decoded(parts()[1]), iss: 'https://else.example.com' })}.${parts()[2]}`],
    ['another audience', () => tokenFor({ audiences: ['vault'] })],
    [
      'the public key as a shared secret',
      async () => {
        const { text } = await server.as('admin', 'GET', '/openid/v1/jwks')
        const signed = `${encoded({ ...decoded(parts()[0]), alg: 'HS256' })}.${parts()[1]}`
        return `${signed}.${createHmac('sha256', text).update(signed).digest('base64url')}`
      },
    ],
    ['a key of its own, sent along', () => `${encoded({ ...decoded(parts()[0]), kid: undefined, jwk: { kty: 'oct', k: 'AA' } })}.${parts()[1]}.${parts()[2]}`],
    [
      'a key from elsewhere',
      () => `${encoded({ ...decoded(parts()[0]), jku: 'https://127.0.0.1:1/', x5u: 'https://127.0.0.1:1/' })}.${parts()[1]}.${parts()[2]}`,
    ],
    ['four parts', () => `${good}.x`],
    ['a megabyte less', () => `${'a'.repeat(100_000)}.${'b'.repeat(10)}.c`],
  ]
  for (const [name, make] of forged) {
    test(name, { timeout: 60_000 }, async () => {
      const token = await make()
      assert.deepEqual([await whoAmI(`Bearer ${token}`), await whoAmI(`Bearer ${good}`)], [401, 201])
    })
  }
})

describe('AUN-02 names of others in headers', () => {
  const claims: readonly (readonly [name: string, headers: Readonly<Record<string, string>>])[] = [
    ['headers of a front proxy', { 'x-remote-user': 'admin', 'x-remote-group': 'system:masters' }],
    ['headers of a front proxy, with underscores', { x_remote_user: 'admin', x_remote_group: 'system:masters' }],
    ['headers of other proxies', { 'x-forwarded-user': 'admin', 'x-forwarded-groups': 'system:masters', 'x-original-url': '/livez' }],
    ['impersonation of a user', { 'impersonate-user': 'admin', 'impersonate-group': 'system:masters' }],
    ['impersonation of a group', { 'impersonate-group': 'system:masters' }],
    ['headers that state a client certificate', { 'x-client-cert': 'admin', 'ssl-client-s-dn': 'CN=admin,O=system:masters' }],
  ]
  for (const [name, headers] of claims) {
    for (const person of [undefined, 'mallory'] as const) {
      test(`${name}, by ${person ?? 'nobody'}`, { timeout: 60_000 }, async () => {
        const { status, text } = await server.as(person, 'GET', `${inDefault}/secrets/chest`, undefined, { headers })
        assert.ok([400, 401, 403, 500].includes(status), `${status} ${text}`)
        assert.ok(!text.includes(treasure))
      })
    }
  }
})

/** As it stands on the wire: client libraries would put it in order. */
function rawOverHttp1(path: string, token: string): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const call = request(
      { host: '127.0.0.1', port: server.port, ca: server.ca, agent: false, path, headers: { authorization: `Bearer ${token}` } },
      (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (piece: string) => {
          text += piece
        })
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
      },
    )
    call.on('error', reject)
    call.end()
  })
}

async function rawOverHttp2(path: string, token: string): Promise<{ readonly status: number; readonly text: string }> {
  const session = http2.connect(server.url, { ca: server.ca })
  try {
    const stream = session.request({ ':path': path, authorization: `Bearer ${token}` })
    const [headers] = await once(stream, 'response')
    let text = ''
    for await (const piece of stream) text += String(piece)
    return { status: Number(headers[':status']), text }
  } finally {
    session.close()
  }
}

describe('AUZ-01 paths that lead elsewhere', () => {
  // Alice may read config maps; health is open to all.
  const paths = [
    `${inDefault}/configmaps/../secrets/chest`,
    `${inDefault}/configmaps/%2e%2e/secrets/chest`,
    `${inDefault}/configmaps/..%2fsecrets%2fchest`,
    `${inDefault}/configmaps/innocent/../../secrets/chest`,
    `${inDefault}/configmaps%2f..%2fsecrets/chest`,
    `${inDefault}/configmaps/innocent%00/../../secrets/chest`,
    `${inDefault}/configmaps;/../secrets/chest`,
    `/healthz/..${inDefault}/secrets/chest`,
    `/healthz/%2e%2e${inDefault}/secrets/chest`,
    `/version/..%2f${inDefault.slice(1)}/secrets/chest`,
    `/livez/../..${inDefault}/secrets/chest`,
    `/${inDefault}/secrets/chest`,
    `/.${inDefault}/secrets/chest`,
    `${inDefault}//secrets/chest`,
    `${inDefault}/SECRETS/chest`,
    `${inDefault}/secrets/chest/.`,
    `${inDefault}/secrets%2Fchest`,
    `/%61pi/v1/namespaces/default/secrets/chest`,
    `/api\\v1\\namespaces\\default\\secrets\\chest`,
    `/api/v1/namespaces/default%2f..%2fdefault/secrets/chest`,
    `/api/v1/namespaces/../namespaces/default/secrets/chest`,
    `/api/v1/watch/../namespaces/default/secrets/chest`,
    `${inDefault}/secrets/chest?x=/../configmaps/innocent`,
    `${inDefault}/secrets/chest#/healthz`,
    `${inDefault}/configmaps/innocent?/../../secrets/chest`,
  ]
  for (const path of paths) {
    test(path.replaceAll('\0', '0'), { timeout: 60_000 }, async () => {
      for (const token of ['alice', 'mallory']) {
        for (const ask of [rawOverHttp1, rawOverHttp2]) {
          const { status, text } = await ask(path, token)
          assert.ok(!text.includes(treasure), `${token} ${status} ${text}`)
          assert.ok(status < 500, `${token} ${status} ${text}`)
        }
      }
    })
  }

  test('the treasure is where it is, for those who may have it', async () => {
    assert.ok((await rawOverHttp1(`${inDefault}/secrets/chest`, 'admin')).text.includes(treasure))
    assert.ok((await rawOverHttp2(`${inDefault}/secrets/chest`, 'admin')).text.includes(treasure))
  })
})

/** Sends 100 MB unless an answer comes before. */
function hugeBody(headers: Readonly<Record<string, string>>): Promise<number> {
  const piece = Buffer.alloc(1024 * 1024, ' ')
  return new Promise((resolve) => {
    const about = { authorization: 'Bearer admin', 'content-type': 'application/json', ...headers }
    const call = request({ host: '127.0.0.1', port: server.port, ca: server.ca, agent: false, method: 'POST', path: `${inDefault}/configmaps`, headers: about })
    let status = 0
    let left = 100
    const send = () => {
      while (left > 0 && status === 0) {
        left--
        if (!call.write(piece)) return void call.once('drain', send)
      }
      call.end()
    }
    call.on('response', (answer) => {
      status = answer.statusCode ?? 0
      answer.resume()
    })
    // The server closes the connection of a client that keeps sending.
    call.on('error', () => undefined)
    call.on('close', () => resolve(status))
    send()
  })
}

describe('API-02 without end', () => {
  test('bodies of 100 megabytes', { timeout: 120_000 }, async () => {
    const held = await server.heldBytes()
    const announced = { 'content-length': String(100 * 1024 * 1024) }
    const { requests } = await server.beside(async () => {
      assert.deepEqual(await Promise.all([hugeBody(announced), hugeBody({}), hugeBody(announced), hugeBody({})]), [413, 413, 413, 413])
    })
    assert.ok(requests > 0)
    assert.ok((await server.heldBytes()) - held < 48 * 1024 * 1024)
  })

  test('a conversion webhook that never answers', { timeout: 120_000 }, async () => {
    const sockets = new Set<Socket>()
    const silent = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => undefined)
    })
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const url = `https://127.0.0.1:${(silent.address() as AddressInfo).port}/convert`
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
    const versions = ['v1', 'v2'].map((name) => ({ name, served: true, storage: name === 'v1', schema }))
    const conversion = { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'], clientConfig: { url } } }
    const names = { plural: 'traps', singular: 'trap', kind: 'Trap', listKind: 'TrapList' }
    const spec = { group: 'silent.dev', scope: 'Namespaced', names, versions, conversion }
    const made = await server.as('admin', 'POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { metadata: { name: 'traps.silent.dev' }, spec })
    assert.equal(made.status, 201, made.text)
    const traps = (version: string) => `/apis/silent.dev/${version}/namespaces/default/traps`
    const trap = { apiVersion: 'silent.dev/v1', kind: 'Trap', metadata: { name: 'one' } }
    const deadline = Date.now() + 60_000
    while ((await server.as('admin', 'POST', traps('v1'), trap)).status === 404 && Date.now() < deadline);
    const { requests } = await server.beside(async () => {
      const waiting = Array.from({ length: 50 }, () => server.as('admin', 'GET', `${traps('v2')}/one`))
      while (sockets.size === 0) await new Promise((resolve) => setTimeout(resolve, 10))
      // Other kinds, and the version that is stored, do not wait for it.
      for (let i = 0; i < 20; i++) assert.equal((await server.as('admin', 'GET', `${traps('v1')}/one`)).status, 200)
      silent.close()
      for (const socket of sockets) socket.destroy()
      for (const { status } of await Promise.all(waiting)) assert.equal(status, 500)
    })
    assert.ok(requests > 0)
  })
})
