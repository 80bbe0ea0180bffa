/** Explanations from the real plugins: who refuses what, and which changes were enough when tried. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod } from '#api/gen/types/core.v1'
import { createDecisionLog } from '#scheduler/decisions'
import { podInfo } from '#scheduler/framework/podInfo'
import { SchedulingQueue } from '#scheduler/schedulingQueue'
import { nodeOf, podOf, schedulerFixture } from '#testing/schedulerFixture'
import { createExplainer, explainPod } from './explainer.ts'

function explain(pod: Pod, nodes: Node[], placed: Pod[] = []) {
  const { cache, nominator, clock, profile } = schedulerFixture({ nodes, placed })
  const profiles = new Map([['default-scheduler', profile]])
  const queue = new SchedulingQueue({ clock, profiles, initialBackoffMs: 1000, maxBackoffMs: 10_000 })
  if (!pod.spec.nodeName) queue.add(pod)
  const found = explainPod({ cache, nominator, queue, profiles, decisions: createDecisionLog() }, 'default', pod.metadata.name ?? '')
  queue.close()
  assert.ok(found)
  return found
}

const port = (hostPort: number) => ({ containers: [{ name: 'c', image: 'a', ports: [{ containerPort: 80, hostPort }] }] })
const required = (key: string, operator: string, values: string[] = []) => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator, values }] }] } } },
})

interface Case {
  readonly name: string
  readonly pod: Pod
  readonly node: Node
  readonly placed?: Pod[]
  readonly want: string[] | undefined
}

const node = (shape: Partial<Parameters<typeof nodeOf>[0]> = {}) => nodeOf({ name: 'a', ...shape })
const cases: Case[] = [
  { name: 'a smaller request', pod: podOf('p', {}, { cpu: '3' }), node: node({ cpu: '2500m' }), want: ['request 500m less of cpu: 2500m instead of 3'] },
  {
    name: 'room on a full node',
    pod: podOf('p', {}, { cpu: '1' }),
    node: node({ cpu: '1' }),
    placed: [podOf('q', { nodeName: 'a' }, { cpu: '1' })],
    want: ['free 1 of cpu on the node, or add as much'],
  },
  {
    name: 'fewer pods',
    pod: podOf('p'),
    node: node({ pods: '1' }),
    placed: [podOf('q', { nodeName: 'a' })],
    want: ['take 1 pod away from the node, which may hold 1'],
  },
  {
    name: 'a toleration',
    pod: podOf('p'),
    node: node({ spec: { taints: [{ key: 'gpu', value: 'only', effect: 'NoSchedule' }] } }),
    want: ['tolerate the taint gpu=only:NoSchedule'],
  },
  {
    name: 'uncordoning, which takes the taint of cordoned nodes along',
    pod: podOf('p'),
    node: node({ spec: { unschedulable: true, taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] } }),
    want: ['let the node take pods again: kubectl uncordon a'],
  },
  { name: 'a label', pod: podOf('p', { nodeSelector: { disk: 'ssd' } }), node: node(), want: ['label the node disk=ssd'] },
  { name: 'a label for affinity', pod: podOf('p', required('zone', 'In', ['z1', 'z2'])), node: node(), want: ['label the node zone=z1'] },
  {
    name: 'a label that must go',
    pod: podOf('p', required('old', 'DoesNotExist')),
    node: node({ labels: { old: 'yes' } }),
    want: ['take the label old from the node'],
  },
  {
    name: 'a free port',
    pod: podOf('p', port(80)),
    node: node(),
    placed: [podOf('q', { ...port(80), nodeName: 'a' })],
    want: ['free host port 80/TCP, which default/q holds'],
  },
  {
    name: 'several things at once',
    pod: podOf('p', { nodeSelector: { disk: 'ssd' } }, { memory: '10Gi' }),
    node: node({ spec: { taints: [{ key: 'k', effect: 'NoExecute' }] } }),
    want: ['tolerate the taint k:NoExecute', 'label the node disk=ssd', 'request 2Gi less of memory: 8Gi instead of 10Gi'],
  },
  {
    name: 'none, where pods keep each other away',
    pod: podOf('p', {}, {}, { app: 'x' }),
    node: node(),
    placed: [
      podOf('q', {
        nodeName: 'a',
        affinity: {
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'x' } } }],
          },
        },
      }),
    ],
    want: undefined,
  },
]

for (const { name, pod, node: one, placed, want } of cases)
  test(`LRN-04 what would have to change: ${name}`, () => {
    const { nodes } = explain(pod, [one], placed)
    assert.equal(nodes[0]?.fits, false)
    assert.deepEqual(
      nodes[0]?.changes?.map(({ text }) => text),
      want,
    )
  })

test('LRN-04 every plugin evaluates every node, and nodes with the fewest changes are listed first', () => {
  const both = nodeOf({ name: 'both', cpu: '1', spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } })
  const found = explain(podOf('p', {}, { cpu: '2' }), [both, nodeOf({ name: 'one', cpu: '1' }), nodeOf({ name: 'fits' })])
  assert.deepEqual(
    found.nodes.map(({ node: name, fits, refusals }) => [name, fits, refusals.map(({ plugin }) => plugin)]),
    [
      ['fits', true, []],
      ['one', false, ['NodeResourcesFit']],
      ['both', false, ['TaintToleration', 'NodeResourcesFit']],
    ],
  )
  assert.equal(found.state, 'Active')
})

test('LRN-04 a pod that runs does not stand in its own way', () => {
  const pod = podOf('p', { nodeName: 'a', ...port(80) }, {})
  const { state, node: on, nodes } = explain(pod, [nodeOf({ name: 'a', pods: '1' })], [pod])
  assert.deepEqual([state, on, nodes[0]?.fits], ['Scheduled', 'a', true])
})

test('LRN-04 gates are named; unknown pods are distinguished from schedulers that do not run', () => {
  const gated = explain(podOf('p', { schedulingGates: [{ name: 'example.com/wait' }] }), [nodeOf({ name: 'a' })])
  assert.deepEqual([gated.state, gated.schedulingGates, gated.gatedBy], ['Gated', ['example.com/wait'], 'SchedulingGates'])
  const explainer = createExplainer()
  assert.equal(explainer.explain('default', 'p'), undefined)
  const { cache, nominator, clock, profile } = schedulerFixture()
  const profiles = new Map([['default-scheduler', profile]])
  const queue = new SchedulingQueue({ clock, profiles, initialBackoffMs: 1000, maxBackoffMs: 10_000 })
  const detach = explainer.attach({ cache, nominator, queue, profiles, decisions: createDecisionLog() })
  assert.equal(explainer.explain('default', 'p'), 'unknown')
  cache.assume(podInfo(podOf('p')), 'a')
  assert.equal((explainer.explain('default', 'p') as { state: string }).state, 'Binding')
  detach()
  assert.equal(explainer.explain('default', 'p'), undefined)
  queue.close()
})
