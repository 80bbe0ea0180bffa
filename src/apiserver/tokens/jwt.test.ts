/** Tokens have one spelling: what Node would pass over in base64url makes a token a wrong one. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { decodeBase64Url, signToken, verifySignature } from './jwt.ts'
import { signingKey } from './keys.ts'

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const key = signingKey(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
const token = signToken({ sub: 'a' }, key)
const [header = '', claims = '', signature = ''] = token.split('.')

test('AUN-03 a token is verified, each part is base64url', () => assert.deepEqual(verifySignature(token, [key]), { sub: 'a' }))

const cases: readonly (readonly [name: string, token: string])[] = [
  ['its signature is padded', `${token}==`],
  ['its signature has a character that base64url has not', `${header}.${claims}.${signature.slice(0, 4)}!${signature.slice(4)}`],
  ['its signature has a space', `${header}.${claims}.${signature} `],
  ['its signature is followed by a single character', `${header}.${claims}.${signature}AAA`],
  ['it has no signature', `${header}.${claims}.`],
  ['it has a fourth part', `${token}.`],
]
for (const [name, text] of cases) test(`AUN-03 a token is refused, ${name}`, () => assert.equal(verifySignature(text, [key]), undefined))

test('AUN-03 other alphabets and lengths are no base64url', () => {
  for (const text of ['a+b=', 'ab/c', 'ab=', 'a', 'ab\n']) assert.equal(decodeBase64Url(text), undefined, JSON.stringify(text))
})
