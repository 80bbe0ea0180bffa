/** That every behaviour of the inventory is a test, once each. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { allBehaviours } from './index.ts'
import { inventory } from './inventory.ts'

test('the inventory has the 249 behaviours of the feature map', () => {
  assert.equal(
    inventory.reduce((sum, { count }) => sum + count, 0),
    249,
  )
})

test('every group of the inventory is here', () => {
  const here = new Set(allBehaviours.map(({ title }) => title))
  assert.deepEqual(
    inventory.filter(({ title }) => !here.has(title)).map(({ title }) => title),
    [],
  )
})

for (const group of allBehaviours) {
  test(`${group.sig} ${group.title}: as many behaviours as upstream has, with unique names`, () => {
    const wanted = inventory.find(({ sig, title }) => sig === group.sig && title === group.title)
    assert.equal(group.behaviours.length, wanted?.count)
    assert.equal(new Set(group.behaviours.map(({ name }) => name)).size, group.behaviours.length)
    assert.ok(group.rows.length > 0)
  })
}
