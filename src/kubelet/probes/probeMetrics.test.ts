import assert from 'node:assert/strict'
import test from 'node:test'
import { prometheusText } from '#base/prometheusText'
import type { FrozenPod } from '../core/containers.ts'
import { createProbeMetrics } from './probeMetrics.ts'

const pod = { metadata: { namespace: 'ns', name: 'web', uid: 'u-1' }, spec: { containers: [] } } as unknown as FrozenPod

test('KUB-17 probes are counted by result and timed, until the pod is gone', () => {
  const metrics = createProbeMetrics()
  metrics.observe(pod, 'main', 'liveness', 'Success', 0.02)
  metrics.observe(pod, 'main', 'liveness', 'Failure', 3)
  metrics.observe(pod, 'main', 'readiness', 'Success', 0.001)
  metrics.observe(pod, 'main', 'startup', 'Unknown', 0.5)
  const lines = prometheusText(metrics.families()).split('\n')
  assert.ok(lines.some((line) => line.startsWith('prober_probe_total{') && line.endsWith('result="unknown"} 1')))
  const labels = 'container="main",namespace="ns",pod="web",probe_type="Liveness"'
  assert.ok(lines.includes(`prober_probe_total{${labels},pod_uid="u-1",result="successful"} 1`))
  assert.ok(lines.includes(`prober_probe_total{${labels},pod_uid="u-1",result="failed"} 1`))
  assert.ok(lines.includes(`prober_probe_duration_seconds_bucket{${labels},le="0.025"} 1`))
  assert.ok(lines.includes(`prober_probe_duration_seconds_bucket{${labels},le="+Inf"} 1`))
  assert.ok(lines.includes(`prober_probe_duration_seconds_sum{${labels}} 0.02`))
  metrics.remove('u-1')
  assert.ok(!prometheusText(metrics.families()).includes('u-1'))
})
