/**
 * The strings extension in the version that Kubernetes has (2): charAt, indexOf, replace, split, join, format and others (L1, pure).
 * Positions count code points. Upstream: cel-go ext/strings.go (v0.26).
 */
import { bareMap } from '#base/bareMap'

import type { Library } from '../declarations.ts'
import { declare, member, overload } from '../declarations.ts'
import { codePointCount } from '../text.ts'
import type { CelInt, ListValue } from '../values.ts'
import { ArrayList, EvaluationError } from '../values.ts'
import { format } from './stringFormat.ts'

/** The text cut into code points; as itself, which can be indexed likewise, when no character takes two units. */
const points = (text: string): ArrayLike<string> & { slice(start: number, end?: number): string | string[] } =>
  codePointCount(text) === text.length ? text : [...text]

const joined = (part: string | string[]): string => (typeof part === 'string' ? part : part.join(''))
const outOfRange = (index: CelInt): EvaluationError => new EvaluationError(`index out of range: ${index}`)

function charAt(text: string, index: CelInt): string {
  const characters = points(text)
  if (index < 0 || index > characters.length) throw outOfRange(index)
  return characters[Number(index)] ?? ''
}

/** Where in code points a place in UTF-16 units is. */
const pointsBefore = (text: string, unit: number): number => (unit < 0 ? -1 : codePointCount(text.slice(0, unit)))
/** Where in UTF-16 units a place in code points is. */
const unitsBefore = (text: string, point: number): number => joined(points(text).slice(0, point)).length

function indexOf(text: string, part: string, offset: CelInt = 0): CelInt {
  if (part === '') return offset
  if (offset < 0) throw outOfRange(offset)
  if (offset >= codePointCount(text)) return -1
  return pointsBefore(text, text.indexOf(part, unitsBefore(text, Number(offset))))
}

function lastIndexOf(text: string, part: string, offset?: CelInt): CelInt {
  const length = codePointCount(text)
  if (part === '') return offset ?? length
  if (offset === undefined) return pointsBefore(text, text.lastIndexOf(part))
  if (offset < 0) throw outOfRange(offset)
  if (offset >= length) return -1
  return pointsBefore(text, text.lastIndexOf(part, unitsBefore(text, Number(offset))))
}

function substring(text: string, start: CelInt, end?: CelInt): string {
  const characters = points(text)
  const { length } = characters
  if (end !== undefined && start > end) throw new EvaluationError(`invalid substring range. start: ${start}, end: ${end}`)
  if (start < 0 || start > length) throw outOfRange(start)
  if (end !== undefined && end > length) throw outOfRange(end)
  return joined(characters.slice(Number(start), end === undefined ? length : Number(end)))
}

/** The longest text that replace and join may make, in UTF-16 units: far above every budget, below what would harm the process. */
const maxResultLength = 1 << 26

function limited(length: number): void {
  if (length > maxResultLength) throw new EvaluationError('result string exceeds size limit')
}

/** @param limit how many occurrences; all when negative. */
function replace(text: string, old: string, replacement: string, limit: CelInt = -1): string {
  const pieces = old === '' ? [...text] : text.split(old)
  // Replacing nothing puts the replacement around every character.
  if (old === '') pieces.unshift('')
  const gaps = old === '' ? pieces.length : pieces.length - 1
  const count = limit < 0 || limit > gaps ? gaps : Number(limit)
  limited(text.length + count * replacement.length)
  let out = pieces[0]!
  for (let i = 1; i < pieces.length; i++) out += (i <= count ? replacement : old) + pieces[i]!
  return old === '' && count === gaps ? out + replacement : out
}

/** @param limit at most so many parts; all when negative. */
function split(text: string, separator: string, limit: CelInt = -1): ListValue {
  if (limit === 0) return new ArrayList([])
  const parts = separator === '' ? [...text] : text.split(separator)
  if (limit < 0 || limit >= parts.length) return new ArrayList(parts)
  const kept = parts.slice(0, Number(limit) - 1)
  return new ArrayList([...kept, parts.slice(Number(limit) - 1).join(separator)])
}

function join(list: ListValue, separator = ''): string {
  const parts: string[] = []
  let length = 0
  for (let i = 0; i < list.size; i++) {
    const part = list.at(i)
    if (typeof part !== 'string') throw new EvaluationError(`join: invalid input: ${String(part)}`)
    length += part.length + separator.length
    limited(length)
    parts.push(part)
  }
  return parts.join(separator)
}

/** Unicode's white space as Go's TrimSpace knows it, which is not JavaScript's: no byte order mark, but U+0085. */
const space = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/

/** Looks at the ends alone: an expression for the end would be tried at each space within. */
function trim(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && space.test(text.charAt(start))) start++
  while (end > start && space.test(text.charAt(end - 1))) end--
  return text.slice(start, end)
}

const quoteEscapes: Readonly<Record<string, string>> = bareMap({
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
})

/** The text as a literal. */
const quote = (text: string): string => `"${Array.from(text, (character) => quoteEscapes[character] ?? character).join('')}"`

export const strings: Library = {
  functions: [
    declare('charAt', member('string_char_at_int', '(string, int) -> string', charAt)),
    declare(
      'indexOf',
      member('string_index_of_string', '(string, string) -> int', indexOf),
      member('string_index_of_string_int', '(string, string, int) -> int', indexOf),
    ),
    declare(
      'lastIndexOf',
      member('string_last_index_of_string', '(string, string) -> int', lastIndexOf),
      member('string_last_index_of_string_int', '(string, string, int) -> int', lastIndexOf),
    ),
    declare(
      'lowerAscii',
      member('string_lower_ascii', '(string) -> string', (text: string) => text.replace(/[A-Z]+/g, (part) => part.toLowerCase())),
    ),
    declare(
      'upperAscii',
      member('string_upper_ascii', '(string) -> string', (text: string) => text.replace(/[a-z]+/g, (part) => part.toUpperCase())),
    ),
    declare(
      'replace',
      member('string_replace_string_string', '(string, string, string) -> string', replace),
      member('string_replace_string_string_int', '(string, string, string, int) -> string', replace),
    ),
    declare(
      'split',
      member('string_split_string', '(string, string) -> list(string)', split),
      member('string_split_string_int', '(string, string, int) -> list(string)', split),
    ),
    declare(
      'substring',
      member('string_substring_int', '(string, int) -> string', substring),
      member('string_substring_int_int', '(string, int, int) -> string', substring),
    ),
    declare('trim', member('string_trim', '(string) -> string', trim)),
    declare('format', member('string_format', '(string, list(dyn)) -> string', format)),
    declare('strings.quote', overload('strings_quote', '(string) -> string', quote)),
    declare('join', member('list_join', '(list(string)) -> string', join), member('list_join_string', '(list(string), string) -> string', join)),
  ],
}
