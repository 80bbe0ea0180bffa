import assert from 'node:assert/strict'
import { test } from 'node:test'
import { featureGates } from '#base/featureGates'
import { builtInGroupVersions, builtInResource, builtInResources, gatesOfOptional, optionalResources, storagePrefix } from './resources.ts'

test('API-01 the default API has 22 group-versions, 68 resources and 45 subresources', () => {
  const resources = builtInResources()
  assert.equal(builtInGroupVersions().length, 22)
  assert.equal(resources.length, 68)
  assert.equal(
    resources.reduce((sum, resource) => sum + resource.subresources.length, 0),
    45,
  )
})

test('API-14 resources that are off by default are no built-in ones, and each has a gate', () => {
  const optional = optionalResources()
  assert.deepEqual(
    optional.map(({ group, version, resource }) => `${group}/${version}/${resource}`),
    [
      'certificates.k8s.io/v1beta1/clustertrustbundles',
      'certificates.k8s.io/v1beta1/podcertificaterequests',
      'storagemigration.k8s.io/v1beta1/storageversionmigrations',
    ],
  )
  for (const { resource } of optional) assert.ok(featureGates.has(gatesOfOptional[resource] ?? ''), resource)
  assert.equal(builtInResource('certificates.k8s.io', 'v1beta1', 'clustertrustbundles'), undefined)
})

const prefixes: readonly (readonly [string, string, string, string])[] = [
  ['', 'v1', 'pods', '/registry/pods'],
  ['', 'v1', 'services', '/registry/services/specs'],
  ['', 'v1', 'endpoints', '/registry/services/endpoints'],
  ['', 'v1', 'nodes', '/registry/minions'],
  ['', 'v1', 'replicationcontrollers', '/registry/controllers'],
  ['', 'v1', 'events', '/registry/events'],
  ['events.k8s.io', 'v1', 'events', '/registry/events'],
  ['coordination.k8s.io', 'v1', 'leases', '/registry/leases'],
  ['networking.k8s.io', 'v1', 'ingresses', '/registry/ingress'],
  ['apiextensions.k8s.io', 'v1', 'customresourcedefinitions', '/registry/apiextensions.k8s.io/customresourcedefinitions'],
  ['apiregistration.k8s.io', 'v1', 'apiservices', '/registry/apiregistration.k8s.io/apiservices'],
]
for (const [group, version, resource, want] of prefixes) {
  test(`${group}/${resource} is stored under ${want}`, () => {
    const storage = builtInResource(group, version, resource)?.storage
    assert.equal(storage && storagePrefix(storage), want)
  })
}

test('events are stored as core/v1, autoscalers as autoscaling/v2, reviews not at all', () => {
  assert.deepEqual(builtInResource('events.k8s.io', 'v1', 'events')?.storage, { prefix: 'events', group: '', version: 'v1' })
  assert.deepEqual(builtInResource('autoscaling', 'v1', 'horizontalpodautoscalers')?.storage, {
    prefix: 'horizontalpodautoscalers',
    group: 'autoscaling',
    version: 'v2',
  })
  assert.equal(builtInResource('authentication.k8s.io', 'v1', 'tokenreviews')?.storage, undefined)
})

test('the pod facts are whole', () => {
  const pods = builtInResource('', 'v1', 'pods')
  assert.ok(pods)
  const { subresources, ...rest } = pods
  assert.deepEqual(rest, {
    group: '',
    version: 'v1',
    kind: 'Pod',
    resource: 'pods',
    singular: 'pod',
    namespaced: true,
    verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
    shortNames: ['po'],
    categories: ['all'],
    returnsDeletedObject: true,
    storage: { prefix: 'pods', group: '', version: 'v1' },
    storageVersionHash: 'xPOwRZ+Yhw8=',
  })
  assert.deepEqual(
    subresources.map((sub) => `${sub.name}:${sub.kind.kind}:${sub.verbs.join(',')}`),
    [
      'attach:PodAttachOptions:create,get',
      'binding:Binding:create',
      'ephemeralcontainers:Pod:get,patch,update',
      'eviction:Eviction:create',
      'exec:PodExecOptions:create,get',
      'log:Pod:get',
      'portforward:PodPortForwardOptions:create,get',
      'proxy:PodProxyOptions:create,delete,get,patch,update',
      'resize:Pod:get,patch,update',
      'status:Pod:get,patch,update',
    ],
  )
})

test('every namespaced flag and singular name is as upstream for the odd ones', () => {
  assert.equal(builtInResource('', 'v1', 'namespaces')?.namespaced, false)
  assert.equal(builtInResource('', 'v1', 'endpoints')?.singular, 'endpoints')
  assert.equal(builtInResource('', 'v1', 'bindings')?.namespaced, true)
  assert.deepEqual(builtInResource('', 'v1', 'namespaces')?.verbs, ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'])
  assert.equal(builtInResource('authorization.k8s.io', 'v1', 'localsubjectaccessreviews')?.namespaced, true)
})
