/**
 * Clients that ask for much and read nothing: watches and lists of objects of a megabyte, over both protocols, in every encoding. What the server keeps
 * for them has a bound, however often the objects change, and is gone when they are.
 */
import assert from 'node:assert/strict'
import type { ClientRequest } from 'node:http'
import http2 from 'node:http2'
import { Agent, request } from 'node:https'
import { after, before, test } from 'node:test'
import { type ServerUnderAttack, startServerUnderAttack } from './serverUnderAttack.ts'

const watchers = 40
const objects = 8
const rounds = 3
/** Rounds of writes before the first test. */
const firstRounds = 2
const objectBytes = 1024 * 1024
const mebibyte = 1024 * 1024
/** Mebibytes for history (8), for watchers that do not read (16), for the store's log (32), and for the buffers of 40 sockets. */
const heldMoreAtMost = 160 * mebibyte
const growsAtMost = 24 * mebibyte
const staysAtMost = 64 * mebibyte
const configMaps = '/api/v1/namespaces/default/configmaps'

let server: ServerUnderAttack
before(async () => {
  server = await startServerUnderAttack({ flags: ['--request-timeout=5s'] })
  // What the histories of the watch caches hold, which are bounded by bytes, is no growth of a round.
  for (let round = 0; round <= firstRounds; round++) for (let index = 0; index < objects; index++) await write(index, round)
})
after(() => server.stop())

async function write(index: number, round: number): Promise<void> {
  const body = { metadata: { name: `large-${index}`, labels: { app: 'large' } }, data: { text: String(round % 10).repeat(objectBytes) } }
  const { status, text } =
    round === 0 ? await server.as('admin', 'POST', configMaps, body) : await server.as('admin', 'PUT', `${configMaps}/large-${index}`, body)
  assert.ok(status < 300, text)
}

interface Unread {
  close(): void
}

/** Each one has a selection of its own, so that nothing of what is made for them is shared. */
const pathOf = (index: number, query: string) => `${configMaps}?labelSelector=app%21%3Dw${index}${query}`

async function overHttp1(accept: string, query: string): Promise<Unread> {
  const agent = new Agent({ ca: server.ca, maxSockets: watchers })
  const calls = await Promise.all(
    Array.from({ length: watchers }, (_, index) => {
      const call = request(`${server.url}${pathOf(index, query)}`, { agent, headers: { authorization: 'Bearer admin', accept } })
      return new Promise<ClientRequest>((resolve, reject) => {
        call.on('error', reject)
        call.on('response', (answer) => {
          answer.on('error', () => {})
          answer.pause()
          answer.socket.pause()
          resolve(call)
        })
        call.end()
      })
    }),
  )
  return {
    close: () => {
      for (const call of calls) call.destroy()
      agent.destroy()
    },
  }
}

async function overHttp2(accept: string, query: string): Promise<Unread> {
  const session = http2.connect(server.url, { ca: server.ca, peerMaxConcurrentStreams: watchers })
  session.on('error', () => {})
  await Promise.all(
    Array.from({ length: watchers }, (_, index) => {
      const stream = session.request({ ':path': pathOf(index, query), authorization: 'Bearer admin', accept })
      stream.on('error', () => {})
      return new Promise((resolve) => stream.on('response', resolve))
    }),
  )
  return { close: () => session.destroy() }
}

const json = 'application/json'
const protobuf = 'application/vnd.kubernetes.protobuf'
const table = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json'
const cases: readonly (readonly [string, (accept: string, query: string) => Promise<Unread>, string, string])[] = [
  ['watches over HTTP/1.1, JSON', overHttp1, json, '&watch=1&timeoutSeconds=600'],
  ['watches over HTTP/1.1, protobuf', overHttp1, protobuf, '&watch=1&timeoutSeconds=600'],
  ['watches over HTTP/2, JSON', overHttp2, json, '&watch=1&timeoutSeconds=600'],
  ['watches over HTTP/2, protobuf', overHttp2, protobuf, '&watch=1&timeoutSeconds=600'],
  ['watches over HTTP/1.1, metadata alone', overHttp1, table, '&watch=1&timeoutSeconds=600'],
  ['lists over HTTP/1.1, JSON', overHttp1, json, ''],
  ['lists over HTTP/2, protobuf', overHttp2, protobuf, ''],
]

let writes = firstRounds
for (const [name, open, accept, query] of cases) {
  test(`API-09 memory is bounded, and falls again, with ${watchers} unread ${name}`, { timeout: 120_000 }, async (t) => {
    const before = await server.heldBytes()
    const unread = await open(accept, query)
    const held: number[] = []
    try {
      for (let round = 0; round < rounds; round++) {
        writes++
        for (let index = 0; index < objects; index++) await write(index, writes)
        held.push((await server.heldBytes()) - before)
      }
    } finally {
      unread.close()
    }
    const deadline = performance.now() + 20_000
    let left = Number.POSITIVE_INFINITY
    while (left > staysAtMost && performance.now() < deadline) left = (await server.heldBytes()) - before
    const mebibytes = [...held, left].map((bytes) => Math.round(bytes / mebibyte))
    t.diagnostic(`MiB more than before after each round, and when they are gone: ${mebibytes.join(', ')}`)
    const [first = 0, ...others] = held
    for (const more of held) assert.ok(more < heldMoreAtMost, `${mebibytes.join(', ')} MiB are held`)
    for (const more of others) assert.ok(more - first < growsAtMost, `it grows by the round: ${mebibytes.join(', ')} MiB`)
    assert.ok(left < staysAtMost, `${left} bytes stay`)
  })
}
