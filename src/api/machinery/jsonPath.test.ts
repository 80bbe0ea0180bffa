import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileJsonPath, JsonPathError } from './jsonPath.ts'

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
