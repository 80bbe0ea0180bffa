/**
 * CEL's smaller Kubernetes libraries (L1): lists (isSorted, sum, min, max, indexOf, lastIndexOf), regex (find, findAll) and JSON patch keys.
 * Upstream: apiserver/pkg/cel/library/lists.go, regex.go, jsonpatch.go (v1.36).
 */
import type { FunctionDeclaration, Library } from '#cel/declarations'
import { declare, member, overload, prepared } from '#cel/declarations'
import { compare, equal } from '#cel/equality'
import { addInts, arithmetic } from '#cel/library/arithmetic'
import { itemsOf } from '#cel/library/lists'
import { patternCompiler } from '#cel/regularExpression'
import type { CelInt, ListValue, Value } from '#cel/values'
import { ArrayList, Double, Duration, EvaluationError, Uint } from '#cel/values'

const comparable = ['int', 'uint', 'double', 'bool', 'duration', 'timestamp', 'string', 'bytes'] as const

const compared = (a: Value, b: Value): number => {
  const order = compare(a, b)
  if (order === undefined) throw new EvaluationError('no such overload')
  return order
}

function isSorted(list: ListValue): boolean {
  const items = itemsOf(list)
  return items.every((item, i) => i === 0 || compared(items[i - 1]!, item) <= 0)
}

/** The first of the items than which none is better. */
const best =
  (name: string, isBetter: (order: number) => boolean) =>
  (list: ListValue): Value => {
    const [first, ...rest] = itemsOf(list)
    if (first === undefined) throw new EvaluationError(`${name} called on empty list`)
    return rest.reduce((current, item) => (isBetter(compared(item, current)) ? item : current), first)
  }

type Add = (a: Value, b: Value) => Value
const addition = (id: string): Add => arithmetic[0]!.overloads.find((one) => one.id === id)!.invoke as Add
const sums: Readonly<Record<string, { zero: Value; add: Add }>> = {
  int: { zero: 0, add: addInts as Add },
  uint: { zero: new Uint(0n), add: addition('add_uint64') },
  double: { zero: new Double(0), add: addition('add_double') },
  duration: { zero: new Duration(0n), add: addition('add_duration_duration') },
}

const indexOf = (list: ListValue, item: Value): number => itemsOf(list).findIndex((other) => equal(other, item))
const lastIndexOf = (list: ListValue, item: Value): number => itemsOf(list).findLastIndex((other) => equal(other, item))

const perType = (name: string, id: (type: string) => string, result: (type: string) => string, run: (list: ListValue) => Value): FunctionDeclaration =>
  declare(name, ...comparable.map((type) => member(id(type), `(list(${type})) -> ${result(type)}`, run)))

export const listsLibrary: Library = {
  functions: [
    perType(
      'isSorted',
      (type) => `list_${type}_is_sorted_bool`,
      () => 'bool',
      isSorted,
    ),
    perType(
      'max',
      (type) => `list_${type}_max_${type}`,
      (type) => type,
      best('max', (order) => order > 0),
    ),
    perType(
      'min',
      (type) => `list_${type}_min_${type}`,
      (type) => type,
      best('min', (order) => order < 0),
    ),
    declare(
      'sum',
      ...Object.entries(sums).map(([type, { zero, add }]) =>
        member(`list_${type}_sum_${type}`, `(list(${type})) -> ${type}`, (list: ListValue) => itemsOf(list).reduce(add, zero)),
      ),
    ),
    declare('indexOf', member('list_a_index_of_int', '(list(A), A) -> int', indexOf)),
    declare('lastIndexOf', member('list_a_last_index_of_int', '(list(A), A) -> int', lastIndexOf)),
  ],
}

function compiler(): ReturnType<typeof patternCompiler> {
  const compile = patternCompiler()
  return (pattern) => {
    try {
      return compile(pattern)
    } catch (error) {
      throw error instanceof EvaluationError ? new EvaluationError(`Illegal regex: ${error.message}`) : error
    }
  }
}

function find(): (text: string, pattern: string) => string {
  const compile = compiler()
  return (text, pattern) => {
    const matcher = compile(pattern).matcher(text)
    return matcher.find() ? (matcher.group() ?? '') : ''
  }
}

/** The limit is on the number of matches; all when negative. */
function findAll(): (text: string, pattern: string, limit?: CelInt) => ListValue {
  const compile = compiler()
  return (text, pattern, limit = -1) => {
    const matcher = compile(pattern).matcher(text)
    const found: string[] = []
    while ((limit < 0 || found.length < limit) && matcher.find()) found.push(matcher.group() ?? '')
    return new ArrayList(found)
  }
}

export const regexLibrary: Library = {
  functions: [
    declare('find', prepared(member, 'string_find_string', '(string, string) -> string', find)),
    declare(
      'findAll',
      prepared(member, 'string_find_all_string', '(string, string) -> list(string)', findAll),
      prepared(member, 'string_find_all_string_int', '(string, string, int) -> list(string)', findAll),
    ),
  ],
}

export const jsonPatchLibrary: Library = {
  functions: [
    declare(
      'jsonpatch.escapeKey',
      overload('string_jsonpatch_escapeKey_string', '(string) -> string', (key: string) => key.replace(/[~/]/g, (part) => (part === '~' ? '~0' : '~1'))),
    ),
  ],
}
