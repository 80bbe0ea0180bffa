/**
 * No object can stop a start: each of these objects is created over the wire, the process is killed while it is handled and started again over
 * the same data. It serves: the object can be read and deleted, and an innocent Deployment gets its pods. The process has little memory.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { assertServesInnocent, createKilledCluster } from './poison/killedCluster.ts'
import { type Poison, poisons } from './poison/poisons.ts'

const maxTurnMs = 250
const handledForMs = 700

for (const poison of poisons) test(`${poison.row} ${poison.name} stops neither the cluster nor its next start`, { timeout: 240_000 }, () => survives(poison))

async function survives({ objects, accepted = true, turnMs = maxTurnMs }: Poison): Promise<void> {
  const cluster = createKilledCluster()
  try {
    await cluster.start()
    await cluster.call('POST', '/api/v1/namespaces', { metadata: { name: 'tenant' } })
    await cluster.until('/api/v1/namespaces/tenant/serviceaccounts/default', ({ status }) => status === 200)
    await cluster.longestTurnMs()
    for (const [path, body] of objects()) {
      const { status, text } = await cluster.call('POST', path, body)
      assert.equal(status === 201, accepted, `${status} ${text.slice(0, 500)}`)
    }
    await delay(handledForMs)
    assert.ok((await cluster.longestTurnMs()) < turnMs, 'a turn of the event loop was too long')
    await cluster.kill()
    await cluster.start()
    await assertServesInnocent(cluster, 'web')
    for (const [path, { metadata }] of objects()) {
      if (!accepted) continue
      const at = `${path}/${metadata.name}`
      assert.equal((await cluster.call('GET', at)).status, 200)
      assert.equal((await cluster.call('DELETE', `${at}?propagationPolicy=Background`)).status, 200)
      await cluster.until(at, ({ status }) => status === 404)
    }
    const longest = await cluster.longestTurnMs()
    assert.ok(longest < turnMs, `a turn of the event loop took ${longest} ms`)
  } finally {
    await cluster.close()
  }
}
