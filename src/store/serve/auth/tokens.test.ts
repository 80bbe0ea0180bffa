import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { Tokens } from './tokens.ts'

const ttlMs = 300_000

function world() {
  const clock = new VirtualClock()
  return { clock, tokens: new Tokens(clock, ttlMs) }
}

test('ETC-24 a token is random letters, a dot and its number', () => {
  const { tokens } = world()
  const [first, second] = [tokens.assign('a', 1), tokens.assign('a', 1)]
  assert.match(first, /^[A-Za-z]{32}\.1$/)
  assert.notEqual(first, second)
  assert.deepEqual([tokens.userOf(first), tokens.userOf(second), tokens.userOf('x.1')], ['a', 'a', undefined])
})

test('ETC-24 a token ends some time after its last use', async () => {
  const { clock, tokens } = world()
  const [used, unused] = [tokens.assign('a', 1), tokens.assign('b', 2)]
  await clock.advance(ttlMs - 1)
  assert.equal(tokens.userOf(used), 'a')
  await clock.advance(1)
  assert.equal(tokens.userOf(unused), undefined)
  assert.equal(tokens.userOf(used), 'a')
  await clock.advance(ttlMs)
  assert.equal(tokens.userOf(used), undefined)
})

test('ETC-24 all tokens of a user end at once, those of others stay', () => {
  const { tokens } = world()
  const [a, b, c] = [tokens.assign('a', 1), tokens.assign('b', 2), tokens.assign('a', 3)]
  tokens.endOf('a')
  assert.deepEqual(
    [a, b, c].map((token) => tokens.userOf(token)),
    [undefined, 'b', undefined],
  )
  tokens.endAll()
  assert.equal(tokens.userOf(b), undefined)
})

test('ETC-24 the token that was used least recently ends where there are too many', () => {
  const { tokens } = world()
  const [used, unused] = [tokens.assign('a', 1), tokens.assign('a', 2)]
  tokens.userOf(used)
  for (let at = 3; at <= 100_001; at++) tokens.assign('b', at)
  assert.deepEqual([tokens.userOf(used), tokens.userOf(unused)], ['a', undefined])
})
