import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createErrorOutput, droppedLines } from './errorOutput.ts'
import { createPrometheusMetrics } from './prometheus.ts'

test('lines that cannot be written are dropped and counted, and the next one that can be says how many', () => {
  const metrics = createPrometheusMetrics()
  const written: string[] = []
  let isFull = false
  const output = createErrorOutput(droppedLines(metrics), (line) => {
    if (isFull) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    written.push(line)
  })
  output.write('one\n')
  isFull = true
  for (const line of ['two\n', 'three\n']) output.write(line)
  isFull = false
  output.write('four\n')
  assert.deepEqual(written, ['one\n', '2 lines before this one could not be written\n', 'four\n'])
  assert.match(metrics.render(), /^skiff_log_lines_dropped_total 2$/m)
})
