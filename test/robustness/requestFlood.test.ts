/**
 * A flood of good and bad input at the real TLS port: 10,000 requests over HTTP/1.1 and HTTP/2, of which most carry a good token and a good client
 * certificate; every connection ends with bytes that may be no HTTP at all. No request is answered with 5xx, every connection is closed, at least half of
 * the answers are a handler's, and memory stays bounded. SKIFF_FUZZ_SEED replays a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Chance, fuzzRun } from './fuzz/chance.ts'
import { malformedHttp1, malformedHttp2, wellFormedHttp1, wellFormedHttp2 } from './fuzz/malformed.ts'
import { type Exchange, exchange, statusesOf } from './fuzz/rawConnection.ts'
import { startServerProcess } from './fuzz/serverProcess.ts'

const parallel = 32
/** Well-formed requests before the bad one. */
const mostBefore = 8
/** How long the server waits for a body that is never sent. */
const requestTimeoutMs = 2_000
const idleTimeoutMs = 250
const closedWithinMs = 60_000
const mostResidentBytes = 600 * 1024 * 1024
/** Answers before any handler runs: the request cannot be read, the client is not authenticated, or the wait was too long. */
const beforeHandlers: ReadonlySet<number> = new Set([400, 401, 403, 408, 413, 431])

const { seed, requests } = fuzzRun(10_000)

test(`API-02 a flood of bad input is refused, and hangs no connection (SKIFF_FUZZ_SEED=${seed})`, { timeout: 600_000 }, async (t) => {
  const server = await startServerProcess(512, { requestTimeoutMs, idleTimeoutMs })
  t.after(() => server.kill())
  const chance = new Chance(seed)
  const counts = new Map<number, number>()
  const failures: string[] = []
  let left = requests
  const one = async () => {
    const known = !chance.once(4)
    const target = { port: server.port, ca: server.ca, client: known ? server.client : undefined }
    const made = randomExchange(chance, known ? server.token : undefined)
    left -= made.answers + 1
    const answer = await exchange(target, made, closedWithinMs)
    for (const status of statusesOf(made.protocol, answer)) {
      counts.set(status, (counts.get(status) ?? 0) + 1)
      if (status >= 500) failures.push(`${status} ${JSON.stringify(made.last.toString('latin1').slice(0, 400))}\n  ${answer.toString('latin1').slice(-300)}`)
    }
  }
  const work = async () => {
    while (left > 0 && failures.length < 5) await one()
  }
  await Promise.all(Array.from({ length: parallel }, work))
  const sum = (wanted: (status: number) => boolean) => [...counts].reduce((total, [status, count]) => total + (wanted(status) ? count : 0), 0)
  const [all, handled] = [sum(() => true), sum((status) => !beforeHandlers.has(status))]
  const answers = [...counts].sort().map(([status, count]) => `${status}: ${count}`)
  t.diagnostic(`answers: ${answers.join(', ')}; ${handled} of ${all} by a handler; most memory: ${Math.round(server.peakBytes() / 1024 / 1024)} MiB`)
  assert.deepEqual(failures, [], server.errors().slice(0, 4_000))
  assert.ok(handled * 2 >= all, 'at least half reach a handler')
  assert.ok(all - handled > requests / 20, 'many do not')
  assert.ok(server.peakBytes() < mostResidentBytes, `${server.peakBytes()} bytes were resident`)
  const target = { port: server.port, ca: server.ca, client: server.client }
  const good = {
    protocol: 'http/1.1',
    first: Buffer.alloc(0),
    answers: 0,
    last: Buffer.from('GET /livez HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n'),
  } as const
  assert.deepEqual(statusesOf('http/1.1', await exchange(target, good, closedWithinMs)), [200])
  await server.stop()
})

function randomExchange(chance: Chance, token: string | undefined): Exchange {
  const answers = chance.int(mostBefore + 1)
  if (chance.once(2)) {
    const first = answers > 0 ? wellFormedHttp2(chance, token, answers) : Buffer.alloc(0)
    return { protocol: 'h2', first, answers, last: malformedHttp2(chance, token, answers) }
  }
  return { protocol: 'http/1.1', first: wellFormedHttp1(chance, token, answers), answers, last: malformedHttp1(chance, token) }
}
