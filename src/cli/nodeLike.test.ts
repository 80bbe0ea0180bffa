import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandError } from './exitCodes.ts'
import { expand, nodeAt, nodeNames, readNodeLike } from './nodeLike.ts'

const patterns: [pattern: string, wanted: string[]][] = [
  ['plain', ['plain', 'plain', 'plain', 'plain']],
  ['worker-{n}', ['worker-1', 'worker-2', 'worker-3', 'worker-4']],
  ['zone-{a,b,c}', ['zone-a', 'zone-b', 'zone-c', 'zone-a']],
  ['rack-{7..8}', ['rack-7', 'rack-8', 'rack-7', 'rack-8']],
  ['{a,b}-{n}', ['a-1', 'b-2', 'a-3', 'b-4']],
]
for (const [pattern, wanted] of patterns)
  test(`ARC-13 the pattern ${pattern} gives each node its value`, () =>
    assert.deepEqual(
      [1, 2, 3, 4].map((number) => expand(pattern, number)),
      wanted,
    ))

test('ARC-13 a Node as YAML becomes the labels, taints and capacity of each node', () => {
  const like = readNodeLike(
    'node.yaml',
    `kind: Node
metadata: {name: "w-{n}", labels: {topology.kubernetes.io/zone: "z-{a,b}", kubernetes.io/hostname: old}}
spec: {taints: [{key: dedicated, value: "team-{1..2}", effect: NoSchedule}]}
status: {capacity: {cpu: 32, memory: 128Gi, pods: "250", nvidia.com/gpu: 8}}
`,
  )
  assert.equal(like.name, 'w-{n}')
  assert.deepEqual(nodeAt(like, 2), {
    labels: { 'topology.kubernetes.io/zone': 'z-b' },
    taints: [{ key: 'dedicated', value: 'team-2', effect: 'NoSchedule' }],
    capacity: { cpu: 32, memoryBytes: 128 * 2 ** 30, pods: 250 },
  })
})

const refused: [text: string, want: RegExp][] = [
  ['kind: Pod', /kind: expected Node/],
  ['a: [', /node\.yaml: .*line 1: /],
  ['- kind: Node', /the file: expected a map/],
  ['{kind: Node, metadata: {labels: {a: 1}}}', /metadata\.labels\[a\]: expected a text/],
  ['{kind: Node, metadata: {labels: {a: "b c"}}}', /metadata\.labels\[a\]: a valid label/],
  ['{kind: Node, metadata: {labels: {a: "z-{a,b c}"}}}', /metadata\.labels\[a\]: a valid label/],
  [`{kind: Node, metadata: {labels: {a: "${'x'.repeat(60)}{n}"}}}`, /metadata\.labels\[a\]: must be no more than 63/],
  ['{kind: Node, spec: {taints: [{key: a, value: "{x,y z}", effect: NoSchedule}]}}', /spec\.taints\[0\]\.value: expected the value of a label/],
  ['{kind: Node, metadata: {name: "w-{9..1}"}}', /\{9\.\.1\} is no pattern/],
  ['{kind: Node, metadata: {name: "w-{}"}}', /\{\} is no pattern/],
  ['{kind: Node, spec: {taints: [{key: a, effect: Never}]}}', /spec\.taints\[0\]\.effect: expected NoSchedule/],
  ['{kind: Node, status: {capacity: {cpu: lots}}}', /status\.capacity\.cpu: expected a quantity/],
  ['{kind: Node, status: {capacity: {memory: -1}}}', /status\.capacity\.memory: expected a quantity/],
]
for (const [text, want] of refused)
  test(`ARC-13 --like refuses ${text}`, () =>
    assert.throws(
      () => readNodeLike('node.yaml', text),
      (error) => error instanceof CommandError && error.exit === 'usage' && want.test(error.message),
    ))

test('ARC-13 a pattern that gives two nodes one name is refused, and so is a name that is none', () => {
  assert.deepEqual(nodeNames('w-{n}', 3, 2, new Set()), ['w-3', 'w-4'])
  assert.throws(() => nodeNames('w-{a,b}', 1, 3, new Set()), /gives the name "w-a" to two nodes/)
  assert.throws(() => nodeNames('w-{n}', 1, 1, new Set(['w-1'])), /"w-1" to two nodes/)
  assert.throws(() => nodeNames('W_{n}', 1, 1, new Set()), /"W_1" cannot be the name of a node/)
})
