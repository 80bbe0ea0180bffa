/** Upstream's cases of metrics-server pkg/scraper/client/resource/decode_test.go, and answers of kubelets that lie. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readResourceMetrics } from './resourceMetrics.ts'

const nowMs = Date.parse('2021-10-03T09:40:00Z')
const labels = '{container="coredns",namespace="kube-system",pod="coredns-1"}'
const cpu = (value: number, ending = ' 1633253812125') => `container_cpu_usage_seconds_total${labels} ${value}${ending}\n`
const memory = (value: number, ending = ' 1633253812125') => `container_memory_working_set_bytes${labels} ${value}${ending}\n`
const started = `container_start_time_seconds${labels} 1.633252712e+9 1633253812125\n`
const nodeCpu = (value: number, ending = ' 1633253809720') => `node_cpu_usage_seconds_total ${value}${ending}\n`
const nodeMemory = (value: number, ending = ' 1633253809720') => `node_memory_working_set_bytes ${value}${ending}\n`

let turns = 0
const clock = { turn: async () => void turns++ }
const bound = (namespace: string, pod: string) => (namespace === 'kube-system' && pod === 'coredns-1' ? new Set(['coredns', 'two']) : undefined)

async function read(text: string) {
  const { node, pods } = await readResourceMetrics(text, nowMs, bound, clock)
  return { node, pods: Object.fromEntries([...pods].map(([key, containers]) => [key, Object.fromEntries(containers)])) }
}

const node = { startedAtMs: 0, atMs: 1_633_253_809_720, cpuNs: 357_354_910_000, memoryBytes: 1_616_273_408 }
const coredns = { startedAtMs: 1_633_252_712_000, atMs: 1_633_253_812_125, cpuNs: 4_710_169_000, memoryBytes: 12_533_760 }
const nothing = { node: undefined, pods: {} }

const cases: readonly (readonly [name: string, text: string, want: object])[] = [
  [
    'a whole answer',
    [
      '\n# HELP container_cpu_usage_seconds_total [ALPHA] text {with="braces"}\n# TYPE container_cpu_usage_seconds_total counter\n',
      cpu(4.710169),
      memory(1.253376e7),
      started,
      nodeCpu(357.35491),
      nodeMemory(1.616273408e9),
      'pod_cpu_usage_seconds_total{namespace="kube-system",pod="coredns-1"} 4.67812 1633253803935\nscrape_error 0\n',
    ].join(''),
    { node, pods: { 'kube-system/coredns-1': { coredns } } },
  ],
  [
    'without times: the time of the request',
    [cpu(4.710169, ''), memory(1.253376e7, ''), started, nodeCpu(357.35491, ''), nodeMemory(1.616273408e9, '')].join(''),
    { node: { ...node, atMs: nowMs }, pods: { 'kube-system/coredns-1': { coredns: { ...coredns, atMs: nowMs } } } },
  ],
  ['only a container', cpu(4.710169) + memory(1.253376e7) + started, { node: undefined, pods: { 'kube-system/coredns-1': { coredns } } }],
  ['only the node', nodeCpu(357.35491) + nodeMemory(1.616273408e9), { node, pods: {} }],
  ['a container without CPU', memory(1.253376e7), nothing],
  ['a container whose CPU is zero', cpu(0) + memory(1.253376e7), nothing],
  ['a container without memory', cpu(4.710169), nothing],
  ['a container whose memory is zero', cpu(4.710169) + memory(0), nothing],
  [
    'one incomplete container of two',
    `${cpu(4.710169) + memory(1.253376e7)}container_cpu_usage_seconds_total{namespace="kube-system",pod="coredns-1",container="two"} 1\n`,
    nothing,
  ],
  ['a node without CPU', nodeMemory(1.616273408e9), nothing],
  ['a node whose CPU is zero', nodeCpu(0) + nodeMemory(1.616273408e9), nothing],
  ['a node without memory', nodeCpu(357.35491), nothing],
  ['a node whose memory is zero', nodeCpu(357.35491) + nodeMemory(0), nothing],
  ['nothing', '', nothing],
  ['a node that was measured an hour in the future', nodeCpu(1, ` ${nowMs + 3_600_001}`) + nodeMemory(1, ` ${nowMs + 3_600_001}`), nothing],
  ['a node that was measured more than an hour ago', nodeCpu(1, ` ${nowMs - 3_600_001}`) + nodeMemory(1, ` ${nowMs - 3_600_001}`), nothing],
  ['a pod that was measured in the year 9999', cpu(1, ' 253402300799000') + memory(1, ' 253402300799000') + started, nothing],
  ['a pod of which one container was measured in 1970', (cpu(1) + memory(1)).replaceAll('"coredns"', '"two"') + cpu(1, ' 1') + memory(1, ' 1'), nothing],
  ['no line break at the end', (nodeCpu(357.35491) + nodeMemory(1.616273408e9)).trimEnd(), { node, pods: {} }],
  ['a pod that is not bound to the node', (cpu(1) + memory(1)).replaceAll('coredns-1', 'victim'), nothing],
  ['a container that the pod does not have', (cpu(1) + memory(1)).replaceAll('"coredns"', '"invented"'), nothing],
  ['names of members of every object', `${(cpu(1) + memory(1)).replaceAll('coredns-1', 'constructor')}constructor 1\n__proto__{a="b"} 1\n`, nothing],
]
for (const [name, text, want] of cases) {
  test(`AUT-02 /metrics/resource is read: ${name}`, async () => assert.deepEqual(await read(text), want))
}

const refused: readonly (readonly [name: string, text: string])[] = [
  ['a negative value', nodeCpu(-1)],
  ['no number', 'node_cpu_usage_seconds_total many\n'],
  ['a number that is none', 'node_cpu_usage_seconds_total NaN\n'],
  ['an infinite value', 'node_memory_working_set_bytes +Inf\n'],
  ['a value beyond 2^53', 'node_memory_working_set_bytes 1e300\n'],
  ['a time before 1970', `container_start_time_seconds${labels} 1 -62135596800000\n`],
  ['a time after the year 9999', nodeCpu(1, ' 253402300800000')],
  ['labels without an end', 'container_cpu_usage_seconds_total{container="a",pod="b"\n'],
  ['a label without quotes', 'container_cpu_usage_seconds_total{container=a} 1\n'],
  ['two labels without a comma', 'container_cpu_usage_seconds_total{container="a"pod="b"} 1\n'],
  ['no value', 'node_cpu_usage_seconds_total\n'],
  ['a line of a megabyte', `container_cpu_usage_seconds_total{container="${'\\"'.repeat(500_000)}`],
]
for (const [name, text] of refused) {
  test(`AUT-02 an answer of /metrics/resource is refused as a whole: ${name}`, async () => {
    await assert.rejects(read(nodeCpu(357.35491) + nodeMemory(1.616273408e9) + text), /not a measurement|longer than/)
  })
}

test('AUT-02 a kubelet that reports a hundred thousand containers of other nodes occupies no memory, and the event loop gets its turn', async () => {
  turns = 0
  const flood = Array.from({ length: 100_000 }, (_, index) => `container_cpu_usage_seconds_total{container="c",namespace="n",pod="p${index}"} 1`)
  const sample = await read(flood.join('\n'))
  assert.deepEqual(sample, nothing)
  assert.equal(turns, 50)
})
