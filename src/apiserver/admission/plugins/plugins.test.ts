import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod, PodSpec, Toleration } from '#api/gen/types/core.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus, StatusError } from '#api/machinery/status'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes } from '../admission.ts'
import { createAdmissionPlugins } from './index.ts'

type Stored = KubeObject & Record<string, unknown>

const stored: Record<string, Stored[]> = {
  namespaces: [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'd' }, status: { phase: 'Active' } },
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'going' }, status: { phase: 'Terminating' } },
  ],
  serviceaccounts: [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'd' }, imagePullSecrets: [{ name: 'registry' }] },
    {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'strict', namespace: 'd', annotations: { 'kubernetes.io/enforce-mountable-secrets': 'true' } },
      secrets: [{ name: 'mine' }],
    },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'silent', namespace: 'd' }, automountServiceAccountToken: false },
  ],
  priorityclasses: [
    { apiVersion: 'v1', kind: 'PriorityClass', metadata: { name: 'high' }, value: 1000, preemptionPolicy: 'Never' },
    { apiVersion: 'v1', kind: 'PriorityClass', metadata: { name: 'usual' }, value: 5, globalDefault: true },
  ],
  pods: [
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'mine', namespace: 'd', uid: 'u1' }, spec: { nodeName: 'n1' } },
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'other', namespace: 'd', uid: 'u2' }, spec: { nodeName: 'n2' } },
  ],
}
const reader: ObjectReader = {
  get: <T extends KubeObject>({ resource }: { resource: string }, namespace: string, name: string) =>
    stored[resource]?.find((one) => one.metadata.name === name && (one.metadata.namespace ?? '') === namespace) as Frozen<T> | undefined,
  list: <T extends KubeObject>({ resource }: { resource: string }) => (stored[resource] ?? []) as unknown as readonly Frozen<T>[],
  onChange: () => () => {},
}

const admin = { name: 'admin', groups: ['system:masters'] }
const nodeUser = { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] }

async function admit(changes: Partial<AdmissionAttributes>): Promise<void> {
  const attributes: AdmissionAttributes = {
    operation: 'CREATE',
    resource: { group: '', version: 'v1', resource: 'pods' },
    subresource: '',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    namespace: 'd',
    name: '',
    user: admin,
    dryRun: false,
    warn: () => {},
    ...changes,
  }
  const chain = createAdmissionPlugins({ reader, random: seededRandom(1), clock: new VirtualClock() }).filter((plugin) => plugin.handles(attributes.operation))
  for (const plugin of chain) await plugin.admit?.(attributes)
  for (const plugin of chain) await plugin.validate?.(attributes)
}

const pod = (spec: Partial<PodSpec> = {}, annotations?: Record<string, string>): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'd', annotations },
  spec: { containers: [{ name: 'c' }], ...spec },
  status: {},
})
const nodes = { group: '', version: 'v1', resource: 'nodes' }
const node = (name: string, labels: Record<string, string> = {}): Node => ({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, spec: {}, status: {} })

test('AUN-08 a pod gets the default account, its pull secrets and the projected token volume', async () => {
  const object = pod()
  await admit({ object })
  const { spec } = object
  assert.deepEqual([spec.serviceAccountName, spec.serviceAccount], ['default', 'default'])
  assert.deepEqual(spec.imagePullSecrets, [{ name: 'registry' }])
  const [volume] = spec.volumes ?? []
  assert.match(volume?.name ?? '', /^kube-api-access-[a-z0-9]{5}$/)
  assert.deepEqual(
    volume?.projected?.sources?.map((source) => Object.keys(source)[0]),
    ['serviceAccountToken', 'configMap', 'downwardAPI'],
  )
  assert.deepEqual(spec.containers[0]?.volumeMounts, [{ name: volume?.name, readOnly: true, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' }])
})

test('AUN-08 opting out, by the account or the pod, is honoured; the pod’s word counts more', async () => {
  const quiet = pod({ serviceAccountName: 'silent' })
  await admit({ object: quiet })
  assert.equal(quiet.spec.volumes, undefined)
  const insists = pod({ serviceAccountName: 'silent', automountServiceAccountToken: true })
  await admit({ object: insists })
  assert.equal(insists.spec.volumes?.length, 1)
})

test('ADM-10 tolerations and the priority of the default class are filled in', async () => {
  const object = pod({ tolerations: [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 }] })
  await admit({ object })
  const keys = (list: readonly Toleration[] | undefined) => list?.map(({ key, tolerationSeconds }) => [key, tolerationSeconds])
  assert.deepEqual(keys(object.spec.tolerations), [
    ['node.kubernetes.io/not-ready', 5],
    ['node.kubernetes.io/unreachable', 300],
  ])
  assert.deepEqual([object.spec.priority, object.spec.priorityClassName, object.spec.preemptionPolicy], [5, 'usual', 'PreemptLowerPriority'])
})

test('RES-07 a named class gives its value and policy', async () => {
  const object = pod({ priorityClassName: 'high' })
  await admit({ object })
  assert.deepEqual([object.spec.priority, object.spec.preemptionPolicy], [1000, 'Never'])
})

test('a new node is tainted until it is ready', async () => {
  const object = node('n1')
  await admit({ resource: nodes, namespace: '', name: 'n1', object })
  assert.deepEqual(object.spec.taints, [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }])
})

const refusals: { name: string; attributes: Partial<AdmissionAttributes>; reason: 'Forbidden' | 'NotFound'; text: RegExp }[] = [
  { name: 'a pod in a namespace that is not there', attributes: { namespace: 'x', object: pod() }, reason: 'NotFound', text: /^namespaces "x" not found$/ },
  {
    name: 'a pod in a namespace that is going',
    attributes: { namespace: 'going', object: pod() },
    reason: 'Forbidden',
    text: /pods "p" is forbidden: unable to create new content in namespace going because it is being terminated/,
  },
  {
    name: 'deleting kube-system',
    attributes: {
      operation: 'DELETE',
      resource: { group: '', version: 'v1', resource: 'namespaces' },
      kind: { group: '', version: 'v1', kind: 'Namespace' },
      namespace: '',
      name: 'kube-system',
    },
    reason: 'Forbidden',
    text: /this namespace may not be deleted/,
  },
  {
    name: 'an unknown account',
    attributes: { object: pod({ serviceAccountName: 'nobody' }) },
    reason: 'Forbidden',
    text: /error looking up service account d\/nobody: serviceaccount "nobody" not found/,
  },
  {
    name: 'an unknown priority class',
    attributes: { object: pod({ priorityClassName: 'none' }) },
    reason: 'Forbidden',
    text: /no PriorityClass with name none was found/,
  },
  {
    name: 'a priority by hand',
    attributes: { object: pod({ priority: 7 }) },
    reason: 'Forbidden',
    text: /the integer value of priority \(7\) must not be provided in pod spec/,
  },
  {
    name: 'AUZ-04 a node changing another node',
    attributes: { user: nodeUser, operation: 'UPDATE', resource: nodes, namespace: '', name: 'n2', object: node('n2'), oldObject: node('n2') },
    reason: 'Forbidden',
    text: /node "n1" is not allowed to modify node "n2"/,
  },
  {
    name: 'AUZ-04 a node giving itself a restricted label',
    attributes: { user: nodeUser, resource: nodes, namespace: '', name: 'n1', object: node('n1', { 'node-restriction.kubernetes.io/trusted': 'yes' }) },
    reason: 'Forbidden',
    text: /is not allowed to set the following labels: node-restriction.kubernetes.io\/trusted/,
  },
  {
    name: 'AUZ-04 a node making an ordinary pod',
    attributes: { user: nodeUser, object: pod({ nodeName: 'n1' }) },
    reason: 'Forbidden',
    text: /node "n1" can only create mirror pods/,
  },
  {
    name: 'AUZ-04 a node changing the status of a pod elsewhere',
    attributes: { user: nodeUser, operation: 'UPDATE', subresource: 'status', name: 'other', object: pod(), oldObject: pod({ nodeName: 'n2' }) },
    reason: 'Forbidden',
    text: /node "n1" can only update pod status for pods with spec.nodeName set to itself/,
  },
]
for (const c of refusals) {
  test(`refused: ${c.name}`, async () => {
    await assert.rejects(admit(c.attributes), (error) => {
      assert.ok(error instanceof StatusError, String(error))
      assert.match(error.message, c.text)
      return isStatus(error, c.reason)
    })
  })
}

test('AUZ-04 a node may change the status of its own pods', () =>
  admit({ user: nodeUser, operation: 'UPDATE', subresource: 'status', name: 'mine', object: pod(), oldObject: pod({ nodeName: 'n1' }) }))

test('AUN-08 containers that join a running pod use no secret that its account does not name', async () => {
  const debugging = (name: string, serviceAccountName: string, how: object) => {
    const ephemeralContainers = [{ name: 'debug', ...how }] as PodSpec['ephemeralContainers']
    return admit({ operation: 'UPDATE', subresource: 'ephemeralcontainers', name, oldObject: pod(), object: pod({ serviceAccountName, ephemeralContainers }) })
  }
  const variable = (name: string) => ({ env: [{ name: 'E', valueFrom: { secretKeyRef: { name, key: 'k' } } }] })
  const because = 'is not allowed because service account strict does not reference that secret'
  await assert.rejects(debugging('p', 'strict', variable('other')), {
    message: `ephemeral container debug with envVar E referencing secret.secretName="other" ${because}`,
  })
  await assert.rejects(debugging('p', 'strict', { envFrom: [{ secretRef: { name: 'other' } }] }), { code: 500 })
  await debugging('p', 'strict', variable('mine'))
  await debugging('p', 'silent', variable('other'))
})

test('AUN-08 a mirror pod names no account and no secret, wherever it would', async () => {
  const mirror = (spec: Partial<PodSpec>) => admit({ object: pod(spec, { 'kubernetes.io/config.mirror': 'x' }) })
  await assert.rejects(mirror({ serviceAccountName: 'default' }), /a mirror pod may not reference service accounts$/)
  await assert.rejects(mirror({ containers: [{ name: 'c', envFrom: [{ secretRef: { name: 's' } }] }] }), /a mirror pod may not reference secrets$/)
  await assert.rejects(mirror({ imagePullSecrets: [{ name: 's' }] }), /a mirror pod may not reference secrets$/)
  await mirror({})
})

test('ADM-01 nothing is changed in a namespace that is not there', () =>
  assert.rejects(admit({ operation: 'UPDATE', namespace: 'gone', name: 'p', object: pod(), oldObject: pod() }), { message: 'namespaces "gone" not found' }))
