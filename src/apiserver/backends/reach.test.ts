import assert from 'node:assert/strict'
import { createServer, request as httpRequest } from 'node:http'
import { type AddressInfo, connect, type LookupFunction } from 'node:net'
import { test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { VirtualClock } from '#base/virtualClock'
import { realClock } from '#testing/realClock'
import { createWebhookPool, postText } from '../webhooks/webhookClient.ts'
import type { Backend, ForwardedRequest } from './backend.ts'
import { dial, open } from './connect.ts'
import { type Dialer, httpAgent, type Reach, UnreachableAddress, wayTo } from './reach.ts'

/** Addresses of this block stand for a cluster's; a dialer leads all of them to a server of the test. */
const isOfCluster = (address: string) => address.startsWith('10.244.')

/** A server behind the dialer, and a reach that notes what was dialled. */
async function withCluster(work: (world: { reach: Reach; dialled: string[] }) => Promise<void>): Promise<void> {
  const server = createServer((_request, response) => response.end('from the cluster'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const dialled: string[] = []
  const reach: Reach = {
    dialerFor: (address) => {
      if (address === '10.244.9.9') throw new UnreachableAddress(`${address} is the address of a simulated pod`)
      if (!isOfCluster(address)) return undefined
      return (host, wanted) =>
        new Promise((resolve, reject) => {
          dialled.push(`${host}:${wanted}`)
          const socket = connect(port, '127.0.0.1', () => resolve(socket))
          socket.once('error', reject)
        })
    },
  }
  try {
    await work({ reach, dialled })
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

const request: ForwardedRequest = { method: 'GET', path: '/', headers: {}, remoteAddress: '', cancellation: { signal: new AbortController().signal } }
const backend = (changes: Partial<Backend>): Backend => ({ host: '10.244.1.5', port: 80, path: '/', ...changes })

test('API-29 a request to an address of the cluster goes over a connection of the dialer', () =>
  withCluster(async ({ reach, dialled }) => {
    const response = await open(request, backend({ reach }))
    assert.equal(Buffer.concat(await response.toArray()).toString(), 'from the cluster')
    ;(await dial(backend({ reach }), new AbortController().signal)).destroy()
    assert.deepEqual(dialled, ['10.244.1.5:80', '10.244.1.5:80'])
  }))

test('API-29 an agent keeps a connection of the dialer for the next request', () =>
  withCluster(async ({ reach, dialled }) => {
    const agent = httpAgent(reach, { keepAlive: true })
    try {
      for (let i = 0; i < 3; i++) await (await open(request, backend({ reach, agent }))).toArray()
      assert.deepEqual(dialled, ['10.244.1.5:80'])
    } finally {
      agent.destroy()
    }
  }))

test('API-29 an address that leads nowhere is answered with 503 and the reason, without a connection', () =>
  withCluster(async ({ reach, dialled }) => {
    const nowhere = backend({ reach, host: '10.244.9.9' })
    const { signal } = new AbortController()
    for (const attempt of [() => open(request, nowhere), () => dial(nowhere, signal), () => dial({ ...nowhere, tls: {} }, signal)]) {
      const error = await attempt().catch((thrown: unknown) => thrown)
      assert.ok(isStatus(error, 'ServiceUnavailable'), String(error))
      assert.match((error as Error).message, /10\.244\.9\.9 is the address of a simulated pod$/)
    }
    await assert.rejects(
      postText({ url: 'https://10.244.9.9/hook', reach }, '{}', { clock: realClock, timeoutMs: 1000 }),
      /10\.244\.9\.9 is the address of a simulated pod/,
    )
    assert.deepEqual(dialled, [])
  }))

test("API-29 a dial carries the name of the user whose request needs it, and none for the server's own calls", async () => {
  const users: (string | undefined)[] = []
  const dialer: Dialer = async (_address, _port, _signal, user) => {
    users.push(user)
    throw new Error('refused')
  }
  const reach: Reach = { dialerFor: () => dialer }
  const user = { name: 'jane', groups: [] }
  await assert.rejects(open({ ...request, user }, backend({ reach })))
  await assert.rejects(dial(backend({ reach }), new AbortController().signal, user.name))
  await assert.rejects(postText({ url: 'https://10.244.9.9/hook', reach }, '{}', { clock: realClock, timeoutMs: 1000 }))
  assert.deepEqual(users, ['jane', 'jane', undefined])
})

/** A reach whose dials do not end by themselves, and how many of them are under way. */
function silentCluster() {
  const dials = { started: 0, open: 0 }
  const dialer: Dialer = (_address, _port, signal) =>
    new Promise((_resolve, reject) => {
      dials.started++
      dials.open++
      signal?.addEventListener('abort', () => {
        dials.open--
        reject(signal.reason)
      })
    })
  return { dials, reach: { dialerFor: () => dialer } satisfies Reach }
}

for (const tls of [undefined, {}])
  test(`API-29 a dial for a request over ${tls ? 'HTTPS' : 'HTTP'} ends when its client goes away`, { timeout: 10_000 }, async () => {
    const { dials, reach } = silentCluster()
    const client = new AbortController()
    const answer = open({ ...request, cancellation: client }, backend({ reach, tls }))
    while (dials.started === 0) await new Promise((resolve) => setImmediate(resolve))
    client.abort()
    await assert.rejects(answer, /the client went away/)
    assert.deepEqual(dials, { started: 1, open: 0 })
  })

test('API-29 a dial to a webhook ends with the timeout of its call', { timeout: 10_000 }, async () => {
  const { dials, reach } = silentCluster()
  const clock = new VirtualClock()
  const answer = postText({ url: 'https://10.244.1.5/hook', reach, pool: createWebhookPool(reach) }, '{}', { clock, timeoutMs: 1000 })
  answer.catch(() => undefined)
  while (dials.started === 0) await new Promise((resolve) => setImmediate(resolve))
  await clock.advance(1000)
  await assert.rejects(answer, /context deadline exceeded$/)
  assert.deepEqual(dials, { started: 1, open: 0 })
})

const answering =
  (...addresses: string[]): LookupFunction =>
  (_name, _options, done) =>
    done(
      null,
      addresses.map((address) => ({ address, family: 4 })),
    )

test('API-29 a name is dialled at the addresses of one look-up, in the cluster if one of them is there', () =>
  withCluster(async ({ reach }) => {
    const outside = await wayTo(reach, 'example.test', answering('192.0.2.1', '192.0.2.2'))
    assert.equal(outside.dialer, undefined)
    outside.lookup('example.test', { all: true }, (_error, found) =>
      assert.deepEqual(found, [
        { address: '192.0.2.1', family: 4 },
        { address: '192.0.2.2', family: 4 },
      ]),
    )
    const inside = await wayTo(reach, 'example.test', answering('192.0.2.1', '10.244.1.5'))
    assert.ok(inside.dialer)
    assert.equal(inside.address, '10.244.1.5')
    await assert.rejects(wayTo(reach, 'example.test', answering('10.244.9.9')), /simulated pod/)
  }))

test('API-29 an address outside the cluster is connected to by this process', () =>
  withCluster(async ({ reach, dialled }) => {
    const server = createServer((_request, response) => response.end('from outside'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    try {
      const place = { host: 'localhost', port: (server.address() as AddressInfo).port }
      const text = await new Promise((resolve, reject) => {
        httpRequest({ ...place, agent: httpAgent(reach) }, (response) => resolve(response.toArray().then((parts) => Buffer.concat(parts).toString())))
          .on('error', reject)
          .end()
      })
      assert.equal(await text, 'from outside')
      ;(await dial(backend({ reach, ...place }), new AbortController().signal)).destroy()
      assert.deepEqual(dialled, [])
    } finally {
      server.closeAllConnections()
      server.close()
    }
  }))
