import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FieldPath } from './fieldPath.ts'
import { everything, formatLabelSelector, nothing, parseLabelSelector, selectorOf, selectorOfMap, validateLabelSelector } from './labelSelector.ts'
import { isStatus } from './status.ts'

const labels = { app: 'web', tier: 'front', size: '3', empty: '' }
const cases: [string, boolean, string][] = [
  ['', true, ''],
  ['app=web', true, 'app=web'],
  ['app==web', true, 'app==web'],
  ['app!=web', false, 'app!=web'],
  ['other!=web', true, 'other!=web'],
  ['tier=front,app=web', true, 'app=web,tier=front'],
  ['app in (api, web)', true, 'app in (api,web)'],
  ['app notin (api,web)', false, 'app notin (api,web)'],
  ['x notin ()', true, 'x notin ()'],
  ['empty in (,a)', true, 'empty in (,a)'],
  ['app', true, 'app'],
  ['!app', false, '!app'],
  ['! missing', true, '!missing'],
  ['size>2,size<4', true, 'size>2,size<4'],
  ['app>1', false, 'app>1'],
  ['empty=', true, 'empty='],
  ['example.com/in in (in)', false, 'example.com/in in (in)'],
]
for (const [text, matches, printed] of cases)
  test(`API-10 selector ${JSON.stringify(text)}`, () => {
    const selector = parseLabelSelector(text)
    assert.equal(selector.matches(labels), matches)
    assert.equal(selector.toString(), printed)
  })

const refused: [string, string][] = [
  ['app=web,', "found '', expected: identifier after ','"],
  [',app', "found ',', expected: !, identifier, or 'end of string'"],
  ['app web', "unable to parse requirement: found 'web', expected: in, notin, =, ==, !=, gt, lt"],
  ['app in web', "unable to parse requirement: found 'web' expected: '('"],
  ['app=a=b', "found '=', expected: ',' or 'end of string'"],
  ['size>x', `unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer`],
]
for (const [text, message] of refused)
  test(`API-10 selector ${JSON.stringify(text)} is refused`, () =>
    assert.throws(
      () => parseLabelSelector(text),
      (error) => isStatus(error, 'BadRequest') && error.message === message,
    ))

test('API-10 the object form', () => {
  const selector = selectorOf({
    matchLabels: { app: 'web' },
    matchExpressions: [
      { key: 'tier', operator: 'In', values: ['front', 'back'] },
      { key: 'gone', operator: 'DoesNotExist' },
    ],
  })
  assert.equal(selector.toString(), 'app=web,!gone,tier in (back,front)')
  assert.equal(selector.matches(labels), true)
  assert.equal(selectorOf(undefined), nothing)
  assert.equal(selectorOf({}), everything)
  assert.equal(nothing.matches({}), false)
  assert.equal(selectorOfMap({ app: 'web' }).matches(undefined), false)
  assert.deepEqual([formatLabelSelector(undefined), formatLabelSelector({}), formatLabelSelector({ matchLabels: { a: 'b' } })], ['<none>', '<none>', 'a=b'])
})

test('the faults of a LabelSelector field', () => {
  const errors = validateLabelSelector(
    {
      matchExpressions: [
        { key: 'a', operator: 'In' },
        { key: 'b', operator: 'Exists', values: ['x'] },
        { key: 'c', operator: 'Like' },
      ],
    },
    FieldPath.of('spec', 'selector'),
  )
  assert.deepEqual(
    errors.map((e) => `${e.field}: ${e.body}`),
    [
      "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
      "spec.selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
      'spec.selector.matchExpressions[2].operator: Invalid value: "Like": not a valid selector operator',
    ],
  )
})

test('API-10 a selector of many values is held against many objects in no time', { timeout: 5_000 }, () => {
  const values = Array.from({ length: 20_000 }, (_, index) => `v${index}`)
  const selector = parseLabelSelector(`a in (${values.join()})`)
  const excluded = parseLabelSelector(`a notin (${values.join()})`)
  for (let object = 0; object < 100_000; object++) {
    assert.equal(selector.matches({ a: `w${object}` }), false)
    assert.equal(excluded.matches({ a: `w${object}` }), true)
  }
  assert.equal(selector.matches({ a: 'v19999' }), true)
})
