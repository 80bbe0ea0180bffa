import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { maskOf, type ProviderHints, type TopologyHint } from './hints.ts'
import { topologyOptions, topologyPolicies } from './policies.ts'
import { AdmissionError, createTopologyManager, type HintProvider } from './topologyManager.ts'

const info = { nodes: [0, 1, 2, 3], distance: (from: number, to: number) => (from === to ? 10 : Math.floor(from / 2) === Math.floor(to / 2) ? 12 : 30) }
const hint = (nodes: number[] | undefined, preferred: boolean): TopologyHint => ({ affinity: nodes && maskOf(nodes), preferred })

const all = maskOf(info.nodes)
const cases: { name: string; hints: ProviderHints[]; closest?: boolean; want: Record<string, [number | undefined, boolean]> }[] = [
  { name: 'no provider has a preference', hints: [{}], want: { 'best-effort': [all, true], restricted: [all, true], 'single-numa-node': [undefined, true] } },
  { name: 'no way for one', hints: [{ cpu: [] }], want: { 'best-effort': [all, false], restricted: [all, false], 'single-numa-node': [undefined, false] } },
  {
    name: 'both on one node',
    hints: [{ cpu: [hint([0], true), hint([1], true)] }, { gpu: [hint([1], true)] }],
    want: { 'best-effort': [2, true], restricted: [2, true], 'single-numa-node': [2, true] },
  },
  {
    name: 'on different nodes',
    hints: [{ cpu: [hint([0], true), hint([0, 1], false)] }, { gpu: [hint([1], true)] }],
    want: { 'best-effort': [2, false], restricted: [2, false], 'single-numa-node': [undefined, false] },
  },
  {
    name: 'two nodes needed by both',
    hints: [{ cpu: [hint([0, 1], true)] }, { gpu: [hint([0, 1], true)] }],
    want: { 'best-effort': [3, true], restricted: [3, true], 'single-numa-node': [undefined, false] },
  },
  {
    name: 'the closest of equally many',
    closest: true,
    hints: [{ cpu: [hint([0, 2], true), hint([2, 3], true)] }],
    want: { 'best-effort': [12, true], restricted: [12, true], 'single-numa-node': [undefined, false] },
  },
]
for (const c of cases) {
  test(`KUB-15 topology policies: ${c.name}`, () => {
    for (const [name, want] of Object.entries(c.want)) {
      const decision = topologyPolicies.find((policy) => policy.name === name)?.decide?.(info, c.hints, c.closest ?? false)
      assert.deepEqual([decision?.hint.affinity, decision?.hint.preferred], want, name)
      assert.equal(decision?.admit, name === 'best-effort' || want[1], name)
    }
  })
}

const pod = { metadata: { uid: 'u' }, spec: { initContainers: [{ name: 'i' }], containers: [{ name: 'c' }] } } as unknown as Pod
const options = topologyOptions({})

function provider(hints: ProviderHints, allocate: HintProvider['allocate'] = () => {}): HintProvider {
  return { hints: () => hints, podHints: () => hints, allocate }
}

test('KUB-15 a pod that cannot be aligned is refused as upstream words it', async () => {
  for (const scope of ['container', 'pod']) {
    const manager = createTopologyManager({ policy: 'restricted', scope, options }, info, [provider({ cpu: [hint([0, 1], false)] })])
    assert.deepEqual(await manager.admit(pod), {
      reason: 'TopologyAffinityError',
      message: 'Resources cannot be allocated with Topology locality',
    })
  }
})

test("KUB-15 every provider allocates for every container by the common hint; failures have upstream's reasons", async () => {
  const seen: string[] = []
  const both = provider({ cpu: [hint([1], true)] }, (_pod, container, { affinity }) => {
    seen.push(`${container.name}:${affinity}`)
  })
  const run = (policy: string, ...providers: HintProvider[]) => createTopologyManager({ policy, scope: 'container', options }, info, providers).admit(pod)
  assert.equal(await run('best-effort', both), undefined)
  assert.deepEqual(seen, ['i:2', 'c:2'])
  const failing = (error: Error) => provider({}, () => Promise.reject(error))
  assert.deepEqual(await run('none', failing(new Error('nothing left'))), {
    reason: 'UnexpectedAdmissionError',
    message: 'Allocate failed due to nothing left, which is unexpected',
  })
  assert.deepEqual(await run('none', failing(new AdmissionError('SMTAlignmentError', 'odd'))), {
    reason: 'SMTAlignmentError',
    message: 'odd',
  })
})

test('KUB-15 topology settings that cannot be are refused', () => {
  const create = (policy: string, scope: string) => () => createTopologyManager({ policy, scope, options }, info, [])
  assert.throws(create('nonsense', 'pod'), /unknown policy: "nonsense"/)
  assert.throws(create('none', 'nonsense'), /unknown scope: "nonsense"/)
  const many = { nodes: Array.from({ length: 9 }, (_, id) => id), distance: () => 10 }
  assert.throws(() => createTopologyManager({ policy: 'restricted', scope: 'pod', options }, many, []), /unsupported on machines with more than 8 NUMA Nodes/)
  assert.throws(() => topologyOptions({ 'max-allowable-numa-nodes': '4' }), /should not be less than 8/)
  assert.throws(() => topologyOptions({ other: 'true' }), /unknown Topology Manager Policy option: "other"/)
  assert.equal(topologyOptions({ 'prefer-closest-numa-nodes': 'true' }).preferClosest, true)
})
