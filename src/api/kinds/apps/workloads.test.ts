import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ControllerRevision, DaemonSet, StatefulSet } from '#api/gen/types/apps.v1'
import type { ReplicationController } from '#api/gen/types/core.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import type { KubeObject } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import { seededRandom } from '#base/random'
import { replicationController } from '../core/replicationController.ts'
import type { KindStrategy } from '../defineKind.ts'
import { controllerRevision } from './controllerRevision.ts'
import { daemonSet } from './daemonSet.ts'
import { replicaSet } from './replicaSet.ts'
import { statefulSet } from './statefulSet.ts'

const path = FieldPath.of()
const context = { nowMs: 0, random: seededRandom(1) }
const texts = (errors: readonly { field: string; body: string }[] = []) => errors.map((error) => `${error.field}: ${error.body}`)
const labels = { app: 'web' }
const template = { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'i' }] } }

function make<T extends KubeObject>(strategy: KindStrategy<T>, spec: object, status: object = {}): T {
  const obj = {
    apiVersion: 'apps/v1',
    kind: strategy.kind,
    metadata: { name: 'w' },
    spec: { selector: { matchLabels: labels }, template, ...deepCopy(spec) },
    status,
  }
  strategy.defaults?.(obj as unknown as T, 'v1')
  return obj as unknown as T
}
const faultsOf = <T extends KubeObject>(strategy: KindStrategy<T>, spec: object) => texts(strategy.validate?.({ obj: make(strategy, spec), path, context }))
const statusFaults = <T extends KubeObject>(strategy: KindStrategy<T>, status: object, before: object = {}) =>
  texts(strategy.status?.validateUpdate?.({ obj: make(strategy, {}, status), old: make(strategy, {}, before) as never, path, context }))

test('API-17 a stateful set’s defaults', () => {
  const { template: _, selector: __, ...spec } = make<StatefulSet>(statefulSet, {}).spec
  assert.deepEqual(spec, {
    podManagementPolicy: 'OrderedReady',
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
    persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
    replicas: 1,
    revisionHistoryLimit: 10,
  })
})

test('API-17 a daemon set’s defaults', () => {
  const { template: _, selector: __, ...spec } = make<DaemonSet>(daemonSet, {}).spec
  assert.deepEqual(spec, { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } }, revisionHistoryLimit: 10 })
})

const always = (kind: string) => [
  'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
  `spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ${kind} is not Supported`,
]
const ending = { template: { metadata: { labels }, spec: { ...template.spec, restartPolicy: 'Never', activeDeadlineSeconds: 5 } } }
const strategy = (updateStrategy: object) => ({ updateStrategy })
const rolling = (rollingUpdate: object) => strategy({ type: 'RollingUpdate', rollingUpdate })
const mounting = { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'i', volumeMounts: [{ name: 'data', mountPath: '/d' }] }] } }

const cases: [name: string, strategy: KindStrategy<never>, spec: object, want: string[]][] = [
  [
    'a replica set without a selector',
    replicaSet as never,
    { selector: undefined },
    ['spec.selector: Required value', 'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`'],
  ],
  [
    'a replica set with an empty selector',
    replicaSet as never,
    { selector: {} },
    ['spec.selector: Invalid value: {}: empty selector is invalid for deployment'],
  ],
  ['a replica set whose pods end', replicaSet as never, ending, always('ReplicaSet')],
  ['a daemon set whose pods end', daemonSet as never, ending, always('DaemonSet')],
  ['a stateful set whose pods end', statefulSet as never, ending, always('StatefulSet')],
  [
    'a daemon set without a way',
    daemonSet as never,
    rolling({ maxUnavailable: 0 }),
    ['spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0'],
  ],
  [
    'a daemon set’s strategy',
    daemonSet as never,
    strategy({ type: 'Often' }),
    ['spec.updateStrategy: Unsupported value: {"Type":"Often","RollingUpdate":null}: supported values: "OnDelete", "RollingUpdate"'],
  ],
  ['a stateful set that mounts its claims', statefulSet as never, { template: mounting, volumeClaimTemplates: [{ metadata: { name: 'data' } }] }, []],
  [
    'a stateful set’s policy',
    statefulSet as never,
    { podManagementPolicy: 'Wild' },
    ["spec.podManagementPolicy: Invalid value: \"Wild\": must be 'OrderedReady' or 'Parallel'"],
  ],
  [
    'a stateful set’s strategy',
    statefulSet as never,
    strategy({ type: 'OnDelete', rollingUpdate: { partition: 1 } }),
    ['spec.updateStrategy.rollingUpdate: Invalid value: {"partition":1}: only allowed for updateStrategy \'RollingUpdate\''],
  ],
  [
    'a stateful set that may not lose a pod',
    statefulSet as never,
    rolling({ maxUnavailable: '0%' }),
    ['spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "0%": cannot be 0'],
  ],
  [
    'a stateful set that may lose more than all',
    statefulSet as never,
    rolling({ maxUnavailable: '101%' }),
    ['spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
  ],
  [
    'a stateful set’s claims',
    statefulSet as never,
    { persistentVolumeClaimRetentionPolicy: { whenScaled: 'Keep' } },
    ['spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Keep": supported values: "Delete", "Retain"'],
  ],
  [
    'a stateful set’s ordinals',
    statefulSet as never,
    { ordinals: { start: -1 } },
    ['spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0'],
  ],
]
for (const [name, kind, spec, want] of cases) test(`API-17 ${name}`, () => assert.deepEqual(faultsOf(kind, spec), want))

test('API-17 a replication controller: its selector is its template’s labels; the rules of its pods are a replica set’s', () => {
  const made = make<ReplicationController>(replicationController, { selector: undefined })
  assert.deepEqual(made.spec.selector, labels)
  assert.deepEqual(faultsOf(replicationController, { selector: labels, ...ending }), always('ReplicationController'))
  assert.deepEqual(faultsOf(replicationController, { selector: { a: 'b' } }), [
    'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
  ])
})

test('API-17 status counts are within each other and do not go back', () => {
  const most = 'cannot be greater than status.replicas'
  for (const strategy of [replicaSet, replicationController] as unknown as KindStrategy<never>[]) {
    assert.deepEqual(statusFaults(strategy, { replicas: 1, readyReplicas: 2, availableReplicas: 3 }), [
      `status.readyReplicas: Invalid value: 2: ${most}`,
      `status.availableReplicas: Invalid value: 3: ${most}`,
      'status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas',
    ])
  }
  assert.deepEqual(statusFaults(statefulSet, { replicas: 1, currentReplicas: 2 }, { replicas: 0, collisionCount: 1 }), [
    `status.currentReplicas: Invalid value: 2: ${most}`,
    'status.collisionCount: Invalid value: 0: cannot be decremented',
  ])
  assert.deepEqual(statusFaults(daemonSet, { numberReady: -1 }, {}), ['status.numberReady: Invalid value: -1: must be greater than or equal to 0'])
})

test('API-17 a stateful set changes in few fields', () => {
  const old = make<StatefulSet>(statefulSet, {})
  const change = (fields: object) => texts(statefulSet.validateUpdate?.({ obj: make<StatefulSet>(statefulSet, fields), old, path, context }))
  assert.deepEqual(change({ replicas: 3, minReadySeconds: 1, revisionHistoryLimit: 2 }), [])
  assert.deepEqual(change({ serviceName: 'x' }), [
    "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
  ])
})

test('API-17 a controller revision has data, which stays', () => {
  const revision = (data: unknown) => ({ apiVersion: 'apps/v1', kind: 'ControllerRevision', metadata: { name: 'r' }, revision: 1, data }) as ControllerRevision
  assert.deepEqual(texts(controllerRevision.validate?.({ obj: revision(undefined), path, context })), ['data: Required value: data is mandatory'])
  assert.deepEqual(texts(controllerRevision.validateUpdate?.({ obj: revision({ a: 1 }), old: revision({ a: 2 }), path, context })), [
    'data: Invalid value: {"a":1}: field is immutable',
  ])
})

test('API-17 a changed template is warned about again', () => {
  const old = make<StatefulSet>(statefulSet, {})
  const gitRepo = { ...template, spec: { ...template.spec, volumes: [{ name: 'g', gitRepo: { repository: 'r' } }] } }
  assert.equal(statefulSet.warnings?.({ obj: make<StatefulSet>(statefulSet, { template: gitRepo }), path, context }, old).length, 1)
  assert.deepEqual(statefulSet.warnings?.({ obj: old, path, context }, old), [])
})
