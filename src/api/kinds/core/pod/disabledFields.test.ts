/** Fields of features that v1.36 has off by default: no write keeps them, in no kind that has them, but for objects that had them before. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FieldPath } from '#api/machinery/fieldPath'
import type { KubeObject } from '#api/machinery/meta'
import { seededRandom } from '#base/random'
import { strategyFor } from '../../index.ts'

type Fields = Record<string, unknown>

const path = FieldPath.of()
const context = { nowMs: 0, random: seededRandom(1) }
const features: readonly { readonly name: string; readonly with: Fields; readonly without: Fields }[] = [
  {
    name: 'stop signals of containers',
    with: {
      containers: [{ name: 'a', lifecycle: { stopSignal: 'SIGUSR1' } }],
      initContainers: [{ name: 'b', lifecycle: { stopSignal: 'SIGUSR1', preStop: { sleep: { seconds: 1 } } } }],
    },
    without: { containers: [{ name: 'a' }], initContainers: [{ name: 'b', lifecycle: { preStop: { sleep: { seconds: 1 } } } }] },
  },
  { name: 'scheduling groups (SCH-21)', with: { containers: [], schedulingGroup: { podGroupName: 'g' } }, without: { containers: [] } },
  ...['clusterTrustBundle', 'podCertificate'].map((source) => ({
    name: `projections of a ${source}`,
    with: { containers: [], volumes: [{ name: 'v', projected: { sources: [{ [source]: {} }, { secret: { name: 's' } }] } }] },
    without: { containers: [], volumes: [{ name: 'v', projected: { sources: [{}, { secret: { name: 's' } }] } }] },
  })),
]

/** Where each kind has the spec of a pod. */
const kinds: readonly (readonly [string, string, (spec: Fields) => Fields, (obj: Fields) => unknown])[] = [
  ['', 'Pod', (spec) => ({ spec }), at('spec')],
  ['', 'PodTemplate', (spec) => ({ template: { spec } }), at('template', 'spec')],
  ...(
    [
      ['', 'ReplicationController'],
      ['apps', 'ReplicaSet'],
      ['apps', 'Deployment'],
      ['apps', 'DaemonSet'],
      ['apps', 'StatefulSet'],
      ['batch', 'Job'],
    ] as const
  ).map(([group, kind]): (typeof kinds)[number] => [
    group,
    kind,
    (spec) => ({ spec: { manualSelector: true, template: { spec } } }),
    at('spec', 'template', 'spec'),
  ]),
  ['batch', 'CronJob', (spec) => ({ spec: { jobTemplate: { spec: { template: { spec } } } } }), at('spec', 'jobTemplate', 'spec', 'template', 'spec')],
]

function at(...fields: string[]): (obj: Fields) => unknown {
  return (obj) => fields.reduce<unknown>((value, field) => (value as Fields)[field], obj)
}

for (const feature of features) {
  test(`API-01 writes forget ${feature.name}, unless the object has had them`, () => {
    for (const [group, kind, wrap, specOf] of kinds) {
      const strategy = strategyFor(group, kind)
      const make = (spec: Fields) => ({ kind, metadata: {}, status: {}, ...structuredClone(wrap(spec)) }) as unknown as KubeObject
      const written = (old?: Fields) => {
        const obj = make(feature.with)
        if (old) strategy?.prepareForUpdate?.({ obj, old: make(old) as never, path, context })
        else strategy?.prepareForCreate?.({ obj, path, context })
        return specOf(obj as unknown as Fields)
      }
      assert.deepEqual(written(), feature.without, `${kind} created`)
      assert.deepEqual(written(feature.without), feature.without, `${kind} updated`)
      assert.deepEqual(written(feature.with), feature.with, `${kind} that has had them`)
    }
  })
}

test('API-01 a feature that its gate turns on keeps its fields; the gate of a feature that is not built in has no effect', () => {
  const [, withGroup, withBundle, withCertificate] = features
  const gates = { ClusterTrustBundleProjection: true, PodCertificateRequest: true, GenericWorkload: true }
  for (const [group, kind, wrap, specOf] of kinds)
    for (const feature of [withBundle, withCertificate, withGroup]) {
      const obj = { kind, metadata: {}, status: {}, ...structuredClone(wrap(feature?.with ?? {})) } as unknown as KubeObject
      strategyFor(group, kind)?.prepareForCreate?.({ obj, path, context: { ...context, featureGates: gates } })
      assert.deepEqual(specOf(obj as unknown as Fields), feature === withGroup ? feature?.without : feature?.with, `${kind} ${feature?.name}`)
    }
})

test('API-01 a status forgets what devices count as node resources', () => {
  const strategy = strategyFor('', 'Pod')
  const pod = (status: Fields) => ({ kind: 'Pod', metadata: {}, spec: { containers: [] }, status }) as unknown as KubeObject
  const used = { phase: 'Running', nodeAllocatableResourceClaimStatuses: [{}] }
  const written = (old: Fields) => {
    const obj = pod({ ...used })
    strategy?.status?.prepareForUpdate?.({ obj, old: pod(old) as never, path, context })
    return Object.keys((obj as unknown as { status: Fields }).status)
  }
  assert.ok(!written({}).includes('nodeAllocatableResourceClaimStatuses'))
  assert.ok(written(used).includes('nodeAllocatableResourceClaimStatuses'))
})

test('CTL-05 a StatefulSet has no maxUnavailable, given or by default, unless it has had one', () => {
  const strategy = strategyFor('apps', 'StatefulSet')
  const set = (rollingUpdate: Fields) =>
    ({
      kind: 'StatefulSet',
      metadata: {},
      spec: { template: { spec: { containers: [] } }, updateStrategy: { type: 'RollingUpdate', rollingUpdate } },
    }) as unknown as KubeObject
  const written = (now: Fields, old?: Fields) => {
    const obj = set({ ...now })
    strategy?.defaults?.(obj, 'v1')
    if (old) strategy?.prepareForUpdate?.({ obj, old: set(old) as never, path, context })
    else strategy?.prepareForCreate?.({ obj, path, context })
    return at('spec', 'updateStrategy', 'rollingUpdate')(obj as unknown as Fields)
  }
  assert.deepEqual(written({ maxUnavailable: 2 }), { partition: 0 })
  assert.deepEqual(written({ maxUnavailable: 2 }, { partition: 0 }), { partition: 0 })
  assert.deepEqual(written({ maxUnavailable: 2 }, { partition: 0, maxUnavailable: 1 }), { partition: 0, maxUnavailable: 2 })
})
