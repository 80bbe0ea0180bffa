import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandError } from '#cli/exitCodes'
import type { Progress } from '#cli/progress'
import type { ApiProbe } from './apiProbe.ts'
import { type ClusterState, clusterPaths } from './clusterState.ts'
import { nodesReady } from './nodesReady.ts'

const paths = clusterPaths('/nowhere', 'test')
const ready = { status: { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: '2100-01-01T00:00:00Z' }] } }

/** A cluster whose first `readyCount` simulated nodes are ready; it is looked at once, and then the time is over. */
async function outcome(simulated: number, readyCount: number, real: readonly string[] = []) {
  const state = {
    name: 'test',
    nodes: real.map((name, index) => ({ name, index })),
    simulatedNodes: Array.from({ length: simulated }, (_, index) => `sim-${index + 1}`),
  } as unknown as ClusterState
  const pages: string[] = []
  const reports: string[] = []
  let waitMs = 0
  const probe = {
    get: async (path: string) => {
      pages.push(path)
      const from = Number(new URL(path, 'http://x').searchParams.get('continue') ?? 0)
      const items = state.simulatedNodes.slice(from, Math.min(from + 500, readyCount)).map((name) => ({ metadata: { name }, ...ready }))
      return { status: 200, body: JSON.stringify({ metadata: from + 500 < readyCount ? { continue: String(from + 500) } : {}, items }) }
    },
    until: async (what: string, deadlineMs: number, done: () => Promise<unknown>, missing: () => Promise<string>) => {
      waitMs = deadlineMs
      if ((await done()) === undefined) throw new CommandError('timeout', `${what} did not happen${await missing()}`)
    },
  } as unknown as ApiProbe
  const progress: Progress = { step: (_title, work) => work((text) => void reports.push(text)), note: () => {} }
  return { late: await nodesReady({ paths, state, progress }, probe), pages, reports, waitMs: () => waitMs }
}

test('ARC-13 the wait for nodes grows with their number and reports how many are ready', async () => {
  const few = await outcome(2, 2)
  const many = await outcome(10_000, 10_000)
  assert.deepEqual([few.late, many.late], [undefined, undefined])
  assert.deepEqual([few.reports, many.reports], [['2 of 2'], ['10000 of 10000']])
  assert.ok(many.waitMs() - few.waitMs() > 200_000, `${few.waitMs()} and ${many.waitMs()} ms`)
  assert.equal(many.pages.length, 20)
})

test('ARC-13 a start without all simulated nodes leaves a cluster that serves, and the error says how many are ready', async () => {
  const { late } = await outcome(2000, 1200)
  assert.ok(late)
  assert.deepEqual([late.exit, late.serves], ['timeout', true])
  assert.match(late.message, /: 1200 of 2000 nodes are ready; sim-1201: it has not registered; sim-1202: [^;]*; [^;]*; [^;]*; [^;]*$/)
})

test('ARC-13 a start without a real node fails', async () => {
  await assert.rejects(outcome(2, 2, ['real']), (error: CommandError) => error.exit === 'timeout' && !error.serves)
})
