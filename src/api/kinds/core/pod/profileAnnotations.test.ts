import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, PodSpec, SecurityContext } from '#api/gen/types/core.v1'
import { FieldPath } from '#api/machinery/fieldPath'
import { seededRandom } from '#base/random'
import { errorTexts } from '#testing/kindRules'
import { setPodDefaults } from './defaults.ts'
import { pod } from './pod.ts'

const path = FieldPath.of()
const context = { nowMs: 0, random: seededRandom(1) }
const appArmor = 'container.apparmor.security.beta.kubernetes.io/c'
const seccompPod = 'seccomp.security.alpha.kubernetes.io/pod'
const seccomp = 'container.seccomp.security.alpha.kubernetes.io/c'

function subject(annotations: Record<string, string>, spec: Partial<PodSpec> = {}, securityContext?: SecurityContext): Pod {
  const container = { name: 'c', image: 'i', ...(securityContext ? { securityContext } : {}) }
  const obj: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', annotations }, spec: { containers: [container], ...spec }, status: {} }
  setPodDefaults(obj)
  return obj
}

const own = 'spec.containers[0].securityContext'
const runtimeDefault = { type: 'RuntimeDefault' }
const mine = { type: 'Localhost', localhostProfile: 'mine' }
const rows: [name: string, obj: Pod, want: string[]][] = [
  ['known ones', subject({ [appArmor]: 'localhost/x', [seccompPod]: 'docker/default', [seccomp]: 'localhost/a/b' }), []],
  [
    'unknown ones',
    subject({ [appArmor]: 'x', [seccompPod]: 'x', [seccomp]: 'localhost/../b' }),
    [
      `metadata.annotations[${appArmor}]: Invalid value: "x": invalid AppArmor profile name: "x"`,
      `metadata.annotations.${seccompPod}: Invalid value: "x": must be a valid seccomp profile`,
      `metadata.annotations.${seccomp}: Invalid value: "../b": must not contain '..'`,
    ],
  ],
  [
    'an annotation for a container that is missing',
    subject({ [`${appArmor}d`]: 'unconfined' }),
    [`metadata.annotations[${appArmor}d]: Invalid value: "cd": container not found`],
  ],
  [
    'the same in annotations and fields',
    subject({ [appArmor]: 'localhost/mine', [seccomp]: 'docker/default' }, {}, { appArmorProfile: mine, seccompProfile: runtimeDefault }),
    [],
  ],
  [
    'others in annotations than in fields',
    subject(
      { [appArmor]: 'localhost/other', [seccompPod]: 'unconfined', [seccomp]: 'runtime/default' },
      { securityContext: { seccompProfile: runtimeDefault } },
      { appArmorProfile: mine, seccompProfile: mine },
    ),
    [
      'spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match',
      `${own}.seccompProfile.type: Forbidden: seccomp type in annotation and field must match`,
      `${own}.appArmorProfile.localhostProfile: Forbidden: apparmor profile in annotation and field must match`,
    ],
  ],
]
for (const [name, obj, want] of rows)
  test(`API-17 profile annotations: ${name}`, () => assert.deepEqual(errorTexts(pod.validate?.({ obj, path, context })), want))

test('API-17 profile annotations: what a running pod has stays', () => {
  const old = subject({ [appArmor]: 'unconfined' })
  assert.deepEqual(errorTexts(pod.validateUpdate?.({ obj: subject({}), old, path, context })), [
    `metadata.annotations[${appArmor}]: Forbidden: may not remove or update AppArmor annotations`,
  ])
  assert.deepEqual(errorTexts(pod.validateUpdate?.({ obj: old, old: subject({}), path, context })), [
    `metadata.annotations[${appArmor}]: Forbidden: may not add AppArmor annotations`,
  ])
})

const warned = `metadata.annotations[${appArmor}]: deprecated since v1.30; use the "appArmorProfile" field instead`
const takenOver: [name: string, obj: Pod, profile: object | undefined, warnings: string[]][] = [
  ['a profile', subject({ [appArmor]: 'localhost/mine' }), mine, [warned]],
  ['no profile', subject({ [appArmor]: 'localhost/' }), undefined, [warned]],
  ['the pod has it', subject({ [appArmor]: 'runtime/default' }, { securityContext: { appArmorProfile: runtimeDefault } }), undefined, []],
  ['the container has one', subject({ [appArmor]: 'runtime/default' }, {}, { appArmorProfile: runtimeDefault }), runtimeDefault, []],
  ['Windows', subject({ [appArmor]: 'runtime/default' }, { os: { name: 'windows' } }), undefined, []],
]
for (const [name, obj, profile, warnings] of takenOver)
  test(`API-17 profile annotations: an AppArmor annotation becomes a field: ${name}`, () => {
    const heard: string[] = []
    pod.prepareForCreate?.({ obj, path, context: { ...context, warn: (text) => heard.push(text) } })
    assert.deepEqual([obj.spec.containers?.[0]?.securityContext?.appArmorProfile, heard], [profile, warnings])
  })
