import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodSandbox, RuntimeContainer } from '#grpc/criTypes'
import { createRecordedMetrics } from '#testing/recordedMetrics'
import { type GarbageDeps, removeOrphans } from './gc.ts'

/** A node on which a pod arrives and gets its sandbox and container while orphans are looked for. */
function nodeWhileAPodArrives(gone: readonly string[] = ['gone'], fails: ReadonlySet<string> = new Set()) {
  const known = new Set<string>(['known'])
  const removed: string[] = []
  const note =
    (what: string) =>
    async (...given: readonly unknown[]) => {
      if (fails.has(String(given[0]))) throw new Error(`${given[0]} is busy`)
      removed.push([what, ...given].join(' '))
    }
  const sandbox = (uid: string): PodSandbox => ({
    id: `s-${uid}`,
    metadata: { name: 'p', uid, namespace: 'n', attempt: 0 },
    state: 'SANDBOX_READY',
    createdAt: 1,
    labels: {},
    annotations: {},
    runtimeHandler: '',
  })
  const container = (uid: string): RuntimeContainer => ({
    id: `c-${uid}`,
    podSandboxId: `s-${uid}`,
    metadata: { name: 'c', attempt: 0 },
    image: { image: '' },
    imageRef: '',
    state: 'CONTAINER_RUNNING',
    createdAt: 1,
    labels: { 'io.kubernetes.pod.uid': uid },
    annotations: {},
  })
  const arrive = () => known.add('arriving')
  const metrics = createRecordedMetrics()
  const deps = {
    context: {
      metrics,
      resources: { releaseOthers: async () => {} },
      runtime: {
        listContainers: async () => {
          arrive()
          return ['known', 'arriving', ...gone].map(container)
        },
        listPodSandbox: async () => ['known', 'arriving', ...gone].map(sandbox),
        stopContainer: note('stop'),
        removeContainer: note('remove'),
        stopPodSandbox: note('stop'),
        removePodSandbox: note('remove'),
      },
    },
    allocations: { forgetOthers: () => {} },
    workers: { get: (uid: string) => (known.has(uid) ? { metadata: { uid } } : undefined), list: () => [...known].map((uid) => ({ metadata: { uid } })) },
  }
  return { deps: deps as unknown as GarbageDeps, removed, metrics }
}

test('KUB-02 orphans are what was there without a pod, never what a pod has made that came during the look', async () => {
  const { deps, removed, metrics } = nodeWhileAPodArrives()
  await removeOrphans(deps)
  assert.equal(metrics.values.get('kubelet_orphaned_runtime_pods_total'), 1)
  assert.deepEqual(removed, ['stop c-gone 1', 'remove c-gone', 'stop s-gone', 'remove s-gone'])
})

test('KUB-02 an orphan that the runtime cannot remove keeps none of the others', async () => {
  const gone = Array.from({ length: 30 }, (_, i) => `gone-${i}`)
  const { deps, removed } = nodeWhileAPodArrives(gone, new Set(['s-gone-0']))
  await assert.rejects(removeOrphans(deps), { message: 's-gone-0 is busy' })
  for (const uid of gone.slice(1)) assert.ok(removed.includes(`remove s-${uid}`), uid)
})
