/** API-14: APIs that --runtime-config turns off are not there at all. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'
import { plain } from '../crd/support.ts'

test('API-14 a group-version and a resource that are turned off are neither served nor in discovery', async () => {
  const api = await startServerWithFlags(['--runtime-config=autoscaling/v1=false,autoscaling/v2=false', '--runtime-config=batch/v1/cronjobs=false'])
  try {
    const { request } = plain(api.clientAs({ name: 'root', groups: ['system:masters', 'system:authenticated'] }))
    for (const path of ['/apis/autoscaling/v2', '/apis/autoscaling/v2/horizontalpodautoscalers', '/apis/batch/v1/cronjobs', '/openapi/v3/apis/autoscaling/v2'])
      await assert.rejects(request('GET', path), { code: 404 }, path)
    assert.deepEqual((await request('GET', '/apis/batch/v1/jobs')).items, [])
    const { groups } = await request('GET', '/apis')
    assert.ok(!groups.some(({ name }: { name: string }) => name === 'autoscaling') && groups.some(({ name }: { name: string }) => name === 'batch'))
    const { resources } = await request('GET', '/apis/batch/v1')
    assert.deepEqual(
      resources.map(({ name }: { name: string }) => name),
      ['jobs', 'jobs/status'],
    )
    const paths = Object.keys((await request('GET', '/openapi/v3')).paths)
    assert.ok(paths.includes('apis/batch/v1') && !paths.includes('apis/autoscaling/v2'), paths.join())
    const services = (await request('GET', '/apis/apiregistration.k8s.io/v1/apiservices')).items.map(
      ({ metadata }: { metadata: { name: string } }) => metadata.name,
    )
    assert.ok(services.includes('v1.batch') && !services.includes('v2.autoscaling'), services.join())
  } finally {
    await api.close()
  }
})
