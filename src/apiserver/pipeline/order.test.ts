import assert from 'node:assert/strict'
import test from 'node:test'
import type { FlowControl } from '../flowcontrol/flowControl.ts'
import { pipelineStages } from './index.ts'
import { baseConfig, pipelineDeps } from './testPipeline.ts'

const always = [
  ...['auditInit', 'panicRecovery', 'muxAndDiscovery', 'receivedTimestamp', 'requestInfo', 'latency', 'httpLog', 'cacheControl', 'waitGroup'],
  ...['requestDeadline', 'timeout', 'warningRecorder', 'authentication', 'tracing', 'audit', 'impersonation', 'maxInFlight', 'authorization'],
]

test("API-02 the stages stand in upstream's order", () => {
  assert.deepEqual(
    pipelineStages(pipelineDeps(), baseConfig).map(({ name }) => name),
    always,
  )
})

test("API-02 the optional stages stand at upstream's places", () => {
  const config = {
    ...baseConfig,
    shutdownSendRetryAfter: true,
    hstsDirectives: ['max-age=1'],
    goawayChance: 0.01,
    shutdownWatchTerminationGraceMs: 1,
    corsAllowedOrigins: ['.*'],
  }
  const names = pipelineStages(pipelineDeps(), config).map(({ name }) => name)
  assert.deepEqual(names.slice(6, 13), ['httpLog', 'retryAfter', 'hsts', 'cacheControl', 'goaway', 'watchTermination', 'waitGroup'])
  assert.deepEqual(names.slice(15, 18), ['warningRecorder', 'cors', 'authentication'])
  assert.deepEqual(
    names.filter((name) => !always.includes(name)),
    ['retryAfter', 'hsts', 'goaway', 'watchTermination', 'cors'],
  )
})

test('API-18 priority and fairness stands where requests in flight were counted', () => {
  const flowControl = {} as FlowControl
  const names = pipelineStages(pipelineDeps({ flowControl }), baseConfig).map(({ name }) => name)
  assert.deepEqual(
    names,
    always.map((name) => (name === 'maxInFlight' ? 'priorityAndFairness' : name)),
  )
})
