/**
 * No object can stop a start: each of these objects is created over the wire, the process is killed while it is handled and started again over
 * the same data. It serves: the object can be read and deleted, and an innocent Deployment gets its pods. The process has little memory.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { assertServesInnocent, createKilledCluster, type KilledCluster } from './killedCluster.ts'
import type { Poison } from './poisons.ts'

/** Of processor time of the main thread: see budget/longestTurn.ts. */
const maxTurnMs = 250
const handledForMs = 700
const mergePatch = { headers: { 'content-type': 'application/merge-patch+json' } }

/** One cluster for all: a poison that leaves something behind meets the next one. */
export async function surviveAll(t: TestContext, poisons: readonly Poison[]): Promise<void> {
  const cluster = createKilledCluster()
  try {
    await cluster.start()
    await cluster.call('POST', '/api/v1/namespaces', { metadata: { name: 'tenant' } })
    await cluster.until('/api/v1/namespaces/tenant/serviceaccounts/default', ({ status }) => status === 200)
    for (const poison of poisons) {
      let isOver = false
      await t.test(`${poison.row} ${poison.name}`, async () => {
        await survives(cluster, poison)
        isOver = true
      })
      if (!isOver) return
    }
  } finally {
    await cluster.close()
  }
}

async function survives(cluster: KilledCluster, { objects, turnMs = maxTurnMs }: Poison): Promise<void> {
  await cluster.longestTurnMs()
  for (const [path, body] of objects()) {
    const { status, text } = await cluster.call('POST', path, body)
    assert.equal(status, 201, `${status} ${text.slice(0, 500)}`)
  }
  await delay(handledForMs)
  const atFirst = await cluster.longestTurnMs()
  await cluster.kill()
  await cluster.start()
  await assertServesInnocent(cluster, 'web')
  for (const [path, { metadata }] of objects()) {
    const at = `${path}/${metadata.name}`
    const { status } = await cluster.call('GET', at)
    // The garbage collector has removed what its owners left.
    if (status === 404 && 'ownerReferences' in metadata) continue
    assert.equal(status, 200)
    assert.equal((await cluster.call('DELETE', `${at}?propagationPolicy=Background`)).status, 200)
  }
  for (const [path, body] of objects()) {
    if ('finalizers' in body.metadata) await cluster.call('PATCH', `${path}/${body.metadata.name}`, { metadata: { finalizers: null } }, mergePatch)
    await cluster.until(`${path}/${body.metadata.name}`, ({ status }) => status === 404)
  }
  const afterwards = await cluster.longestTurnMs()
  assert.ok(Math.max(atFirst, afterwards) < turnMs, `a turn of the event loop took ${atFirst} ms at first, ${afterwards} ms after the start`)
}
