/** What requests are counted as, through the whole pipeline. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { textAnswer } from '#apiserver/core/answer'
import { requestOf } from '#apiserver/core/testRequest'
import { createPipeline } from '#apiserver/pipeline/index'
import { baseConfig, pipelineDeps, sendThrough } from '#apiserver/pipeline/testPipeline'
import { VirtualClock } from '#base/virtualClock'
import { createPrometheusMetrics } from '#main/prometheus'

const lines = (text: string, name: string) => text.split('\n').filter((line) => line.startsWith(name))

test('OBS-01 the objectives of a request leave out time in webhooks and queues, its duration does not', async () => {
  const metrics = createPrometheusMetrics()
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const answered = sendThrough(
    { url: '/api/v1/namespaces/default/pods' },
    {
      deps: { metrics, clock },
      handler: async (request) => {
        request.excludedMs = 900
        await clock.sleep(1000, request.cancellation.signal)
        return textAnswer(200, 'ok')
      },
    },
  )
  await clock.advance(1000)
  await answered
  const text = metrics.render()
  assert.match(lines(text, 'apiserver_request_duration_seconds_sum')[0] ?? '', /resource="pods".*\} 1$/)
  assert.match(lines(text, 'apiserver_request_sli_duration_seconds_sum')[0] ?? '', /resource="pods".*\} 0\.1$/)
})

test('OBS-01 requests that are refused because of too many, or run out of time, are counted as terminations; other refusals are not', async () => {
  const metrics = createPrometheusMetrics()
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const deps = pipelineDeps({ metrics, clock })
  let release = () => {}
  const handle = createPipeline(deps, { ...baseConfig, requestTimeoutMs: 5000, maxInFlight: { readOnly: 1, mutating: 1 } }, ({ path }) => {
    if (path === '/version') return textAnswer(404, 'no')
    return new Promise((resolve) => {
      release = () => resolve(textAnswer(200, 'ok'))
    })
  })
  await handle(requestOf({ url: '/version' }))
  const first = handle(requestOf({ url: '/api/v1/nodes' }))
  await handle(requestOf({ url: '/api/v1/pods' }))
  await clock.advance(5000)
  await first
  release()
  const counted = lines(metrics.render(), 'apiserver_request_terminations_total').map((line) => /resource="(\w*)".*code="(\d+)"\} (\d+)$/.exec(line)?.slice(1))
  assert.deepEqual(counted.sort(), [
    ['nodes', '504', '1'],
    ['pods', '429', '1'],
  ])
})
