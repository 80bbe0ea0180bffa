import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkProxyable, isProxyableAddress } from './proxyableAddress.ts'

const cases: readonly (readonly [address: string, allowed: boolean])[] = [
  ['10.0.0.1', true],
  ['fd00::1', true],
  ['127.0.0.1', false],
  ['127.9.9.9', false],
  ['169.254.169.254', false],
  ['0.0.0.0', false],
  ['224.0.0.1', false],
  ['::1', false],
  ['::', false],
  ['fe80::1', false],
  ['ff02::1', false],
  ['::ffff:127.0.0.1', false],
  ['localhost', false],
  ['', false],
]
for (const [address, allowed] of cases)
  test(`API-29 ${address || 'no address'} may ${allowed ? '' : 'not '}be proxied to`, () => assert.equal(isProxyableAddress(address), allowed))

test('API-29 a name is as good as the addresses it stands for', async () => {
  await checkProxyable('10.0.0.1')
  await assert.rejects(checkProxyable('localhost'), { reason: 'BadRequest', message: 'address not allowed' })
  await assert.rejects(checkProxyable('no-such-host.invalid'), { reason: 'BadRequest', message: 'lookup no-such-host.invalid: no such host' })
})
