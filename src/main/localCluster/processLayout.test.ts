import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { type ClusterState, clusterPaths, readState, writeState } from './clusterState.ts'
import { checkLayout, withLayout } from './processLayout.ts'

const state: ClusterState = { name: 'a', id: '0000', port: 1, nodes: [], simulatedNodes: [], verbosity: 2 }

test('ARC-13 a layout that is given later is kept with the cluster, and none leaves it as it is', async () => {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-layout-'))
  const paths = clusterPaths(home, 'a')
  await writeState(paths, state)
  assert.equal(await withLayout(paths, state, { layout: undefined }), state)
  const changed = await withLayout(paths, state, { layout: 'split' })
  assert.equal(changed.layout, 'split')
  assert.equal((await readState(paths))?.layout, 'split')
  await fs.rm(home, { recursive: true })
})

test('ARC-13 a split layout is refused for several servers, a single one is not', async () => {
  assert.throws(() => checkLayout('split', 2), /--layout split is for a cluster with one server/)
  checkLayout('split', 1)
  checkLayout('single', 3)
  const servers = [
    { name: 'server-1', port: 2 },
    { name: 'server-2', port: 3 },
  ]
  await assert.rejects(withLayout(clusterPaths('/nowhere', 'a'), { ...state, servers }, { layout: 'split' }), /one server/)
})
