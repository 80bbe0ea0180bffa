import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addProcessMetrics, factsOf, type ProcessFacts } from './processMetrics.ts'
import { createPrometheusMetrics } from './prometheus.ts'

const stat = '42 (a ) b) S 1 42 42 0 -1 4194560 100 0 0 0 7 3 0 0 20 0 11 0 250 1000000 300 18446744073709551615 1 1'
const machine = 'cpu  1 2 3\nbtime 1700000000\nprocesses 5\n'
const limits = `Limit                     Soft Limit           Hard Limit           Units
Max open files            1024                 20000                files
Max address space         unlimited            unlimited            bytes
`

test('what /proc says of a process is read, whatever its name', () => {
  assert.deepEqual(factsOf(stat, machine, limits), {
    startSeconds: 1_700_000_002.5,
    virtualBytes: 1_000_000,
    maxVirtualBytes: Number.POSITIVE_INFINITY,
    maxFds: 1024,
  })
})

test('OBS-01 every process shows process_* metrics; its CPU time only grows', () => {
  let facts: ProcessFacts = { cpuSeconds: 1.5, residentBytes: 10, ...factsOf(stat, machine, limits), openFds: 20 }
  const metrics = createPrometheusMetrics()
  addProcessMetrics(metrics, () => facts)
  const samples = () =>
    metrics
      .render()
      .split('\n')
      .filter((line) => line.startsWith('process_'))
  const gauges = [
    'process_max_fds 1024',
    'process_open_fds 20',
    'process_resident_memory_bytes 10',
    'process_start_time_seconds 1700000002.5',
    'process_virtual_memory_bytes 1000000',
    'process_virtual_memory_max_bytes 18446744073709552000',
  ]
  assert.deepEqual(samples(), ['process_cpu_seconds_total 1.5', ...gauges])
  facts = { ...facts, cpuSeconds: 4 }
  assert.deepEqual(samples(), ['process_cpu_seconds_total 4', ...gauges])
})

test('of this process, at least CPU time and memory are known', () => {
  const metrics = createPrometheusMetrics()
  addProcessMetrics(metrics)
  const text = metrics.render()
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes'])
    assert.ok(Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]) > 0, name)
})
