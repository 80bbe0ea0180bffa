import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { seededRandom } from '#base/random'
import { nodeOf, podOf, schedulerFixture } from '#testing/schedulerFixture'
import { CycleState } from './framework/cycleState.ts'
import type { PluginDefinition } from './framework/plugin.ts'
import { podInfo } from './framework/podInfo.ts'
import { NodeAnswers } from './nodeAnswers.ts'

const tainted = { key: 'dedicated', value: 'batch', effect: 'NoSchedule' }
const soft = { key: 'slow', effect: 'PreferNoSchedule' }

/** Kinds of pods that differ in what the plugins look at. */
const kinds: readonly ((name: string) => Pod)[] = [
  (name) => podOf(name, {}, { cpu: '500m', memory: '256Mi' }),
  (name) => podOf(name, {}, { cpu: '1500m', memory: '64Mi' }),
  (name) => podOf(name, {}, {}),
  (name) => podOf(name, { tolerations: [{ key: 'dedicated', operator: 'Exists' }] }, { cpu: '500m' }),
  (name) => podOf(name, { tolerations: [{ key: 'slow', operator: 'Exists' }] }, { cpu: '100m' }),
  (name) => podOf(name, { tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }] }, { cpu: '500m' }),
  (name) => podOf(name, { nodeSelector: { disk: 'ssd' } }, { cpu: '500m' }),
  (name) => podOf(name, { nodeSelector: { disk: 'hdd' } }, { cpu: '500m' }),
  (name) => podOf(name, { containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 80, hostPort: 80 }] }] }),
  (name) => podOf(name, { containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 80, hostPort: 81 }] }] }),
  (name) => podOf(name, {}, { cpu: '100m', 'example.com/gpu': '1' }),
]

const states = [{}, { unschedulable: true }, { taints: [tainted] }, { taints: [soft] }]

function stateOf(index: number, state: number) {
  const labels = { disk: index % 2 === 0 ? 'ssd' : 'hdd' }
  const node = nodeOf({ name: `n${index}`, cpu: '4', memory: '2Gi', labels, spec: { ...states[state] } })
  if (index % 3 === 0 && node.status?.allocatable) node.status.allocatable['example.com/gpu'] = '2'
  return node
}

test('SCH-19 what plugins said of nodes before changes no decision, whatever happens to nodes and pods', () => {
  for (let seed = 1; seed <= 20; seed++) {
    const random = seededRandom(seed)
    const nodes = Array.from({ length: 12 }, (_, index) => stateOf(index, 0))
    const pair = [schedulerFixture({ nodes }), schedulerFixture({ nodes, remembers: false })] as const
    const placed: Pod[] = []
    for (let step = 0; step < 300; step++) {
      const what = random.int(10)
      if (what === 0) {
        const node = stateOf(random.int(nodes.length), random.int(states.length))
        for (const { cache } of pair) cache.setNode(node)
      } else if (what < 4 && placed.length > 0) {
        const [gone] = placed.splice(random.int(placed.length), 1)
        for (const { cache } of pair) cache.removePod(gone as Pod)
      } else {
        const pod = (kinds[random.int(kinds.length)] as (name: string) => Pod)(`p${step}`)
        const [decided, wanted] = pair.map(({ decide }) => decide(pod))
        assert.deepEqual(decided, wanted, `seed ${seed}, step ${step}`)
        if (!decided || !('on' in decided)) continue
        const bound = { ...pod, spec: { ...pod.spec, nodeName: decided.on } }
        for (const { cache } of pair) cache.setPod(bound)
        placed.push(bound)
      }
    }
  }
})

/** A plugin that counts its calls and returns the signature of `sign`. */
function counting(asked: { filter: number; score: number }, sign?: () => string | undefined): PluginDefinition {
  return {
    name: 'Counting',
    create: () => ({
      name: 'Counting',
      requeueOn: [],
      ...(sign ? { sign } : {}),
      filter: () => {
        asked.filter++
        return undefined
      },
      score: () => {
        asked.score++
        return 7
      },
    }),
  }
}

const cases = [
  // The first pod of its kind is not remembered, the second fills in, the third asks only about the node that the second was put on.
  { name: 'signs', sign: () => 'same', want: { filter: 3 + 3 + 1, score: 3 + 3 + 1 } },
  { name: 'does not sign', sign: undefined, want: { filter: 9, score: 9 } },
  { name: 'cannot sign this pod', sign: () => undefined, want: { filter: 9, score: 9 } },
]

for (const { name, sign, want } of cases)
  test(`SCH-02 a plugin that ${name} is asked about nodes as often as it has to be`, () => {
    const asked = { filter: 0, score: 0 }
    const multiPoint = { enabled: [{ name: 'Counting', weight: 1 }], disabled: [] }
    const options = { otherPlugins: [counting(asked, sign)], profile: { plugins: { multiPoint } } }
    const { cache, decide } = schedulerFixture({ nodes: ['a', 'b', 'c'].map((node) => nodeOf({ name: node })), ...options })
    for (const pod of ['p1', 'p2', 'p3']) {
      const decided = decide(podOf(pod, {}, { cpu: '100m' }))
      if ('on' in decided && pod === 'p2') cache.setPod(podOf(pod, { nodeName: decided.on }, { cpu: '100m' }))
    }
    assert.deepEqual(asked, want)
  })

test('an answer is good for one state of its node, and clones have none', () => {
  const { cache } = schedulerFixture({ nodes: [nodeOf({ name: 'a' }), nodeOf({ name: 'b' })] })
  const [a, b] = [cache.get('a'), cache.get('b')]
  assert.ok(a && b)
  const answers = new NodeAnswers<number>()
  answers.set(b, 5)
  answers.set(b.clone(), 6)
  assert.deepEqual([answers.has(a), answers.has(b), answers.has(b.clone()), answers.get(b)], [false, true, false, 5])
  cache.assume(podInfo(podOf('p')), 'b')
  assert.equal(answers.has(b), false)
})

test('every plugin that signs looks at nothing else: it answers without a state of the cycle', () => {
  const { profile, cache } = schedulerFixture({ nodes: [nodeOf({ name: 'a' })] })
  const node = cache.get('a')
  assert.ok(node)
  const signing = profile.points.filter.filter((plugin) => plugin.sign?.(podInfo(podOf('p'))) !== undefined)
  assert.deepEqual(signing.map(({ name }) => name).sort(), [
    'NodeAffinity',
    'NodeDeclaredFeatures',
    'NodeName',
    'NodePorts',
    'NodeResourcesFit',
    'NodeUnschedulable',
    'TaintToleration',
  ])
  for (const plugin of signing) assert.equal(plugin.filter(new CycleState(), podInfo(podOf('p')), node), undefined, plugin.name)
})
