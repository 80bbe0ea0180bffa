import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chartOf, peakOf, sampleOf, type UsageSample, usageText, withSample } from './usage.ts'

const sample = (atMs: number, values: Readonly<Record<string, number>>): UsageSample => ({
  atMs,
  values: new Map(Object.entries(values).map(([name, cpu]) => [name, { cpu, memory: 0 }])),
})

test('ARC-16 a sample has the usage of nodes, and of pods the sum of their containers', () => {
  const node = { metadata: { name: 'n1' }, usage: { cpu: '1500m', memory: '1Gi' } }
  const pod = { metadata: { namespace: 'a', name: 'web' }, containers: [{ usage: { cpu: '100m', memory: '1Mi' } }, { usage: { cpu: '200m' } }, {}] }
  const { values } = sampleOf([node, pod], 7)
  assert.deepEqual(values.get('n1'), { cpu: 1.5, memory: 2 ** 30 })
  assert.ok(Math.abs((values.get('a/web')?.cpu ?? 0) - 0.3) < 1e-9)
  assert.equal(values.get('a/web')?.memory, 2 ** 20)
})

test('ARC-16 a chart has the series that reached most within its range, with gaps where nothing was measured', () => {
  const samples = [sample(1, { old: 9 }), sample(2, { a: 1, b: 5 }), sample(3, { b: 1, c: 3 })]
  const chart = chartOf(samples, 'cpu', 2, 2)
  assert.deepEqual(chart, {
    atMs: [2, 3],
    series: [
      { name: 'b', values: [5, 1] },
      { name: 'c', values: [null, 3] },
    ],
    left: 1,
  })
  assert.deepEqual([peakOf(chart), peakOf(chartOf([], 'cpu', 0, 2))], [5, 0])
})

test('ARC-16 old samples are dropped when there are too many values', () => {
  const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`p${at}`, 1]))
  let samples: UsageSample[] = []
  for (let at = 0; at < 5; at++) samples = withSample(samples, sample(at, many))
  assert.deepEqual(
    samples.map(({ atMs }) => atMs),
    [2, 3, 4],
  )
})

test('ARC-16 usage is written as kubectl top does, in units for people', () => {
  assert.deepEqual(
    [usageText('cpu', 0.25), usageText('cpu', 2), usageText('memory', 5 * 2 ** 20), usageText('memory', 3 * 2 ** 30)],
    ['250m', '2.00', '5.0 MiB', '3.0 GiB'],
  )
})
