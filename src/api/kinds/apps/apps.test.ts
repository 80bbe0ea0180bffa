import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Deployment, DeploymentSpec, ReplicaSet } from '#api/gen/types/apps.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { deepCopy } from '#base/frozen'
import { seededRandom } from '#base/random'
import { deployment } from './deployment.ts'
import { replicaSet } from './replicaSet.ts'

const path = FieldPath.of()
const context = { nowMs: 0, random: seededRandom(1) }
const texts = (errors: readonly { field: string; body: string }[] = []) => errors.map((error) => `${error.field}: ${error.body}`)

function subject(spec: Partial<DeploymentSpec> = {}): Deployment {
  const labels = { app: 'web' }
  const made = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'nginx' }] } }, ...spec },
    status: {},
  } as Deployment
  deployment.defaults?.(made, 'v1')
  return made
}

test('a deployment gets upstream’s defaults', () => {
  const { replicas, strategy, revisionHistoryLimit, progressDeadlineSeconds, template } = subject().spec
  assert.deepEqual(
    { replicas, strategy, revisionHistoryLimit, progressDeadlineSeconds },
    {
      replicas: 1,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
    },
  )
  assert.deepEqual([template.spec?.restartPolicy, template.spec?.enableServiceLinks], ['Always', undefined])
})

const cases: [string, Partial<DeploymentSpec>, string[]][] = [
  ['good', {}, []],
  ['empty selector', { selector: {} }, ['spec.selector: Invalid value: {}: empty selector is invalid for deployment']],
  [
    'selector of others',
    { selector: { matchLabels: { app: 'api' } } },
    ['spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`'],
  ],
  ['negative', { replicas: -1 }, ['spec.replicas: Invalid value: -1: must be greater than or equal to 0']],
  [
    'Recreate with parameters',
    { strategy: { type: 'Recreate', rollingUpdate: { maxSurge: 1 } } },
    ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
  ],
  [
    'no way forward',
    { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: '0%' } } },
    ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0'],
  ],
  [
    'more than all',
    { strategy: { rollingUpdate: { maxUnavailable: '101%' } } },
    ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
  ],
  ['deadline', { minReadySeconds: 600 }, ['spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds']],
]
for (const [name, spec, want] of cases)
  test(`deployment validation: ${name}`, () => assert.deepEqual(texts(deployment.validate?.({ obj: subject(spec), path, context })), want))

test('pods of a deployment restart always', () => {
  const made = subject()
  Object.assign(made.spec.template.spec ?? {}, { restartPolicy: 'Never' })
  assert.deepEqual(texts(deployment.validate?.({ obj: made, path, context })), [
    'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
  ])
})

test('a dotted name is warned about, once', () => {
  const made = subject()
  made.metadata.name = 'a.b'
  const want =
    'metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]'
  assert.deepEqual(deployment.warnings?.({ obj: made, path, context }), [want])
  assert.deepEqual(deployment.warnings?.({ obj: made, path, context }, made), [])
})

test('a selector never changes', () => {
  const old = subject()
  const obj = deepCopy(old)
  obj.spec.selector = { matchLabels: { app: 'web', x: 'y' } }
  obj.spec.template.metadata = { labels: { app: 'web', x: 'y' } }
  assert.deepEqual(texts(deployment.validateUpdate?.({ obj, old, path, context })), [
    'spec.selector: Invalid value: {"matchLabels":{"app":"web","x":"y"}}: field is immutable',
  ])
})

test('the status endpoint keeps spec and labels', () => {
  const old = subject()
  const obj = deepCopy(old)
  Object.assign(obj, { spec: {}, status: { replicas: 2, readyReplicas: 3 } })
  obj.metadata.labels = { x: 'y' }
  deployment.status?.prepareForUpdate?.({ obj, old, path, context })
  assert.deepEqual([obj.spec, obj.metadata], [old.spec, old.metadata])
  assert.deepEqual(texts(deployment.status?.validateUpdate?.({ obj, old, path, context })), [
    'status.readyReplicas: Invalid value: 3: cannot be greater than status.replicas',
  ])
})

test('API-17 deployment and replica set cells', () => {
  const made = subject({ replicas: 3 })
  made.status = { readyReplicas: 2, updatedReplicas: 3 }
  assert.deepEqual(
    (deployment.columns ?? []).map((column) => column.value(made, 0)),
    ['web', '2/3', 3, 0, '<unknown>', 'a', 'nginx', 'app=web'],
  )
  assert.equal(deployment.scale?.selector(made), 'app=web')
  const set = { ...made, kind: 'ReplicaSet', status: { replicas: 3, readyReplicas: 1 } } as ReplicaSet
  assert.deepEqual(
    (replicaSet.columns ?? []).map((column) => column.value(set, 0)),
    ['web', 3, 3, 1, '<unknown>', 'a', 'nginx', 'app=web'],
  )
})
