/**
 * A flood of bad input at the real TLS port: 10,000 requests over HTTP/1.1 and HTTP/2, of which half carry a good token and a good client
 * certificate, many with bytes that are no HTTP at all. Nothing is answered with 5xx, every connection comes to an end, and memory stays bounded.
 * SKIFF_FUZZ_SEED replays a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Chance, fuzzRun } from './fuzz/chance.ts'
import { malformedHttp1, malformedHttp2 } from './fuzz/malformed.ts'
import { exchange, http1Statuses, http2Statuses } from './fuzz/rawConnection.ts'
import { startServerProcess } from './fuzz/serverProcess.ts'

const parallel = 64
/** How long a body that never comes is waited for. */
const bodyWithinMs = 2_000
const closedWithinMs = 20_000
const mostResidentBytes = 600 * 1024 * 1024

const { seed, requests } = fuzzRun(10_000)

test(`API-02 a flood of bad input is refused, and hangs no connection (SKIFF_FUZZ_SEED=${seed})`, { timeout: 120_000 }, async (t) => {
  const server = await startServerProcess(512, bodyWithinMs)
  t.after(() => server.kill())
  const chance = new Chance(seed)
  const counts = new Map<number, number>()
  const failures: string[] = []
  const one = async () => {
    const known = chance.once(2)
    const target = { port: server.port, ca: server.ca, client: known ? server.client : undefined }
    const http2 = chance.once(2)
    const bytes = (http2 ? malformedHttp2 : malformedHttp1)(chance, known ? server.token : undefined)
    const answer = await exchange(target, http2 ? 'h2' : 'http/1.1', bytes, closedWithinMs)
    for (const status of (http2 ? http2Statuses : http1Statuses)(answer)) {
      counts.set(status, (counts.get(status) ?? 0) + 1)
      if (status >= 500) failures.push(`${status} ${JSON.stringify(bytes.toString('latin1').slice(0, 400))}\n  ${answer.toString('latin1').slice(-300)}`)
    }
  }
  let left = requests
  const work = async () => {
    while (left-- > 0 && failures.length < 5) await one()
  }
  await Promise.all(Array.from({ length: parallel }, work))
  const answers = [...counts].sort().map(([status, count]) => `${status}: ${count}`)
  t.diagnostic(`answers: ${answers.join(', ')}; most memory: ${Math.round(server.peakBytes() / 1024 / 1024)} MiB`)
  assert.deepEqual(failures, [], server.errors().slice(0, 4_000))
  assert.ok(server.peakBytes() < mostResidentBytes, `${server.peakBytes()} bytes were resident`)
  const target = { port: server.port, ca: server.ca, client: server.client }
  const good = Buffer.from('GET /livez HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
  assert.deepEqual(http1Statuses(await exchange(target, 'http/1.1', good, closedWithinMs)), [200])
  await server.stop()
})
