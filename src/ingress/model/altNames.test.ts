import assert from 'node:assert/strict'
import { test } from 'node:test'
import { altNamesOf, matchesAltName } from './altNames.ts'

test('ING-05 the names of a certificate are read apart, also where a value has a comma or a quote', () => {
  assert.deepEqual(altNamesOf('DNS:a.test, URI:spiffe://b/c:d, IP Address:10.0.0.1, DNS:"x, DNS:y.test", DNS:z.test'), [
    { type: 'DNS', value: 'a.test' },
    { type: 'URI', value: 'spiffe://b/c:d' },
    { type: 'IP Address', value: '10.0.0.1' },
    { type: 'DNS', value: 'x, DNS:y.test' },
    { type: 'DNS', value: 'z.test' },
  ])
  for (const text of ['', 'DNS', '"', 'DNS:a"b', ', , ']) assert.deepEqual(altNamesOf(text), [], text)
  assert.deepEqual(altNamesOf('DNS:"\\"a'), [])
})

const cases: [wanted: 'Hostname' | 'URI', value: string, type: string, name: string, matches: boolean][] = [
  ['Hostname', 'a.test', 'DNS', 'A.test', true],
  ['Hostname', 'a.test', 'DNS', '*.test', true],
  ['Hostname', 'a.b.test', 'DNS', '*.test', false],
  ['Hostname', '*.test', 'DNS', '*.test', true],
  ['Hostname', '*.test', 'DNS', 'a.test', false],
  ['Hostname', 'a.test', 'URI', 'a.test', false],
  ['URI', 'spiffe://a', 'URI', 'spiffe://a', true],
  ['URI', 'spiffe://a', 'URI', 'spiffe://A', false],
  ['URI', 'spiffe://a', 'DNS', 'spiffe://a', false],
]
for (const [wanted, value, type, name, matches] of cases) {
  test(`ING-05 a wanted ${wanted} ${value} ${matches ? 'is' : 'is not'} the name ${type}:${name} of a certificate`, () => {
    assert.equal(matchesAltName({ type: wanted, value }, { type, value: name }), matches)
  })
}
