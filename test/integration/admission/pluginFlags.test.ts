/** ADM-01 and ADM-11 over the wire: plugins that are off by default work when a flag turns them on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServerWithFlags } from '../../support/serverWithFlags.ts'
import { plain } from '../crd/support.ts'

const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i', imagePullPolicy: 'Never' }] } }

async function withFlags(flags: readonly string[], run: (request: ReturnType<typeof plain>['request']) => Promise<void>): Promise<void> {
  const api = await startServerWithFlags(flags)
  try {
    await run(plain(api.clientAs({ name: 'root', groups: ['system:masters', 'system:authenticated'] })).request)
  } finally {
    await api.close()
  }
}

test('ADM-11 namespaces are made when they are needed, and images are always pulled', () =>
  withFlags(['--enable-admission-plugins=NamespaceAutoProvision,AlwaysPullImages', '--disable-admission-plugins=ServiceAccount'], async (request) => {
    const created = await request('POST', '/api/v1/namespaces/fresh/pods', pod)
    assert.deepEqual([created.metadata.namespace, created.spec.containers[0].imagePullPolicy], ['fresh', 'Always'])
    assert.equal((await request('GET', '/api/v1/namespaces/fresh')).status.phase, 'Active')
  }))

test('ADM-01 without flags the same is refused', () =>
  withFlags([], (request) => assert.rejects(request('POST', '/api/v1/namespaces/fresh/pods', pod), { message: 'namespaces "fresh" not found' })))
