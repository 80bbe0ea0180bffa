import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandError } from '#cli/exitCodes'
import type { ClusterState } from './clusterState.ts'
import { groupOf, growthOf, mostGroupNumbers, nextNumbers, withMoreNodes, withoutGroup, withoutNumbers } from './nodeGroupPlan.ts'
import { type NodeGroup, nextNumber, simulatedNodesOf } from './simulatedPlan.ts'

const group = (name: string, numbers: readonly number[] = [], like: NodeGroup['like'] = {}): NodeGroup => ({ name, min: 0, max: 10, like, numbers })
const stateWith = (nodeGroups: readonly NodeGroup[], more: Partial<ClusterState> = {}): ClusterState =>
  ({ name: 'lab', nodes: [{ name: 'lab-node-1', index: 1 }], simulatedNodes: ['lab-sim-1'], nodeGroups, ...more }) as unknown as ClusterState

test('AUT-05 the nodes of a group have its pattern, label and providerID, and addresses that other nodes do not get', () => {
  const like = { labels: { zone: 'z-{a,b}', 'skiff.dev/node-group': 'other' }, capacity: { cpu: 4 } }
  assert.deepEqual(simulatedNodesOf(stateWith([group('small', [1, 4], like)])).slice(1), [
    {
      name: 'small-1',
      number: 10_001,
      labels: { zone: 'z-a', 'skiff.dev/node-group': 'small' },
      taints: [],
      capacity: { cpu: 4 },
      providerID: 'skiff://lab/small-1',
    },
    {
      name: 'small-4',
      number: 10_004,
      labels: { zone: 'z-b', 'skiff.dev/node-group': 'small' },
      taints: [],
      capacity: { cpu: 4 },
      providerID: 'skiff://lab/small-4',
    },
  ])
})

test('AUT-05 nodes of groups change no number of nodes that "skiff nodes add" adds', () => {
  assert.equal(nextNumber(stateWith([group('small', [1, 2, 3])])), 2)
})

test('AUT-05 a removed node’s number is used again only after all others', () => {
  const [first, second] = [group('a'), group('b')]
  let state = withMoreNodes(stateWith([first, second]), first, 2)
  state = withMoreNodes(state, second, 1)
  state = withoutNumbers(state, groupOf(state, 'a') as NodeGroup, new Set([2]))
  state = withMoreNodes(state, groupOf(state, 'a') as NodeGroup, 1)
  assert.deepEqual(
    state.nodeGroups?.map(({ numbers }) => numbers),
    [[1, 4], [3]],
  )
  assert.deepEqual(nextNumbers({ ...state, lastGroupNumber: mostGroupNumbers - 1 }, 3), [mostGroupNumbers, 2, 5])
})

test('AUT-05 a group that gets no node keeps its place, and a removed group has no nodes', () => {
  const [first, second] = [group('a', [1]), group('b', [2])]
  const state = stateWith([first, second], { lastGroupNumber: 2 })
  assert.deepEqual(withMoreNodes(state, first, 0), state)
  assert.deepEqual(withoutGroup(state, 'a').nodeGroups, [second])
  assert.equal(growthOf(state), 18)
})

test('AUT-05 a node whose name another node has is refused', () => {
  const clash = group('c', [], { name: 'lab-sim-{n}' })
  assert.throws(
    () => withMoreNodes(stateWith([clash]), clash, 1),
    (error) => error instanceof CommandError && error.exit === 'usage' && /"lab-sim-1" to two nodes/.test(error.message),
  )
})
