import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '#api/machinery/meta'
import { StatusError } from '#api/machinery/status'
import { VirtualClock } from '#base/virtualClock'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes } from '../admission.ts'
import { type LimitedResource, limitedResourcesOf } from '../limitedResources.ts'
import { resourceQuota } from './resourceQuota.ts'

const pod = (name: string, resources: object = {}, spec: object = {}) =>
  ({ metadata: { name, namespace: 'n' }, spec: { containers: [{ name: 'c', image: 'i', resources }], ...spec } }) as unknown as KubeObject

/** A namespace with one quota; what is admitted stays a reservation until `arrive` puts it into the cache. */
function world(hard: Record<string, string> | undefined, spec: object = {}, limited: readonly LimitedResource[] = []) {
  const clock = new VirtualClock()
  const cache: KubeObject[] = []
  const quotas = hard ? [{ metadata: { name: 'q' }, spec: { hard, ...spec } }] : []
  let arrived: (change: { type: string; object: KubeObject }) => void = () => {}
  const reader = {
    get: () => undefined,
    list: ({ resource }: { resource: string }) => (resource === 'resourcequotas' ? quotas : cache),
    onChange: (_: unknown, fn: typeof arrived) => {
      arrived = fn
      return () => {}
    },
  } as unknown as ObjectReader
  const plugin = resourceQuota(reader, clock, limited)
  return {
    clock,
    admit(object: KubeObject, some: Partial<AdmissionAttributes> = {}, resource = 'pods'): string | undefined {
      const base = {
        operation: 'CREATE',
        resource: { group: '', version: 'v1', resource },
        subresource: '',
        namespace: 'n',
        name: object.metadata.name,
        object,
      }
      try {
        void plugin.validate?.({ ...base, dryRun: false, ...some } as unknown as AdmissionAttributes)
        return undefined
      } catch (error) {
        assert.ok(error instanceof StatusError && (error.code === 403 || (error.code === 500 && error.reason === '')))
        return error.message
      }
    },
    arrive(object: KubeObject) {
      cache.push(object)
      arrived({ type: 'ADDED', object })
    },
    /** An event about an object that is in the cache. */
    change(object: KubeObject) {
      const at = cache.findIndex(({ metadata }) => metadata.name === object.metadata.name)
      cache.splice(at, 1, object)
      arrived({ type: 'MODIFIED', object })
    },
    leave(object: KubeObject) {
      cache.splice(cache.indexOf(object), 1)
      arrived({ type: 'DELETED', object })
    },
  }
}

test('pods side by side cannot pass together, and an arrived one is counted once', () => {
  const { admit, arrive } = world({ pods: '2', 'requests.cpu': '1' })
  const one = pod('one', { requests: { cpu: '600m' } })
  assert.equal(admit(one), undefined)
  const refused = 'pods "two" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: requests.cpu=1'
  assert.equal(admit(pod('two', { requests: { cpu: '500m' } })), refused)
  arrive(one)
  assert.equal(admit(pod('two', { requests: { cpu: '500m' } })), refused)
  assert.equal(admit(pod('two', { requests: { cpu: '400m' } })), undefined)
  assert.match(admit(pod('three', { requests: { cpu: '0' } })) ?? '', /exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2$/)
})

test('what fails after admission, or was a dry run, takes nothing for long', async () => {
  const { admit, clock } = world({ pods: '1' })
  assert.equal(admit(pod('dry'), { dryRun: true }), undefined)
  assert.equal(admit(pod('lost')), undefined)
  assert.equal(admit(pod('lost')), undefined, 'the same name again is the same pod')
  assert.match(admit(pod('next')) ?? '', /exceeded quota/)
  await clock.advance(5_001)
  assert.equal(admit(pod('next')), undefined)
})

test('a quota on cpu or memory requires these values in each container', () => {
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
  const { admit, arrive } = world({ 'requests.cpu': '4', 'limits.cpu': '8' })
  const resources = { requests: { cpu: '3' }, limits: { cpu: '5' } }
  const status = { containerStatuses: [{ name: 'c', allocatedResources: { cpu: '3' }, resources }] }
  arrive({ ...pod('shrinking', { requests: { cpu: '1' }, limits: { cpu: '2' } }), status } as KubeObject)
  assert.match(
    admit(pod('p', { requests: { cpu: '2' }, limits: { cpu: '4' } })) ?? '',
    /requested: limits.cpu=4,requests.cpu=2, used: limits.cpu=5,requests.cpu=3, limited: limits.cpu=8,requests.cpu=4$/,
  )
  assert.equal(admit(pod('p', { requests: { cpu: '1' }, limits: { cpu: '3' } })), undefined)
})

test('RES-03 a pod that gets a deadline moves into the scope Terminating, if there is room', () => {
  const { admit, arrive } = world({ pods: '1' }, { scopes: ['Terminating'] })
  const [before, after] = [pod('p'), pod('p', {}, { activeDeadlineSeconds: 60 })]
  const update = { operation: 'UPDATE', oldObject: before as never } as const
  assert.equal(admit(after, update), undefined)
  arrive(pod('other', {}, { activeDeadlineSeconds: 60 }))
  assert.match(admit(pod('q', {}, { activeDeadlineSeconds: 60 }), { ...update, oldObject: pod('q') as never }) ?? '', /exceeded quota: q, requested: pods=1/)
  assert.equal(admit(pod('other', {}, { activeDeadlineSeconds: 30 }), { ...update, oldObject: after as never }), undefined)
})

test('scopes pick their pods; ended pods hold nothing; other kinds are counted by name', () => {
  const bestEffort = world({ pods: '0' }, { scopes: ['BestEffort'] })
  assert.match(bestEffort.admit(pod('p')) ?? '', /exceeded quota/)
  assert.equal(bestEffort.admit(pod('p', { requests: { cpu: '1' } })), undefined)
  const ended = world({ pods: '1' })
  ended.arrive({ ...pod('done'), status: { phase: 'Succeeded' } } as KubeObject)
  assert.equal(ended.admit(pod('p')), undefined)
  const maps = world({ 'count/configmaps': '0', configmaps: '5' })
  assert.match(
    maps.admit({ metadata: { name: 'm' } } as KubeObject, {}, 'configmaps') ?? '',
    /requested: count\/configmaps=1, used: count\/configmaps=0, limited: count\/configmaps=0$/,
  )
})

test('an update pays only for what it adds', () => {
  const { admit, arrive } = world({ 'requests.storage': '10Gi' })
  const claim = (storage: string) => ({ metadata: { name: 'c', namespace: 'n' }, spec: { resources: { requests: { storage } } } }) as unknown as KubeObject
  arrive(claim('6Gi'))
  const update = (storage: string) => admit(claim(storage), { operation: 'UPDATE', oldObject: claim('6Gi') as never }, 'persistentvolumeclaims')
  assert.equal(update('10Gi'), undefined)
  assert.match(update('11Gi') ?? '', /requested: requests.storage=5Gi, used: requests.storage=6Gi, limited: requests.storage=10Gi$/)
})

test('RES-03 an update that was let pass counts until it has arrived, whatever else happens to the object', async () => {
  const { admit, arrive, change, leave, clock } = world({ 'requests.storage': '10Gi' })
  const claim = (name: string, storage: string, resourceVersion: string) =>
    ({ metadata: { name, namespace: 'n', resourceVersion }, spec: { resources: { requests: { storage } } } }) as unknown as KubeObject
  const grow = (name: string, storage: string, since: string) =>
    admit(claim(name, storage, since), { operation: 'UPDATE', oldObject: claim(name, '3Gi', since) as never }, 'persistentvolumeclaims')
  arrive(claim('a', '3Gi', '5'))
  arrive(claim('b', '3Gi', '6'))
  assert.equal(grow('a', '6Gi', '5'), undefined)
  const refused = /requested: requests.storage=2Gi, used: requests.storage=9Gi, limited: requests.storage=10Gi$/
  assert.match(grow('b', '5Gi', '6') ?? '', refused)
  change(claim('a', '3Gi', '5'))
  assert.match(grow('b', '5Gi', '6') ?? '', refused, 'an event of before changes nothing')
  change(claim('a', '6Gi', '7'))
  assert.match(grow('b', '5Gi', '6') ?? '', refused, 'it has arrived, and counts once')
  change(claim('a', '3Gi', '8'))
  assert.equal(grow('b', '5Gi', '6'), undefined)
  assert.equal(grow('a', '5Gi', '8'), undefined)
  assert.match(grow('b', '6Gi', '6') ?? '', /used: requests.storage=8Gi/)
  leave(claim('a', '5Gi', '8'))
  assert.equal(grow('b', '6Gi', '6'), undefined, 'what is gone takes nothing with it')
  await clock.advance(5_001)
})

test('RES-03 an object that enters a scope is charged in full', () => {
  const { admit, arrive } = world(
    { 'requests.storage': '5Gi' },
    { scopeSelector: { matchExpressions: [{ scopeName: 'VolumeAttributesClass', operator: 'Exists' }] } },
  )
  const claim = (more: object) => ({ metadata: { name: 'c' }, spec: { resources: { requests: { storage: '6Gi' } }, ...more } }) as unknown as KubeObject
  arrive(claim({}))
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
  test(`RES-03 quotas look at ${name}: ${counts}`, () => {
    const { admit } = world({ 'requests.cpu': '1', 'count/events': '0' })
    const small = pod('p', { requests: { cpu: '500m' } })
    const refused = admit(pod('p', { requests: { cpu: '2' } }), { oldObject: small as never, ...some }, resource)
    assert.equal(refused !== undefined, counts, refused)
    if (counts) assert.match(admit(pod('p'), { oldObject: small as never, ...some }) ?? '', /must specify requests.cpu for: c$/)
  })
}

test('what takes the name of one that goes keeps its reservation', () => {
  const { admit, arrive, leave } = world({ pods: '2' })
  const old = pod('web-0')
  arrive(old)
  assert.equal(admit(pod('web-0')), undefined)
  leave(old)
  assert.equal(admit(pod('web-1')), undefined)
  assert.match(admit(pod('web-2')) ?? '', /requested: pods=1, used: pods=2, limited: pods=2$/)
})

test('devices of claims are counted by their class, of alternatives the dearest', () => {
  const { admit } = world({ 'gpu.deviceclass.resource.k8s.io/devices': '40' })
  const claim = (...requests: object[]) => ({ metadata: { name: 'c' }, spec: { devices: { requests } } }) as unknown as KubeObject
  const gpu = (count?: number) => ({ deviceClassName: 'gpu', allocationMode: 'ExactCount', ...(count ? { count } : {}) })
  const ask = (...requests: object[]) => admit(claim(...requests), { resource: { group: 'resource.k8s.io', version: 'v1', resource: 'resourceclaims' } })
  assert.equal(ask({ name: 'r', exactly: gpu(40) }), undefined)
  assert.match(
    ask(
      { name: 'r', exactly: { deviceClassName: 'gpu', allocationMode: 'All' } },
      { name: 's', firstAvailable: [gpu(), gpu(9), { deviceClassName: 'nic' }] },
    ) ?? '',
    /requested: gpu.deviceclass.resource.k8s.io\/devices=41, used: .*devices=0, limited: .*devices=40$/,
  )
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
  test(`RES-03 what is limited needs a quota: ${name}`, () => {
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
