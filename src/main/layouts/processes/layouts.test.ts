import assert from 'node:assert/strict'
import fs from 'node:fs'
import { test } from 'node:test'
import { layoutNames } from '#cli/clusterManager'
import type { ClusterState } from '../../localCluster/clusterState.ts'
import { layoutOf, layouts } from './index.ts'

const names = (count: number) => Array.from({ length: count }, (_, at) => `a-sim-${at + 1}`)
const servers = [
  { name: 'server-1', port: 1 },
  { name: 'server-2', port: 2 },
]
const state = (given: Partial<ClusterState>): ClusterState => ({
  name: 'a',
  id: '0000',
  port: 1,
  nodes: [],
  simulatedNodes: names(500),
  verbosity: 2,
  ...given,
})

const cases: readonly { readonly name: string; readonly given: Partial<ClusterState>; readonly cores: number; readonly want: string }[] = [
  { name: 'many simulated nodes on many cores', given: {}, cores: 3, want: 'split' },
  { name: 'auto', given: { layout: 'auto' }, cores: 3, want: 'split' },
  { name: 'two cores', given: {}, cores: 2, want: 'single' },
  { name: 'few simulated nodes', given: { simulatedNodes: names(499) }, cores: 64, want: 'single' },
  { name: 'several servers', given: { servers }, cores: 64, want: 'single' },
  { name: 'single, as asked for', given: { layout: 'single' }, cores: 64, want: 'single' },
  { name: 'split, as asked for, on one core and without nodes', given: { layout: 'split', simulatedNodes: [] }, cores: 1, want: 'split' },
]
for (const { name, given, cores, want } of cases) {
  test(`ARC-13 the layout of processes is ${want} with ${name}`, () => assert.equal(layoutOf(state(given), cores).name, want))
}

test('ARC-13 the list of layouts has each name of the flag once, and a file for each', () => {
  assert.deepEqual(
    layouts.map(({ name }) => name),
    [...layoutNames],
  )
  for (const { name } of layouts) assert.ok(fs.existsSync(new URL(`./${name}.ts`, `file://${import.meta.dirname}/`)))
})
