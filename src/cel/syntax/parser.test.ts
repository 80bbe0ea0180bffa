/** CRD-02: the grammar: what becomes which tree, and upstream's messages for what is none (cel-go parser/parser_test.go). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatIssues } from '../issues.ts'
import type { Value } from '../values.ts'
import { Double, Uint } from '../values.ts'
import type { Expression } from './ast.ts'
import { SyntaxFault, tokenize } from './lexer.ts'
import { macroTable, standardMacros } from './macro.ts'
import { parse } from './parser.ts'

const macros = macroTable(standardMacros)

/** The tree as nested calls. */
function show(node: Expression): string {
  const all = (nodes: readonly Expression[]): string => nodes.map(show).join(', ')
  switch (node.kind) {
    case 'literal':
      return showValue(node.value)
    case 'identifier':
      return node.name
    case 'select':
      return `${show(node.operand)}.${node.field}${node.testOnly ? '~test' : ''}`
    case 'call':
      return `${node.target ? `${show(node.target)}.` : ''}${node.function}(${all(node.args)})`
    case 'list':
      return `[${node.elements.map((item, i) => (node.optionalIndices.includes(i) ? `?${show(item)}` : show(item))).join(', ')}]`
    case 'map':
      return `{${node.entries.map(({ key, value, optional }) => `${optional ? '?' : ''}${show(key)}: ${show(value)}`).join(', ')}}`
    case 'struct':
      return `${node.typeName}{${node.fields.map(({ name, value, optional }) => `${optional ? '?' : ''}${name}: ${show(value)}`).join(', ')}}`
    case 'comprehension':
      return `loop(${node.iterVar} in ${show(node.iterRange)}, ${show(node.accuInit)}, ${show(node.loopCondition)}, ${show(node.loopStep)}, ${show(node.result)})`
  }
}

function showValue(value: Value): string {
  if (value instanceof Double) return `${value.value}d`
  if (value instanceof Uint) return `${value.value}u`
  return value instanceof Uint8Array ? `b${[...value].join(',')}` : (JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? `${part}n` : part)) ?? '')
}

const trees: [source: string, tree: string][] = [
  ['1 + 2 * 3 - 4', '_-_(_+_(1, _*_(2, 3)), 4)'],
  ['(1 + 2) * 3', '_*_(_+_(1, 2), 3)'],
  ['a || b && c', '_||_(a, _&&_(b, c))'],
  ['a && b && c && d', '_&&_(_&&_(a, b), _&&_(c, d))'],
  ['a == b != c', '_!=_(_==_(a, b), c)'],
  ['a ? b : c ? d : e', '_?_:_(a, b, _?_:_(c, d, e))'],
  ['a in b', '@in(a, b)'],
  ['!!a', 'a'],
  ['!!!a', '!_(a)'],
  ['--a', 'a'],
  ['-a.b', '-_(a.b)'],
  ['-1', '-1'],
  ['4--4', '_-_(4, -4)'],
  ['-9223372036854775808', '"-9223372036854775808n"'],
  ['0xFF + 1u + 1.5e3 + .5', '_+_(_+_(_+_(255, 1u), 1500d), 0.5d)'],
  ['a.b[c].d(e, f)', '_[_](a.b, c).d(e, f)'],
  ['a.?b[?c]', '_[?_](_?._(a, "b"), c)'],
  ['.a.b', '.a.b'],
  ['f()', 'f()'],
  ['[1, ?a, ]', '[1, ?a]'],
  ['{?"a": 1, b: 2,}', '{?"a": 1, b: 2}'],
  ['a.b.T{x: 1, ?y: z}', 'a.b.T{x: 1, ?y: z}'],
  ['a.if', 'a.if'],
  ["'a\\n\\x41\\u00e9\\U0001F600\\101' + r'\\n'", '_+_("a\\nAé😀A", "\\\\n")'],
  ['"""a"b\nc""" + \'\'\'d\'e\'\'\'', '_+_("a\\"b\\nc", "d\'e")'],
  ['b\'\\xff\\377é\' + B"a"', '_+_(b255,255,195,169, b97)'],
  ['1 // one\n + 2', '_+_(1, 2)'],
  ['has(a.b)', 'a.b~test'],
  ['a.all(x, x > 0)', 'loop(x in a, true, @not_strictly_false(@result), _&&_(@result, _>_(x, 0)), @result)'],
  ['a.exists(x, p)', 'loop(x in a, false, @not_strictly_false(!_(@result)), _||_(@result, p), @result)'],
  ['a.exists_one(x, p)', 'loop(x in a, 0, true, _?_:_(p, _+_(@result, 1), @result), _==_(@result, 1))'],
  ['a.map(x, p, t)', 'loop(x in a, [], true, _?_:_(p, _+_(@result, [t]), @result), @result)'],
  ['a.filter(x, p)', 'loop(x in a, [], true, _?_:_(p, _+_(@result, [x]), @result), @result)'],
  ['a.map(x)', 'a.map(x)'],
]
for (const [source, tree] of trees) test(`CRD-02: ${source}`, () => assert.equal(show(parse(source, macros)), tree))

const primary = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
const faults: [source: string, line: number, column: number, message: string][] = [
  ['', 1, 1, `Syntax error: mismatched input '<EOF>' expecting ${primary}`],
  ['a ==', 1, 5, `Syntax error: mismatched input '<EOF>' expecting ${primary}`],
  ['a b', 1, 3, "Syntax error: extraneous input 'b' expecting <EOF>"],
  ['1 + 2\n3 +', 2, 1, "Syntax error: mismatched input '3' expecting <EOF>"],
  ['(a', 1, 3, "Syntax error: mismatched input '<EOF>' expecting ')'"],
  ['{', 1, 2, `Syntax error: mismatched input '<EOF>' expecting ${primary.replace("'(', '.', '-', '!',", "'}', '(', '.', ',', '-', '!', '?',")}`],
  ['{"a": 1}."a"', 1, 10, 'Syntax error: no viable alternative at input \'."a"\''],
  ['a # b', 1, 3, "Syntax error: token recognition error at: '#'"],
  ['"abc', 1, 1, "Syntax error: token recognition error at: '\"abc'"],
  ['0xFFFFFFFFFFFFFFFFF', 1, 1, 'invalid int literal'],
  ['18446744073709551616u', 1, 1, 'invalid uint literal'],
  ['1.99e90000009', 1, 1, 'invalid double literal'],
  ["'\\ud800'", 1, 1, 'invalid unicode code point'],
  ["'\\400'", 1, 1, 'unable to unescape string'],
  ["b'\\u0041'", 1, 1, 'unable to unescape string'],
  ['for', 1, 1, 'reserved identifier: for'],
  ['has(m)', 1, 5, 'invalid argument to has() macro'],
  ['[].all(__result__, true)', 1, 8, 'iteration variable overwrites accumulator variable'],
  ['[].all(a.b, true)', 1, 9, 'argument must be a simple name'],
  ['[].map(1, true)', 1, 8, 'argument is not an identifier'],
]
for (const [source, line, column, message] of faults) {
  test(`CRD-02: ${JSON.stringify(source)} is refused: ${message}`, () => {
    assert.throws(
      () => parse(source, macros),
      (fault) => {
        assert.ok(fault instanceof SyntaxFault)
        const text = formatIssues(source, [fault])
        assert.equal(text.split('\n')[0], `ERROR: <input>:${line}:${column}: ${message}`)
        assert.equal(text.split('\n').at(-1), ` | ${'.'.repeat(column - 1)}^`)
        return true
      },
    )
  })
}

test('CRD-02: what nests deeply or is too long is refused, and quickly', () => {
  const refused = (source: string): string | undefined => {
    try {
      parse(source, macros)
      return undefined
    } catch (fault) {
      return fault instanceof SyntaxFault ? fault.message : 'crash'
    }
  }
  assert.equal(refused('['.repeat(90_000)), 'max recursion depth exceeded')
  assert.equal(refused(`${'1+'.repeat(40_000)}1`), 'max recursion depth exceeded')
  assert.equal(refused(`a${'.b'.repeat(40_000)}`), 'max recursion depth exceeded')
  assert.equal(refused(`'${'x'.repeat(100_000)}'`), 'expression code point size exceeds limit: size: 100002, limit 100000')
  assert.equal(refused(`${'a||'.repeat(30_000)}a`), undefined)
  assert.equal(refused(`${'!'.repeat(90_000)}a`), undefined)
})

test('CRD-02: carets stand below wide characters', () => {
  const source = "'é' + $"
  assert.throws(
    () => tokenize(source),
    (fault: SyntaxFault) => formatIssues(source, [fault]).endsWith(' | .．....^'),
  )
})

test('CRD-02: a long list of faults is cut', () => {
  const issues = Array.from({ length: 120 }, (_, offset) => ({ message: 'm', offset }))
  assert.ok(formatIssues('x'.repeat(200), issues).endsWith('\n20 more errors were truncated'))
})
