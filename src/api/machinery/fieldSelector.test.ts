import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseFieldSelector } from './fieldSelector.ts'

const fields: Record<string, string> = { 'metadata.name': 'a', 'status.phase': 'Running', note: 'x,y=z' }
const get = (field: string) => fields[field] ?? ''
const cases: [string, boolean, string][] = [
  ['', true, ''],
  ['metadata.name=a', true, 'metadata.name=a'],
  ['status.phase!=Running,metadata.name==a', false, 'metadata.name=a,status.phase!=Running'],
  ['note=x\\,y\\=z', true, 'note=x\\,y\\=z'],
  ['spec.nodeName=', true, 'spec.nodeName='],
]
for (const [text, matches, printed] of cases)
  test(`API-10 field selector ${JSON.stringify(text)}`, () => {
    const selector = parseFieldSelector(text)
    assert.equal(selector.matches(get), matches)
    assert.equal(selector.toString(), printed)
  })

const refused: [string, string][] = [
  ['foo', "invalid selector: 'foo'; can't understand 'foo'"],
  ['a=b=c', 'invalid field selector: unescaped character in value: 61'],
  ['a=\\b', 'invalid field selector: invalid escape sequence: \\b'],
]
for (const [text, message] of refused)
  test(`API-10 field selector ${text} is refused`, () => assert.throws(() => parseFieldSelector(text), { message, reason: 'BadRequest' }))

test('an exact match is found', () => {
  const selector = parseFieldSelector('a!=1,b=2')
  assert.deepEqual([selector.requiresExactMatch('a'), selector.requiresExactMatch('b')], [undefined, '2'])
})
