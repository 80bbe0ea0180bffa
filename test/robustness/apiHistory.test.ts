/**
 * Random histories of the API against a model, 100,000 writes in process under virtual time and 2,000 over the wire: every write gets the right
 * answer, every watcher gets every event once and in order, every list equals a past state, and 410 is answered only for compacted history.
 * A failure prints its seed and the shortest prefix that fails; SKIFF_FUZZ_SEED replays it, SKIFF_FUZZ_REQUESTS sets the number of writes.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { Transport } from '#client/transport'
import { createMemoryStore } from '#store/drivers/memory'
import { startTestApiServer } from '#testing/apiServer'
import { httpClient } from '../integration/api/bothTransports.ts'
import { establish } from '../integration/crd/support.ts'
import { fuzzRun } from './fuzz/chance.ts'
import { namespaces, widgets } from './history/kinds.ts'
import { type HistoryCounts, HistoryFailure, type HistorySize, type HistoryWorld, runHistory } from './history/run.ts'

const { seed, requests } = fuzzRun(100_000)
/** Virtual: short enough for watches to end. */
const minWatchTimeoutMs = 400_000

test(`API-08 API-05 histories of ${requests} writes agree with the model (SKIFF_FUZZ_SEED=${seed})`, { timeout: 600_000 }, async (t) => {
  const perHistory = Math.min(requests, 10_000)
  const counts = noCounts()
  for (let done = 0; done < requests; done += perHistory) {
    await explore(t, virtualWorld, seed + done / perHistory, { writes: perHistory, watchers: 16, checkEvery: 12 }, counts)
  }
  t.diagnostic(JSON.stringify(counts))
  assert.ok(counts.events > counts.accepted / 4, 'there was something to see')
  if (requests >= 100_000) assert.ok(counts.expired > 0 && counts.ended > 0 && counts.compactions > 0, 'history was gone for somebody')
})

test(`API-08 API-05 a history over the wire agrees with the model (SKIFF_FUZZ_SEED=${seed})`, { timeout: 600_000 }, async (t) => {
  const counts = noCounts()
  await explore(t, wireWorld, seed, { writes: Math.min(requests, 2_000), watchers: 8, checkEvery: 6 }, counts)
  t.diagnostic(JSON.stringify(counts))
  assert.ok(counts.events > counts.accepted / 4, 'there was something to see')
})

function noCounts(): HistoryCounts {
  return { writes: 0, accepted: 0, compactions: 0, events: 0, opened: 0, resumed: 0, expired: 0, ended: 0, lists: 0, pages: 0 }
}

/** Runs a history; when it fails, reports its shortest prefix that fails. */
async function explore(t: TestContext, create: () => Promise<HistoryWorld>, historySeed: number, size: HistorySize, counts: HistoryCounts): Promise<void> {
  const failure = await attempt(create, historySeed, size, counts)
  if (!failure) return
  const shorter = await attempt(create, historySeed, { ...size, checkEvery: 1, rounds: failure.round + 1 }, noCounts())
  t.diagnostic(`SKIFF_FUZZ_SEED=${historySeed} fails in round ${(shorter ?? failure).round}`)
  throw shorter ?? failure
}

async function attempt(create: () => Promise<HistoryWorld>, historySeed: number, size: HistorySize, counts: HistoryCounts) {
  const world = await create()
  try {
    await runHistory(world, historySeed, size, counts)
    return undefined
  } catch (error) {
    if (error instanceof HistoryFailure) return error
    throw error
  } finally {
    await world.close()
  }
}

async function virtualWorld(): Promise<HistoryWorld> {
  const clock = new VirtualClock('2026-01-01T00:00:00Z', () => new Promise((resolve) => setImmediate(resolve)))
  const store = createMemoryStore({ clock })
  const api = await startTestApiServer({ clock, store, minWatchTimeoutMs })
  await prepare(api.client.transport, () => establish(api.client, widgets))
  return { transport: api.client.transport, store, nowMs: () => clock.now(), advance: (ms) => clock.advance(ms), close: () => api.close() }
}

async function wireWorld(): Promise<HistoryWorld> {
  const api = await startTestApiServer({})
  const { client, close } = await httpClient(api)
  await prepare(client.transport, () => establish(client, widgets))
  const closeAll = async () => {
    await close()
    await api.close()
  }
  return { transport: client.transport, store: api.store, nowMs: () => api.clock.now(), advance: () => Promise.resolve(), close: closeAll }
}

async function prepare(transport: Transport, define: () => Promise<unknown>): Promise<void> {
  for (const name of namespaces) await transport.request({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name } } })
  await define()
}
