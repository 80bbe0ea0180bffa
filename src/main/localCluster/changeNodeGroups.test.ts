import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { NewNodeGroup } from '#cli/clusterManager'
import { CommandError, type ExitCode } from '#cli/exitCodes'
import type { ApiProbe } from './apiProbe.ts'
import { createNodeGroup, deleteNodeGroup, nodeGroupStatuses, scaleNodeGroup } from './changeNodeGroups.ts'
import type { Change } from './changeNodes.ts'
import { type ClusterState, clusterPaths, readState, writeState } from './clusterState.ts'
import { simulatedNodesOf } from './simulatedPlan.ts'

interface Lab {
  /** The cluster as it is described now. */
  change(): Promise<Change>
  readonly probe: ApiProbe
}

const noProgress: Change['progress'] = { step: (_title, work) => work(() => {}), note: () => {} }

/** A cluster whose server does as the description says, at once. */
async function withLab(use: (lab: Lab) => Promise<void>, serves = true): Promise<void> {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-groups-'))
  const paths = clusterPaths(home, 'lab')
  const state = {
    ...{ name: 'lab', id: '0000', port: 0, nodes: [], simulatedNodes: ['lab-sim-1'], verbosity: 0 },
    ranges: { clusterCidr: '10.0.0.0/16', serviceCidr: '10.96.0.0/16' },
  } as unknown as ClusterState
  const now = async () => (await readState(paths)) ?? state
  const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: '2100-01-01T00:00:00Z' }]
  const probe = {
    get: async (url: string) => {
      if (!serves) return undefined
      const items = simulatedNodesOf(await now()).map(({ name }) => ({ metadata: { name }, status: { conditions } }))
      return { status: 200, body: url === '/readyz' ? 'ok' : JSON.stringify({ metadata: {}, items }) }
    },
    until: async (_what: string, _deadlineMs: number, done: () => Promise<unknown>) => {
      const result = await done()
      assert.ok(result)
      return result
    },
  } as unknown as ApiProbe
  try {
    await writeState(paths, state)
    await use({ change: async () => ({ paths, state: await now(), progress: noProgress }), probe })
  } finally {
    await fs.rm(home, { recursive: true })
  }
}

const small: NewNodeGroup = { name: 'small', min: 1, max: 5, size: 2, like: { capacity: { cpu: 4 } } }

test('AUT-05 a group is created, scaled in both directions by its newest nodes, and deleted with its nodes', () =>
  withLab(async ({ change, probe }) => {
    const groups = async () => nodeGroupStatuses((await change()).state, probe)
    await createNodeGroup(await change(), probe, small)
    assert.deepEqual(await groups(), [{ name: 'small', min: 1, max: 5, size: 2, ready: 2, nodes: ['small-1', 'small-2'] }])
    await scaleNodeGroup(await change(), probe, 'small', 4)
    await scaleNodeGroup(await change(), probe, 'small', 3)
    assert.deepEqual((await groups())[0]?.nodes, ['small-1', 'small-2', 'small-3'])
    await scaleNodeGroup(await change(), probe, 'small', 3)
    await createNodeGroup(await change(), probe, { ...small, name: 'large', min: 0, size: 0 })
    assert.deepEqual(
      (await groups()).map(({ name, size }) => [name, size]),
      [
        ['small', 3],
        ['large', 0],
      ],
    )
    for (const name of ['small', 'large']) await deleteNodeGroup(await change(), probe, name)
    const { state } = await change()
    assert.deepEqual([state.nodeGroups, state.removedNodes, simulatedNodesOf(state).length], [[], [], 1])
  }))

const refused: { name: string; exit: ExitCode; want: RegExp; group?: Partial<NewNodeGroup>; serves?: boolean }[] = [
  { name: 'the group exists', exit: 'alreadyExists', want: /cluster "lab" has a node group "there"/, group: { name: 'there' } },
  { name: 'its nodes would have one name', exit: 'usage', want: /the pattern "w" gives one name/, group: { like: { name: 'w' } } },
  { name: 'a name is taken', exit: 'usage', want: /"lab-sim-1" to two nodes/, group: { like: { name: 'lab-sim-{n}' } } },
  { name: 'the cluster cannot have its most nodes', exit: 'usage', want: /10000 at most/, group: { max: 10_000 } },
  { name: 'the range of pods has no room for its most nodes', exit: 'usage', want: /room for 256 nodes/, group: { max: 252 } },
  { name: 'the cluster does not run', exit: 'unmetPrerequisite', want: /does not run/, serves: false },
]
for (const { name, exit, want, group, serves = true } of refused)
  test(`AUT-05 nodegroup create is refused before anything changes when ${name}`, () =>
    withLab(async ({ change, probe }) => {
      const { paths, state } = await change()
      const before = { ...state, nodeGroups: [{ name: 'there', min: 0, max: 4, like: {}, numbers: [] }] }
      await writeState(paths, before)
      const rejected = createNodeGroup(await change(), probe, { ...small, ...group })
      await assert.rejects(rejected, (error) => error instanceof CommandError && error.exit === exit && want.test(error.message))
      assert.deepEqual((await change()).state, JSON.parse(JSON.stringify(before)))
    }, serves))

test('AUT-05 nodegroup scale is refused outside the limits of the group, and for a group that does not exist', () =>
  withLab(async ({ change, probe }) => {
    await createNodeGroup(await change(), probe, small)
    for (const size of [0, 6]) {
      await assert.rejects(
        scaleNodeGroup(await change(), probe, 'small', size),
        new RegExp(`^CommandError: ${size}: the size of node group "small" is from 1 to 5$`),
      )
    }
    for (const act of [scaleNodeGroup, deleteNodeGroup]) {
      await assert.rejects(act(await change(), probe, 'no', 1), (error) => error instanceof CommandError && error.exit === 'notFound')
    }
  }))

test('AUT-05 the groups of a cluster that does not answer have no ready nodes', () =>
  withLab(async ({ change, probe }) => {
    const { state } = await change()
    const [status] = await nodeGroupStatuses({ ...state, nodeGroups: [{ ...small, numbers: [7] }] }, probe)
    assert.deepEqual([status?.size, status?.ready, status?.nodes], [1, 0, ['small-7']])
  }, false))
