import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as names from './names.ts'

const labelFault =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
const subdomainFault =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
const keyFault =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const valueFault =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

const cases: [string, (value: string) => readonly string[], string, readonly string[]][] = [
  ['label', names.isDns1123Label, 'web-1', []],
  ['label', names.isDns1123Label, 'Web', [labelFault]],
  ['label', names.isDns1123Label, '', [labelFault]],
  ['label with dots', names.isDns1123Label, 'a.b', ['must not contain dots']],
  ['long label', names.isDns1123Label, 'a'.repeat(64), ['must be no more than 63 characters']],
  ['subdomain', names.isDns1123Subdomain, 'a.b-c.d', []],
  ['subdomain', names.isDns1123Subdomain, 'a_b', [subdomainFault]],
  ['1035', names.isDns1035Label, 'svc', []],
  ['qualified', names.isQualifiedName, 'example.com/Name_1', []],
  ['qualified', names.isQualifiedName, '/x', ['prefix part must be non-empty']],
  ['qualified', names.isQualifiedName, 'a/b/c', [`a valid label key ${keyFault} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`]],
  ['qualified', names.isQualifiedName, '', ['name part must be non-empty', `name part ${keyFault}`]],
  ['qualified', names.isQualifiedName, 'a b', [`name part ${keyFault}`]],
  ['label value', names.isLabelValue, '', []],
  ['label value', names.isLabelValue, '-x', [valueFault]],
  ['env name', names.isEnvVarName, 'a b', []],
  ['env name', names.isEnvVarName, 'a=b', ["a valid environment variable name must consist only of printable ASCII characters other than '='"]],
  ['config key', names.isConfigMapKey, '..x', ["must not start with '..'"]],
  [
    'port name',
    names.isPortName,
    '1--2-',
    ['must contain at least one letter (a-z)', 'must not contain consecutive hyphens', 'must not begin or end with a hyphen'],
  ],
  ['path segment', names.isPathSegmentName, '..', ["may not be '..'"]],
  ['path segment', names.isPathSegmentName, 'system:a/b', ["may not contain '/'"]],
]
for (const [what, check, value, want] of cases) test(`${what} ${JSON.stringify(value.slice(0, 20))}`, () => assert.deepEqual(check(value), want))

test('a generateName may end in a dash, a name may not', () => {
  assert.deepEqual(names.nameIsDnsSubdomain('web-', true), [])
  assert.deepEqual(names.nameIsDnsSubdomain('web-', false), [subdomainFault])
})
