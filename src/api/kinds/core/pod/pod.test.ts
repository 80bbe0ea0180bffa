import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container, ContainerStatus, Pod, PodSpec, PodStatus } from '#api/gen/types/core.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { schemaOfDefinition } from '#api/schema/builtIn'
import { decode } from '#api/schema/decode'
import { deepCopy } from '#base/frozen'
import { seededRandom } from '#base/random'
import { podSummary } from './columns.ts'
import { imageTag, setPodDefaults } from './defaults.ts'
import { pod } from './pod.ts'

const path = FieldPath.of()
const context = { nowMs: 0, random: seededRandom(1) }

function subject(spec: Partial<PodSpec> = {}, status: PodStatus = {}): Pod {
  const made: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default' },
    spec: { containers: [{ name: 'a', image: 'nginx' }], ...spec },
    status,
  }
  const object = decode(made, schemaOfDefinition('io.k8s.api.core.v1.Pod'), { unknown: 'drop' }).object as unknown as Pod
  setPodDefaults(object)
  return object
}
const texts = (errors: readonly { field: string; body: string }[]) => errors.map((error) => `${error.field}: ${error.body}`)
const a = (rest: Partial<Container>): Container => ({ name: 'a', image: 'nginx', ...rest })

test('a minimal pod gets upstream’s defaults', () => {
  assert.deepEqual(subject().spec, {
    containers: [
      { name: 'a', image: 'nginx', imagePullPolicy: 'Always', terminationMessagePath: '/dev/termination-log', terminationMessagePolicy: 'File', resources: {} },
    ],
    dnsPolicy: 'ClusterFirst',
    restartPolicy: 'Always',
    securityContext: {},
    terminationGracePeriodSeconds: 30,
    schedulerName: 'default-scheduler',
    enableServiceLinks: true,
  })
})

test('requests follow limits, host ports follow the host’s network', () => {
  const made = subject({
    hostNetwork: true,
    containers: [a({ ports: [{ containerPort: 80 }], resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '500m' } } })],
  })
  assert.deepEqual(made.spec.containers[0]?.resources?.requests, { cpu: '500m', memory: '1Gi' })
  assert.deepEqual(made.spec.containers[0]?.ports, [{ containerPort: 80, hostPort: 80, protocol: 'TCP' }])
})

test('image tags', () => {
  assert.deepEqual(['nginx', 'nginx:1', 'r:5000/nginx', 'r:5000/nginx:latest', 'nginx@sha256:ab', 'nginx:1@sha256:ab'].map(imageTag), [
    'latest',
    '1',
    'latest',
    'latest',
    '',
    '',
  ])
})

const refused: [string, Partial<PodSpec>, string[]][] = [
  ['good', {}, []],
  ['no containers', { containers: [] }, ['spec.containers: Required value']],
  ['no image', { containers: [a({ image: '' })] }, ['spec.containers[0].image: Required value']],
  ['same name twice', { containers: [a({}), a({})] }, ['spec.containers[1].name: Duplicate value: "a"']],
  ['name of an init container', { initContainers: [a({})] }, ['spec.initContainers[0].name: Duplicate value: "a"']],
  [
    'requests over limits',
    { containers: [a({ resources: { requests: { cpu: '2' }, limits: { cpu: '1000m' } } })] },
    ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
  ],
  [
    'devices must be equal',
    { containers: [a({ resources: { requests: { 'nvidia.com/gpu': '1' }, limits: { 'nvidia.com/gpu': '2' } } })] },
    ['spec.containers[0].resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'],
  ],
  [
    'negative',
    { containers: [a({ resources: { requests: { cpu: '-1' } } })] },
    ['spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
  ],
  [
    'unknown resource',
    { containers: [a({ resources: { requests: { gold: '1' } } })] },
    [
      'spec.containers[0].resources.requests[gold]: Invalid value: "gold": must be a standard resource type or fully qualified',
      'spec.containers[0].resources.requests[gold]: Invalid value: "gold": must be a standard resource for containers',
    ],
  ],
  ['mount of nothing', { containers: [a({ volumeMounts: [{ name: 'v', mountPath: '/x' }] })] }, ['spec.containers[0].volumeMounts[0].name: Not found: "v"']],
  [
    'mounts collide',
    {
      volumes: [{ name: 'v' }],
      containers: [
        a({
          volumeMounts: [
            { name: 'v', mountPath: '/x' },
            { name: 'v', mountPath: '/x' },
          ],
        }),
      ],
    },
    ['spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/x": must be unique'],
  ],
  [
    'two sources',
    { volumes: [{ name: 'v', emptyDir: {}, hostPath: { path: '/x' } }] },
    ['spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type'],
  ],
  [
    'volume path out',
    { volumes: [{ name: 'v', hostPath: { path: '/a/../b' } }] },
    [`spec.volumes[0].hostPath.path: Invalid value: "/a/../b": must not contain '..'`],
  ],
  [
    'env of two minds',
    { containers: [a({ env: [{ name: 'X', value: 'y', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] })] },
    ['spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
  ],
  ['probe without handler', { containers: [a({ livenessProbe: {} })] }, ['spec.containers[0].livenessProbe: Required value: must specify a handler type']],
  [
    'probe of an init container',
    { initContainers: [{ name: 'i', image: 'x', livenessProbe: { exec: { command: ['x'] } } }] },
    ['spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always'],
  ],
  ['probe of a sidecar', { initContainers: [{ name: 'i', image: 'x', restartPolicy: 'Always', livenessProbe: { exec: { command: ['x'] } } }] }, []],
  [
    'host port twice',
    { containers: [a({ ports: [{ containerPort: 1, hostPort: 80 }] }), { name: 'b', image: 'x', ports: [{ containerPort: 2, hostPort: 80 }] }] },
    ['spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"'],
  ],
  [
    'divisor',
    { containers: [a({ env: [{ name: 'X', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '10m' } } }] })] },
    [
      `spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor's values 1m and 1 are supported with the cpu resource`,
    ],
  ],
  [
    'env from nowhere',
    { containers: [a({ envFrom: [{}] })] },
    ['spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
  ],
  [
    'another host port',
    { hostNetwork: true, containers: [a({ ports: [{ containerPort: 80, hostPort: 81 }] })] },
    ['spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true'],
  ],
  ['own users, shared network', { hostUsers: false, hostNetwork: true }, ['spec.hostNetwork: Forbidden: when `pod.Spec.HostUsers` is false']],
  [
    'less as a whole',
    { resources: { requests: { cpu: '1' } }, containers: [a({ resources: { requests: { cpu: '1500m' } } })] },
    ['spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 1500m'],
  ],
  [
    'as a whole only some of what the containers ask for',
    { resources: { requests: { cpu: '2' } }, containers: [a({ resources: { requests: { cpu: '1', 'ephemeral-storage': '1Gi' } } })] },
    [],
  ],
  [
    'gated and placed',
    { nodeName: 'n', schedulingGates: [{ name: 'g' }] },
    ['spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared'],
  ],
  ['debugged at birth', { ephemeralContainers: [{ name: 'd', image: 'x' }] }, ['spec.ephemeralContainers: Forbidden: cannot be set on create']],
  ['restart policy', { restartPolicy: 'Sometimes' }, ['spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"']],
  ['dns None', { dnsPolicy: 'None' }, ['spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None']],
  [
    'toleration',
    { tolerations: [{ operator: 'Equal', value: 'x' }] },
    ['spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"'],
  ],
  [
    'privilege',
    { containers: [a({ securityContext: { privileged: true, allowPrivilegeEscalation: false } })] },
    [
      'spec.containers[0].securityContext: Invalid value: {"privileged":true,"allowPrivilegeEscalation":false}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true',
    ],
  ],
  [
    'spread',
    { topologySpreadConstraints: [{ maxSkew: 0, topologyKey: '', whenUnsatisfiable: 'DoNotSchedule' }] },
    [
      'spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero',
      'spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty',
    ],
  ],
  [
    'affinity without terms',
    { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } } },
    ['spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term'],
  ],
]
for (const [name, spec, want] of refused)
  test(`pod validation: ${name}`, () => assert.deepEqual(texts(pod.validate?.({ obj: subject(spec), path, context }) ?? []), want))

test('a new pod is Pending with a QoS class; a gated pod has the SchedulingGated condition', () => {
  const made = subject({ schedulingGates: [{ name: 'example.com/wait' }] }, { phase: 'Running' })
  pod.prepareForCreate?.({ obj: made, path, context })
  assert.deepEqual(made.status, {
    phase: 'Pending',
    qosClass: 'BestEffort',
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated', message: 'Scheduling is blocked due to non-empty scheduling gates' }],
  })
})

const changes: [string, (spec: PodSpec) => void, string | undefined][] = [
  ['image', (spec) => Object.assign(spec.containers[0] as Container, { image: 'nginx:2' }), undefined],
  ['deadline', (spec) => Object.assign(spec, { activeDeadlineSeconds: 5 }), undefined],
  ['more tolerations', (spec) => Object.assign(spec, { tolerations: [{ operator: 'Exists' }] }), undefined],
  [
    'command',
    (spec) => Object.assign(spec.containers[0] as Container, { command: ['x'] }),
    'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`',
  ],
  ['node', (spec) => Object.assign(spec, { nodeName: 'n' }), 'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`'],
  [
    'one more container',
    (spec) => spec.containers.push({ ...(spec.containers[0] as Container), name: 'b' }),
    'spec.containers: Forbidden: pod updates may not add or remove containers',
  ],
  [
    'a gate',
    (spec) => Object.assign(spec, { schedulingGates: [{ name: 'g' }] }),
    "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'",
  ],
]
const tolerations = [
  { key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 },
  { key: 'b', operator: 'Equal', value: 'v' },
]
const tolerationChanges: [string, object[], string[]][] = [
  ['their order and seconds', [tolerations[1] as object, { ...tolerations[0], tolerationSeconds: 7 }], []],
  ['an empty effect', [tolerations[0] as object, { ...tolerations[1], effect: '' }], []],
  ['one less', [tolerations[0] as object], ['existing toleration can not be modified except its tolerationSeconds']],
  ['the value of one', [tolerations[0] as object, { ...tolerations[1], value: 'w' }], ['existing toleration can not be modified except its tolerationSeconds']],
]
for (const [name, changed, want] of tolerationChanges)
  test(`pod update of tolerations: ${name}`, () => {
    const obj = subject({ tolerations: changed })
    assert.deepEqual(
      texts(pod.validateUpdate?.({ obj, old: subject({ tolerations }), path, context }) ?? []),
      want.map((detail) => `spec.tolerations: Forbidden: ${detail}`),
    )
  })

for (const [name, change, want] of changes)
  test(`pod update: ${name}`, () => {
    const old = subject()
    const obj = deepCopy(old)
    change(obj.spec)
    const got = texts(pod.validateUpdate?.({ obj, old, path, context }) ?? [])
    assert.deepEqual(
      got.map((text) => text.slice(0, want?.length ?? 0)),
      want === undefined ? [] : [want],
    )
  })

test('the status endpoint leaves spec and owners alone, the main one the status', () => {
  const old = subject({}, { phase: 'Pending', qosClass: 'BestEffort' })
  const byStatus = deepCopy(old)
  Object.assign(byStatus, { status: { phase: 'Running' }, spec: { containers: [] } })
  byStatus.metadata.ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' }]
  pod.status?.prepareForUpdate?.({ obj: byStatus, old, path, context })
  assert.deepEqual(byStatus, { ...old, status: { phase: 'Running', qosClass: 'BestEffort' } })
  const byMain = deepCopy(old)
  byMain.status = { phase: 'Running' }
  pod.prepareForUpdate?.({ obj: byMain, old, path, context })
  assert.deepEqual(byMain.status, old.status)
})

test('resize takes resources only; ephemeral containers are only added', () => {
  const old = subject({ containers: [a({ resources: { requests: { cpu: '1' } } })] })
  const obj = deepCopy(old)
  Object.assign(obj.spec.containers[0] as Container, { image: 'other', resources: { requests: { cpu: '2' } } })
  pod.subresources?.resize?.prepareForUpdate?.({ obj, old, path, context })
  assert.deepEqual([obj.spec.containers[0]?.image, obj.spec.containers[0]?.resources], ['nginx', { requests: { cpu: '2' } }])
  assert.deepEqual(pod.subresources?.resize?.validateUpdate?.({ obj, old: { ...old, status: { qosClass: 'Burstable' } }, path, context }), [])

  const debugged = subject({ ephemeralContainers: [{ name: 'd', image: 'x' }] })
  const without = deepCopy(debugged)
  delete without.spec.ephemeralContainers
  pod.subresources?.ephemeralcontainers?.prepareForUpdate?.({ obj: without, old: debugged, path, context })
  assert.deepEqual(texts(pod.subresources?.ephemeralcontainers?.validateUpdate?.({ obj: without, old: debugged, path, context }) ?? []), [
    'spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be removed\n',
  ])
})

test('the grace period of a delete', () => {
  const scheduled = subject({ nodeName: 'n' })
  const grace = (obj: Pod, requested?: number) => pod.deletion?.gracePeriodSeconds(obj, requested)
  assert.deepEqual(
    [grace(scheduled), grace(scheduled, 5), grace(scheduled, -1), grace(subject()), grace({ ...scheduled, status: { phase: 'Failed' } })],
    [30, 5, 1, 0, 0],
  )
})

test('warnings: hidden variables, doubled ports, odd names', () => {
  const made = subject({
    containers: [
      a({
        env: [
          { name: 'X', value: '1' },
          { name: 'X', value: '2' },
        ],
        ports: [{ containerPort: 80 }, { containerPort: 80 }],
      }),
    ],
  })
  made.metadata.name = 'a.b'
  assert.deepEqual(pod.warnings?.({ obj: made, path, context }), [
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
    'spec.containers[0].env[1]: hides previous definition of "X", which may be dropped when using apply',
    'spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]',
  ])
})

const state = (name: string, rest: Partial<ContainerStatus>): ContainerStatus => ({ name, image: '', imageID: '', ready: false, restartCount: 0, ...rest })
const running = { running: { startedAt: '1970-01-01T00:00:00Z' } }
const summaries: [string, Partial<PodSpec>, PodStatus, string][] = [
  ['pending', {}, { phase: 'Pending' }, '0/1 Pending 0'],
  ['running', {}, { phase: 'Running', containerStatuses: [state('a', { ready: true, state: running, restartCount: 2 })] }, '1/1 Running 2'],
  ['crashing', {}, { phase: 'Running', containerStatuses: [state('a', { state: { waiting: { reason: 'CrashLoopBackOff' } } })] }, '0/1 CrashLoopBackOff 0'],
  ['ended', {}, { phase: 'Succeeded', containerStatuses: [state('a', { state: { terminated: { exitCode: 0, reason: 'Completed' } } })] }, '0/1 Completed 0'],
  ['killed', {}, { phase: 'Failed', containerStatuses: [state('a', { state: { terminated: { exitCode: 137, signal: 9 } } })] }, '0/1 Signal:9 0'],
  ['evicted', {}, { phase: 'Failed', reason: 'Evicted' }, '0/1 Evicted 0'],
  [
    'initializing',
    { initContainers: [a({ name: 'i' }), a({ name: 'j' })] },
    { phase: 'Pending', initContainerStatuses: [state('i', { state: { terminated: { exitCode: 0 } } }), state('j', { state: running })] },
    '0/1 Init:1/2 0',
  ],
  [
    'init fails',
    { initContainers: [a({ name: 'i' })] },
    { phase: 'Pending', initContainerStatuses: [state('i', { restartCount: 3, state: { terminated: { exitCode: 1, reason: 'Error' } } })] },
    '0/1 Init:Error 3',
  ],
  [
    'sidecar',
    { initContainers: [a({ name: 's', restartPolicy: 'Always' })] },
    {
      phase: 'Running',
      initContainerStatuses: [state('s', { ready: true, started: true, state: running, restartCount: 1 })],
      containerStatuses: [state('a', { ready: true, state: running })],
    },
    '2/2 Running 1',
  ],
  [
    'one done, one runs',
    { containers: [a({}), a({ name: 'b' })] },
    {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'False' }],
      containerStatuses: [state('a', { state: { terminated: { exitCode: 0, reason: 'Completed' } } }), state('b', { ready: true, state: running })],
    },
    '1/2 NotReady 0',
  ],
  ['gated', {}, { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] }, '0/1 SchedulingGated 0'],
]
for (const [name, spec, status, want] of summaries)
  test(`API-17 pod cells: ${name}`, () => {
    const { ready, total, reason, restarts } = podSummary(subject(spec, status))
    assert.equal(`${ready}/${total} ${reason} ${restarts}`, want)
  })

test('API-17 pod columns', () => {
  const made = subject(
    { nodeName: 'n', readinessGates: [{ conditionType: 'x' }] },
    {
      phase: 'Running',
      podIP: '10.0.0.1',
      containerStatuses: [state('a', { restartCount: 2, state: running, lastState: { terminated: { exitCode: 1, finishedAt: '1970-01-01T00:00:00Z' } } })],
    },
  )
  assert.deepEqual(
    (pod.columns ?? []).map((column) => [column.name, column.value(made, 300_000)]),
    [
      ['Name', 'web'],
      ['Ready', '0/1'],
      ['Status', 'Running'],
      ['Restarts', '2 (5m ago)'],
      ['Age', '<unknown>'],
      ['IP', '10.0.0.1'],
      ['Node', 'n'],
      ['Nominated Node', '<none>'],
      ['Readiness Gates', '0/1'],
    ],
  )
})
