import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deployments, namespaces, pods } from './builtIn.ts'
import type { Client } from './client.ts'
import { createClient, resourcePath } from './clientOverTransport.ts'
import type { ApiRequest, Transport } from './transport.ts'

const spec = { containers: [] }

const calls: { name: string; call: (client: Client) => Promise<unknown>; want: ApiRequest }[] = [
  {
    name: 'get',
    call: (client) => client.of(pods).get({ namespace: 'a', name: 'web' }),
    want: { method: 'GET', path: '/api/v1/namespaces/a/pods/web', query: {} },
  },
  {
    name: 'get of a cluster-scoped object',
    call: (client) => client.of(namespaces).get({ name: 'a' }, { resourceVersion: '0' }),
    want: { method: 'GET', path: '/api/v1/namespaces/a', query: { resourceVersion: '0' } },
  },
  {
    name: 'create fills in the kind',
    call: (client) => client.of(pods).create({ metadata: { namespace: 'a', name: 'web' }, spec }, { fieldManager: 'm', dryRun: true }),
    want: {
      method: 'POST',
      path: '/api/v1/namespaces/a/pods',
      query: { fieldManager: 'm', dryRun: 'All' },
      body: { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'a', name: 'web' }, spec },
    },
  },
  {
    name: 'status update',
    call: (client) => client.of(pods).updateStatus({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'a', name: 'web' }, spec, status: {} }),
    want: {
      method: 'PUT',
      path: '/api/v1/namespaces/a/pods/web/status',
      query: {},
      body: { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'a', name: 'web' }, spec, status: {} },
    },
  },
  {
    name: 'apply patch of a subresource',
    call: (client) =>
      client.of(deployments).patch({ namespace: 'a', name: 'web' }, 'apply', { spec: 1 }, { subresource: 'scale', force: true, fieldManager: 'm' }),
    want: {
      method: 'PATCH',
      path: '/apis/apps/v1/namespaces/a/deployments/web/scale',
      query: { fieldManager: 'm', force: 'true' },
      body: { spec: 1 },
      contentType: 'application/apply-patch+yaml',
    },
  },
  {
    name: 'delete with everything',
    call: (client) =>
      client
        .of(pods)
        .delete({ namespace: 'a', name: 'web' }, { gracePeriodSeconds: 0, propagationPolicy: 'Orphan', preconditions: { uid: 'u' }, dryRun: true }),
    want: {
      method: 'DELETE',
      path: '/api/v1/namespaces/a/pods/web',
      body: {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        gracePeriodSeconds: 0,
        propagationPolicy: 'Orphan',
        preconditions: { uid: 'u' },
        dryRun: ['All'],
      },
    },
  },
  {
    name: 'delete of a collection',
    call: (client) => client.of(pods).deleteCollection({ namespace: 'a', labelSelector: 'app=web' }),
    want: {
      method: 'DELETE',
      path: '/api/v1/namespaces/a/pods',
      query: { labelSelector: 'app=web' },
      body: { apiVersion: 'v1', kind: 'DeleteOptions' },
    },
  },
  {
    name: 'binding',
    call: (client) => client.of(pods).createSubresource({ namespace: 'a', name: 'web' }, 'binding', { target: {} }),
    want: { method: 'POST', path: '/api/v1/namespaces/a/pods/web/binding', query: {}, body: { target: {} } },
  },
]

for (const { name, call, want } of calls) {
  test(`request of ${name}`, async () => {
    const seen: ApiRequest[] = []
    await call(createClient(recorder(seen, {})))
    assert.deepEqual(JSON.parse(JSON.stringify(seen)), [want])
  })
}

test('list gives items their kind, and null items become none', async () => {
  const answer = (items: unknown) =>
    createClient(recorder([], { kind: 'PodList', apiVersion: 'v1', metadata: {}, items }))
      .of(pods)
      .list()
  const items = (await answer([{ metadata: { name: 'a' } }, { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'b' } }])).items
  assert.deepEqual(items, [
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } },
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'b' } },
  ])
  assert.deepEqual((await answer(null)).items, [])
})

test('a name needs its namespace, and is encoded', () => {
  assert.throws(() => resourcePath(pods, { name: 'web' }), /namespace/)
  assert.throws(() => resourcePath(pods, { namespace: 'a', name: '' }), /name may not be empty/)
  assert.equal(resourcePath(pods, { namespace: 'a', name: 'x/../y' }), '/api/v1/namespaces/a/pods/x%2F..%2Fy')
})

function recorder(seen: ApiRequest[], body: unknown): Transport {
  return {
    request: async (request) => {
      seen.push(request)
      return { status: 200, body, warnings: [] }
    },
    async *watch() {},
  }
}
