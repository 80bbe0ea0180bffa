import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FieldPath } from '#api/machinery/fieldPath'
import type { KubeObject } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import { seededRandom } from '#base/random'
import { strategyFor } from './index.ts'

type Loose = KubeObject & Record<string, unknown>

const path = FieldPath.of()
const context = { nowMs: Date.UTC(2026, 0, 1, 1), random: seededRandom(1) }

/** An object of a kind after defaulting, as the registry would hand it to validation. */
function make(group: string, kind: string, rest: Record<string, unknown>, metadata: Record<string, unknown> = {}): Loose {
  const made = { apiVersion: group ? `${group}/v1` : 'v1', kind, metadata: { name: 'x', uid: 'u', ...metadata }, ...deepCopy(rest) } as Loose
  strategyFor(group, kind)?.defaults?.(made, 'v1')
  return made
}
const faultsOf = (group: string, obj: Loose) => (strategyFor(group, obj.kind)?.validate?.({ obj, path, context }) ?? []).map((e) => `${e.field}: ${e.body}`)
const cellsOf = (group: string, obj: Loose) =>
  Object.fromEntries((strategyFor(group, obj.kind)?.columns ?? []).map((column) => [column.name, column.value(obj, context.nowMs)]))
const changeFaults = (group: string, old: Loose, change: (obj: Loose) => void) => {
  const obj = deepCopy<Loose>(old)
  change(obj)
  return (strategyFor(group, old.kind)?.validateUpdate?.({ obj, old, path, context }) ?? []).map((e) => `${e.field}: ${e.body}`)
}

const labels = { app: 'x' }
const template = { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'i' }] } }
const once = { metadata: { labels }, spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'i' }] } }

const good: [string, string, Record<string, unknown>][] = [
  ['apps', 'StatefulSet', { spec: { selector: { matchLabels: labels }, template, serviceName: 's' } }],
  ['apps', 'DaemonSet', { spec: { selector: { matchLabels: labels }, template } }],
  ['', 'ReplicationController', { spec: { template } }],
  ['batch', 'CronJob', { spec: { schedule: '*/5 0-6,12 * jan MON-fri', jobTemplate: { spec: { template: once } } } }],
  ['autoscaling', 'HorizontalPodAutoscaler', { spec: { maxReplicas: 3, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' } } }],
  ['policy', 'PodDisruptionBudget', { spec: { minAvailable: '50%', selector: {} } }],
  ['', 'PersistentVolumeClaim', { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } }],
  ['', 'PersistentVolume', { spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, hostPath: { path: '/x' } } }],
  ['storage.k8s.io', 'StorageClass', { provisioner: 'example.com/x' }],
  [
    'networking.k8s.io',
    'NetworkPolicy',
    { spec: { ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }], ports: [{ port: 80, endPort: 90 }] }] } },
  ],
  ['networking.k8s.io', 'Ingress', { spec: { defaultBackend: { service: { name: 's', port: { number: 80 } } } } }],
  ['networking.k8s.io', 'IngressClass', { spec: { controller: 'example.com/x' } }],
  ['node.k8s.io', 'RuntimeClass', { handler: 'runc', overhead: { podFixed: { cpu: '10m' } } }],
  ['', 'ResourceQuota', { spec: { hard: { pods: '3', 'requests.cpu': '1' } } }],
  ['', 'LimitRange', { spec: { limits: [{ type: 'Container', max: { cpu: '2' }, min: { cpu: '10m' } }] } }],
  ['flowcontrol.apiserver.k8s.io', 'PriorityLevelConfiguration', { spec: { type: 'Limited', limited: { limitResponse: { type: 'Queue', queuing: {} } } } }],
  [
    'admissionregistration.k8s.io',
    'ValidatingWebhookConfiguration',
    {
      webhooks: [
        {
          name: 'a.example.com',
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          clientConfig: { url: 'https://x' },
          rules: [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] }],
        },
      ],
    },
  ],
]
for (const [group, kind, rest] of good) test(`a plain ${kind} passes with its defaults`, () => assert.deepEqual(faultsOf(group, make(group, kind, rest)), []))

const bad: [string, string, Record<string, unknown>, string[]][] = [
  [
    'batch',
    'CronJob',
    { spec: { schedule: '61 * * * *', jobTemplate: { spec: { template: once } } } },
    ['spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61'],
  ],
  [
    'batch',
    'CronJob',
    { spec: { schedule: '@daily', jobTemplate: { spec: { template } } } },
    ['spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
  ],
  [
    '',
    'PersistentVolumeClaim',
    { spec: { resources: { requests: { storage: '1Gi' } } } },
    ['spec.accessModes: Required value: at least 1 access mode is required'],
  ],
  [
    'policy',
    'PodDisruptionBudget',
    { spec: { minAvailable: 1, maxUnavailable: 1 } },
    ['spec: Invalid value: {"minAvailable":1,"maxUnavailable":1}: minAvailable and maxUnavailable cannot be both set'],
  ],
  ['networking.k8s.io', 'Ingress', { spec: {} }, ['spec: Invalid value: null: either `defaultBackend` or `rules` must be specified']],
  ['networking.k8s.io', 'NetworkPolicy', { spec: { egress: [{ to: [{}] }] } }, ['spec.egress[0].to[0]: Required value: must specify a peer']],
  [
    'apps',
    'DaemonSet',
    { spec: { selector: { matchLabels: labels }, template, updateStrategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } } } },
    ['spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero'],
  ],
  [
    'autoscaling',
    'HorizontalPodAutoscaler',
    { spec: { minReplicas: 5, maxReplicas: 3, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' } } },
    ['spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`'],
  ],
]
for (const [group, kind, rest, want] of bad) test(`a faulty ${kind}: ${want[0]}`, () => assert.deepEqual(faultsOf(group, make(group, kind, rest)), want))

test('a job gets its selector and labels from its uid, and keeps its template', () => {
  const job = make('batch', 'Job', { spec: { template: once } })
  strategyFor('batch', 'Job')?.prepareForCreate?.({ obj: job, path, context })
  const spec = job.spec as { selector: unknown; template: { metadata: { labels: unknown } } }
  assert.deepEqual(spec.selector, { matchLabels: { 'batch.kubernetes.io/controller-uid': 'u' } })
  assert.deepEqual(spec.template.metadata.labels, {
    'controller-uid': 'u',
    'job-name': 'x',
    'batch.kubernetes.io/controller-uid': 'u',
    'batch.kubernetes.io/job-name': 'x',
    app: 'x',
  })
  assert.deepEqual(faultsOf('batch', job), [])
  assert.deepEqual(
    changeFaults('batch', job, (obj) =>
      Object.assign((obj.spec as { template: { spec: { containers: object[] } } }).template.spec.containers[0] ?? {}, { image: 'j' }),
    ).map((text) => text.slice(0, 15)),
    ['spec.template: '],
  )
})

test('a stateful set changes in few places only', () => {
  const set = make('apps', 'StatefulSet', { spec: { selector: { matchLabels: labels }, template, serviceName: 's' } })
  assert.deepEqual(
    changeFaults('apps', set, (obj) => Object.assign(obj.spec as object, { replicas: 5 })),
    [],
  )
  assert.deepEqual(
    changeFaults('apps', set, (obj) => Object.assign(obj.spec as object, { serviceName: 't' })).map((text) => text.slice(0, 73)),
    ["spec: Forbidden: updates to statefulset spec for fields other than 'repli"],
  )
})

test('a bound claim may grow, an unbound one stays', () => {
  const claim = make('', 'PersistentVolumeClaim', { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } })
  const grow = (obj: Loose) => Object.assign((obj.spec as { resources: { requests: object } }).resources.requests, { storage: '2Gi' })
  assert.equal(changeFaults('', claim, grow).length, 1)
  assert.deepEqual(changeFaults('', { ...claim, status: { phase: 'Bound' } }, grow), [])
  assert.deepEqual(
    changeFaults('', claim, (obj) => Object.assign(obj.spec as object, { volumeName: 'v' })),
    [],
  )
})

test('a horizontal pod autoscaler survives v1 and back', () => {
  const strategy = strategyFor('autoscaling', 'HorizontalPodAutoscaler')
  const memory = { type: 'Resource', resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '1Gi' } } }
  const v2 = make('autoscaling', 'HorizontalPodAutoscaler', {
    apiVersion: 'autoscaling/v2',
    spec: { maxReplicas: 3, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' } },
  })
  // The CPU percentage is the last metric after the conversion, as upstream's is.
  ;(v2.spec as { metrics: object[] }).metrics.unshift(memory)
  const v1 = strategy?.convert?.(v2, 'v2', 'v1') as unknown as Loose
  assert.equal((v1.spec as { targetCPUUtilizationPercentage?: number }).targetCPUUtilizationPercentage, 80)
  const back = strategy?.convert?.(v1, 'v1', 'v2') as unknown as Loose
  assert.deepEqual(back.spec, v2.spec)
})

const cells: [string, string, Record<string, unknown>, Record<string, unknown>][] = [
  [
    'batch',
    'Job',
    { spec: { completions: 3, template: once }, status: { succeeded: 1, startTime: '2026-01-01T00:00:00Z', conditions: [{ type: 'Failed', status: 'True' }] } },
    { Status: 'Failed', Completions: '1/3', Duration: '60m' },
  ],
  [
    'batch',
    'CronJob',
    { spec: { schedule: '@daily' }, status: { active: [{}] } },
    { Schedule: '@daily', Timezone: '<none>', Suspend: 'False', Active: 1, 'Last Schedule': '<none>' },
  ],
  [
    '',
    'PersistentVolume',
    { spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteMany', 'ReadWriteOnce'], claimRef: { namespace: 'n', name: 'c' } } },
    { Capacity: '1Gi', 'Access Modes': 'RWO,RWX', Claim: 'n/c', 'Reclaim Policy': 'Retain' },
  ],
  [
    'autoscaling',
    'HorizontalPodAutoscaler',
    { apiVersion: 'autoscaling/v2', spec: { maxReplicas: 3, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' } } },
    { Reference: 'Deployment/d', Targets: 'cpu: <unknown>/80%', MinPods: '1', MaxPods: 3 },
  ],
  [
    'networking.k8s.io',
    'Ingress',
    { spec: { tls: [{}], rules: ['a', 'b', 'c', 'd'].map((host) => ({ host })) } },
    { Class: '<none>', Hosts: 'a,b,c + 1 more...', Ports: '80, 443' },
  ],
  ['networking.k8s.io', 'NetworkPolicy', { spec: {} }, { 'Pod-Selector': '<none>' }],
  [
    'certificates.k8s.io',
    'CertificateSigningRequest',
    { status: { certificate: 'x', conditions: [{ type: 'Approved', status: 'True' }] } },
    { Condition: 'Approved,Issued' },
  ],
  ['', 'ResourceQuota', { status: { hard: { pods: '3', 'limits.cpu': '2' }, used: { pods: '1' } } }, { Request: 'pods: 1/3', Limit: 'limits.cpu: 0/2' }],
  [
    'apiregistration.k8s.io',
    'APIService',
    { spec: {}, status: { conditions: [{ type: 'Available', status: 'False', reason: 'MissingEndpoints' }] } },
    { Service: 'Local', Available: 'False (MissingEndpoints)' },
  ],
  ['policy', 'PodDisruptionBudget', { spec: { maxUnavailable: 1 } }, { 'Min Available': 'N/A', 'Max Unavailable': '1', 'Allowed Disruptions': 0 }],
  ['resource.k8s.io', 'ResourceClaim', { status: { allocation: {}, reservedFor: [{}] } }, { State: 'allocated,reserved' }],
]
for (const [group, kind, rest, want] of cells)
  test(`API-17 cells of ${kind}`, () => {
    const all = cellsOf(group, make(group, kind, rest))
    assert.deepEqual(Object.fromEntries(Object.keys(want).map((name) => [name, all[name]])), want)
  })
