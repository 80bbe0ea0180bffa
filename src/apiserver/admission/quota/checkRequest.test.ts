import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ResourceQuota } from '#api/gen/types/core.v1'
import { quotaCovers, quotaUsage } from '#api/helpers/quotaUsage'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { StatusError } from '#api/machinery/status'
import type { AdmissionAttributes } from '../admission.ts'
import { addsNothing, changesUsage, checkRequest } from './checkRequest.ts'
import { type LimitedResource, limitedResourcesOf } from './limitedResources.ts'
import { RunningQuota } from './runningQuota.ts'

const pod = (name: string, resources: object = {}, spec: object = {}) =>
  ({ metadata: { name, namespace: 'n' }, spec: { containers: [{ name: 'c', image: 'i', resources }], ...spec } }) as unknown as KubeObject

/** A namespace with one quota that has been counted: nothing is used yet. */
function world(hard: Record<string, string> | undefined, spec: object = {}, limited: readonly LimitedResource[] = []) {
  const used = Object.fromEntries(Object.keys(hard ?? {}).map((name) => [name, '0']))
  const quota = hard && new RunningQuota({ metadata: { name: 'q' }, spec: { hard, ...spec }, status: { hard, used } } as unknown as Frozen<ResourceQuota>)
  const groupResource = (resource: string) => ({ group: '', version: 'v1', resource })
  return {
    admit(object: KubeObject, some: Partial<AdmissionAttributes> = {}, resource = 'pods'): string | undefined {
      const base = { operation: 'CREATE', resource: groupResource(resource), subresource: '', namespace: 'n', name: object.metadata.name, object }
      const attributes = { ...base, dryRun: false, ...some } as unknown as AdmissionAttributes
      if (!changesUsage(attributes)) return undefined
      try {
        for (const charge of checkRequest(attributes, quota ? [quota] : [], limited)) charge.quota.charge(charge.amounts)
        return undefined
      } catch (error) {
        assert.ok(error instanceof StatusError && (error.code === 403 || (error.code === 500 && error.reason === '')))
        return error.message
      }
    },
    /** An object that the controller has counted. */
    holds(object: KubeObject, resource = 'pods') {
      if (!quota || !quotaCovers(quota.object, groupResource(resource), object)) return
      const usage = quotaUsage(groupResource(resource), object)
      quota.charge(Object.fromEntries(quota.names.flatMap((name) => (usage[name] === undefined ? [] : [[name, usage[name]]]))))
    },
  }
}

test('RES-03 admitted pods are charged, and the refusal of another names what is used', () => {
  const { admit } = world({ pods: '2', 'requests.cpu': '1' })
  assert.equal(admit(pod('one', { requests: { cpu: '600m' } })), undefined)
  const refused = 'pods "two" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: requests.cpu=1'
  assert.equal(admit(pod('two', { requests: { cpu: '500m' } })), refused)
  assert.equal(admit(pod('two', { requests: { cpu: '400m' } })), undefined)
  assert.match(admit(pod('three', { requests: { cpu: '0' } })) ?? '', /exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2$/)
})

test('RES-03 limits and usage are those of the status; a limit that the controller has not counted refuses', () => {
  const check = (status: object) => {
    const quota = new RunningQuota({ metadata: { name: 'q' }, spec: { hard: { pods: '0', 'count/pods': '9' } }, status } as unknown as Frozen<ResourceQuota>)
    const attributes = { operation: 'CREATE', resource: { group: '', version: 'v1', resource: 'pods' }, subresource: '', namespace: 'n', object: pod('p') }
    const charges = checkRequest(attributes as unknown as AdmissionAttributes, [quota], [])
    for (const { amounts } of charges) quota.charge(amounts)
    return quota.charged().status
  }
  assert.deepEqual(check({}), { used: {} })
  assert.deepEqual(check({ hard: { pods: '5', secrets: '1' }, used: { pods: '4', secrets: '1' } }).used, { pods: '5', secrets: '1' })
  assert.throws(() => check({ hard: { pods: '5', 'count/pods': '5' }, used: { pods: '4' } }), /status unknown for quota: q, resources: count\/pods,pods$/)
})

test('RES-03 a quota on cpu or memory requires these values in each container', () => {
  const { admit } = world({ 'limits.memory': '1Gi', cpu: '4' })
  assert.equal(admit(pod('p')), 'pods "p" is forbidden: failed quota: q: must specify cpu for: c; limits.memory for: c')
  const big = pod('p', { requests: { cpu: '1' }, limits: { memory: '2Gi' } })
  assert.equal(admit(big), 'pods "p" is forbidden: exceeded quota: q, requested: limits.memory=2Gi, used: limits.memory=0, limited: limits.memory=1Gi')
})

test('RES-03 a pod with pod-level resources needs none in its containers', () => {
  const { admit } = world({ 'limits.memory': '1Gi', cpu: '4' })
  assert.equal(admit(pod('p', {}, { resources: { requests: { cpu: '1' } } })), undefined)
  assert.match(admit(pod('p', {}, { resources: { limits: {} } })) ?? '', /must specify cpu for: c; limits.memory for: c$/)
})

test('RES-03 a pod during a resize is charged the larger of its actual and desired resources', () => {
  const { admit, holds } = world({ 'requests.cpu': '4', 'limits.cpu': '8' })
  const resources = { requests: { cpu: '3' }, limits: { cpu: '5' } }
  const status = { containerStatuses: [{ name: 'c', allocatedResources: { cpu: '3' }, resources }] }
  holds({ ...pod('shrinking', { requests: { cpu: '1' }, limits: { cpu: '2' } }), status } as KubeObject)
  assert.match(
    admit(pod('p', { requests: { cpu: '2' }, limits: { cpu: '4' } })) ?? '',
    /requested: limits.cpu=4,requests.cpu=2, used: limits.cpu=5,requests.cpu=3, limited: limits.cpu=8,requests.cpu=4$/,
  )
  assert.equal(admit(pod('p', { requests: { cpu: '1' }, limits: { cpu: '3' } })), undefined)
})

test('RES-03 a pod-level resize is charged spec.resources, whatever the status says', () => {
  const { admit, holds } = world({ 'requests.cpu': '4' })
  const status = { resources: { requests: { cpu: '3' } }, allocatedResources: { cpu: '3' } }
  holds({ ...pod('shrinking', {}, { resources: { requests: { cpu: '1' } } }), status } as KubeObject)
  assert.match(admit(pod('p', { requests: { cpu: '4' } })) ?? '', /requested: requests.cpu=4, used: requests.cpu=1, limited: requests.cpu=4$/)
  assert.equal(admit(pod('p', { requests: { cpu: '3' } })), undefined)
})

test('RES-03 a pod that gets a deadline moves into the scope Terminating, if there is room', () => {
  const { admit, holds } = world({ pods: '1' }, { scopes: ['Terminating'] })
  const [before, after] = [pod('p'), pod('p', {}, { activeDeadlineSeconds: 60 })]
  const update = { operation: 'UPDATE', oldObject: before as never } as const
  assert.equal(admit(after, update), undefined)
  holds(pod('other', {}, { activeDeadlineSeconds: 60 }))
  assert.match(admit(pod('q', {}, { activeDeadlineSeconds: 60 }), { ...update, oldObject: pod('q') as never }) ?? '', /exceeded quota: q, requested: pods=1/)
  assert.equal(admit(pod('other', {}, { activeDeadlineSeconds: 30 }), { ...update, oldObject: after as never }), undefined)
})

test('RES-03 scopes pick their pods; ended pods hold nothing; other kinds are counted by name', () => {
  const bestEffort = world({ pods: '0' }, { scopes: ['BestEffort'] })
  assert.match(bestEffort.admit(pod('p')) ?? '', /exceeded quota/)
  assert.equal(bestEffort.admit(pod('p', { requests: { cpu: '1' } })), undefined)
  const ended = world({ pods: '1' })
  ended.holds({ ...pod('done'), status: { phase: 'Succeeded' } } as KubeObject)
  assert.equal(ended.admit(pod('p')), undefined)
  const maps = world({ 'count/configmaps': '0', configmaps: '5' })
  assert.match(
    maps.admit({ metadata: { name: 'm' } } as KubeObject, {}, 'configmaps') ?? '',
    /requested: count\/configmaps=1, used: count\/configmaps=0, limited: count\/configmaps=0$/,
  )
})

test('RES-03 an update pays only for what it adds', () => {
  const { admit, holds } = world({ 'requests.storage': '10Gi' })
  const claim = (storage: string) => ({ metadata: { name: 'c', namespace: 'n' }, spec: { resources: { requests: { storage } } } }) as unknown as KubeObject
  holds(claim('6Gi'), 'persistentvolumeclaims')
  const update = (storage: string) => admit(claim(storage), { operation: 'UPDATE', oldObject: claim('6Gi') as never }, 'persistentvolumeclaims')
  assert.match(update('11Gi') ?? '', /requested: requests.storage=5Gi, used: requests.storage=6Gi, limited: requests.storage=10Gi$/)
  assert.equal(update('10Gi'), undefined)
  assert.match(update('7Gi') ?? '', /requested: requests.storage=1Gi, used: requests.storage=10Gi, limited: requests.storage=10Gi$/)
})

test('RES-03 an object that enters a scope is charged in full', () => {
  const { admit, holds } = world(
    { 'requests.storage': '5Gi' },
    { scopeSelector: { matchExpressions: [{ scopeName: 'VolumeAttributesClass', operator: 'Exists' }] } },
  )
  const claim = (more: object) => ({ metadata: { name: 'c' }, spec: { resources: { requests: { storage: '6Gi' } }, ...more } }) as unknown as KubeObject
  holds(claim({}), 'persistentvolumeclaims')
  const update = { operation: 'UPDATE', oldObject: claim({}) as never } as const
  assert.match(
    admit(claim({ volumeAttributesClassName: 'gold' }), update, 'persistentvolumeclaims') ?? '',
    /requested: requests.storage=6Gi, used: requests.storage=0, limited: requests.storage=5Gi$/,
  )
  const inside = { operation: 'UPDATE', oldObject: claim({ volumeAttributesClassName: 'gold' }) as never } as const
  assert.equal(admit(claim({ volumeAttributesClassName: 'silver' }), inside, 'persistentvolumeclaims'), undefined)
})

const operations: readonly { readonly name: string; readonly resource: string; readonly some: Partial<AdmissionAttributes>; readonly counts: boolean }[] = [
  { name: 'a resize of a pod', resource: 'pods', some: { operation: 'UPDATE', subresource: 'resize' }, counts: true },
  { name: 'another update of a pod', resource: 'pods', some: { operation: 'UPDATE' }, counts: false },
  { name: 'a status', resource: 'pods', some: { operation: 'UPDATE', subresource: 'status' }, counts: false },
  { name: 'an event', resource: 'events', some: {}, counts: false },
]
for (const { name, resource, some, counts } of operations) {
  test(`RES-03 quotas ${counts ? 'count' : 'do not count'} ${name}`, () => {
    const { admit } = world({ 'requests.cpu': '1', 'count/events': '0' })
    const small = pod('p', { requests: { cpu: '500m' } })
    const refused = admit(pod('p', { requests: { cpu: '2' } }), { oldObject: small as never, ...some }, resource)
    assert.equal(refused !== undefined, counts, refused)
    if (counts) assert.match(admit(pod('p'), { oldObject: small as never, ...some }) ?? '', /must specify requests.cpu for: c$/)
  })
}

const handled: readonly (readonly [resource: string, subresource: string, want: boolean])[] = [
  ['configmaps', '', false],
  ['leases.coordination.k8s.io', '', false],
  ['services.example.com', '', false],
  ['services', '', true],
  ['services', 'status', false],
  ['persistentvolumeclaims', '', true],
  ['persistentvolumeclaims', 'status', true],
  ['resourceclaims.resource.k8s.io', '', true],
  ['resourceclaims.resource.k8s.io', 'status', false],
]
for (const [name, subresource, want] of handled) {
  test(`RES-03 quotas ${want ? 'count' : 'do not count'} an update of ${name}${subresource && `/${subresource}`}`, () => {
    const [resource = '', ...group] = name.split('.')
    const object = { metadata: { name: 'o', namespace: 'n' }, spec: {} }
    const attributes = { namespace: 'n', resource: { group: group.join('.'), version: 'v1', resource }, subresource, object, oldObject: object }
    const changes = (operation: string) => changesUsage({ ...attributes, operation } as unknown as AdmissionAttributes)
    assert.deepEqual([changes('UPDATE'), changes('CREATE')], [want, subresource === ''])
  })
}

test("RES-03 an update that adds usage or is refused waits for the quotas' lock; another does not", () => {
  const claim = (storage: string) => ({ metadata: { name: 'c' }, spec: { resources: { requests: { storage } } } }) as unknown as KubeObject
  const attributes = (storage: string, operation = 'UPDATE') => {
    const resource = { group: '', version: 'v1', resource: 'persistentvolumeclaims' }
    return { operation, resource, subresource: '', namespace: 'n', object: claim(storage), oldObject: claim('6Gi') } as unknown as AdmissionAttributes
  }
  const quota = (used: object) =>
    [{ metadata: { name: 'q' }, spec: {}, status: { hard: { 'requests.storage': '10Gi' }, used } }] as unknown as readonly Frozen<ResourceQuota>[]
  const counted = quota({ 'requests.storage': '10Gi' })
  assert.deepEqual(
    [addsNothing(attributes('6Gi'), counted, []), addsNothing(attributes('5Gi'), counted, []), addsNothing(attributes('7Gi'), counted, [])],
    [true, true, false],
  )
  assert.deepEqual([addsNothing(attributes('6Gi'), quota({}), []), addsNothing(attributes('6Gi', 'CREATE'), counted, [])], [false, false])
})

test('RES-03 devices are counted per class; a list of alternatives counts its largest', () => {
  const { admit } = world({ 'gpu.deviceclass.resource.k8s.io/devices': '40' })
  const claim = (...requests: object[]) => ({ metadata: { name: 'c' }, spec: { devices: { requests } } }) as unknown as KubeObject
  const gpu = (count?: number) => ({ deviceClassName: 'gpu', allocationMode: 'ExactCount', ...(count ? { count } : {}) })
  const ask = (...requests: object[]) => admit(claim(...requests), { resource: { group: 'resource.k8s.io', version: 'v1', resource: 'resourceclaims' } })
  assert.match(
    ask(
      { name: 'r', exactly: { deviceClassName: 'gpu', allocationMode: 'All' } },
      { name: 's', firstAvailable: [gpu(), gpu(9), { deviceClassName: 'nic' }] },
    ) ?? '',
    /requested: gpu.deviceclass.resource.k8s.io\/devices=41, used: .*devices=0, limited: .*devices=40$/,
  )
  assert.equal(ask({ name: 'r', exactly: gpu(40) }), undefined)
})

const configuration = (apiVersion: string, kind: string, rest: string) => `apiVersion: ${apiVersion}\nkind: ${kind}\nlimitedResources:\n${rest}`
const important = limitedResourcesOf(
  configuration(
    'apiserver.config.k8s.io/v1',
    'ResourceQuotaConfiguration',
    '- resource: pods\n  matchScopes:\n  - {scopeName: PriorityClass, operator: In, values: [system-critical, other]}\n',
  ),
)
const ofClass = (values: string[]) => ({ scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In', values }] } })
const needed = 'insufficient quota to match these scopes: [{PriorityClass In [system-critical other]}]'
const critical = pod('p', {}, { priorityClassName: 'system-critical' })
const gold = '.storageclass.storage.k8s.io/requests.storage'
const storage = limitedResourcesOf(
  configuration('resourcequota.admission.k8s.io/v1beta1', 'Configuration', `- resource: persistentvolumeclaims\n  matchContains: [${gold}]\n`),
)
const claim = (storageClassName: string | undefined) =>
  ({ metadata: { name: 'c' }, spec: { storageClassName, accessModes: [], resources: { requests: { storage: '1Gi' } } } }) as unknown as KubeObject

const needs: readonly (readonly [
  name: string,
  hard: Record<string, string> | undefined,
  spec: object,
  limited: readonly LimitedResource[],
  object: KubeObject,
  want: string | undefined,
])[] = [
  ['a class that is limited, without a quota', undefined, {}, important, critical, needed],
  ['a quota for another class', { pods: '9' }, ofClass(['low']), important, critical, needed],
  ['a quota without scopes', { pods: '9' }, {}, important, critical, needed],
  ['a quota for the class', { pods: '9' }, ofClass(['system-critical']), important, critical, undefined],
  ['a quota for the class, used up', { pods: '0' }, ofClass(['system-critical']), important, critical, 'exceeded'],
  ['a class that is not limited', undefined, {}, important, pod('p'), undefined],
  ['storage of a class, without a quota', undefined, {}, storage, claim('gold'), `insufficient quota to consume: gold${gold}`],
  ['storage of a class, with a quota for all storage', { 'requests.storage': '9Gi' }, {}, storage, claim('gold'), `insufficient quota to consume: gold${gold}`],
  ['storage of a class, with a quota for it', { [`gold${gold}`]: '9Gi' }, {}, storage, claim('gold'), undefined],
  ['storage of no class', undefined, {}, storage, claim(undefined), undefined],
]
for (const [name, hard, spec, limited, object, want] of needs) {
  test(`RES-03 a limited resource requires a covering quota: ${name}`, () => {
    const resource = object.metadata.name === 'c' ? 'persistentvolumeclaims' : 'pods'
    const text = world(hard, spec, limited).admit(object, {}, resource)
    if (want === undefined) assert.equal(text, undefined)
    else assert.ok(text?.includes(want), text)
  })
}

test('RES-03 a configuration of limited resources that names none is refused', () => {
  const read = (rest: string) => () => limitedResourcesOf(configuration('apiserver.config.k8s.io/v1', 'ResourceQuotaConfiguration', rest))
  assert.throws(read('- apiGroup: apps\n'), { message: 'limitedResources[0].resource: Required value' })
  assert.throws(read('- resorce: pods\n'), /unknown field "limitedResources\[0\].resorce"/)
})
