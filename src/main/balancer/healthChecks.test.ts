import assert from 'node:assert/strict'
import { once } from 'node:events'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { test } from 'node:test'
import { createAuthority, issueCertificate } from '../pki/certificates.ts'
import { createRealClock } from '../realClock.ts'
import type { Condition } from './condition.ts'
import { createHealthChecks } from './healthChecks.ts'

const clock = createRealClock()
const ca = await createAuthority('ca', clock.now(), 1)
const otherCa = await createAuthority('other', clock.now(), 1)
const serving = await issueCertificate(ca, { commonName: 's', usage: 'server', hosts: ['127.0.0.1'], validDays: 1 }, clock.now())
const client = await issueCertificate(ca, { commonName: 'c', usage: 'client', validDays: 1 }, clock.now())
/** A server that is ready is asked again only after the test: what is seen earlier came from the end of its connection. */
const times = { readyPauseMs: 60_000, otherPauseMs: 20, timeoutMs: 150, credentialsMs: 60_000 }

/** A server with its checks; `status` 0 leaves requests without an answer. */
async function checked(start: { status: number; authority?: string }, readyPauseMs = times.readyPauseMs) {
  const served = { status: start.status, paths: [] as string[] }
  const sockets = new Set<Duplex>()
  const server = https.createServer({ cert: serving.cert, key: serving.key }, (request, response) => {
    served.paths.push(request.url ?? '')
    if (served.status > 0) response.writeHead(served.status).end()
  })
  server.on('connection', (socket) => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const stop = new AbortController()
  let state: Condition['state'] | undefined
  let reads = 0
  let results = 0
  let changed = () => {}
  const checks = createHealthChecks(
    [{ name: 's', address: '127.0.0.1', port }],
    {
      clock,
      credentials: async () => {
        reads++
        return { ca: start.authority ?? ca.cert, ...client }
      },
      onCondition: (_, condition) => {
        results++
        state = condition.state
        changed()
      },
    },
    { ...times, readyPauseMs },
  )
  const running = checks.run(stop.signal)
  const kill = () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  return {
    served,
    checks,
    kill,
    reads: () => reads,
    /** @param more checks from now on, at least */
    until: (wanted: Condition['state'], more = 0) =>
      new Promise<void>((resolve) => {
        const enough = results + more
        changed = () => {
          if (state === wanted && results >= enough) resolve()
        }
        changed()
      }),
    [Symbol.asyncDispose]: async () => {
      stop.abort()
      await running
      kill()
    },
  }
}

const options = { timeout: 10_000 }

test('HA-01 a server is ready when /readyz answers 200, and not ready when it answers something else', options, async () => {
  await using one = await checked({ status: 200 })
  await one.until('ready')
  one.served.status = 500
  one.checks.checkNow('s')
  await one.until('notReady')
  assert.deepEqual(new Set(one.served.paths), new Set(['/readyz']))
})

test('HA-01 a server that ends is dead at once: its connection tells', options, async () => {
  await using one = await checked({ status: 200 })
  await one.until('ready')
  one.kill()
  await one.until('dead')
})

test('HA-01 a server that stops answering is not ready, and dead after three checks', options, async () => {
  await using one = await checked({ status: 200 }, 20)
  await one.until('ready')
  one.served.status = 0
  await one.until('notReady')
  await one.until('dead')
})

test('HA-01 a server with a certificate of another authority is never ready', options, async () => {
  await using one = await checked({ status: 200, authority: otherCa.cert })
  await one.until('dead')
  assert.deepEqual(one.served.paths, [])
})

test('HA-01 a server that is dead is checked again and again with the credentials that were read once', options, async () => {
  await using one = await checked({ status: 200 })
  await one.until('ready')
  one.kill()
  await one.until('dead', 5)
  assert.equal(one.reads(), 1)
})
