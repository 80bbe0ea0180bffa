import assert from 'node:assert/strict'
import { test } from 'node:test'
import { schedulerFixture } from '#testing/schedulerFixture'
import { defaultPluginArgs } from '../framework/pluginArgs.ts'
import { decodeSchedulerConfiguration, defaultSchedulerConfiguration, schedulerConfigOf } from './configuration.ts'

const head = 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n'

test('SCH-14 an empty configuration is the default one', () => {
  const decoded = decodeSchedulerConfiguration(head)
  assert.deepEqual(decoded, defaultSchedulerConfiguration)
  const { parallelism, percentageOfNodesToScore, podInitialBackoffSeconds, podMaxBackoffSeconds, leaderElection, clientConnection, profiles } = decoded
  assert.deepEqual([parallelism, percentageOfNodesToScore, podInitialBackoffSeconds, podMaxBackoffSeconds], [16, 0, 1, 10])
  assert.deepEqual(leaderElection, {
    ...{ leaderElect: true, leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 },
    ...{ resourceLock: 'leases', resourceName: 'kube-scheduler', resourceNamespace: 'kube-system' },
  })
  assert.deepEqual(clientConnection, { kubeconfig: '', qps: 50, burst: 100 })
  assert.deepEqual(profiles, [{ schedulerName: 'default-scheduler', percentageOfNodesToScore: undefined, plugins: {}, args: {} }])
})

const pluginsOf = (yaml: string) => {
  const [profile] = decodeSchedulerConfiguration(`${head}profiles:\n- ${yaml.trim().replaceAll('\n', '\n  ')}\n`).profiles
  const { points, weights } = schedulerFixture(profile ? { profile } : {}).profile
  return { points, weights: Object.fromEntries(points.score.map(({ name }, i) => [name, weights[i]])) }
}

test('SCH-14 plugins are disabled and weighed at all points and at single ones, and the order is upstream', () => {
  const byDefault = pluginsOf('schedulerName: default-scheduler')
  assert.deepEqual([byDefault.weights.TaintToleration, byDefault.weights.NodeAffinity, byDefault.weights.ImageLocality], [3, 2, 1])
  const changed = pluginsOf(`
plugins:
  multiPoint:
    enabled:
    - name: NodeAffinity
      weight: 7
    disabled:
    - name: ImageLocality
  score:
    enabled:
    - name: NodeResourcesFit
      weight: 5
    disabled:
    - name: TaintToleration
  filter:
    disabled:
    - name: '*'
    enabled:
    - name: NodeName
`)
  assert.deepEqual(Object.keys(changed.weights)[0], 'NodeResourcesFit', 'what is named for the point comes first')
  assert.deepEqual([changed.weights.NodeResourcesFit, changed.weights.NodeAffinity], [5, 7])
  assert.ok(!('ImageLocality' in changed.weights) && !('TaintToleration' in changed.weights))
  assert.deepEqual(
    changed.points.filter.map(({ name }) => name),
    ['NodeName'],
  )
})

const faults: { name: string; yaml: string; message: RegExp }[] = [
  {
    name: 'another kind',
    yaml: 'apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n',
    message: /^no kind "KubeSchedulerConfiguration"/,
  },
  { name: 'an unknown field', yaml: `${head}paralelism: 3\n`, message: /^strict decoding error: unknown field "paralelism"$/ },
  { name: 'parallelism', yaml: `${head}parallelism: 0\n`, message: /^parallelism: Invalid value: 0: should be an integer value greater than zero$/ },
  {
    name: 'percentage',
    yaml: `${head}percentageOfNodesToScore: 101\n`,
    message: /^percentageOfNodesToScore: Invalid value: 101: not in valid range \[0-100\]$/,
  },
  {
    name: 'back-off',
    yaml: `${head}podMaxBackoffSeconds: 1\npodInitialBackoffSeconds: 2\n`,
    message: /^podMaxBackoffSeconds: .* must be greater than or equal/,
  },
  {
    name: 'two profiles of one name',
    yaml: `${head}profiles:\n- schedulerName: a\n- schedulerName: a\n`,
    message: /^profiles\[1\]\.schedulerName: Duplicate value/,
  },
  {
    name: 'a profile without a name',
    yaml: `${head}profiles:\n- schedulerName: a\n- percentageOfNodesToScore: 1\n`,
    message: /^profiles\[1\]\.schedulerName: Required value$/,
  },
  {
    name: 'arguments of a plugin',
    yaml: `${head}profiles:\n- pluginConfig:\n  - name: InterPodAffinity\n    args: { hardPodAffinityWeight: 101 }\n`,
    message: /^profiles\[0\]\.pluginConfig\[0\]\.args\.hardPodAffinityWeight: Invalid value: 101: not in valid range \[0, 100\]$/,
  },
  {
    name: 'unknown arguments of a plugin',
    yaml: `${head}profiles:\n- pluginConfig:\n  - name: DefaultPreemption\n    args: { minCandidates: 1 }\n`,
    message: /^decoding args for plugin DefaultPreemption: strict decoding error: unknown field "minCandidates"$/,
  },
  {
    name: 'a strategy without its shape',
    yaml: `${head}profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: { scoringStrategy: { type: RequestedToCapacityRatio } }\n`,
    message: /scoringStrategy\.requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio$/,
  },
  {
    name: 'default constraints together with system constraints',
    yaml: `${head}profiles:\n- pluginConfig:\n  - name: PodTopologySpread\n    args: { defaultConstraints: [{ maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway }] }\n`,
    message: /args\.defaultingType: Invalid value: "System": when \.defaultConstraints are not empty$/,
  },
  {
    name: 'an extender without weight',
    yaml: `${head}extenders:\n- urlPrefix: http://x\n  prioritizeVerb: p\n`,
    message: /^extenders\[0\]\.weight: .* must have a positive weight applied to it$/,
  },
  {
    name: 'two binders',
    yaml: `${head}extenders:\n- { urlPrefix: http://x, bindVerb: b }\n- { urlPrefix: http://y, bindVerb: b }\n`,
    message: /only one extender can implement bind$/,
  },
  {
    name: 'a managed resource without a domain',
    yaml: `${head}extenders:\n- { urlPrefix: http://x, managedResources: [{ name: cpu }] }\n`,
    message: /^extenders\[0\]\.managedResources\[0\]\.name: Invalid value: "cpu": is an invalid extended resource name$/,
  },
  {
    name: 'a lock that does not exist',
    yaml: `${head}leaderElection: { resourceLock: endpoints }\n`,
    message: /^leaderElection\.resourceLock: .*resourceLock value must be "leases"$/,
  },
]
for (const { name, yaml, message } of faults) {
  test(`SCH-14 a configuration is refused: ${name}`, () => {
    assert.throws(
      () => decodeSchedulerConfiguration(yaml),
      (error: Error) => message.test(error.message) || assert.fail(error.message),
    )
  })
}

test('SCH-14 a profile is refused that names a plugin that does not exist, or one for a point that it lacks', () => {
  assert.throws(() => pluginsOf('plugins: { multiPoint: { enabled: [{ name: Nobody }] } }'), /plugin Nobody does not exist/)
  assert.throws(() => pluginsOf('plugins: { bind: { enabled: [{ name: NodeName }] } }'), /plugin NodeName does not extend bind/)
  assert.throws(() => pluginsOf("plugins: { bind: { disabled: [{ name: '*' }] } }"), /at least one bind plugin is needed/)
})

test('SCH-16 NodeResourcesFit ignores resources that an extender manages', () => {
  const extender = '{ urlPrefix: "http://x", filterVerb: f, managedResources: [{ name: example.com/foo, ignoredByScheduler: true }], httpTimeout: 3s }'
  const configuration = decodeSchedulerConfiguration(`${head}extenders: [${extender}]\n`)
  assert.equal(configuration.extenders[0]?.httpTimeoutMs, 3000)
  const [profile] = schedulerConfigOf(configuration).profiles
  assert.deepEqual(profile?.args.NodeResourcesFit, {
    ...{ ignoredResourceGroups: [], scoringStrategy: defaultPluginArgs.NodeResourcesFit.scoringStrategy },
    ignoredResources: ['example.com/foo'],
  })
})
