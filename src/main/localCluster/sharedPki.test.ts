import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { realClock } from '#testing/realClock'
import { type ClusterState, clusterPaths, writeState } from './clusterState.ts'
import { loadPki, loadSharedPki } from './sharedPki.ts'

test('HA-01 commands and servers that find no certificates at the same time get the same ones', async () => {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-pki-'))
  try {
    const paths = clusterPaths(home, 'a')
    const state: ClusterState = { name: 'a', id: '0123', port: 1, nodes: [], simulatedNodes: [], verbosity: 0 }
    await writeState(paths, state)
    const deps = { clock: realClock }
    const loaded = await Promise.all([loadPki(deps, paths, state), loadSharedPki(paths, state, realClock).then(({ pki }) => pki), loadPki(deps, paths, state)])
    assert.equal(new Set(loaded.map(({ ca }) => ca.cert)).size, 1)
    assert.equal(new Set(loaded.map(({ serviceAccountKey }) => serviceAccountKey)).size, 1)
  } finally {
    await fs.rm(home, { recursive: true })
  }
})
