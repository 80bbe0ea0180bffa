/** Invalid configurations of issuers, each with upstream's message and the field's path (AUN-04). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JwtAuthenticatorConfiguration } from './configuration.ts'
import { validateAuthenticationConfiguration } from './validation.ts'

const good: JwtAuthenticatorConfiguration = {
  issuer: { url: 'https://issuer', audiences: ['a'] },
  claimMappings: { username: { claim: 'sub', prefix: '' } },
}
const issuer = (changes: object) => ({ ...good, issuer: { ...good.issuer, ...changes } })
const mappings = (changes: object) => ({ ...good, claimMappings: { ...good.claimMappings, ...changes } })
const claimRules = (...claimValidationRules: object[]) => ({ ...good, claimValidationRules })
const userRules = (...userValidationRules: object[]) => ({ ...good, userValidationRules })
const extra = (...all: object[]) => mappings({ extra: all })
const emailRule =
  'claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression'

const cases: { name: string; given: JwtAuthenticatorConfiguration; want: readonly string[] }[] = [
  { name: 'a plain issuer', given: good, want: [] },
  { name: 'no URL', given: issuer({ url: undefined }), want: ['issuer.url: Required value'] },
  { name: 'no scheme', given: issuer({ url: 'issuer' }), want: ['issuer.url: Invalid value: "issuer": URL scheme must be https'] },
  {
    name: 'all that a URL must not have',
    given: issuer({ url: 'http://u:p@issuer/?q=1#f' }),
    want: ['URL scheme must be https', 'URL must not contain a username or password', 'URL must not contain a query', 'URL must not contain a fragment'].map(
      (why) => `issuer.url: Invalid value: "http://u:p@issuer/?q=1#f": ${why}`,
    ),
  },
  {
    name: 'a discovery URL that is the issuer',
    given: issuer({ discoveryURL: 'https://issuer/' }),
    want: ['issuer.discoveryURL: Invalid value: "https://issuer/": discoveryURL must be different from URL'],
  },
  { name: 'no audience', given: issuer({ audiences: [] }), want: ['issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required'] },
  {
    name: 'audiences twice, and empty',
    given: issuer({ audiences: ['a', 'a', ''], audienceMatchPolicy: 'MatchAny' }),
    want: ['issuer.audiences[1]: Duplicate value: "a"', 'issuer.audiences[2]: Required value'],
  },
  {
    name: 'several audiences without a policy',
    given: issuer({ audiences: ['a', 'b'] }),
    want: ['issuer.audienceMatchPolicy: Invalid value: "": audienceMatchPolicy must be MatchAny for multiple audiences'],
  },
  {
    name: 'another policy',
    given: issuer({ audienceMatchPolicy: 'All' }),
    want: ['issuer.audienceMatchPolicy: Invalid value: "All": audienceMatchPolicy must be empty or MatchAny for single audience'],
  },
  {
    name: 'no certificate',
    given: issuer({ certificateAuthority: 'x' }),
    want: ['issuer.certificateAuthority: Invalid value: "<omitted>": data does not contain any valid RSA or ECDSA certificates'],
  },
  { name: 'no name', given: mappings({ username: undefined }), want: ['claimMappings.username: Required value: claim or expression is required'] },
  {
    name: 'a claim without its prefix',
    given: mappings({ username: { claim: 'sub' } }),
    want: ['claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing'],
  },
  {
    name: 'both',
    given: mappings({ username: { claim: 'sub', expression: 'claims.sub' }, uid: { claim: 'x', expression: 'claims.x' } }),
    want: ['uid', 'username'].map((field) => `claimMappings.${field}: Invalid value: "": claim and expression can't both be set`),
  },
  {
    name: 'a prefix for an expression',
    given: mappings({ groups: { expression: 'claims.groups', prefix: 'x' } }),
    want: ['claimMappings.groups.prefix: Invalid value: "x": may not be specified when expression is set'],
  },
  {
    name: 'an expression that does not compile',
    given: mappings({ username: { expression: 'claim.sub' } }),
    want: [
      "claimMappings.username.expression: Invalid value: \"claim.sub\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'claim' (in container '')\n | claim.sub\n | ^",
    ],
  },
  {
    name: 'email without email_verified is refused',
    given: mappings({ username: { expression: 'claims.email' } }),
    want: [`claimMappings.username.expression: Invalid value: "claims.email": ${emailRule}`],
  },
  {
    name: 'mail that a rule verifies',
    given: {
      ...mappings({ username: { expression: 'claims.email' } }),
      claimValidationRules: [{ expression: 'claims.?email_verified.orValue(true) == true' }],
    },
    want: [],
  },
  { name: 'a rule of nothing', given: claimRules({}), want: ['claimValidationRules[0]: Required value: claim or expression is required'] },
  {
    name: 'rules with what belongs to others',
    given: claimRules(
      { claim: 'a', message: 'm' },
      { expression: 'true', requiredValue: 'v' },
      { claim: 'a' },
      { expression: 'true' },
      { claim: 'b', expression: 'c' },
    ),
    want: [
      '[0].message: Invalid value: "m": may not be specified when claim is set',
      '[1].requiredValue: Invalid value: "v": may not be specified when expression is set',
      '[2].claim: Duplicate value: "a"',
      '[3].expression: Duplicate value: "true"',
      '[4]: Invalid value: "b": claim and expression can\'t both be set',
    ].map((fault) => `claimValidationRules${fault}`),
  },
  {
    name: 'rules that are not true or false',
    given: {
      ...claimRules({ expression: 'claims.a' }),
      ...userRules({ expression: 'user.username' }, { expression: '' }),
      claimValidationRules: [{ expression: 'claims.a' }],
    },
    want: [
      'claimValidationRules[0].expression: Invalid value: "claims.a": must evaluate to bool',
      'userValidationRules[0].expression: Invalid value: "user.username": must evaluate to bool',
      'userValidationRules[1].expression: Required value',
    ],
  },
  {
    name: 'keys of extra values',
    given: extra(
      { key: 'a', valueExpression: "'x'" },
      { key: 'Example.org/a', valueExpression: "'x'" },
      { key: 'x.k8s.io/a', valueExpression: "'x'" },
      { key: 'example.org/a' },
      { key: 'example.org/a', valueExpression: "'x'" },
    ),
    want: [
      '[0].key: Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo")',
      "[1].key: Invalid value: \"Example.org\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      '[1].key: Invalid value: "Example.org/a": must be lowercase',
      '[2].key: Invalid value: "x.k8s.io/a": k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use',
      '[3].valueExpression: Required value',
      '[4].key: Duplicate value: "example.org/a"',
    ].map((fault) => `claimMappings.extra${fault}`),
  },
]
const faultsOf = (jwt: readonly JwtAuthenticatorConfiguration[], anonymous?: object) =>
  validateAuthenticationConfiguration({ jwt, anonymous }, []).faults.map(({ field, body }) => `${field}: ${body}`)
for (const { name, given, want } of cases) {
  test(name, () =>
    assert.deepEqual(
      faultsOf([given]),
      want.map((fault) => `jwt[0].${fault}`),
    ),
  )
}

test('no issuer twice, and not more than 64', () => {
  const second = { ...good, issuer: { ...good.issuer, discoveryURL: 'https://d' } }
  assert.deepEqual(faultsOf([second, second]), [
    'jwt[1].issuer.url: Duplicate value: "https://issuer"',
    'jwt[1].issuer.discoveryURL: Duplicate value: "https://d"',
  ])
  assert.deepEqual(faultsOf(Array.from({ length: 65 }, () => good)), ['jwt: Too many: 65: must have at most 64 items'])
})

test('conditions of a disabled anonymous authenticator are refused', () => {
  const want = 'anonymous.conditions: Invalid value: [{"path":"/livez"}]: enabled should be set to true when conditions are defined'
  assert.deepEqual(faultsOf([], { enabled: false, conditions: [{ path: '/livez' }] }), [want])
})
