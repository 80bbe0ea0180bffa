import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCommand as run, running } from '#testing/commandRun'

const simulatedNodes = Array.from({ length: 3 }, (_, at) => ({ name: `a-sim-${at + 1}`, ready: at > 0, runtime: 'simulated' as const, address: '198.18.0.1' }))
const withSimulatedNodes = { status: async () => ({ ...running, nodes: [...running.nodes, ...simulatedNodes] }) }

test('ARC-13 status and ls count simulated nodes, and list them only when asked', async () => {
  const words = ['status', '-o', 'json']
  const short = JSON.parse((await run(words, withSimulatedNodes)).stdout)
  assert.deepEqual([short.nodes, short.simulatedNodes], [running.nodes, { count: 3, ready: 2 }])
  const long = JSON.parse((await run([...words, '--nodes'], withSimulatedNodes)).stdout)
  assert.deepEqual([long.nodes, long.simulatedNodes], [[...running.nodes, ...simulatedNodes], { count: 3, ready: 2 }])
  const text = (await run(['status'], withSimulatedNodes)).stdout
  assert.match(text, /^2 of 3 simulated nodes are Ready\. To list them: skiff nodes ls a$/m)
  assert.doesNotMatch(text, /a-sim-1/)
  assert.match((await run(['status', '--nodes'], withSimulatedNodes)).stdout, /^a-sim-1 +NotReady +simulated +198\.18\.0\.1$/m)
  assert.match((await run(['ls'], withSimulatedNodes)).stdout, /^a +Ready +4 +https:/m)
  const [listed] = JSON.parse((await run(['ls', '-o', 'json'], withSimulatedNodes)).stdout)
  assert.deepEqual([listed.nodes, listed.simulatedNodes], [running.nodes, { count: 3, ready: 2 }])
})

test('X5 status shows since when there is history, and its size', async () => {
  const status = async () => ({ ...running, history: { sinceMs: Date.parse('2026-01-31T14:03:00Z'), bytes: 12.3 * 2 ** 20 } })
  assert.match((await run(['status'], { status })).stdout, /^history: {3}since 2026-01-31T14:03:00Z, 12 MiB$/m)
  assert.doesNotMatch((await run(['status'])).stdout, /history/)
})
