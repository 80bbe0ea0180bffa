import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FieldError, FieldPath, fieldError } from './fieldPath.ts'
import {
  cidrWarnings,
  ipWarnings,
  isCanonicalIp,
  validateCidr,
  validateDomainPrefixedPath,
  validateFullyQualifiedDomainName,
  validateFullyQualifiedName,
  validateLooseCidr,
  validateLooseIp,
} from './formats.ts'

const path = FieldPath.of('f')
const canonicalIp = (text: string) => isCanonicalIp(text).map((fault) => fieldError.invalid(path, text, fault))
const details = (errors: readonly FieldError[]) => errors.map((error) => error.body)

const cases: readonly [string, readonly FieldError[], readonly string[]][] = [
  ['an address', canonicalIp('10.0.0.1'), []],
  ['no address', canonicalIp('x'), ['Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']],
  ['leading zeros', validateLooseIp('010.0.0.1', path), ['Invalid value: "010.0.0.1": must not have leading 0s']],
  ['leading zeros that were there before', validateLooseIp('010.0.0.1', path, ['010.0.0.1']), []],
  ['a mapped address', canonicalIp('::ffff:1.2.3.4'), ['Invalid value: "::ffff:1.2.3.4": must not be an IPv4-mapped IPv6 address']],
  ['an unusual spelling', canonicalIp('2001:DB8::1'), ['Invalid value: "2001:DB8::1": must be in canonical form ("2001:db8::1")']],
  ['an unusual spelling where it may be', validateLooseIp('2001:DB8::1', path), []],
  ['a block', validateCidr('10.0.0.0/8', path), []],
  ['no block', validateLooseCidr('10.0.0.0', path), ['Invalid value: "10.0.0.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)']],
  ['a block with zeros', validateLooseCidr('10.0.0.0/08', path), ['Invalid value: "10.0.0.0/08": must not have leading 0s in IP or prefix length']],
  ['host bits', validateLooseCidr('10.0.0.1/8', path), ['Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length']],
  ['a mapped block', validateLooseCidr('::ffff:1.2.3.0/120', path), ['Invalid value: "::ffff:1.2.3.0/120": must not have an IPv4-mapped IPv6 address']],
  ['a spelling of a block', validateCidr('2001:0db8::/64', path), ['Invalid value: "2001:0db8::/64": must be in canonical form ("2001:db8::/64")']],
  ['a name of three labels', validateFullyQualifiedName('a.b.c', path), []],
  ['no name', validateFullyQualifiedName('', path), ['Required value']],
  ['two labels', validateFullyQualifiedName('a.b', path), ['Invalid value: "a.b": should be a domain with at least three segments separated by dots']],
  ['a domain', validateFullyQualifiedDomainName('a.b.', path), []],
  ['a word', validateFullyQualifiedDomainName('a', path), ['Invalid value: "a": should be a domain with at least two segments separated by dots']],
  ['a controller', validateDomainPrefixedPath('example.com/a', path), []],
  ['no path', validateDomainPrefixedPath('a', path), ['Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo")']],
  [
    'a bad path',
    validateDomainPrefixedPath('a.b/c d', path),
    ["Invalid value: \"c d\": Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"],
  ],
]
for (const [name, got, want] of cases) test(`EXP-04 formats: ${name}`, () => assert.deepEqual(details(got), want))

test('EXP-04 formats: warnings name the spelling to use', () => {
  assert.deepEqual(ipWarnings('2001:DB8::1', path), ['f: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")'])
  assert.deepEqual(ipWarnings('10.0.0.1', path), [])
  assert.deepEqual(cidrWarnings('10.0.0.1/8', path), ['f: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)'])
  assert.deepEqual(cidrWarnings('2001:DB8::/32', path), ['f: IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical format ("2001:db8::/32")'])
})
