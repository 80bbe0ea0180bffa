import assert from 'node:assert/strict'
import { test } from 'node:test'
import { capabilities, hasCapability } from './capabilities.ts'

const status = (effective: string) => `Name:\tnode\nCapInh:\t0000000000000000\nCapPrm:\t000001ffffffffff\nCapEff:\t${effective}\nCapBnd:\t000001ffffffffff\n`
const cases: readonly [title: string, text: string, want: boolean][] = [
  ['all', status('000001ffffffffff'), true],
  ['all but this one', status('000001fffeffffff'), false],
  ['this one alone', status('0000000001000000'), true],
  ['none', status('0000000000000000'), false],
  ['no line with them', 'Name:\tnode\n', false],
]
for (const [title, text, want] of cases) {
  test(`RES-02 CAP_SYS_RESOURCE is read from the effective set: ${title}`, () => {
    assert.equal(hasCapability(text, capabilities.sysResource), want)
  })
}
