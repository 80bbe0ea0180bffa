import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import type { KubeObject } from '#api/machinery/meta'
import { StatusError } from '#api/machinery/status'
import { noMetrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes } from '../admission.ts'
import { podSecurityConfiguration } from '../podSecurity/configuration.ts'
import { createPodSecurityMetrics } from '../podSecurity/podSecurityMetrics.ts'
import { podSecurity } from './podSecurity.ts'

const labelled = (labels: Record<string, string>) =>
  Object.fromEntries(Object.entries(labels).map(([key, value]) => [`pod-security.kubernetes.io/${key}`, value]))
const namespace = (name: string, labels: Record<string, string>) =>
  ({ kind: 'Namespace', metadata: { name, labels: labelled(labels) } }) as unknown as KubeObject
const pod = (name: string, spec: object = {}, metadata: object = {}) =>
  ({ kind: 'Pod', metadata: { name, namespace: 'n', ...metadata }, spec: { containers: [{ name: 'a', image: 'i' }], ...spec } }) as unknown as Pod

interface Outcome {
  readonly refused?: string
  readonly code?: number
  readonly warnings: readonly string[]
  readonly annotations: Readonly<Record<string, string>>
}

function world(labels: Record<string, string>, { configuration = '', pods = [] as Pod[] } = {}) {
  const here = namespace('n', labels)
  const reader = {
    get: (_: unknown, __: string, name: string) => (name === 'n' ? here : undefined),
    list: () => pods,
  } as unknown as ObjectReader
  const head = 'apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n'
  const plugin = podSecurity(
    { reader, clock: new VirtualClock(), metrics: createPodSecurityMetrics(noMetrics) },
    podSecurityConfiguration(head + configuration),
  )
  return (object: object, some: Partial<AdmissionAttributes> = {}, resource = 'pods', group = ''): Outcome => {
    const warnings: string[] = []
    const annotations: Record<string, string> = {}
    const attributes = {
      operation: 'CREATE',
      resource: { group, version: 'v1', resource },
      kind: { group, version: 'v1', kind: resource === 'namespaces' ? 'Namespace' : 'Pod' },
      subresource: '',
      namespace: resource === 'namespaces' ? '' : 'n',
      name: (object as KubeObject).metadata.name,
      object,
      user: { name: 'u', groups: [] },
      warn: (text: string) => warnings.push(text),
      annotate: (key: string, value: string) => {
        annotations[key.slice('pod-security.kubernetes.io/'.length)] = value
      },
      ...some,
    } as unknown as AdmissionAttributes
    try {
      void plugin.validate?.(attributes)
    } catch (error) {
      assert.ok(error instanceof StatusError, String(error))
      return { refused: error.message, code: error.code, warnings, annotations }
    }
    return { warnings, annotations }
  }
}

const hostPid = 'host namespaces (hostPID=true)'

test('ADM-08 what breaks the enforced level is refused, with the whole list', () => {
  const admit = world({ enforce: 'baseline' })
  assert.deepEqual(admit(pod('p', { hostPID: true })), {
    refused: `pods "p" is forbidden: violates PodSecurity "baseline:latest": ${hostPid}`,
    code: 403,
    warnings: [],
    annotations: { 'enforce-policy': 'baseline:latest' },
  })
  assert.deepEqual(admit(pod('p')), { warnings: [], annotations: { 'enforce-policy': 'baseline:latest' } })
})

test('ADM-08 audit and warn let pass', () => {
  const admit = world({ audit: 'baseline', warn: 'baseline', 'warn-version': 'v1.30' })
  assert.deepEqual(admit(pod('p', { hostPID: true })), {
    warnings: [`would violate PodSecurity "baseline:v1.30": ${hostPid}`],
    annotations: { 'enforce-policy': 'privileged:latest', 'audit-violations': `would violate PodSecurity "baseline:latest": ${hostPid}` },
  })
})

test('ADM-08 what makes pods is warned about, never refused', () => {
  const admit = world({ enforce: 'baseline' })
  const template = { metadata: {}, spec: pod('', { hostPID: true }).spec }
  const warnings = [`would violate PodSecurity "baseline:latest": ${hostPid}`]
  for (const [resource, group, spec] of [
    ['deployments', 'apps', { template }],
    ['cronjobs', 'batch', { jobTemplate: { spec: { template } } }],
  ] as const) {
    assert.deepEqual(admit({ metadata: { name: 'd' }, spec }, {}, resource, group), { warnings, annotations: {} })
    assert.deepEqual(admit({ metadata: { name: 'd' }, spec }, { subresource: 'status' }, resource, group), { warnings: [], annotations: {} })
  }
  assert.deepEqual(admit({ metadata: { name: 'd' }, template }, {}, 'podtemplates'), { warnings, annotations: {} })
  assert.deepEqual(admit({ metadata: { name: 'd' }, spec: {} }, {}, 'replicationcontrollers'), { warnings: [], annotations: {} })
})

test('updates of a pod that change no image are not looked at; added containers are', () => {
  const admit = world({ enforce: 'baseline' })
  const bad = { hostPID: true }
  const update = (before: object, more: Partial<AdmissionAttributes> = {}) =>
    admit(pod('p', bad), { operation: 'UPDATE', oldObject: before as never, ...more }).refused !== undefined
  assert.equal(update(pod('p', bad, { labels: { x: 'y' } })), false)
  assert.equal(update(pod('p', { ...bad, containers: [{ name: 'a', image: 'other' }] })), true)
  assert.equal(update(pod('p', { ...bad, containers: [{ name: 'a', image: 'other' }] }), { subresource: 'status' }), false)
  const debugged = pod('p', { ...bad, ephemeralContainers: [{ name: 'debug', image: 'i' }] })
  const added = admit(debugged, { operation: 'UPDATE', oldObject: pod('p', bad) as never, subresource: 'ephemeralcontainers' })
  assert.match(added.refused ?? '', /violates PodSecurity/)
})

test('users, namespaces and runtime classes can be exempt', () => {
  const exempt = (exemptions: string, spec: object = {}) =>
    world({ enforce: 'restricted' }, { configuration: `exemptions:\n  ${exemptions}\n` })(pod('p', spec))
  const passed = (why: string) => ({ warnings: [], annotations: { exempt: why } })
  assert.deepEqual(exempt('usernames: [u]'), passed('user'))
  assert.deepEqual(exempt('namespaces: ["n"]'), passed('namespace'))
  assert.deepEqual(exempt('runtimeClasses: [r]', { runtimeClassName: 'r' }), passed('runtimeClass'))
  assert.match(exempt('runtimeClasses: [r]').refused ?? '', /violates/)
})

test('defaults apply to a namespace without labels', () => {
  const admit = world({}, { configuration: 'defaults:\n  enforce: baseline\n  enforce-version: v1.30\n' })
  assert.match(admit(pod('p', { hostPID: true })).refused ?? '', /violates PodSecurity "baseline:v1.30"/)
})

test('a pod in no namespace is an error of the server', () => {
  const outcome = world({})(pod('p'), { namespace: 'gone' })
  assert.deepEqual([outcome.code, outcome.refused], [500, 'Internal error occurred: failed to lookup namespace "gone"'])
})

test('labels of namespaces have to be right, unless they were wrong before', () => {
  const admit = world({})
  const wrong = namespace('n', { enforce: 'strict' })
  const text = 'metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted'
  assert.deepEqual(admit(wrong, {}, 'namespaces').refused, `Namespace "n" is invalid: ${text}`)
  const update = (before: KubeObject) => admit(wrong, { operation: 'UPDATE', oldObject: before as never }, 'namespaces').refused
  assert.equal(update(namespace('n', {})), `Namespace "n" is invalid: ${text}`)
  assert.equal(update(wrong), undefined)
})

test('ADM-08 a stricter namespace warns of the pods it has', () => {
  const controller = (uid: string) => ({ ownerReferences: [{ uid, controller: true }] })
  const pods = [
    pod('b', { hostPID: true }),
    pod('a', { hostPID: true }),
    pod('c', { hostPID: true }, controller('x')),
    pod('d', { hostIPC: true, hostNetwork: true }, controller('x')),
    pod('e', { containers: [{ name: 'a', securityContext: { privileged: true } }], hostIPC: true }),
    pod('f'),
  ]
  const admit = world({}, { pods })
  const update = (now: Record<string, string>, before: Record<string, string>) =>
    admit(namespace('n', now), { operation: 'UPDATE', oldObject: namespace('n', before) as never }, 'namespaces').warnings
  assert.deepEqual(update({ enforce: 'baseline' }, {}), [
    'existing pods in namespace "n" violate the new PodSecurity enforce level "baseline:latest"',
    'a (and 3 other pods): host namespaces',
    'e: host namespaces, privileged',
  ])
  assert.deepEqual(update({ enforce: 'baseline' }, { enforce: 'restricted' }), [])
  assert.deepEqual(update({ enforce: 'baseline', warn: 'restricted' }, { enforce: 'baseline' }), [])
  const many = Array.from({ length: 3_001 }, (_, index) => pod(`p${index}`))
  const manyAdmit = world({}, { pods: many })
  const outcome = manyAdmit(namespace('n', { enforce: 'baseline' }), { operation: 'UPDATE', oldObject: namespace('n', {}) as never }, 'namespaces')
  assert.deepEqual(outcome.warnings, ['new PodSecurity enforce level only checked against the first 3000 of 3001 existing pods'])
})

test('labels of an exempt namespace are said to have no effect', () => {
  const admit = world({}, { configuration: 'exemptions:\n  namespaces: ["n"]\n' })
  const { warnings } = admit(namespace('n', { enforce: 'baseline', audit: 'restricted', 'audit-version': 'v1.30' }), {}, 'namespaces')
  assert.deepEqual(warnings, ['namespace "n" is exempt from Pod Security, and the policy (enforce=baseline:latest, audit=restricted:v1.30) will be ignored'])
})

test('a configuration is checked', () => {
  const head = 'apiVersion: pod-security.admission.config.k8s.io/v1beta1\nkind: PodSecurityConfiguration\n'
  const cases: readonly [string, string][] = [
    ['defaults:\n  enforce: x\n', 'defaults.enforce: Invalid value: "x": must be one of privileged, baseline, restricted'],
    [
      'defaults:\n  audit: z\n  warn: x\n',
      '[defaults.warn: Invalid value: "x": must be one of privileged, baseline, restricted, defaults.audit: Invalid value: "z": must be one of privileged, baseline, restricted]',
    ],
    ['defaults:\n  warn-version: "1.0"\n', 'defaults.warn-version: Invalid value: "1.0": must be "latest" or "v1.x"'],
    [
      'exemptions:\n  usernames: [a, a, ""]\n',
      '[exemptions.usernames[1]: Duplicate value: "a", exemptions.usernames[2]: Invalid value: "": username must not be empty]',
    ],
    ['default: {}\n', 'strict decoding error: unknown field "default"'],
  ]
  for (const [content, message] of cases) assert.throws(() => podSecurityConfiguration(head + content), { message })
})
