/** CRD-02, ADM-06: what the functions of Kubernetes' CEL libraries answer, and how they fail. Facts: apiserver/pkg/cel/library/*_test.go (v1.36). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toJson } from '#cel/json'
import type { AuthorizationCheck } from './authz.ts'
import { authorizerType, authorizerValue, resourceCheckType, resourceCheckValue } from './authz.ts'
import { jsonPatchLibrary } from './collections.ts'
import { kubernetesEnvironment } from './environment.ts'

/** 8,000 instructions. */
const wide = 'x{1000}'.repeat(8)

const environment = kubernetesEnvironment.extend({ libraries: [jsonPatchLibrary] })

/** The value as JSON, or the message of what failed. */
function evaluate(expression: string): unknown {
  const compiled = environment.compile(expression)
  if (!compiled.ok) return compiled.issues.map(({ message }) => message).join('; ')
  const { value, error } = compiled.program.evaluate(new Map())
  return error ? error.message : toJson(value)
}

const rows: Record<string, [expression: string, wanted: unknown][]> = {
  quantity: [
    ['quantity("12Mi").asInteger()', 12 * 1024 * 1024],
    ['isQuantity("20M") && !isQuantity("20Mo") && !isQuantity("")', true],
    ['quantity("200M") == quantity("0.2G") && quantity("200M") != quantity("200Mi")', true],
    ['quantity("50M").isLessThan(quantity("50Mi")) && quantity("50Mi").isGreaterThan(quantity("50M"))', true],
    ['[quantity("1").compareTo(quantity("2")), quantity("2").compareTo(quantity("2")), quantity("2k").compareTo(quantity("1"))]', [-1, 0, 1]],
    ['quantity("50k").add(quantity("20")) == quantity("50.02k") && quantity("50k").sub(20) == quantity("49980")', true],
    ['sign(quantity("-1")) + sign(quantity("0"))', -1],
    ['quantity("50m").isInteger() || quantity("9999999999999999999999G").isInteger()', false],
    ['quantity("50m").asInteger()', 'cannot convert value to integer'],
    ['quantity("50.703k").asApproximateFloat()', 50703],
    ['quantity("ten")', "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
    ['type(quantity("1")) == kubernetes.Quantity', true],
    ['quantity(1)', "found no matching overload for 'quantity' applied to '(int)'"],
  ],
  semver: [
    ['[semver("1.2.3").major(), semver("1.2.3").minor(), semver("1.2.3").patch()]', [1, 2, 3]],
    ['[isSemver("1.2.3"), isSemver("v1.2.3"), isSemver("1.2"), isSemver("01.2.3"), isSemver("1.2.3-rc.1+b5")]', [true, false, false, false, true]],
    ['semver("v01.2", true) == semver("1.2.0")', true],
    ['[isSemver("v1", true), isSemver("1.2-rc", true), isSemver("v1.0.x", true)]', [true, false, false]],
    ['semver("1.0.0-rc.2").isLessThan(semver("1.0.0-rc.10")) && semver("1.0.0-rc.10").isLessThan(semver("1.0.0"))', true],
    ['semver("1.0.0-1").isLessThan(semver("1.0.0-a")) && semver("1.0.0-a").isLessThan(semver("1.0.0-a.1"))', true],
    ['semver("2.0.0").compareTo(semver("1.9.9"))', 1],
    ['semver("1.0.0+a") == semver("1.0.0+b")', true],
    ['semver("1.2")', 'No Major.Minor.Patch elements found'],
    ['semver("1.2.03")', 'Patch number must not contain leading zeroes "03"'],
  ],
  ip: [
    ['[ip("192.168.0.1").family(), ip("::1").family()]', [4, 6]],
    ['string(ip("2001:DB8::0001"))', '2001:db8::1'],
    ['[isIP("1.2.3.4"), isIP("1.2.3.04"), isIP("::ffff:1.2.3.4"), isIP("fe80::1%eth0"), isIP("x")]', [true, false, false, false, false]],
    ['ip.isCanonical("2001:db8::abcd") && !ip.isCanonical("2001:DB8::ABCD")', true],
    ['ip("0.0.0.0").isUnspecified() && ip("127.0.0.1").isLoopback() && ip("224.0.0.1").isLinkLocalMulticast()', true],
    ['ip("169.254.1.1").isLinkLocalUnicast() && ip("8.8.8.8").isGlobalUnicast() && !ip("255.255.255.255").isGlobalUnicast()', true],
    ['ip("10.0.0.1") == ip("10.0.0.1") && ip("::") != ip("0.0.0.0")', true],
    ['ip("::ffff:1.2.3.4")', 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'],
    ['ip("fe80::1%eth0")', 'IP address "fe80::1%eth0" with zone value is not allowed'],
    ['ip("1.2.3")', 'IP Address "1.2.3" parse error during conversion from string: ParseAddr("1.2.3"): unable to parse IP'],
    ['type(ip("::")) == net.IP', true],
  ],
  cidr: [
    ['cidr("192.168.0.0/24").containsIP("192.168.0.1") && !cidr("192.168.0.0/24").containsIP(ip("192.168.1.1"))', true],
    ['cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16") && !cidr("10.1.0.0/16").containsCIDR(cidr("10.0.0.0/8"))', true],
    ['cidr("10.0.0.0/8").containsIP("::1")', false],
    ['[string(cidr("10.1.2.3/8")), string(cidr("10.1.2.3/8").masked()), string(cidr("10.1.2.3/8").ip())]', ['10.1.2.3/8', '10.0.0.0/8', '10.1.2.3']],
    ['cidr("2001:db8::/32").prefixLength()', 32],
    ['[isCIDR("10.0.0.0/8"), isCIDR("10.0.0.0"), isCIDR("10.0.0.0/33")]', [true, false, false]],
    ['cidr("10.0.0.0/8") == cidr("10.0.0.0/8") && cidr("10.0.0.1/8") != cidr("10.0.0.0/8")', true],
  ],
  url: [
    [
      '[url("https://example.com:80/path").getHost(), url("https://example.com:80/path").getHostname(), url("https://example.com:80/path").getPort()]',
      ['example.com:80', 'example.com', '80'],
    ],
    ['[url("https://[::1]:80/").getHost(), url("https://[::1]:80/").getHostname(), url("https://[::1]/").getPort()]', ['[::1]:80', '::1', '']],
    ['url("HTTPS://example.com/path with spaces/").getEscapedPath()', '/path%20with%20spaces/'],
    ['url("https://user:pw@example.com/x").getHost() + url("HTTP://a").getScheme()', 'example.comhttp'],
    ['url("https://example.com/path?k1=a&k2=b&k2=c&k3=%20d+e&k4").getQuery()', { k1: ['a'], k2: ['b', 'c'], k3: [' d e'], k4: [''] }],
    ['[isURL("/absolute-path"), isURL("https://a:b:c/"), isURL("../relative"), isURL(""), isURL("mailto:x")]', [true, false, false, false, true]],
    ['url("../relative")', 'URL parse error during conversion from string: parse "../relative": invalid URI for request'],
    ['url("https://a:port/")', 'URL parse error during conversion from string: parse "https://a:port/": invalid port ":port" after host'],
    ['url("https://a/%zz")', 'URL parse error during conversion from string: parse "https://a/%zz": invalid URL escape "%zz"'],
    ['url("https://a/x#f").getEscapedPath()', '/x'],
  ],
  lists: [
    ['[1, 2, 3].isSorted() && !["b", "a"].isSorted() && [].isSorted()', true],
    ['[[1, 3].sum(), [1, 3, 2].max(), [3, 1, 2].min()]', [4, 3, 1]],
    ['[1.5, 2.0].sum()', 3.5],
    ['string([duration("1h"), duration("30m")].sum())', '5400s'],
    ['[].max()', 'max called on empty list'],
    ['["a", "b", "a"].indexOf("a") + ["a", "b", "a"].lastIndexOf("a") + ["a"].indexOf("x")', 1],
    ['[9223372036854775807, 1].sum()', 'integer overflow'],
    ['[3, 1, 2].sort().reverse().slice(0, 2) + [1, 1].distinct() + [[4], [5]].flatten() + lists.range(2)', [3, 2, 1, 4, 5, 0, 1]],
    ['["bb", "a"].sortBy(x, x.size())', ['a', 'bb']],
  ],
  regex: [
    ['"abc 123".find("[0-9]+") + "abc".find("[0-9]+")', '123'],
    ['"123 abc 456".findAll("[0-9]+")', ['123', '456']],
    ['"123 abc 456".findAll("[0-9]+", 1) + "a".findAll("b")', ['123']],
    ['"a".find("(")', 'Illegal regex: error parsing regexp: missing closing ): `(`'],
    // A pattern that hangs a backtracking engine.
    ['"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!".matches("^(a+)+$")', false],
    ['"x".matches("(?i)X") && !"ab".matches("^b") && "ab".matches("b")', true],
    ['"a".matches("[")', 'invalid matches argument'],
    // An evaluation may use 15,000 instructions.
    [`"a".matches("${wide}") || "a".matches("y${wide}")`, 'the patterns are too large: 16001 instructions, and an evaluation may use 15000'],
    [`["a"].exists(x, x.matches("${wide}")) || "a".find("${wide}") == "a"`, 'the patterns are too large: 16000 instructions, and an evaluation may use 15000'],
    [`"a" == "b" ? "a".matches("${wide}") : "a".matches("y${wide}")`, false],
  ],
  format: [
    ['format.dns1123Label().validate("my-name").hasValue()', false],
    ['format.dns1123Label().validate("My_Name").value().size()', 1],
    ['format.named("dns1123Subdomain").value() == format.dns1123Subdomain() && !format.named("nope").hasValue()', true],
    [
      '[format.uuid().validate("123"), format.byte().validate("a"), format.date().validate("2024-02-30")].map(f, f.value()[0])',
      ['does not match the UUID format', 'invalid base64', 'invalid date'],
    ],
    ['format.uri().validate("../x").value()', ['parse "../x": invalid URI for request']],
    [
      '[format.qualifiedName().validate("a/b"), format.labelValue().validate(""), format.datetime().validate("2024-01-01T00:00:00Z")].all(f, !f.hasValue())',
      true,
    ],
    ['format.dns1123LabelPrefix().validate("abc-").hasValue()', false],
  ],
  jsonpatch: [['jsonpatch.escapeKey("k/with~both")', 'k~1with~0both']],
  optionals: [
    ['{"a": 1}[?"a"].optMap(x, x + 1).orValue(0) + optional.none().orValue(5)', 7],
    ['[optional.of(1), optional.none()].unwrapOpt() + [1, 2].first().optFlatMap(x, optional.of([x])).value()', [1, 1]],
    ['{?"a": optional.none(), "b": 1}', { b: 1 }],
    ['[?optional.of(1), ?optional.none()]', [1]],
    ['optional.none().value()', 'optional.none() dereference'],
    ['[].last().hasValue() || optional.ofNonZeroValue("").hasValue()', false],
  ],
  comprehensions: [
    ['[5, 6].all(i, v, v == i + 5) && {"a": 1}.exists(k, v, k == "a" && v == 1)', true],
    ['[1, 2].transformList(i, v, i > 0, v * 10)', [20]],
    ['{"a": 1, "b": 2}.transformMap(k, v, v > 1, v * 10)', { b: 20 }],
    ['["x", "y"].transformMapEntry(i, v, {v: i})', { x: 0, y: 1 }],
    ['["x", "x"].transformMapEntry(i, v, {v: i})', 'insert failed: key x already exists'],
    ['[1].all(i, i, true)', 'duplicate variable name: i'],
  ],
  literals: [
    ['duration("soon")', 'invalid duration argument'],
    ['timestamp("2020-13-01T00:00:00Z")', 'invalid timestamp argument'],
    ['[1, "a"]', "expected type 'int' but found 'string'"],
    ['[1, dyn("a")]', "expected type 'int' but found 'dyn'"],
    ['{"a": 1, "b": dyn(2)}', "expected type 'int' but found 'dyn'"],
  ],
}

for (const [library, cases] of Object.entries(rows)) {
  for (const [expression, wanted] of cases) test(`CRD-02: ${library}: ${expression}`, () => assert.deepEqual(evaluate(expression), wanted))
}

const asked: AuthorizationCheck[] = []
const authorize = (check: AuthorizationCheck) => {
  asked.push(check)
  return check.verb === 'explode' ? { allowed: false, reason: '', error: 'boom' } : { allowed: check.name !== 'secret', reason: 'by test' }
}

const checks: [expression: string, wanted: unknown, check: Partial<AuthorizationCheck>][] = [
  ["authorizer.path('/healthz').check('get').allowed()", true, { path: '/healthz', verb: 'get', serviceAccount: undefined }],
  [
    "authorizer.group('apps').resource('deployments').subresource('scale').namespace('n').name('secret').check('update').allowed()",
    false,
    { group: 'apps', resource: 'deployments', subresource: 'scale', namespace: 'n', name: 'secret', verb: 'update', serviceAccount: undefined },
  ],
  [
    "authorizer.serviceAccount('n', 'sa').group('').resource('pods').labelSelector('a=b').fieldSelector('c=d').check('list').reason()",
    'by test',
    { group: '', resource: 'pods', labelSelector: 'a=b', fieldSelector: 'c=d', verb: 'list', serviceAccount: { namespace: 'n', name: 'sa' } },
  ],
  [
    "requestResource.check('explode').errored() ? requestResource.check('explode').error() : ''",
    'boom',
    { group: 'g', resource: 'r', subresource: '', namespace: 'ns', name: 'x', verb: 'explode', serviceAccount: undefined },
  ],
]
for (const [expression, wanted, check] of checks) {
  test(`ADM-06: ${expression}`, () => {
    const compiled = environment.extend({ variables: { authorizer: authorizerType, requestResource: resourceCheckType } }).compile(expression)
    assert.ok(compiled.ok, compiled.ok ? '' : compiled.message)
    const requestResource = resourceCheckValue(authorize, { group: 'g', resource: 'r', subresource: '', namespace: 'ns', name: 'x' })
    const data = new Map([
      ['authorizer', authorizerValue(authorize)],
      ['requestResource', requestResource],
    ])
    assert.deepEqual(compiled.program.evaluate(data).value, wanted)
    assert.deepEqual(asked.at(-1), check)
  })
}

test('ADM-06: checks refuse names that cannot be', () => {
  const fail = (expression: string): string | undefined => {
    const compiled = environment.extend({ variables: { authorizer: authorizerType } }).compile(expression)
    return compiled.ok ? compiled.program.evaluate(new Map([['authorizer', authorizerValue(authorize)]])).error?.message : compiled.message
  }
  assert.equal(fail("authorizer.path(' ')"), 'path must not be empty')
  assert.equal(fail("authorizer.group('').resource('')"), 'resource must not be empty')
  assert.equal(fail("authorizer.serviceAccount('n', 'A')"), 'Invalid service account name')
  assert.equal(fail("authorizer.serviceAccount('N', 'a')"), 'Invalid service account namespace')
})
