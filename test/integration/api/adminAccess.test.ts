/** DRA: adminAccess to devices is for namespaces that a label opens; claims, templates and allocations elsewhere are refused. */
import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { isStatus } from '#api/machinery/status'
import { startTestApiServer, type TestApiServer } from '#testing/apiServer'

let api: TestApiServer
before(async () => {
  api = await startTestApiServer()
  const labels = { 'resource.kubernetes.io/admin-access': 'true' }
  await send('POST', '/api/v1/namespaces', { metadata: { name: 'open', labels } })
  await send('POST', '/api/v1/namespaces', { metadata: { name: 'other', labels: { 'resource.kubernetes.io/admin-access': 'yes' } } })
})
after(() => api.close())

async function send(method: 'GET' | 'POST' | 'PATCH', path: string, body?: unknown): Promise<Record<string, unknown>> {
  const contentType = method === 'PATCH' ? 'application/merge-patch+json' : undefined
  return (await api.client.transport.request({ method, path, body, contentType })).body as Record<string, unknown>
}

async function causesOf(made: Promise<unknown>): Promise<unknown> {
  const error = await made.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error === undefined) return 'taken'
  if (!isStatus(error, 'Invalid')) throw error
  return error.details?.causes
}

const at = (namespace: string, resource: string) => `/apis/resource.k8s.io/v1/namespaces/${namespace}/${resource}`
const device = { deviceClassName: 'gpus' }
const spec = {
  devices: {
    requests: [
      { name: 'plain', exactly: device },
      { name: 'admin', exactly: { ...device, allocationMode: 'All', adminAccess: true } },
    ],
  },
}
const refusedAt = (field: string) => {
  const why = 'admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace'
  return [{ reason: 'FieldValueForbidden', message: `Forbidden: ${why}`, field }]
}

const requestPath = 'spec.devices.requests[1].adminAccess'
const cases = [
  { name: 'a claim in an open namespace', namespace: 'open', resource: 'resourceclaims', spec, want: 'taken' },
  { name: 'a claim elsewhere', namespace: 'other', resource: 'resourceclaims', spec, want: refusedAt(requestPath) },
  { name: 'a template in an open namespace', namespace: 'open', resource: 'resourceclaimtemplates', spec: { spec }, want: 'taken' },
  { name: 'a template elsewhere', namespace: 'default', resource: 'resourceclaimtemplates', spec: { spec }, want: refusedAt(requestPath) },
]
for (const { name, namespace, resource, spec: made, want } of cases) {
  test(`DRA-04 admin access: ${name}`, async () => {
    assert.deepEqual(await causesOf(send('POST', at(namespace, resource), { metadata: { name: 'asked' }, spec: made })), want)
  })
}

test('DRA-04 admin access: an allocation elsewhere, and one that was granted before', async () => {
  const claim = { metadata: { name: 'plain' }, spec: { devices: { requests: [{ name: 'plain', exactly: device }] } } }
  const results = [{ request: 'plain', driver: 'gpu.example.com', pool: 'p', device: 'd', adminAccess: true }]
  const status = { status: { allocation: { devices: { results } } } }
  const allocate = async (namespace: string) => {
    await send('POST', at(namespace, 'resourceclaims'), claim)
    return causesOf(send('PATCH', `${at(namespace, 'resourceclaims')}/plain/status`, status))
  }
  assert.deepEqual(await allocate('other'), refusedAt('status.allocation.devices.results[0].adminAccess'))
  assert.equal(await allocate('open'), 'taken')
  await send('PATCH', '/api/v1/namespaces/open', { metadata: { labels: { 'resource.kubernetes.io/admin-access': null } } })
  const reserved = { status: { reservedFor: [{ resource: 'pods', name: 'p', uid: 'u' }] } }
  assert.equal(await causesOf(send('PATCH', `${at('open', 'resourceclaims')}/plain/status`, reserved)), 'taken')
})
