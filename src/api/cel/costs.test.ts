/** CRD-02, ADM-06: costs of Kubernetes' libraries, against the numbers of upstream's own test (apiserver/pkg/cel/library/cost_test.go). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SizeEstimator } from '#cel/cost/model'
import { range } from '#cel/cost/model'
import type { CelType } from '#cel/types'
import { listType, stringType } from '#cel/types'
import { authorizerType, authorizerValue } from './authz.ts'
import { jsonPatchLibrary } from './collections.ts'
import { kubernetesEnvironment, perCallLimit } from './environment.ts'

const environment = kubernetesEnvironment.extend({ variables: { authorizer: authorizerType }, libraries: [jsonPatchLibrary] })
const authorizer = authorizerValue(({ verb }) => ({ allowed: verb === 'get', reason: 'because' }))

function compile(expression: string, variables: Record<string, CelType> = {}) {
  const compiled = environment.extend({ variables }).compile(expression)
  assert.ok(compiled.ok, compiled.ok ? '' : compiled.message)
  return compiled
}

const selector = 'spec.nodeName=example-node-name.fully.qualified.domain.name.example.com'
const list = "['aa', 'bb', 'cc', 'd', 'e', 'f', 'g', 'h', 'i', 'j']"
const check = "authorizer.group('apps').resource('deployments').subresource('status').namespace('test').name('backend').check('create')"

/** The size that upstream's test assumes for a string of unknown length. */
const upstreamSizes: SizeEstimator = ({ type }) => (type.kind === 'string' ? range(0, 12) : undefined)

/** Programs are optimized here and not in upstream's test: each constant list costs 10 less, each constant map 30 less. */
const rows: [expression: string, min: number, max: number, actual: number][] = [
  ["'ABCDEFGHIJ abcdefghij'.lowerAscii()", 3, 3, 3],
  ["'ABCDEFGHIJ abcdefghij'.lowerAscii() == 'abcdefghij ABCDEFGHIJ'.lowerAscii()", 7, 9, 9],
  ["'ABCDEFGHIJ abcdefghij'.upperAscii()", 3, 3, 3],
  ["strings.quote('ABCDEFGHIJ abcdefghij')", 3, 3, 3],
  ["strings.quote('ABCDEFGHIJ abcdefghij') == strings.quote('ABCDEFGHIJ abcdefghij')", 7, 11, 9],
  ["'abc 123 def 123'.replace('123', '456')", 3, 3, 3],
  ["'abc 123 def 123'.replace('', 'x')", 3, 3, 3],
  ["'abc 123 def 123'.replace('123', '456', 1)", 3, 3, 3],
  ["'abc 123 def 123'.split(' ')", 3, 3, 3],
  ["'abc 123 def 123'.split(' ', 1)", 3, 3, 3],
  ["'abc 123 def 123'.substring(5, 8)", 2, 2, 2],
  ["'  abc 123 def 123  '.trim()", 2, 2, 2],
  [`${list}.join(' ')`, 11, 23, 15 - 10],
  [`${list}.join()`, 10, 22, 13 - 10],
  ["'abc 123 def 123'.find('123')", 2, 2, 2],
  ["'abc 123 def 123'.findAll('123', 1)", 2, 2, 2],
  ["jsonpatch.escapeKey('abc/def~ abc/def~')", 2, 2, 2],
  ["authorizer.path('/healthz')", 2, 2, 2],
  ["authorizer.group('apps').resource('deployments').subresource('status').namespace('test').name('backend')", 6, 6, 6],
  [`authorizer.group('').resource('pods').fieldSelector('${selector}')`, 1821, 1821, 1821],
  [`authorizer.group('').resource('pods').labelSelector('${selector}')`, 1821, 1821, 1821],
  ["authorizer.path('/healthz').check('get').allowed()", 350_003, 350_003, 350_003],
  [`${check}.allowed()`, 350_007, 350_007, 350_007],
  [`${check}.error()`, 350_007, 350_007, 350_007],
  ['quantity("12Mi")', 1, 1, 1],
  ['quantity("200M") == quantity("200M")', 3, 3, 3],
  ['quantity("200M").compareTo(quantity("0.2G")) > 0', 4, 4, 4],
  ['quantity("50k").add(quantity("20")) == quantity("50.02k")', 5, 5, 5],
  ['quantity("50k").add(20).sub(quantity("100k")).sub(-50000).asInteger() > 0', 7, 7, 7],
  ['quantity("50.703k").asApproximateFloat() > 0.0', 3, 3, 3],
  ['format.named("dns1123subdomain")', 1, 1, 1],
  ['format.named("dns1123Subdomain").value().validate("my-name")', 34, 34, 17],
  ['format.named("dns1123Label").value().validate("my-name")', 34, 34, 10],
  ['semver("1234.56789012345.67890123456789")', 4, 4, 4],
  ['semver("1.2.3").minor()', 2, 2, 2],
  ['semver("1.0.0").isLessThan(semver("1.1.0"))', 3, 3, 3],
  ["{'a': 1, 'b': 2}.transformMap(k, v, v + 1)", 71, 71, 71 - 60],
  ["{'a': 1, 'b': 2}.transformMap(k, v, v < 5, v + 1)", 67, 75, 75 - 60],
  ['[1, 2].transformList(i, v, v + 1)', 49, 49, 49 - 20],
  ['[1, 2].all(i, v, v > 0)', 17, 21, 21 - 10],
]

for (const [expression, min, max, actual] of rows) {
  test(`CRD-02: cost of ${expression}`, () => {
    const { program, estimateCost } = compile(expression)
    const { cost, error } = program.evaluate(new Map([['authorizer', authorizer]]), { costLimit: perCallLimit })
    assert.deepEqual({ estimate: estimateCost(upstreamSizes), cost, error }, { estimate: range(min, max), cost: actual, error: undefined })
  })
}

const functions: [expression: string, min: number, max: number][] = [
  // One for each item, and for strings a tenth of each character.
  ['texts.isSorted()', 1, 1 + 10 * (1 + 2)],
  ['texts.indexOf("a")', 1, 1 + 10 * (1 + 2)],
  ['text.indexOf("a")', 1, 1 + 10],
  ['ip(text) == ip(text)', 3, 1 + 10 + 1 + 10 + 1],
  ['isCIDR(text)', 1, 1 + 10],
  ['cidr("10.0.0.0/8").containsIP(text)', 1 + 1 + 1, 1 + 1 + 4 + 10],
  ['url("https://example.com/path") == url("https://example.com/path")', 1 + 3 + 3, 3 + 3 + 3],
]

for (const [expression, min, max] of functions) {
  test(`CRD-02: estimated cost of ${expression} from the sizes of a schema`, () => {
    const { estimateCost } = compile(expression, { text: stringType, texts: listType(stringType) })
    const estimate = estimateCost(({ path }) => {
      const sizes: Record<string, number> = { text: 100, texts: 10, 'texts.@items': 20 }
      const size = sizes[path?.join('.') ?? '']
      return size === undefined ? undefined : range(0, size)
    })
    assert.deepEqual(estimate, range(min, max))
  })
}
