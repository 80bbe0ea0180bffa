import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cidrContains, cidrSize, formatCidr, formatIp, hostPort, isLinkLocalUnicast, isLoopback, parseCidr, parseIp } from './ip.ts'

const canonical: [string, string | undefined][] = [
  ['10.0.0.1', '10.0.0.1'],
  ['010.0.0.1', undefined],
  ['256.0.0.1', undefined],
  ['1.2.3', undefined],
  ['::', '::'],
  ['::1', '::1'],
  ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
  ['2001:db8:0:1:0:0:0:1', '2001:db8:0:1::1'],
  ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
  ['::ffff:1.2.3.4', '::ffff:102:304'],
  ['1::2::3', undefined],
  ['1:2:3:4:5:6:7', undefined],
  ['fe80::1%eth0', undefined],
  ['', undefined],
]
for (const [text, want] of canonical)
  test(`address ${text}`, () => {
    const ip = parseIp(text)
    assert.equal(ip && formatIp(ip), want)
  })

test('blocks', () => {
  const block = parseCidr('10.1.2.3/16')
  assert.ok(block)
  assert.equal(formatCidr(block), '10.1.0.0/16')
  assert.equal(cidrSize(block), 65_536n)
  assert.deepEqual(
    ['10.1.255.255', '10.2.0.0', '::1'].map((text) => cidrContains(block, parseIp(text) ?? { family: 4, value: 0n })),
    [true, false, false],
  )
  assert.deepEqual(['10.0.0.0/33', '10.0.0.0', '10.0.0.0/08', '::/129'].map(parseCidr), [undefined, undefined, undefined, undefined])
})

test('kinds of addresses', () => {
  const kinds = ['127.9.9.9', '::1', '169.254.1.1', 'fe80::1', '10.0.0.1'].map((text) => parseIp(text) ?? { family: 4 as const, value: 0n })
  assert.deepEqual(kinds.map(isLoopback), [true, true, false, false, false])
  assert.deepEqual(kinds.map(isLinkLocalUnicast), [false, false, true, true, false])
})

test('NET-08 an IPv6 address with a port is in brackets, an IPv4 address and a name are not', () => {
  assert.deepEqual(
    ['10.0.0.1', '2001:db8::1', 'localhost'].map((host) => hostPort(host, 80)),
    ['10.0.0.1:80', '[2001:db8::1]:80', 'localhost:80'],
  )
})
