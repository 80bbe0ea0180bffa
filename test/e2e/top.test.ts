/** kubectl top on a real node and on simulated ones, with metrics.k8s.io as the cluster itself computes it. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, LocalCluster, obstacleToCluster } from './support/localCluster.ts'
import { writeWebImage } from './support/webImage.ts'

const skip = obstacleToCluster(true)
const options = { skip }
const name = 'e2e-top'
let cluster: LocalCluster

const pod = (podName: string, spec: object, annotations: Record<string, string> = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: podName, labels: { app: podName }, annotations },
  spec: { terminationGracePeriodSeconds: 0, ...spec },
})

/** Uses half a core, and keeps 44 MiB in memory. */
const busy = 'dd if=/dev/zero of=/memory/file bs=1M count=44; while :; do :; done'
const objects = [
  pod('busy', {
    nodeName: `${name}-node-1`,
    containers: [
      {
        name: 'main',
        image: 'web-app:1.0',
        command: ['sh', '-c', busy],
        resources: { limits: { cpu: '500m' } },
        volumeMounts: [{ name: 'memory', mountPath: '/memory' }],
      },
      { name: 'idle', image: 'web-app:1.0', command: ['sleep', '3600'] },
    ],
    volumes: [{ name: 'memory', emptyDir: { medium: 'Memory' } }],
  }),
  pod(
    'scripted',
    { nodeName: `${name}-sim-1`, containers: [{ name: 'main', image: 'example.com/app' }] },
    { 'skiff.dev/simulated-cpu-milli': '250', 'skiff.dev/simulated-memory-bytes': '67108864' },
  ),
]

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start(name, ['--nodes', '1', '--simulated-nodes', '2'])
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
  await cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }), ['apply', '-f', '-'])
  await cluster.must(['wait', '--for=condition=Ready', 'pod', '--all', '--timeout=60s'])
})

after(async () => {
  if (!skip) await cluster?.delete()
})

/** Rows of `kubectl top` once there are so many, each measured over two samples. */
async function top(args: readonly string[], rows: number): Promise<string[][]> {
  const answer = await eventually(
    `${rows} rows of kubectl top ${args.join(' ')}`,
    60_000,
    () => cluster.kubectl(['top', ...args, '--no-headers']),
    ({ stdout }) => stdout.trim().split('\n').length === rows && stdout.trim() !== '' && !stdout.includes('<unknown>'),
  )
  return answer.stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/ +/))
}

test('AUT-02 kubectl top pods shows a container that uses half a core and 44 MiB, and one that sleeps', options, async () => {
  const rows = await top(['pods', '-l', 'app=busy', '--containers'], 2)
  const of = (container: string) => rows.find((row) => row[1] === container) ?? []
  const [milli, mebibytes] = [Number.parseInt(of('main')[2] ?? '', 10), Number.parseInt(of('main')[3] ?? '', 10)]
  // On a busy machine it gets less than its limit.
  assert.ok(milli > 50 && milli < 600, `${milli}m`)
  assert.ok(mebibytes >= 44 && mebibytes < 60, `${mebibytes}Mi`)
  assert.ok(Number.parseInt(of('idle')[2] ?? '', 10) < 50)
})

test('AUT-02 kubectl top pods shows what the annotations of a simulated pod say', options, async () => {
  // The first usage of a container is that since its start, which the status has to a second.
  const shown = () => cluster.kubectl(['top', 'pods', 'scripted', '--no-headers'])
  await eventually('the usage of the annotations', 60_000, shown, ({ stdout }) => /^scripted +250m +64Mi *$/.test(stdout.trim()))
  const sorted = await top(['pods', '-l', 'app in (busy,scripted)', '--sort-by=cpu'], 2)
  assert.deepEqual(sorted.map(([first]) => first).sort(), ['busy', 'scripted'])
})

test('AUT-02 kubectl top nodes shows a real node and simulated ones', options, async () => {
  const rows = await top(['nodes'], 3)
  const [real, one, two] = ['node-1', 'sim-1', 'sim-2'].map((suffix) => rows.find((row) => row[0] === `${name}-${suffix}`))
  assert.ok(Number.parseInt(real?.[1] ?? '', 10) > 50, String(real))
  assert.ok(Number.parseInt(real?.[3] ?? '', 10) > 40, String(real))
  assert.deepEqual([one?.[1], one?.[3]], ['250m', '64Mi'])
  assert.deepEqual([two?.[1], two?.[3]], ['0m', '0Mi'])
})

test('KUB-17 kubectl get podworkers shows what the kubelets of real and simulated nodes do, to administrators alone', options, async () => {
  const rows = (await cluster.must(['get', 'podworkers', '--no-headers'])).split('\n').map((line) => line.trim().split(/ +/))
  assert.deepEqual(
    rows.map(([node, syncing, terminating]) => [node, Number(syncing) > 0, terminating]),
    [
      [`${name}-node-1`, true, '0'],
      [`${name}-sim-1`, true, '0'],
      [`${name}-sim-2`, false, '0'],
    ],
  )
  const workers = await cluster.must(['get', 'podworkers', `${name}-sim-1`, '-o', 'jsonpath={.workers[*].name} {.workers[*].stage}'])
  assert.equal(workers, 'scripted syncing')
  const refused = await cluster.kubectl(['get', 'podworkers', '--as=jane', '--as-group=system:nodes'])
  assert.match(refused.stderr, /is forbidden: User "jane" cannot list resource "podworkers" in API group "node\.skiff\.dev"/)
})

test('AUT-02 AUZ-01 users see the usage of pods of namespaces whose objects they may read, and of no others', options, async () => {
  await cluster.must(['create', 'rolebinding', 'reader', '--clusterrole=view', '--user=jane'])
  const allowed = await cluster.must(['top', 'pods', 'scripted', '--no-headers', '--as=jane'])
  assert.match(allowed, /^scripted +250m +64Mi/)
  for (const args of [['pods', '-A'], ['pods', '-n', 'kube-system'], ['nodes']]) {
    const refused = await cluster.kubectl(['top', ...args, '--as=jane'])
    assert.match(refused.stderr, /is forbidden: User "jane" cannot list resource "(pods|nodes)" in API group "metrics\.k8s\.io"/, args.join(' '))
  }
})
