import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { addonsOf, withAddon } from './addons.ts'
import { type ClusterState, clusterPaths, readState } from './clusterState.ts'
import { ingress } from './ingressAddon.ts'

const state: ClusterState = { name: 'a', id: '0000', port: 40_000, nodes: [{ name: 'a-node-1', index: 0 }], simulatedNodes: [], verbosity: 2 }

test('ING-01 the wish for an ingress is kept with the cluster; turning it off is remembered, so that what was made is removed', async () => {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-ingress-'))
  const paths = clusterPaths(home, 'a')
  try {
    for (const same of [undefined, false]) assert.equal(await withAddon(paths, state, ingress, same), state)
    const on = await withAddon(paths, state, ingress, true)
    assert.deepEqual(addonsOf(on)[0], { addon: 'ingress', enabled: true })
    assert.equal((await readState(paths))?.ingress, true)
    assert.equal(await withAddon(paths, on, ingress, undefined), on)
    await withAddon(paths, on, ingress, false)
    assert.equal((await readState(paths))?.ingress, false)
  } finally {
    await fs.rm(home, { recursive: true })
  }
})

test('ING-01 a cluster without real nodes refuses an ingress', async () => {
  const simulated = { ...state, nodes: [], simulatedNodes: ['a-sim-1'] }
  await assert.rejects(withAddon(clusterPaths('/nowhere', 'a'), simulated, ingress, true), {
    exit: 'unmetPrerequisite',
    message: /needs a node with containerd/,
  })
})
