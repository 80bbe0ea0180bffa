/** CRD-02: types that the checker infers, and its messages, which are upstream's (cel-go checker/checker_test.go). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bindings, twoVariableComprehensions } from '../library/comprehensions.ts'
import { lists } from '../library/lists.ts'
import { optionals } from '../library/optionals.ts'
import { standardEnvironment } from '../standardEnvironment.ts'
import {
  boolType,
  durationType,
  dynType,
  formatType,
  intType,
  listType,
  mapType,
  nullType,
  objectType,
  stringType,
  timestampType,
  wrapperType,
} from '../types.ts'

const inner = objectType('Inner', { text: stringType, when: timestampType, span: durationType })
const environment = standardEnvironment.extend({
  variables: {
    self: objectType('Self', { n: intType, inner, list: listType(inner), map: mapType(stringType, intType), any: dynType }),
    x: intType,
    'a.b': boolType,
    maybe: wrapperType(intType),
  },
  types: [inner],
  libraries: [optionals, twoVariableComprehensions, bindings, lists],
  homogeneousLiterals: true,
})

/** The type, or all messages. */
function check(expression: string): string {
  const compiled = environment.compile(expression)
  return compiled.ok ? formatType(compiled.checked.resultType) : compiled.issues.map(({ offset, message }) => `${offset}: ${message}`).join('\n')
}

const rows: [expression: string, wanted: string][] = [
  ['self.n', 'int'],
  ['self.list.map(i, i.text)', 'list(string)'],
  ['self.list[0].when', 'timestamp'],
  ['self.map["a"]', 'int'],
  ['self.map.a', 'int'],
  ['self.any.whatever[0].deep', 'dyn'],
  ['a.b', 'bool'],
  ['[]', 'list(dyn)'],
  ['{}', 'map(dyn, dyn)'],
  ['[[], [1]]', 'list(list(int))'],
  ['[self.any, 1]', 'list(dyn)'],
  ['true ? 1 : dyn("a")', 'dyn'],
  ['type(1)', 'type(int)'],
  ['self.list.filter(i, i.text == "a")', 'list(Inner)'],
  ['self.map.map(k, k)', 'list(string)'],
  ['self.map.transformMap(k, v, string(v))', 'map(string, string)'],
  ['self.list.transformList(i, v, i)', 'list(int)'],
  ['self.?n', 'optional_type(int)'],
  ['self.?inner.text', 'optional_type(string)'],
  ['self.?map[?"a"].orValue(1)', 'int'],
  ['optional.none().orValue(1)', 'int'],
  ['cel.bind(y, x + 1, [y])', 'list(int)'],
  ['Inner{text: "a"}', 'Inner'],
  ['Inner{text: "a"}.when - self.inner.when', 'duration'],
  ['self.list.sortBy(i, i.when)', 'list(Inner)'],
  ['maybe == null || maybe > 1', 'bool'],
  ['null', 'null'],
  ['x < 1.5', 'bool'],
  ['[1].exists(x, x == 1) && x == 2', 'bool'],
  ['.x', 'int'],
  ['self.nope', "4: undefined field 'nope'"],
  ['self.n.nope', "6: type 'int' does not support field selection"],
  ['y', "0: undeclared reference to 'y' (in container '')"],
  ['self.n + "a"', "7: found no matching overload for '_+_' applied to '(int, string)'"],
  ['x.startsWith("a")', "12: found no matching overload for 'startsWith' applied to 'int.(string)'"],
  ['nope(x)', "4: undeclared reference to 'nope' (in container '')"],
  ['x.nope()', "6: undeclared reference to 'nope' (in container '')"],
  ['x && true', "0: expected type 'bool' but found 'int'"],
  ['1 ? 2 : 3', "2: found no matching overload for '_?_:_' applied to '(int, int, int)'"],
  ['true ? 1 : "a"', "5: found no matching overload for '_?_:_' applied to '(bool, int, string)'"],
  ['[1, "a"]', "4: expected type 'int' but found 'string'"],
  ['{1: 1, "a": 1}', "7: expected type 'int' but found 'string'"],
  ['x.all(y, true)', "0: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)"],
  ['self.list.all(i, i.text)', "18: expected type 'bool' but found 'string'"],
  ['Inner{nope: 1}', "10: undefined field 'nope'"],
  ['Inner{text: 1}', "10: expected type of field 'text' is 'string' but provided type is 'int'"],
  ['Nope{a: 1}', "4: undeclared reference to 'Nope' (in container '')"],
  ['int{a: 1}', "3: 'int' is not a message type"],
  ['x{a: 1}', "1: 'int' is not a type"],
  ['self.inner == self.n', "11: found no matching overload for '_==_' applied to '(Inner, int)'"],
  ['[?1]', "2: expected type 'optional_type(int)' but found 'int'"],
  ['self.nope.deep + nope', "4: undefined field 'nope'\n17: undeclared reference to 'nope' (in container '')"],
]
for (const [expression, wanted] of rows) test(`CRD-02: the type of ${expression}`, () => assert.equal(check(expression), wanted))

test('CRD-02: literals of mixed types pass where the environment allows them', () => {
  const mixed = environment.extend({ homogeneousLiterals: false }).compile('[1, "a"]')
  assert.ok(mixed.ok)
  assert.equal(formatType(mixed.checked.resultType), 'list(dyn)')
})

test('CRD-02: an extension adds to its environment and leaves it alone', () => {
  const extended = environment.extend({ variables: { extra: nullType } })
  assert.equal(extended.compile('extra == null && x == 1').ok, true)
  assert.equal(environment.compile('extra').ok, false)
})
