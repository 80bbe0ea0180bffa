import assert from 'node:assert/strict'
import test from 'node:test'
import { parseRequestInfo } from './requestInfo.ts'

interface Case {
  request: string
  want: Partial<ReturnType<typeof parseRequestInfo>>
}

const core = { isResourceRequest: true, apiGroup: '', apiVersion: 'v1' }
const cases: Case[] = [
  { request: 'GET /api/v1/pods', want: { ...core, verb: 'list', resource: 'pods', namespace: '', name: '' } },
  { request: 'GET /api/v1/namespaces/a/pods', want: { ...core, verb: 'list', resource: 'pods', namespace: 'a' } },
  { request: 'GET /api/v1/namespaces/a/pods?watch=true', want: { ...core, verb: 'watch', resource: 'pods', namespace: 'a' } },
  { request: 'GET /api/v1/namespaces/a/pods?watch=false', want: { ...core, verb: 'list' } },
  { request: 'GET /api/v1/watch/namespaces/a/pods/x', want: { ...core, verb: 'watch', resource: 'pods', namespace: 'a', name: 'x' } },
  { request: 'POST /api/v1/namespaces/a/pods/x/binding', want: { ...core, verb: 'create', resource: 'pods', subresource: 'binding', name: 'x' } },
  { request: 'GET /api/v1/namespaces/a', want: { ...core, verb: 'get', resource: 'namespaces', namespace: 'a', name: 'a' } },
  { request: 'GET /api/v1/namespaces', want: { ...core, verb: 'list', resource: 'namespaces', namespace: '' } },
  { request: 'PUT /api/v1/namespaces/a/finalize', want: { ...core, verb: 'update', resource: 'namespaces', subresource: 'finalize', name: 'a' } },
  { request: 'DELETE /apis/apps/v1/namespaces/a/deployments', want: { verb: 'deletecollection', apiGroup: 'apps', resource: 'deployments' } },
  { request: 'PATCH /apis/apps/v1/namespaces/a/deployments/d/scale', want: { verb: 'patch', resource: 'deployments', subresource: 'scale', name: 'd' } },
  { request: 'GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name=x', want: { ...core, verb: 'list', name: 'x' } },
  { request: 'GET /api/v1/namespaces/a/pods?watch=1&fieldSelector=metadata.name=x', want: { ...core, verb: 'watch', name: 'x' } },
  // Only reads are narrowed by a selector.
  { request: 'POST /api/v1/namespaces/a/pods?watch=1&fieldSelector=metadata.name=x', want: { ...core, verb: 'create', name: '' } },
  { request: 'PUT /api/v1/namespaces/a/pods?watch=1&fieldSelector=metadata.name=x', want: { ...core, verb: 'update', name: '' } },
  { request: 'DELETE /api/v1/namespaces/a/pods?fieldSelector=metadata.name=x', want: { ...core, verb: 'deletecollection', name: '' } },
  { request: 'GET /api/v1/watch/namespaces/a/pods?fieldSelector=metadata.name=x', want: { ...core, verb: 'watch', name: '', isVerbByPath: true } },
  { request: 'GET /api/v1/namespaces/a/pods/y?watch=1', want: { ...core, verb: 'get', name: 'y' } },
  // Segments without text are no way around a name.
  { request: 'POST /api/v1/namespaces/a/pods//x', want: { ...core, verb: 'create', resource: 'pods', name: '', subresource: '', parts: ['', 'x'] } },
  { request: 'GET /api/v1/namespaces//pods', want: { ...core, verb: 'list', resource: 'pods', namespace: '' } },
  { request: 'GET //api/v1/namespaces/a/pods/x//', want: { ...core, verb: 'get', resource: 'pods', name: 'x' } },
  {
    request: 'GET /api/v1/nodes/n/proxy/pods/a',
    want: { ...core, verb: 'get', resource: 'nodes', subresource: 'proxy', name: 'n', parts: ['n', 'proxy', 'pods', 'a'] },
  },
  { request: 'GET /api/v1', want: { isResourceRequest: false, verb: 'get', path: '/api/v1' } },
  { request: 'GET /apis/apps/v1', want: { isResourceRequest: false, verb: 'get' } },
  { request: 'POST /livez', want: { isResourceRequest: false, verb: 'post', resource: '' } },
]

for (const { request, want } of cases) {
  test(`API-02 ${request}`, () => {
    const [method = '', url = ''] = request.split(' ')
    const [path = '', query] = url.split('?')
    const info = parseRequestInfo(method, path, new URLSearchParams(query))
    assert.deepEqual(Object.fromEntries(Object.keys(want).map((key) => [key, info[key as keyof typeof info]])), want)
  })
}
