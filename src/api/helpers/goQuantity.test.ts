import assert from 'node:assert/strict'
import { test } from 'node:test'
import { goQuantityDump } from './goQuantity.ts'

const big = (words: string): string => `{unscaled:(big.Int){neg:(bool)false abs:(big.nat)[${words}]} scale:(inf.Scale)9}`

/** Text, then what Go 1.26 has in memory for it: 64-bit value and scale, big decimal, kept text, format. */
const quantities: readonly (readonly [text: string, value: string, scale: number, decimal: string, kept: string, format: string])[] = [
  ['0', '0', 0, '<nil>', '0', 'DecimalSI'],
  ['100m', '100', -3, '<nil>', '100m', 'DecimalSI'],
  ['1500m', '1500', -3, '<nil>', '1500m', 'DecimalSI'],
  ['1k', '1', 3, '<nil>', '1k', 'DecimalSI'],
  ['64Mi', '67108864', 0, '<nil>', '', 'BinarySI'],
  ['3Mi', '3145728', 0, '<nil>', '3Mi', 'BinarySI'],
  ['120Ti', '0', 0, big('10281717949286842368 7152'), '', 'BinarySI'],
  ['5e3', '5', 3, '<nil>', '5e3', 'DecimalExponent'],
  ['-100Mi', '-104857600', 0, '<nil>', '-100Mi', 'BinarySI'],
  ['12345678901234567890123', '0', 0, big('6432227781343849984 669260594276'), '', 'DecimalSI'],
  ['10n', '10', -9, '<nil>', '10n', 'DecimalSI'],
]
for (const [text, value, scale, decimal, kept, format] of quantities) {
  test(`CTL-04 the quantity ${text} has the members of Go's`, () => {
    const small = `i:(resource.int64Amount){value:(int64)${value} scale:(resource.Scale)${scale}}`
    const want = `{${small} d:(resource.infDecAmount){Dec:(*inf.Dec)${decimal}} s:(string)${kept} Format:(resource.Format)${format}}`
    assert.equal(goQuantityDump(text), want)
  })
}
