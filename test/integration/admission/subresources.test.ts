/** ADM-03: what subresources carry reaches admission as what it is: evictions, bindings, scales. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refused } from '../../support/refused.ts'
import { configure, webhook, withCluster } from './cluster.ts'

const pods = '/api/v1/namespaces/default/pods'
const pod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'a', image: 'a' }] } }
const about = (resource: string, operation = 'CREATE') => [{ operations: [operation], apiGroups: ['*'], apiVersions: ['*'], resources: [resource] }]

test('ADM-03: an eviction is admitted as one, and not as a deletion of the pod', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/look', ({ object }) => ({ allowed: object.deleteOptions?.gracePeriodSeconds !== 7 }))
    hooks.on('/delete', () => ({ allowed: false }))
    await configure(cluster, 'validating', 'v', [
      webhook(hooks, '/look', { rules: about('pods/eviction') }),
      webhook(hooks, '/delete', { rules: about('pods', 'DELETE') }),
    ])
    await request('POST', pods, pod)
    const eviction = (gracePeriodSeconds: number) => ({
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'p' },
      deleteOptions: { gracePeriodSeconds },
    })
    assert.match((await refused(request('POST', `${pods}/p/eviction`, eviction(7)))).message, /^admission webhook "look\.example\.com" denied the request/)
    await request('POST', `${pods}/p/eviction`, eviction(0))
    const [, asked] = hooks.askedAt('/look')
    assert.deepEqual(
      [asked.kind, asked.resource.resource, asked.subResource, asked.name],
      [{ group: 'policy', version: 'v1', kind: 'Eviction' }, 'pods', 'eviction', 'p'],
    )
    assert.equal(hooks.askedAt('/delete').length, 0)
  }))

test('ADM-03: a binding is admitted as one', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/look', () => ({ allowed: true }))
    await configure(cluster, 'validating', 'v', [webhook(hooks, '/look', { rules: about('pods/binding') })])
    await request('POST', pods, pod)
    await request('POST', `${pods}/p/binding`, { target: { kind: 'Node', name: 'n' } })
    const [asked] = hooks.askedAt('/look')
    assert.deepEqual([asked.kind.kind, asked.object.kind, asked.object.target.name], ['Binding', 'Binding', 'n'])
  }))

test('ADM-03: rules match the status subresource separately', () =>
  withCluster(async (cluster) => {
    const { hooks, request } = cluster
    hooks.on('/main', () => ({ allowed: true }))
    hooks.on('/status', () => ({ allowed: true }))
    hooks.on('/all', () => ({ allowed: true }))
    const rules = { '/main': 'pods', '/status': 'pods/status', '/all': 'pods/*' }
    await request('POST', pods, pod)
    await configure(
      cluster,
      'validating',
      'v',
      Object.entries(rules).map(([path, resource]) => webhook(hooks, path, { rules: about(resource, 'UPDATE') })),
    )
    const patch = { contentType: 'application/merge-patch+json' }
    await request('PATCH', `${pods}/p/status`, { status: { message: 'm' } }, patch)
    await request('PATCH', `${pods}/p`, { metadata: { labels: { a: 'b' } } }, patch)
    // To upstream, `pods/*` is about pods themselves, too.
    assert.deepEqual(
      Object.keys(rules).map((path) => hooks.askedAt(path).length),
      [1, 1, 2],
    )
  }))

test('KUB-22 a resize changes cpu and memory, and nothing else of the pod', () =>
  withCluster(async ({ request }) => {
    const resources = { requests: { cpu: '1', memory: '1Gi' }, limits: { memory: '2Gi' } }
    await request('POST', pods, { metadata: { name: 'p' }, spec: { containers: [{ name: 'a', image: 'a', resources }] } })
    const resize = (value: object, metadata: object = {}) => {
      const body = { metadata, spec: { containers: [{ name: 'a', image: 'other', resources: value }] } }
      return request('PATCH', `${pods}/p/resize`, body, { contentType: 'application/strategic-merge-patch+json' })
    }
    const { metadata, spec } = await resize({ requests: { cpu: '2' }, limits: { memory: '3Gi' } }, { labels: { a: 'b' } })
    assert.deepEqual(
      [metadata.labels, spec.containers[0].image, spec.containers[0].resources],
      [undefined, 'a', { requests: { cpu: '2', memory: '1Gi' }, limits: { memory: '3Gi' } }],
    )
    const { code, message } = await refused(resize({ limits: { memory: null, 'ephemeral-storage': '1Gi' } }))
    const faults = [
      'spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed',
      'spec: Forbidden: only cpu and memory resources are mutable',
    ]
    assert.deepEqual([code, message], [422, `Pod "p" is invalid: [${faults.join(', ')}]`])
  }))
