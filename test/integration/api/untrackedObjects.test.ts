/** API-11: objects of which nothing is tracked at their creation stay without managedFields until they are applied, as upstream's skipNonAppliedManager decides. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '#api/machinery/meta'
import { startTestApiServer } from '#testing/apiServer'

const node = '/api/v1/nodes'

test('API-11 a node created with a name and a status has no managedFields after a taint, and has them after an apply', async () => {
  const api = await startTestApiServer()
  const call = async (method: 'POST' | 'PATCH', path: string, body: unknown, contentType?: string, query?: Record<string, string>) =>
    (await api.client.transport.request({ method, path, body, ...(contentType ? { contentType } : {}), ...(query ? { query } : {}) })).body as KubeObject
  try {
    const created = await call('POST', node, { metadata: { name: 'n' }, status: { capacity: { cpu: '1' } } })
    assert.equal(created.metadata.managedFields, undefined)
    const taints = { spec: { taints: [{ key: 'example.com/a', effect: 'NoSchedule' }] } }
    const tainted = await call('PATCH', `${node}/n`, taints, 'application/strategic-merge-patch+json')
    assert.equal(tainted.metadata.managedFields, undefined)
    const labels = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n', labels: { a: 'b' } } }
    const applied = await call('PATCH', `${node}/n`, labels, 'application/apply-patch+yaml', { fieldManager: 'a' })
    assert.deepEqual(
      applied.metadata.managedFields?.map(({ manager, operation }) => [manager, operation]),
      [
        ['a', 'Apply'],
        ['before-first-apply', 'Update'],
      ],
    )
  } finally {
    await api.close()
  }
})
