import assert from 'node:assert/strict'
import { test } from 'node:test'
import { notFound, StatusError } from '#api/machinery/status'
import { createClient } from '../clientOverTransport.ts'
import type { Transport } from '../transport.ts'
import { createDiscovery } from './discovery.ts'
import { createDynamicClient, createRestMapper, NoMatchError } from './restMapper.ts'

/** Answers by path; a function is asked each time. */
function serving(answers: Record<string, unknown>): Transport & { readonly asked: string[] } {
  const asked: string[] = []
  return {
    asked,
    request: async ({ path }) => {
      asked.push(path)
      const answer = answers[path]
      if (answer === undefined) throw notFound({ group: '', resource: '' }, path)
      if (answer instanceof Error) throw answer
      return { status: 200, warnings: [], body: answer }
    },
    watch: () => assert.fail('no watch'),
  }
}

const resource = (plural: string, kind: string, more: object = {}) => ({
  resource: plural,
  responseKind: { kind },
  scope: 'Namespaced',
  singularResource: kind.toLowerCase(),
  verbs: ['get', 'list'],
  ...more,
})
const list = (...items: unknown[]) => ({ kind: 'APIGroupDiscoveryList', items })
const core = list({ metadata: {}, versions: [{ version: 'v1', resources: [resource('pods', 'Pod', { shortNames: ['po'], categories: ['all'] })] }] })
const apps = {
  metadata: { name: 'apps' },
  versions: [
    { version: 'v1', resources: [resource('deployments', 'Deployment', { shortNames: ['deploy'], categories: ['all'] })] },
    { version: 'v1beta1', resources: [resource('deployments', 'Deployment', { categories: ['all'] })] },
  ],
}
const stale = { metadata: { name: 'metrics.k8s.io' }, versions: [{ version: 'v1beta1', freshness: 'Stale' }] }
const traps = {
  metadata: { name: 'po.example.com' },
  versions: [{ version: 'v1', resources: [resource('deploys', 'Deploy'), resource('po', 'Po')] }],
}

test('CGO-06 names, short names, kinds, groups and versions lead to a resource, whole names first', async () => {
  const mapper = createRestMapper(createDiscovery(serving({ '/api': core, '/apis': list(apps, traps) })))
  const named = async (name: string) => {
    const found = await mapper.forName(name)
    return `${found.group}/${found.version}/${found.resource}`
  }
  const cases = {
    pods: '/v1/pods',
    Pod: '/v1/pods',
    po: 'po.example.com/v1/po',
    deploy: 'po.example.com/v1/deploys',
    deployments: 'apps/v1/deployments',
    'deploy.apps': 'apps/v1/deployments',
    'deployments.v1beta1.apps': 'apps/v1beta1/deployments',
    'deployment.v1.apps': 'apps/v1/deployments',
    'pods.v1.': '/v1/pods',
    'deploys.po': 'po.example.com/v1/deploys',
  }
  for (const [name, wanted] of Object.entries(cases)) assert.equal(await named(name), wanted, name)
  await assert.rejects(mapper.forName('nothing'), (error) => error instanceof NoMatchError && /doesn't have a resource type "nothing"/.test(error.message))
  await assert.rejects(mapper.forKind('apps/v2', 'Deployment'), /no matches for kind "Deployment" in version "apps\/v2"/)
  assert.deepEqual(
    (await mapper.forCategory('all')).map((one) => `${one.resource}.${one.version}`),
    ['pods.v1', 'deployments.v1'],
    'the preferred version of each',
  )
})

test('CGO-06 an unknown resource is looked up again once; an answer is cached, a failure is not', async () => {
  const answers: Record<string, unknown> = { '/api': core, '/apis': new StatusError('InternalError', 'away') }
  const transport = serving(answers)
  const discovery = createDiscovery(transport)
  const mapper = createRestMapper(discovery)
  await assert.rejects(mapper.forName('pods'), /away/)
  answers['/apis'] = list()
  await mapper.forName('pods')
  await mapper.forName('pods')
  assert.equal(transport.asked.length, 4)
  await assert.rejects(mapper.forName('deploy'), NoMatchError)
  assert.equal(transport.asked.length, 6)
  answers['/apis'] = list(apps)
  const deployments = await createDynamicClient(createClient(transport), mapper).forKind('apps/v1', 'Deployment')
  assert.equal(deployments.resource.resource, 'deployments')
  assert.equal(transport.asked.length, 8)
  const fresh = createRestMapper(createDiscovery(transport))
  await assert.rejects(fresh.forName('nothing'), NoMatchError)
  assert.equal(transport.asked.length, 10, 'an answer of this moment is not doubted')
})

test('CGO-06 group versions whose server is away are named, in both forms of discovery', async () => {
  const { resources, failed } = await createDiscovery(serving({ '/api': core, '/apis': list(stale, apps) })).resources()
  assert.deepEqual([[...failed.keys()], resources.length], [['metrics.k8s.io/v1beta1'], 3])

  const group = (...names: string[]) => ({ versions: names.map((groupVersion) => ({ groupVersion })), preferredVersion: { groupVersion: names.at(-1) } })
  const older = serving({
    '/api': { kind: 'APIVersions', versions: ['v1'] },
    '/api/v1': {
      resources: [
        { name: 'pods', kind: 'Pod', namespaced: true, singularName: 'pod', shortNames: ['po'], verbs: ['get'] },
        { name: 'pods/status', kind: 'Pod', namespaced: true, verbs: ['patch'] },
      ],
    },
    '/apis': { kind: 'APIGroupList', groups: [group('a/v1beta1', 'a/v1'), group('b/v1')] },
    '/apis/a/v1': { resources: [{ name: 'as', kind: 'A', namespaced: false }] },
    '/apis/a/v1beta1': { resources: [{ name: 'as', kind: 'A', namespaced: false }] },
    '/apis/b/v1': new StatusError('ServiceUnavailable', 'away'),
  })
  const found = await createDiscovery(older).resources()
  assert.deepEqual(
    found.resources.map(({ version, resource: name, subresources }) => [version, name, subresources]),
    [
      ['v1', 'pods', [{ name: 'status', kind: 'Pod', verbs: ['patch'] }]],
      ['v1', 'as', []],
      ['v1beta1', 'as', []],
    ],
  )
  assert.deepEqual([...found.failed.keys()], ['b/v1'])
})
