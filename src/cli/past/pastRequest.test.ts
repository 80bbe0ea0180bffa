import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StatusError } from '#api/machinery/status'
import { objectOfList, planPast, revisionIn } from './pastRequest.ts'

const revision = 42
const at = 'resourceVersion=42&resourceVersionMatch=Exact'
const plan = (target: string, options: { readonly method?: string; readonly accept?: string } = {}) =>
  planPast({ method: options.method ?? 'GET', target, accept: options.accept }, revision)

const token = (rv: number) => Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv, start: 'a' })).toString('base64url')

const planned = [
  { target: '/api/v1/pods', want: `/api/v1/pods?${at}` },
  { target: '/api/v1/namespaces/a/pods?limit=5&resourceVersion=0', want: `/api/v1/namespaces/a/pods?limit=5&${at}` },
  { target: '/api/v1/namespaces', want: `/api/v1/namespaces?${at}` },
  { target: '/api/v1/pods?watch=false', want: `/api/v1/pods?${at}` },
  { target: `/api/v1/pods?limit=5&continue=${token(revision)}`, want: `/api/v1/pods?limit=5&continue=${token(revision)}` },
  { target: '/api/v1/namespaces/a', want: `/api/v1/namespaces?fieldSelector=metadata.name%3Da&${at}` },
  { target: '/api/v1/namespaces/a/pods/b', want: `/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Db&${at}` },
  { target: '/apis/apps/v1/namespaces/a/deployments/b', want: `/apis/apps/v1/namespaces/a/deployments?fieldSelector=metadata.name%3Db&${at}` },
  {
    target: '/apis/rbac.authorization.k8s.io/v1/clusterroles/system:a%2Cb',
    want: `/apis/rbac.authorization.k8s.io/v1/clusterroles?fieldSelector=metadata.name%3Dsystem%3Aa%5C%2Cb&${at}`,
  },
  { target: '/apis', want: '/apis' },
  { target: '/apis/apps/v1?timeout=32s', want: '/apis/apps/v1?timeout=32s' },
  { target: '/openapi/v3/apis/apps/v1?hash=1', want: '/openapi/v3/apis/apps/v1?hash=1' },
]
for (const { target, want } of planned) test(`X5 GET ${target.slice(0, 60)} is asked for at the revision`, () => assert.equal(plan(target).target, want))

const refused = [
  { target: '/api/v1/pods', method: 'DELETE', want: /the past is read-only: DELETE \/api\/v1\/pods/ },
  { target: '/api/v1/pods', method: 'HEAD', want: /read-only/ },
  { target: '/api/v1/pods?watch=true', want: /pods cannot be watched in the past/ },
  { target: '/api/v1/pods?watch', want: /cannot be watched/ },
  { target: '/api/v1/watch/pods', want: /a watch of the past/ },
  { target: '/api/v1/namespaces/a/pods/b/log', want: /log of pods has no history/ },
  { target: '/apis/apps/v1/namespaces/a/deployments/b/scale', want: /scale of deployments\.apps has no history/ },
  { target: '/api/v1/namespaces/a/status', want: /status of namespaces has no history/ },
  { target: '/api/v1/nodes/a/proxy/metrics', want: /proxy\/metrics of nodes has no history/ },
  { target: '/metrics', want: /\/metrics has no history/ },
  { target: '/skiff/revisions', want: /has no history/ },
  { target: '/api/v1//pods', want: /has no history/ },
  { target: '/api/v1/namespaces/a/pods/b%2Flog', want: /path segment/ },
  { target: `/api/v1/pods?continue=${token(41)}`, want: /belongs to another revision/ },
  { target: `/api/v1/pods?continue=${token(-1)}`, want: /belongs to another revision/ },
  { target: '/api/v1/pods?continue=x', want: /belongs to another revision/ },
]
for (const { target, method = 'GET', want } of refused) {
  test(`X5 ${method} ${target.slice(0, 60)} is refused`, () => assert.throws(() => plan(target, { method }), want))
}

test('X5 only JSON is asked for, and what accepts no JSON is refused', () => {
  const protobuf = 'application/vnd.kubernetes.protobuf'
  assert.equal(plan('/api/v1/pods', { accept: `${protobuf},application/json` }).accept, 'application/json')
  const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
  assert.equal(plan('/api/v1/pods', { accept: `${table},${protobuf},application/json` }).accept, `${table},application/json`)
  assert.equal(plan('/api/v1/pods', { accept: '*/*' }).accept, 'application/json')
  assert.throws(
    () => plan('/api/v1/pods', { accept: protobuf }),
    (error) => (error as StatusError).code === 406,
  )
})

const wanted = { group: 'apps', resource: 'deployments', name: 'b' }
const list = (more: object) => ({ kind: 'DeploymentList', apiVersion: 'apps/v1', metadata: { resourceVersion: '42' }, ...more })

test('X5 the object of a list gets the kind that items do not have', () => {
  assert.deepEqual(objectOfList(list({ items: [{ metadata: { name: 'b' } }] }), wanted, revision), {
    kind: 'Deployment',
    apiVersion: 'apps/v1',
    metadata: { name: 'b' },
  })
})

test('X5 an object that did not exist is not found, in a table too', () => {
  for (const empty of [list({ items: [] }), list({ kind: 'Table', rows: [] }), list({ kind: 'Table', rows: null })]) {
    assert.throws(
      () => objectOfList(empty, wanted, revision),
      (error) => (error as StatusError).code === 404 && (error as StatusError).message === 'deployments.apps "b" not found',
    )
  }
})

test('X5 an answer of another revision has no history', () => {
  assert.throws(() => objectOfList(list({ metadata: { resourceVersion: '43' }, items: [{}] }), wanted, revision), /deployments has no history/)
  assert.equal(revisionIn('{"kind":"PodList","metadata":{"resourceVersion":"42"},"items":[{"metadata":{"resourceVersion":"7"'), 42)
  assert.equal(revisionIn('{"kind":"NodeMetricsList","metadata":{},"items":['), undefined)
})
