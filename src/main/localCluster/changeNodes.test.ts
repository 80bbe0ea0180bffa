import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { CommandError, type ExitCode } from '#cli/exitCodes'
import type { NodeLike } from '#cli/nodeLike'
import type { ApiProbe } from './apiProbe.ts'
import { addNodes, checkMemory, removeNodes } from './changeNodes.ts'
import { type ClusterState, clusterPaths, readState } from './clusterState.ts'
import { simulatedNodesOf, withoutNewest } from './simulatedPlan.ts'

/** A cluster whose server does as the description says, at once. */
async function withCluster(use: (parts: Parameters<typeof addNodes>[0], probe: ApiProbe) => Promise<void>, serves = true): Promise<void> {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-nodes-'))
  const paths = clusterPaths(home, 'lab')
  const state = {
    ...{ name: 'lab', id: '0000', port: 0, nodes: [], simulatedNodes: ['lab-sim-1', 'lab-sim-2'], verbosity: 0 },
    ranges: { clusterCidr: '10.0.0.0/16', serviceCidr: '10.96.0.0/16' },
  } as unknown as ClusterState
  const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: '2100-01-01T00:00:00Z' }]
  const probe = {
    get: async (url: string) => {
      if (url === '/readyz') return { status: serves ? 200 : 500, body: '' }
      const items = simulatedNodesOf((await readState(paths)) ?? state).map(({ name }) => ({ metadata: { name }, status: { conditions } }))
      return { status: 200, body: JSON.stringify({ metadata: {}, items }) }
    },
    until: async (_what: string, _deadlineMs: number, done: () => Promise<unknown>) => {
      const result = await done()
      assert.ok(result)
      return result
    },
  } as unknown as ApiProbe
  try {
    await use({ paths, state, progress: { step: (_title, work) => work(() => {}), note: () => {} } }, probe)
  } finally {
    await fs.rm(home, { recursive: true })
  }
}

test('ARC-13 added nodes have the labels, taints and capacity of their pattern, and the newest of them are removed', () =>
  withCluster(async (parts, probe) => {
    const like: NodeLike = { name: 'w-{n}', labels: { zone: 'z-{a,b}' }, capacity: { cpu: 4 } }
    await addNodes(parts, probe, 3, like)
    const state = (await readState(parts.paths)) as ClusterState
    assert.deepEqual(simulatedNodesOf(state).slice(2), [
      { name: 'w-3', number: 3, labels: { zone: 'z-a' }, taints: [], capacity: { cpu: 4 } },
      { name: 'w-4', number: 4, labels: { zone: 'z-b' }, taints: [], capacity: { cpu: 4 } },
      { name: 'w-5', number: 5, labels: { zone: 'z-a' }, taints: [], capacity: { cpu: 4 } },
    ])
    await addNodes({ ...parts, state }, probe, 1, {})
    await removeNodes({ ...parts, state: (await readState(parts.paths)) as ClusterState }, probe, 2)
    const names = simulatedNodesOf((await readState(parts.paths)) as ClusterState).map(({ name }) => name)
    assert.deepEqual(names, ['lab-sim-1', 'lab-sim-2', 'w-3', 'w-4'])
  }))

const refused: { name: string; exit: ExitCode; want: RegExp; count?: number; like?: NodeLike; serves?: boolean }[] = [
  { name: 'a pattern gives equal names', exit: 'usage', want: /gives the name "w" to two nodes/, like: { name: 'w' } },
  { name: 'a name is taken', exit: 'usage', want: /"lab-sim-1" to two nodes/, count: 1, like: { name: 'lab-sim-1' } },
  { name: 'there would be too many', exit: 'usage', want: /10000 at most/, count: 10_000 },
  { name: 'the range of pods has no room', exit: 'usage', want: /10\.0\.0\.0\/16 .*room for 256 nodes/, count: 300 },
  { name: 'the cluster does not run', exit: 'unmetPrerequisite', want: /does not run/, serves: false },
]
for (const { name, exit, want, count = 3, like = {}, serves = true } of refused)
  test(`ARC-13 nodes add is refused before anything changes when ${name}`, () =>
    withCluster(async (parts, probe) => {
      await assert.rejects(addNodes(parts, probe, count, like), (error) => error instanceof CommandError && error.exit === exit && want.test(error.message))
      assert.equal(await readState(parts.paths), undefined)
    }, serves))

test('ARC-13 nodes that were not added are not removed', () =>
  withCluster(async (parts, probe) => {
    await assert.rejects(removeNodes(parts, probe, 1), /^CommandError: cluster "lab" has no nodes that "skiff nodes add" added, and those of "skiff up" stay$/)
  }))

test('ARC-13 the refusal to remove more nodes than were added says how many can be removed', () =>
  withCluster(async (parts, probe) => {
    await addNodes(parts, probe, 3, {})
    const state = (await readState(parts.paths)) as ClusterState
    const error = await removeNodes({ ...parts, state }, probe, 1000).catch((caught) => caught)
    assert.ok(error instanceof CommandError)
    assert.equal(error.message, '--simulated 1000: cluster "lab" has 3 nodes that "skiff nodes add" added, and those of "skiff up" stay')
    assert.equal(error.hint, 'remove all that were added with: skiff nodes remove lab --simulated 3')
  }))

test('ARC-13 names of removed nodes stay in the description until the API server says that their Nodes are gone', () =>
  withCluster(async (parts, probe) => {
    await addNodes(parts, probe, 3, {})
    const state = (await readState(parts.paths)) as ClusterState
    const silent = { ...probe, get: async (url: string) => ({ status: url === '/readyz' ? 200 : 500, body: '' }) } as unknown as ApiProbe
    await assert.rejects(removeNodes({ ...parts, state }, silent, 2))
    const left = (await readState(parts.paths)) as ClusterState
    assert.deepEqual(left.removedNodes, ['lab-sim-4', 'lab-sim-5'])
    await removeNodes({ ...parts, state: left }, probe, 1)
    assert.deepEqual(((await readState(parts.paths)) as ClusterState).removedNodes, [])
  }))

test('ARC-13 more nodes than the memory holds are refused, with the memory that they need and that is free', () => {
  checkMemory(1000, 2 ** 30)
  assert.throws(
    () => checkMemory(10_000, 2 ** 30),
    (error) =>
      error instanceof CommandError && error.exit === 'unmetPrerequisite' && /10000 simulated nodes need about \d+ MiB, .* 1024 MiB/.test(error.message),
  )
})

test('ARC-13 the newest nodes leave first, group by group', () => {
  const groups = [
    { first: 3, count: 2, like: {} },
    { first: 5, count: 3, like: {} },
  ]
  assert.deepEqual(withoutNewest(groups, 1), [groups[0], { first: 5, count: 2, like: {} }])
  assert.deepEqual(withoutNewest(groups, 4), [{ first: 3, count: 1, like: {} }])
  assert.deepEqual(withoutNewest(groups, 5), [])
})
