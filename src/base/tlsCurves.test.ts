import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSecureContext } from 'node:tls'
import { curveNames, curvesOf, unknownCurves } from './tlsCurves.ts'

test('KUB-24 curves are called as OpenSSL calls them, in the order of preference', () => {
  assert.deepEqual(curvesOf([29, 23]), ['X25519', 'P-256'])
  assert.equal(curvesOf([]), undefined)
})

test('KUB-24 what is not a curve of this server is named', () => assert.deepEqual(unknownCurves([29, 4588, 1]), [4588, 1]))

test('KUB-24 Node takes every curve of the list', () => {
  for (const ecdhCurve of Object.values(curveNames)) createSecureContext({ ecdhCurve })
  assert.throws(() => createSecureContext({ ecdhCurve: 'P-999' }))
})
