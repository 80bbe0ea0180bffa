import assert from 'node:assert/strict'
import { test } from 'node:test'
import { goJson } from './goJson.ts'

const cases = [
  { name: 'members are sorted by name', value: { b: 1, a: [{ 10: true, 9: null }] }, want: '{"a":[{"10":true,"9":null}],"b":1}' },
  {
    name: 'characters of HTML and JavaScript are escaped, in names too',
    value: { '<a>': '&\u2028\u2029' },
    want: '{"\\u003ca\\u003e":"\\u0026\\u2028\\u2029"}',
  },
  { name: 'absent members are left out', value: { a: undefined, b: '' }, want: '{"b":""}' },
]
for (const { name, value, want } of cases) test(`API-11 JSON as Go writes it: ${name}`, () => assert.equal(goJson(value), want))
