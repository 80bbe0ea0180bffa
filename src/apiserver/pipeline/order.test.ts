import assert from 'node:assert/strict'
import test from 'node:test'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { pipelineStages } from './index.ts'

test("API-02 the stages stand in upstream's order", () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const shutdown = new AbortController().signal
  const deps = { clock, log: noLog, metrics: noMetrics, random: seededRandom(1), authenticators: [], authorizers: [], shutdown }
  const stages = pipelineStages(deps, { requestTimeoutMs: 1, maxInFlight: { readOnly: 1, mutating: 1 } })
  assert.deepEqual(
    stages.map(({ name }) => name),
    ['auditInit', 'panicRecovery', 'requestInfo', 'latency', 'drain', 'deadline', 'authentication', 'audit', 'impersonation', 'maxInFlight', 'authorization'],
  )
})
