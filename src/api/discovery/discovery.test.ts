import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiGroup, apiGroupDiscoveryList, apiGroupList, apiResourceList, apiVersions, compareVersions, discoveryGroups } from './discovery.ts'
import { builtInGroupVersions, builtInResources } from './resources.ts'

const groups = discoveryGroups(builtInGroupVersions(), builtInResources())

test('API-14 discovery lists groups in the order of their priorities', () => {
  assert.deepEqual(
    groups.map(({ group, versions }) => `${group}:${versions.map(({ version }) => version).join(',')}`),
    [
      'apiregistration.k8s.io:v1',
      ':v1',
      'apps:v1',
      'events.k8s.io:v1',
      'authentication.k8s.io:v1',
      'authorization.k8s.io:v1',
      'autoscaling:v2,v1',
      'batch:v1',
      'certificates.k8s.io:v1',
      'networking.k8s.io:v1',
      'policy:v1',
      'rbac.authorization.k8s.io:v1',
      'storage.k8s.io:v1',
      'admissionregistration.k8s.io:v1',
      'apiextensions.k8s.io:v1',
      'scheduling.k8s.io:v1',
      'coordination.k8s.io:v1',
      'node.k8s.io:v1',
      'discovery.k8s.io:v1',
      'flowcontrol.apiserver.k8s.io:v1',
      'resource.k8s.io:v1',
    ],
  )
})

test('API-14 the legacy documents have upstream shapes', () => {
  assert.deepEqual(apiVersions('10.0.0.1:6443'), {
    kind: 'APIVersions',
    versions: ['v1'],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: '10.0.0.1:6443' }],
  })
  const autoscaling = groups.find(({ group }) => group === 'autoscaling')
  assert.ok(autoscaling)
  const body = {
    name: 'autoscaling',
    versions: [
      { groupVersion: 'autoscaling/v2', version: 'v2' },
      { groupVersion: 'autoscaling/v1', version: 'v1' },
    ],
    preferredVersion: { groupVersion: 'autoscaling/v2', version: 'v2' },
  }
  assert.deepEqual(apiGroup(autoscaling), { kind: 'APIGroup', apiVersion: 'v1', ...body })
  assert.deepEqual(apiGroupList([autoscaling]), { kind: 'APIGroupList', apiVersion: 'v1', groups: [body] })
  const list = apiResourceList(
    'apps',
    'v1',
    builtInResources().filter((facts) => facts.resource === 'deployments'),
  )
  assert.deepEqual(list, {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: 'apps/v1',
    resources: [
      {
        name: 'deployments',
        singularName: 'deployment',
        namespaced: true,
        kind: 'Deployment',
        verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
        shortNames: ['deploy'],
        categories: ['all'],
        storageVersionHash: '8aSe+NMegvE=',
      },
      { name: 'deployments/scale', singularName: '', namespaced: true, group: 'autoscaling', version: 'v1', kind: 'Scale', verbs: ['get', 'patch', 'update'] },
      { name: 'deployments/status', singularName: '', namespaced: true, kind: 'Deployment', verbs: ['get', 'patch', 'update'] },
    ],
  })
})

test('API-14 the aggregated document nests subresources', () => {
  const namespaces = builtInResources().filter((facts) => facts.resource === 'namespaces')
  assert.deepEqual(apiGroupDiscoveryList([{ group: '', versions: [{ version: 'v1', resources: namespaces }] }]), {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: [
      {
        metadata: {},
        versions: [
          {
            version: 'v1',
            resources: [
              {
                resource: 'namespaces',
                responseKind: { group: '', version: 'v1', kind: 'Namespace' },
                scope: 'Cluster',
                singularResource: 'namespace',
                verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
                shortNames: ['ns'],
                subresources: [
                  { subresource: 'finalize', responseKind: { group: '', version: 'v1', kind: 'Namespace' }, verbs: ['update'] },
                  { subresource: 'status', responseKind: { group: '', version: 'v1', kind: 'Namespace' }, verbs: ['get', 'patch', 'update'] },
                ],
              },
            ],
            freshness: 'Current',
          },
        ],
      },
    ],
  })
})

test('versions sort as kube-aware versions', () => {
  const sorted = ['v11alpha2', 'foo1', 'v3beta1', 'v12alpha1', 'v2', 'v11beta2', 'v10beta3', 'v10', 'foo10', 'v1'].sort(compareVersions)
  assert.deepEqual(sorted, ['v10', 'v2', 'v1', 'v11beta2', 'v10beta3', 'v3beta1', 'v12alpha1', 'v11alpha2', 'foo1', 'foo10'])
})
