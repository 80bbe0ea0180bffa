/** Events of components in the situations that users meet, by upstream's reasons and messages; and how long they are kept. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { cronJobs, deployments, events, jobs, nodes, persistentVolumeClaims, pods } from '#client/builtIn'
import { startCluster } from '#testing/cluster'

const namespace = 'default'
const labels = { app: 'web' }
const image = 'registry.example.com/a:1'
const containers = [{ name: 'c', image }]
const once = { spec: { restartPolicy: 'Never', containers } }

/** Pods with their annotations and what their spec has in addition. */
const somePods: Readonly<Record<string, readonly [annotations: Readonly<Record<string, string>>, spec: object]>> = {
  big: [{}, { containers: [{ name: 'c', image, resources: { requests: { cpu: '1000' } } }] }],
  picky: [{}, { nodeSelector: { disk: 'none' } }],
  unpulled: [{ 'skiff.dev/simulated-pull-error': 'no such image' }, { containers: [{ name: 'c', image: 'registry.example.com/gone:1' }] }],
  crashing: [{ 'skiff.dev/simulated-exit-after-seconds': '1', 'skiff.dev/simulated-exit-code': '3' }, {}],
  unlively: [
    { 'skiff.dev/simulated-liveness': 'fail' },
    { containers: [{ name: 'c', image, livenessProbe: { exec: { command: ['true'] }, periodSeconds: 1, failureThreshold: 2 } }] },
  ],
  claiming: [{}, { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'missing' } }] }],
}

interface Row {
  readonly kind: string
  /** How the object's name begins. */
  readonly name: string
  readonly type?: 'Warning'
  readonly reason: string
  readonly from: string
  readonly message: RegExp
}

const rows: readonly Row[] = [
  { kind: 'Deployment', name: 'web', reason: 'ScalingReplicaSet', from: 'deployment-controller', message: /^Scaled up replica set web-\w+ from 0 to 2$/ },
  { kind: 'Deployment', name: 'web', reason: 'ScalingReplicaSet', from: 'deployment-controller', message: /^Scaled down replica set web-\w+ from 2 to 1$/ },
  { kind: 'ReplicaSet', name: 'web-', reason: 'SuccessfulCreate', from: 'replicaset-controller', message: /^Created pod: web-\w+-\w+$/ },
  { kind: 'ReplicaSet', name: 'web-', reason: 'SuccessfulDelete', from: 'replicaset-controller', message: /^Deleted pod: web-\w+-\w+$/ },
  { kind: 'Pod', name: 'web-', reason: 'Scheduled', from: 'default-scheduler', message: /^Successfully assigned default\/web-\w+-\w+ to n1$/ },
  { kind: 'Pod', name: 'web-', reason: 'Pulling', from: 'kubelet', message: /^Pulling image "registry\.example\.com\/a:1"$/ },
  {
    kind: 'Pod',
    name: 'web-',
    reason: 'Pulled',
    from: 'kubelet',
    message: /^Successfully pulled image "registry\.example\.com\/a:1" in \S+ \(\S+ including waiting\)\. Image size: \d+ bytes\.$/,
  },
  {
    kind: 'Pod',
    name: 'once-',
    reason: 'Pulled',
    from: 'kubelet',
    message: /^Container image "registry\.example\.com\/a:1" already present on machine and can be accessed by the pod$/,
  },
  { kind: 'Pod', name: 'web-', reason: 'Created', from: 'kubelet', message: /^Container created$/ },
  { kind: 'Pod', name: 'web-', reason: 'Started', from: 'kubelet', message: /^Container started$/ },
  { kind: 'Pod', name: 'web-', reason: 'Killing', from: 'kubelet', message: /^Stopping container c$/ },
  {
    kind: 'Pod',
    name: 'big',
    type: 'Warning',
    reason: 'FailedScheduling',
    from: 'default-scheduler',
    message: /^0\/1 nodes are available: 1 Insufficient cpu\. .*preemption: 0\/1 nodes are available: 1 Preemption is not helpful for scheduling\.$/,
  },
  {
    kind: 'Pod',
    name: 'picky',
    type: 'Warning',
    reason: 'FailedScheduling',
    from: 'default-scheduler',
    message: /^0\/1 nodes are available: 1 node\(s\) didn't match Pod's node affinity\/selector\. /,
  },
  {
    kind: 'Pod',
    name: 'claiming',
    type: 'Warning',
    reason: 'FailedScheduling',
    from: 'default-scheduler',
    message: /^0\/1 nodes are available: persistentvolumeclaim "missing" not found\. /,
  },
  {
    kind: 'Pod',
    name: 'unpulled',
    type: 'Warning',
    reason: 'Failed',
    from: 'kubelet',
    message: /^Failed to pull image "registry\.example\.com\/gone:1": .*no such image/,
  },
  { kind: 'Pod', name: 'unpulled', type: 'Warning', reason: 'Failed', from: 'kubelet', message: /^Error: ErrImagePull$/ },
  { kind: 'Pod', name: 'unpulled', reason: 'BackOff', from: 'kubelet', message: /^Back-off pulling image "registry\.example\.com\/gone:1"/ },
  { kind: 'Pod', name: 'unpulled', type: 'Warning', reason: 'Failed', from: 'kubelet', message: /^Error: ImagePullBackOff$/ },
  {
    kind: 'Pod',
    name: 'crashing',
    type: 'Warning',
    reason: 'BackOff',
    from: 'kubelet',
    message: /^Back-off restarting failed container c in pod crashing_default\([-0-9a-f]+\)$/,
  },
  { kind: 'Pod', name: 'unlively', type: 'Warning', reason: 'Unhealthy', from: 'kubelet', message: /^Liveness probe failed: / },
  { kind: 'Pod', name: 'unlively', reason: 'Killing', from: 'kubelet', message: /^Container c failed liveness probe, will be restarted$/ },
  { kind: 'Job', name: 'once', reason: 'SuccessfulCreate', from: 'job-controller', message: /^Created pod: once-\w+$/ },
  { kind: 'Job', name: 'once', reason: 'Completed', from: 'job-controller', message: /^Job completed$/ },
  { kind: 'CronJob', name: 'tick', reason: 'SuccessfulCreate', from: 'cronjob-controller', message: /^Created job tick-\d+$/ },
  { kind: 'CronJob', name: 'tick', reason: 'SawCompletedJob', from: 'cronjob-controller', message: /^Saw completed job: tick-\d+, condition: Complete$/ },
  {
    kind: 'PersistentVolumeClaim',
    name: 'unbound',
    reason: 'FailedBinding',
    from: 'persistentvolume-controller',
    message: /^no persistent volumes available for this claim and no storage class is set$/,
  },
  { kind: 'Node', name: 'n1', reason: 'Starting', from: 'kubelet', message: /^Starting kubelet\.$/ },
  { kind: 'Node', name: 'n1', reason: 'NodeReady', from: 'kubelet', message: /^Node n1 status is now: NodeReady$/ },
  { kind: 'Node', name: 'n1', reason: 'RegisteredNode', from: 'node-controller', message: /^Node n1 event: Registered Node n1 in Controller$/ },
  { kind: 'Node', name: 'n1', reason: 'NodeNotSchedulable', from: 'kubelet', message: /^Node n1 status is now: NodeNotSchedulable$/ },
]

test('OBS-12 components record upstream’s events in each situation of the table', async () => {
  await using cluster = await startCluster({ nodes: 1 })
  const { client } = cluster
  const spec = { replicas: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } }
  await client.of(deployments).create({ metadata: { namespace, name: 'web' }, spec })
  await cluster.until(async () => (await client.of(deployments).get({ namespace, name: 'web' })).status?.readyReplicas === 2)
  await client.of(deployments).patch({ namespace, name: 'web' }, 'merge', { spec: { replicas: 1 } })
  for (const [name, [annotations, more]] of Object.entries(somePods)) {
    await client.of(pods).create({ metadata: { namespace, name, annotations }, spec: { containers, ...more } })
  }
  await client.of(jobs).create({ metadata: { namespace, name: 'once' }, spec: { template: once } })
  await client.of(cronJobs).create({ metadata: { namespace, name: 'tick' }, spec: { schedule: '* * * * *', jobTemplate: { spec: { template: once } } } })
  const claim = { accessModes: ['ReadWriteOnce'], storageClassName: '', resources: { requests: { storage: '1Gi' } } }
  await client.of(persistentVolumeClaims).create({ metadata: { namespace, name: 'unbound' }, spec: claim })
  await cluster.clock.advance(90_000)
  await client.of(nodes).patch({ name: 'n1' }, 'merge', { spec: { unschedulable: true } })
  await cluster.clock.advance(30_000)
  const { items } = await client.of(events).list({ namespace })
  const missing = rows.filter((row) => !items.some((event) => fits(event, row)))
  assert.deepEqual(missing, [], items.map(shown).join('\n'))
})

test('OBS-12 events are deleted after --event-ttl', async () => {
  await using cluster = await startCluster({ nodes: 1, apiServerArgs: ['--event-ttl=10m'] })
  const list = async () => (await cluster.client.of(events).list({ namespace })).items.filter(({ reason }) => reason === 'NodeReady')
  assert.equal((await list()).length, 1)
  await cluster.clock.advance(8 * 60_000)
  assert.equal((await list()).length, 1)
  await cluster.clock.advance(6 * 60_000)
  assert.deepEqual(await list(), [])
})

function fits({ involvedObject: on, type, reason, message = '', reportingComponent, source }: Frozen<Event>, row: Row): boolean {
  const isIt = on.kind === row.kind && (on.name ?? '').startsWith(row.name) && reason === row.reason && type === (row.type ?? 'Normal')
  return isIt && (reportingComponent || source?.component) === row.from && row.message.test(message)
}

function shown({ involvedObject: on, type, reason, message, reportingComponent, source }: Frozen<Event>): string {
  return `${on.kind} ${on.name} ${type} ${reason} ${reportingComponent || source?.component} ${message}`
}
