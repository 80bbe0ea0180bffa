/** The table of broken set-ups that `skiff why` explains: each is made in a simulated cluster, and its answer names the cause, the evidence and the next command. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { describeAnswer } from '#why/answer'
import { BrokenCluster } from './brokenCluster.ts'
import { brokenObjects } from './brokenObjects.ts'
import { brokenPods } from './brokenPods.ts'
import { brokenWorkloads } from './brokenWorkloads.ts'

const all = [...brokenPods, ...brokenWorkloads, ...brokenObjects]

describe('the broken set-ups that are explained', () => {
  let cluster: BrokenCluster

  before(async () => {
    cluster = await BrokenCluster.start()
  })

  after(() => cluster.close())

  test('X8 the table has at least 60 set-ups', () => assert.ok(all.length >= 60, String(all.length)))

  for (const broken of all)
    test(`X8 why says what keeps ${broken.what}`, async () => {
      const answer = await cluster.explained(broken)
      const [first] = answer.causes
      assert.ok(first)
      assert.match(first.text, broken.cause)
      assert.match(first.evidence, broken.evidence)
      assert.match(first.next ?? '', broken.next)
      assert.deepEqual(answer.notRead, [])
      const lines = describeAnswer({ ...answer, causes: [first] })
        .trimEnd()
        .split('\n')
      assert.equal(lines.length, 3, lines.join('\n'))
    })
})
