/**
 * Small requests with a large cost: bodies, selectors, patterns and expressions whose handling could take all memory or all time. Each is answered
 * below 500; meanwhile another client is served within a second, and afterwards memory is what it was.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type RawAnswer, type RawRequest, rawHttp } from '../../integration/api/rawHttp.ts'
import { type ServerUnderAttack, startServerUnderAttack } from './serverUnderAttack.ts'

const heldMoreAtMost = 48 * 1024 * 1024
const mostMs = 1_000
const configMaps = '/api/v1/namespaces/default/configmaps'
const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const policies = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies'
const claims = '/apis/resource.k8s.io/v1/namespaces/default/resourceclaims'
const webhooks = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'

let server: ServerUnderAttack
before(async () => {
  server = await startServerUnderAttack()
})
after(() => server.stop())

const repeat = (text: string, times: number) => text.repeat(times)
const list = (count: number, make: (index: number) => string) => Array.from({ length: count }, (_, index) => make(index)).join(',')
const post = (path: string, body: string | Buffer, contentType = 'application/json', headers: Record<string, string> = {}): RawRequest => ({
  ...{ method: 'POST', path, body, headers: { 'content-type': contentType, ...headers } },
})
const get = (path: string): RawRequest => ({ path })
const configMap = (more: string, metadata = '') => `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"bomb"${metadata}},${more}}`

/** A definition of its own whose `spec` has this schema. */
function definition(plural: string, spec: object): string {
  const schema = { type: 'object', properties: { spec } }
  const versions = [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }]
  const names = { plural, singular: plural, kind: plural, listKind: `${plural}list` }
  return JSON.stringify({ metadata: { name: `${plural}.bombs.dev` }, spec: { group: 'bombs.dev', scope: 'Namespaced', names, versions } })
}

function policy(name: string, expression: string): string {
  const resourceRules = [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'] }]
  return JSON.stringify({ metadata: { name }, spec: { failurePolicy: 'Ignore', matchConstraints: { resourceRules }, validations: [{ expression }] } })
}

function webhook(name: string, expression: string): string {
  const rules = [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['configmaps'] }]
  const clientConfig = { url: 'https://127.0.0.1:1/' }
  const one = { name: `${name}.bombs.dev`, rules, clientConfig, sideEffects: 'None', admissionReviewVersions: ['v1'], failurePolicy: 'Ignore' }
  return JSON.stringify({ metadata: { name }, webhooks: [{ ...one, matchConditions: [{ name: 'a', expression }] }] })
}

/** Each anchor is ten of the one before. */
const aliases = ['a: &a [x,x,x,x,x,x,x,x,x,x]']
for (const [index, letter] of [...'bcdefghi'].entries()) aliases.push(`${letter}: &${letter} [${repeat(`*${'abcdefgh'[index]},`, 10)}]`)
const evil = '(([a-z]+)*)*$'
const nested = (depth: number, variable: string): string => (depth === 0 ? 'true' : `${variable}.all(k${depth}, ${nested(depth - 1, variable)})`)

const joined = (count: number, term: (index: number) => string) => Array.from({ length: count }, (_, index) => term(index)).join(' && ')
const manyRules = { 'x-kubernetes-validations': Array.from({ length: 300 }, (_, i) => ({ rule: joined(50, (j) => `self != '${i}-${j}'`) })) }

/** As many requests as there may be, each with so many selectors. */
function claimOf(selectorsEach: number, expression: (i: number, j: number) => string): string {
  const selectors = (i: number) => Array.from({ length: selectorsEach }, (_, j) => ({ cel: { expression: expression(i, j) } }))
  const requests = Array.from({ length: 32 }, (_, i) => ({ name: `r${i}`, exactly: { deviceClassName: 'a', selectors: selectors(i) } }))
  return JSON.stringify({ metadata: { generateName: 'bomb' }, spec: { devices: { requests } } })
}

/** Selectors of nearly the longest length. */
const claim = (selectorsEach: number) => claimOf(selectorsEach, (i, j) => joined(320, (k) => `device.driver != '${i}-${j}-${k}'`))
/** Selectors whose patterns have copies of counted repetitions. */
const patternClaim = (repetitions: number) => claimOf(9, (i, j) => `device.driver.matches('x${i}-${j}${repeat('(a?){50}', repetitions)}')`)

/** [what, requests, the answers that are right]. */
const cases: readonly (readonly [string, () => readonly RawRequest[], readonly number[]])[] = [
  ['JSON of 10^5 levels', () => [post(configMaps, configMap(`"x":${repeat('[', 100_000)}${repeat(']', 100_000)}`))], [400]],
  ['JSON of 10^5 levels in an object', () => [post(configMaps, configMap(`"x":${repeat('{"a":', 100_000)}1${repeat('}', 100_000)}`))], [400]],
  ['YAML of 10^4 levels', () => [post(configMaps, `x: ${repeat('[', 10_000)}${repeat(']', 10_000)}`, 'application/yaml')], [400]],
  ['YAML whose aliases multiply', () => [post(configMaps, aliases.join('\n'), 'application/yaml')], [400, 413]],
  ['10^4 keys', () => [post(configMaps, configMap(`"data":{${list(10_000, (i) => `"${i}":""`)}}`))], [201]],
  ['3 megabytes of keys', () => [post(configMaps, configMap(`"data":{${list(340_000, (i) => `"${i}":""`)}}`))], [413]],
  ['10^4 labels', () => [post(configMaps, configMap('"data":{}', `,"labels":{${list(10_000, (i) => `"l${i}":"v"`)}}`))], [201]],
  ['a body in gzip', () => [post(configMaps, gzipSync(Buffer.alloc(50_000_000, ' ')), 'application/json', { 'content-encoding': 'gzip' })], [400, 415]],
  ['a number of 10^5 digits', () => [post(configMaps, configMap(`"immutable":${repeat('9', 100_000)}`))], [400]],
  [
    'selectors of 10^4 terms',
    () => [get(`${configMaps}?labelSelector=${repeat('a!=b,', 10_000)}c`), get(`${configMaps}?labelSelector=a+in+(${repeat('b,', 10_000)}c)`)],
    [200, 400, 431],
  ],
  ['field selectors of 10^4 terms', () => [get(`${configMaps}?fieldSelector=${repeat('metadata.name!=b,', 10_000)}metadata.name!=c`)], [200, 400, 431]],
  ['a continue token of 10^5 letters', () => [get(`${configMaps}?limit=1&continue=${repeat('a', 100_000)}`)], [400, 410]],
  ['10^4 parameters', () => [get(`${configMaps}?${repeat('a=b&', 10_000)}`)], [200]],
  [
    'a pattern that would backtrack without end',
    () => [
      post(crds, definition('patterns', { type: 'string', pattern: evil })),
      ...Array.from({ length: 20 }, () => post('/apis/bombs.dev/v1/namespaces/default/patterns', patterned(`${repeat('a', 50_000)}!`))),
    ],
    [201, 422],
  ],
  ['a pattern that repeats repetitions', () => [post(crds, definition('repeats', { type: 'string', pattern: '((a{1000}){1000}){1000}' }))], [422]],
  [
    'a rule for lists of lists without bounds',
    () => [
      post(
        crds,
        definition('rules', {
          ...{ type: 'array', items: { type: 'string' } },
          'x-kubernetes-validations': [{ rule: 'self.all(a, self.all(b, self.all(c, a != b || b != c)))' }],
        }),
      ),
    ],
    [422],
  ],
  [
    'a policy with loops in loops over all there is',
    () => [
      post(policies, policy('loops', `has(object.data) ? ${nested(6, 'object.data')} : true`)),
      post('/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings', binding('loops')),
      ...Array.from({ length: 5 }, () => post(configMaps, configMap(`"data":{${list(300, (i) => `"k${i}":""`)}}`))),
    ],
    [201, 422],
  ],
  [
    'a condition with a pattern that would backtrack without end',
    () => [
      post(webhooks, webhook('conditions', `object.metadata.name.matches('${evil}') && has(object.data) && ${nested(5, 'object.data')}`)),
      ...Array.from({ length: 5 }, () => post(configMaps, configMap(`"data":{${list(300, (i) => `"k${i}":""`)}}`))),
    ],
    [201, 422],
  ],
  ['an expression of 10^4 brackets', () => [post(policies, policy('brackets', `${repeat('(', 10_000)}true${repeat(')', 10_000)}`))], [422]],
  ['a claim whose patterns have 10^5 instructions', () => [post(claims, patternClaim(800))], [422]],
  ['a claim of hundreds of patterns with 9,000 instructions', () => [post(claims, patternClaim(60))], [201]],
  ['a claim of hundreds of long selectors', () => [post(claims, claim(9))], [201]],
  ['a definition of hundreds of long rules', () => [post(crds, definition('manyrules', { type: 'string', maxLength: 9, ...manyRules }))], [201]],
  ['an expression of 10^5 terms', () => [post(policies, policy('terms', `true${repeat(' && true', 100_000)}`))], [422]],
]

function patterned(spec: string): string {
  return JSON.stringify({ apiVersion: 'bombs.dev/v1', kind: 'patterns', metadata: { generateName: 'a' }, spec })
}

function binding(policyName: string): string {
  return JSON.stringify({ metadata: { name: policyName }, spec: { policyName, validationActions: ['Deny'] } })
}

for (const [name, requests, wanted] of cases) {
  test(`API-02 ${name}`, { timeout: 60_000 }, async (t) => {
    const sent = requests()
    const before = await server.heldBytes()
    const answers: RawAnswer[] = []
    const started = performance.now()
    const { p99 } = await server.beside(async () => {
      for (const request of sent) answers.push(await rawHttp({ ...server, token: 'admin' }, request))
    })
    t.diagnostic(`${[...new Set(answers.map(({ status }) => status))]} in ${Math.round(performance.now() - started)} ms; p99 beside it ${Math.round(p99)} ms`)
    for (const { status, body } of answers) assert.ok(wanted.includes(status), `${status} ${body.toString().slice(0, 500)}`)
    assert.ok(p99 < mostMs, `p99 ${p99} ms`)
    assert.ok((await server.heldBytes()) - before < heldMoreAtMost)
  })
}
