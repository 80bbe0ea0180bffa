import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileFirstOfJsonPath, compileJsonPath, JsonPathError } from './jsonPath.ts'

const value = {
  metadata: { name: 'n', labels: { 'app.kubernetes.io/name': 'web' } },
  spec: {
    ports: [80, 443, 8080],
    list: [
      { name: 'a', on: true },
      { name: 'b', weight: 3 },
    ],
  },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
}

const cases: readonly (readonly [string, unknown[]])[] = [
  ['.metadata.name', ['n']],
  ['{.metadata.name}', ['n']],
  ['.metadata.labels.app\\.kubernetes\\.io/name', ['web']],
  [".metadata.labels['app.kubernetes.io/name']", ['web']],
  ['.spec.ports[0]', [80]],
  ['.spec.ports[-1]', [8080]],
  ['.spec.ports[0,2]', [80, 8080]],
  ['.spec.ports[1:]', [443, 8080]],
  ['.spec.ports[*]', [80, 443, 8080]],
  ['.spec.list[*].name', ['a', 'b']],
  ['.spec.list[?(@.weight>2)].name', ['b']],
  ['.spec.list[?(@.on==true)].name', ['a']],
  ['.spec.list[?(@.weight)].name', ['b']],
  ['.status.conditions[?(@.type=="Ready")].status', ['True']],
  ["$.status.conditions[?(@.type=='Gone')].status", []],
  ['..name', ['n', 'a', 'b']],
  ['.spec.absent.deeper', []],
  ['.metadata.name.length', []],
]
for (const [path, want] of cases) test(`CRD-03 ${path}`, () => assert.deepEqual(compileJsonPath(path)(value), want))

for (const path of ['.a[', '.a[x]', 'a b', '.a[1:2:x]']) {
  test(`CRD-03 ${path} is no path`, () => assert.throws(() => compileJsonPath(path), JsonPathError))
}

/** `{a: {a: ... }}` so many times. */
const nested = (depth: number): unknown => (depth === 0 ? 'end' : { a: nested(depth - 1) })

test('CRD-03 descents that follow each other give each value once', () => assert.deepEqual(compileJsonPath('..a..a')(nested(3)), [{ a: 'end' }, 'end']))

for (const path of ['..a'.repeat(7), `${'..a'.repeat(30)}.none`, `${'..[0,0]'.repeat(40)}.none`, `..list[?(@${'..a'.repeat(7)}=="none")]`]) {
  test(`CRD-03 ${path.slice(0, 30)} over a deep object ends soon`, { timeout: 10_000 }, () => {
    const object = { ...(nested(90) as object), list: Array(100).fill(nested(90)), b: [[[[nestedLists(60)]]]] }
    const began = performance.now()
    compileJsonPath(path)(object)
    compileFirstOfJsonPath(path)(object)
    assert.ok(performance.now() - began < 5000)
  })
}
const nestedLists = (depth: number): unknown => (depth === 0 ? 'end' : [nestedLists(depth - 1)])

test('CRD-03 the first result is found before the rest is looked at', () => {
  const object = { a: 1, rest: Array(1_000_000).fill({ a: 2 }) }
  assert.equal(compileFirstOfJsonPath('..a')(object), 1)
  assert.deepEqual(compileJsonPath('..a')(object), [], 'all of them are too many')
})

test('CRD-03 a path of very many steps finds its value', () => {
  assert.equal(compileFirstOfJsonPath('.a'.repeat(5000))(nested(5000)), 'end')
  assert.throws(() => compileJsonPath(`${'[?(@'.repeat(100)}${')]'.repeat(100)}`), JsonPathError)
})
