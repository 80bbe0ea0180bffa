/**
 * No stored object can stop a start, also one that the API would refuse: a controller, the scheduler, a cache or a kubelet that fails on it serves
 * the rest. The objects are put into the store while the cluster is down.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { broken } from './poison/broken.ts'
import { assertServesInnocent, createKilledCluster } from './poison/killedCluster.ts'

test('ARC-10 a cluster over objects that no API takes starts, serves others, and lets each be read and deleted', { timeout: 240_000 }, async () => {
  const cluster = createKilledCluster()
  try {
    await cluster.start()
    await cluster.call('POST', '/api/v1/namespaces', { metadata: { name: 'tenant' } })
    await cluster.until('/api/v1/namespaces/tenant/serviceaccounts/default', ({ status }) => status === 200)
    await cluster.kill()
    await cluster.seed(Object.fromEntries(broken.map(({ key, object }) => [key, object])))
    await cluster.start()
    await assertServesInnocent(cluster, 'web')
    await cluster.kill()
    await cluster.start()
    await assertServesInnocent(cluster, 'again')
    const unreadable: string[] = []
    let found = 0
    for (const { path } of broken) {
      const read = await cluster.call('GET', path)
      if (read.status === 404) continue
      found++
      const deleted = await cluster.call('DELETE', path)
      // A controller may have removed an object that lost its owner, between the two requests as well.
      const isGone = deleted.status < 300 || (await cluster.call('GET', path)).status === 404
      if (read.status !== 200 || !isGone) unreadable.push(`${path}: ${read.status}, DELETE ${deleted.status} ${deleted.text.slice(0, 200)}`)
    }
    assert.deepEqual(unreadable, [])
    assert.ok(found > broken.length - 3, `${found} of ${broken.length} were there`)
  } finally {
    await cluster.close()
  }
})
