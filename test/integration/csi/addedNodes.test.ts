/** The host path driver of a cluster whose simulated nodes become more while it runs. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { seededRandom } from '#base/random'
import { createWakeUp } from '#base/wakeUp'
import { csiNodes } from '#client/builtIn'
import { ensureCsiHostPath } from '#main/layouts/csiHostPath/csiHostPathObjects'
import { type CsiHostPathOptions, csiHostPathUser } from '#main/layouts/csiHostPath/csiHostPathOptions'
import { runCsiHostPathProcesses } from '#main/layouts/csiHostPath/csiHostPathProcesses'
import { type ClusterState, clusterPaths, writeState } from '#main/localCluster/clusterState'
import { createPrometheusMetrics } from '#main/prometheus'
import { startCluster } from '#testing/cluster'

test('STO-08 a simulated node that is added while the driver runs gets the driver', async () => {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-csi-'))
  const cluster = await startCluster({ clock: 'real', nodes: ['n1', 'n2'] })
  const { client, clock, log } = cluster
  const paths = clusterPaths(home, 'lab')
  await fs.mkdir(paths.dir, { recursive: true })
  const state: ClusterState = { name: 'lab', id: '0000', port: 0, nodes: [], simulatedNodes: ['n1'], verbosity: 0 }
  const controllerClient = cluster.clientAs({ name: csiHostPathUser, groups: ['system:authenticated'] })
  const tools = { clock, log, random: seededRandom(1), metrics: createPrometheusMetrics() }
  const [changes, stop] = [createWakeUp(), new AbortController()]
  await ensureCsiHostPath(client, stop.signal)
  const running = runCsiHostPathProcesses({ state, paths, tools, client, controllerClient } as unknown as CsiHostPathOptions, changes, stop.signal)
  const withDriver = async () => (await client.of(csiNodes).list()).items.filter(({ spec }) => spec.drivers.length > 0).map(({ metadata }) => metadata.name)
  try {
    await cluster.until(async () => (await withDriver()).join() === 'n1', 10_000)
    await writeState(paths, { ...state, addedNodes: [{ first: 2, count: 1, like: { name: 'n{n}' } }] })
    changes.ring()
    await cluster.until(async () => (await withDriver()).join() === 'n1,n2', 10_000)
    assert.ok((await fs.readdir(path.join(paths.dir, 'csi-hostpath'))).includes('n2'))
  } finally {
    stop.abort()
    await running.catch(() => {})
    await cluster.close()
    await fs.rm(home, { recursive: true })
  }
})
