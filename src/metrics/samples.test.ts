/** Upstream's cases of metrics-server pkg/storage (node_test.go, pod_test.go), in seconds since the container's start. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type NodeHistory, type Point, podUsageOf, usageOf, withSample } from './samples.ts'

const start = 1_000_000_000

interface Sampled {
  readonly at: number
  readonly cpu: number
  readonly memory: number
  /** When it was started; absent: with the others, undefined text: unknown. */
  readonly started?: number | 'unknown'
}

const point = ({ at, cpu, memory, started = 0 }: Sampled): Point => ({
  startedAtMs: started === 'unknown' ? 0 : start + started * 1000,
  atMs: start + at * 1000,
  cpuNs: cpu * 1e9,
  memoryBytes: memory * 2 ** 20,
})

function historyOf(samples: readonly (Readonly<Record<string, Sampled>> | undefined)[], of: 'node' | 'pod'): NodeHistory | undefined {
  let history: NodeHistory | undefined
  for (const sample of samples) {
    const points = new Map(Object.entries(sample ?? {}).map(([name, sampled]) => [name, point(sampled)]))
    history = withSample(
      history,
      of === 'node' ? { node: points.get('node'), pods: new Map() } : { node: undefined, pods: new Map(sample ? [['n/p', points]] : []) },
    )
  }
  return history
}

/** [cores, MiB, seconds of the window, seconds at its end] */
const shown = (usage: ReturnType<typeof usageOf>) =>
  usage && [usage.nanoCores / 1e9, usage.memoryBytes / 2 ** 20, usage.windowMs / 1000, (usage.atMs - start) / 1000]

const nodeCases: readonly { readonly name: string; readonly samples: readonly (Sampled | undefined)[]; readonly want: unknown }[] = [
  { name: 'one sample has no rate', samples: [{ at: 10, cpu: 10, memory: 2 }], want: undefined },
  {
    name: 'two samples have the rate between them',
    samples: [
      { at: 10, cpu: 10, memory: 2 },
      { at: 20, cpu: 20, memory: 3 },
    ],
    want: [1, 3, 10, 20],
  },
  {
    name: 'the time of the start is unknown',
    samples: [
      { at: 10, cpu: 10, memory: 2, started: 'unknown' },
      { at: 20, cpu: 20, memory: 3, started: 'unknown' },
    ],
    want: [1, 3, 10, 20],
  },
  { name: 'a sample without the node forgets it', samples: [{ at: 10, cpu: 10, memory: 2 }, { at: 20, cpu: 20, memory: 3 }, undefined], want: undefined },
  {
    name: 'the same measurement twice has no rate',
    samples: [
      { at: 10, cpu: 10, memory: 2 },
      { at: 10, cpu: 10, memory: 2 },
    ],
    want: undefined,
  },
  {
    name: 'a restarted node has no rate',
    samples: [
      { at: 10, cpu: 10, memory: 2 },
      { at: 20, cpu: 5, memory: 3, started: 15 },
    ],
    want: undefined,
  },
  {
    name: 'a counter that falls has no rate',
    samples: [
      { at: 15, cpu: 50, memory: 3 },
      { at: 25, cpu: 10, memory: 5 },
    ],
    want: undefined,
  },
  {
    name: 'a sample older than the earlier two has no rate',
    samples: [
      { at: 15, cpu: 10, memory: 3 },
      { at: 35, cpu: 50, memory: 5 },
      { at: 5, cpu: 6, memory: 2 },
    ],
    want: undefined,
  },
  {
    name: 'a sample between the earlier two is compared with the first',
    samples: [
      { at: 15, cpu: 10, memory: 1 },
      { at: 35, cpu: 50, memory: 4 },
      { at: 25, cpu: 35, memory: 2 },
    ],
    want: [2.5, 2, 10, 25],
  },
  {
    name: 'a window below a second has no rate',
    samples: [
      { at: 10, cpu: 10, memory: 2 },
      { at: 10.999, cpu: 20, memory: 3 },
    ],
    want: undefined,
  },
  {
    name: 'a window below a second is joined with the one before',
    samples: [
      { at: 10, cpu: 10, memory: 2 },
      { at: 20, cpu: 20, memory: 3 },
      { at: 20.5, cpu: 20.5, memory: 4 },
    ],
    want: [1, 4, 10.5, 20.5],
  },
  {
    name: 'a window above ten minutes has no rate',
    samples: [
      { at: 10, cpu: 10, memory: 2 },
      { at: 611, cpu: 20, memory: 3 },
    ],
    want: undefined,
  },
  {
    name: 'two samples after one of another century have the rate between them',
    samples: [
      { at: 3e9, cpu: 20, memory: 3 },
      { at: 10, cpu: 10, memory: 2 },
      { at: 25, cpu: 25, memory: 4 },
    ],
    want: [1, 4, 15, 25],
  },
  {
    name: 'more than nine million cores are no rate',
    samples: [
      { at: 10, cpu: 1, memory: 2 },
      { at: 20, cpu: 9.1e7, memory: 3 },
    ],
    want: undefined,
  },
]
for (const { name, samples, want } of nodeCases) {
  test(`AUT-02 usage of a node: ${name}`, () => {
    const history = historyOf(
      samples.map((node) => node && { node }),
      'node',
    )
    assert.deepEqual(history?.node && shown(usageOf(history.node)), want)
  })
}

type Containers = Readonly<Record<string, Sampled>>

const podCases: readonly { readonly name: string; readonly samples: readonly (Containers | undefined)[]; readonly want: unknown; readonly ends?: number }[] = [
  { name: 'one sample of a container that ran before has no rate', samples: [{ a: { at: 120, cpu: 1, memory: 4 } }], want: undefined },
  {
    name: 'two samples have the rate between them',
    samples: [{ a: { at: 120, cpu: 1, memory: 4 } }, { a: { at: 125, cpu: 6, memory: 5 } }],
    want: [['a', 1, 5, 5, 125]],
  },
  {
    name: 'the time of the start is unknown',
    samples: [{ a: { at: 120, cpu: 1, memory: 4, started: 'unknown' } }, { a: { at: 125, cpu: 6, memory: 5, started: 'unknown' } }],
    want: [['a', 1, 5, 5, 125]],
  },
  {
    name: 'a sample without the pod forgets it',
    samples: [{ a: { at: 120, cpu: 1, memory: 4 } }, { a: { at: 125, cpu: 6, memory: 5 } }, undefined],
    want: undefined,
  },
  { name: 'the same measurement twice has no rate', samples: [{ a: { at: 110, cpu: 1, memory: 4 } }, { a: { at: 110, cpu: 1, memory: 4 } }], want: undefined },
  {
    name: 'its time is the earliest time of its containers',
    samples: [
      { a: { at: 110, cpu: 1, memory: 4 }, b: { at: 115, cpu: 2, memory: 5 } },
      { a: { at: 120, cpu: 6, memory: 6 }, b: { at: 125, cpu: 7, memory: 7 } },
    ],
    want: [
      ['a', 0.5, 6, 10, 120],
      ['b', 0.5, 7, 10, 125],
    ],
    ends: 120,
  },
  {
    name: 'a restarted container has the rate since its start',
    samples: [{ a: { at: 10, cpu: 1, memory: 4 } }, { a: { at: 25, cpu: 5, memory: 5, started: 15 } }],
    want: [['a', 0.5, 5, 10, 25]],
  },
  {
    name: 'a container that was restarted less than 10 s ago has no rate',
    samples: [{ a: { at: 100, cpu: 1, memory: 4 } }, { a: { at: 115, cpu: 5, memory: 5, started: 110 } }],
    want: undefined,
  },
  {
    name: 'a counter that falls leaves out its container',
    samples: [{ a: { at: 110, cpu: 20, memory: 4 } }, { a: { at: 120, cpu: 10, memory: 4 } }],
    want: [],
  },
  {
    name: 'a sample older than the earlier two has no rate',
    samples: [{ a: { at: 1115, cpu: 20, memory: 4 } }, { a: { at: 1125, cpu: 40, memory: 4 } }, { a: { at: 115, cpu: 10, memory: 4 } }],
    want: undefined,
  },
  {
    name: 'a sample between the earlier two is compared with the first',
    samples: [{ a: { at: 115, cpu: 10, memory: 4 } }, { a: { at: 125, cpu: 50, memory: 5 } }, { a: { at: 120, cpu: 35, memory: 5 } }],
    want: [['a', 5, 5, 5, 120]],
  },
  { name: 'a container that started 10 s ago has the rate since its start', samples: [{ a: { at: 10, cpu: 10, memory: 4 } }], want: [['a', 1, 4, 10, 10]] },
  { name: 'a container that started 9 s ago has no rate', samples: [{ a: { at: 9, cpu: 10, memory: 4 } }], want: undefined },
  { name: 'a container that was measured before its start has no rate', samples: [{ a: { at: -10, cpu: 10, memory: 4 } }], want: undefined },
  {
    name: 'a pod with a container that has one sample has no usage',
    samples: [{ a: { at: 110, cpu: 1, memory: 4 } }, { a: { at: 120, cpu: 6, memory: 6 }, b: { at: 120, cpu: 8, memory: 5 } }],
    want: undefined,
  },
]
for (const { name, samples, want, ends } of podCases) {
  test(`AUT-02 usage of a pod: ${name}`, () => {
    const pod = historyOf(samples, 'pod')?.pods.get('n/p')
    const usage = pod && podUsageOf(pod)
    assert.deepEqual(
      usage?.containers.map((container) => [container.name, ...(shown(container.usage) ?? [])]),
      want,
    )
    if (ends !== undefined) assert.equal(usage?.earliest?.atMs, start + ends * 1000)
  })
}
