import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkSwap } from './processLimits.ts'

const none = 'Filename\tType\tSize\tUsed\tPriority\n'
const some = `${none}/dev/zram0 partition 100 0 100\n`

test('KUB-24 swap is refused where failSwapOn was set, gives a warning where it is only the default, and is allowed where it is off', () => {
  assert.equal(checkSwap(none, { failSwapOn: true }, { failSwapOn: true }), undefined)
  assert.equal(checkSwap('', { failSwapOn: true }, {}), undefined)
  assert.equal(checkSwap(some, { failSwapOn: false }, { failSwapOn: false }), undefined)
  assert.match(checkSwap(some, { failSwapOn: true }, {}) ?? '', /^running with swap on is not supported, .*; it runs all the same/)
  assert.throws(() => checkSwap(some, { failSwapOn: true }, { failSwapOn: true }), /set --fail-swap-on flag to false\. \/proc\/swaps contained: \[\/dev\/zram0/)
})
