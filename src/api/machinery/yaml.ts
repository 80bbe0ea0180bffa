/**
 * YAML as kubectl and the API server read and print it (L1): YAML 1.1 booleans and octal integers, no dates, no base-60 numbers, keys
 * become strings; documents that grow out of aliases are refused. Upstream: sigs.k8s.io/yaml over go-yaml v2 (v1.36).
 */
import {
  boolYaml11Tag,
  DEFAULT_SCALAR_STYLE_RULES,
  defineScalarTag,
  dump,
  loadAll,
  mapTag,
  mergeTag,
  NOT_RESOLVED,
  nullYaml11Tag,
  SCALAR_STYLE,
  Schema,
  seqTag,
  strTag,
  YAMLException,
} from 'js-yaml'
import { asLongInteger } from './exactIntegers.ts'
import { JsonSyntaxError, parseJson } from './json.ts'

/** Input that is not YAML; the message equals sigs.k8s.io/yaml's: "error converting YAML to JSON: yaml: line 2: …". */
export class YamlSyntaxError extends Error {
  constructor(message: string) {
    super(`error converting YAML to JSON: yaml: ${message}`)
    this.name = 'YamlSyntaxError'
  }
}

const intTag = defineScalarTag<number | bigint>('tag:yaml.org,2002:int', {
  implicit: true,
  implicitFirstChars: [...'+-0123456789'],
  resolve: resolveInteger,
  identify: (data: unknown) => typeof data === 'bigint' || Number.isInteger(data),
  represent: (data: number | bigint) => (typeof data === 'bigint' || Math.abs(data) < 1e21 ? BigInt(data).toString() : goFloat(data)),
})

const floatTag = defineScalarTag<number>('tag:yaml.org,2002:float', {
  implicit: true,
  implicitFirstChars: [...'+-.0123456789'],
  resolve: resolveFloat,
  identify: (data: unknown) => typeof data === 'number',
  represent: goFloat,
})

/** Go's integer literals with base 0: 0x1f, 0b1, 0o17, 017, and underscores between digits. */
function resolveInteger(source: string): number | bigint | typeof NOT_RESOLVED {
  const match = /^([-+]?)(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]+|0|[1-9][0-9_]*)$/.exec(source)
  if (!match) return NOT_RESOLVED
  const digits = (match[2] ?? '').replaceAll('_', '').toLowerCase()
  const value = /^0[0-7]/.test(digits) ? Number.parseInt(digits, 8) : Number(digits)
  if (!Number.isFinite(value)) return NOT_RESOLVED
  const isNegative = match[1] === '-'
  if (Number.isSafeInteger(value)) return isNegative ? -value : value
  const exact = BigInt(digits.replace(/^0(?=[0-7])/, '0o'))
  return asLongInteger(isNegative ? -exact : exact) ?? (isNegative ? -value : value)
}

/** A number that no double can hold is a text, as in go-yaml. */
function resolveFloat(source: string): number | typeof NOT_RESOLVED {
  if (!/^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/.test(source)) return NOT_RESOLVED
  return Number.isFinite(Number(source)) ? Number(source) : NOT_RESOLVED
}

function goFloat(value: number): string {
  return String(value).replace(/e([-+])(\d)$/, 'e$10$2')
}

const kubernetesSchema = new Schema([nullYaml11Tag, boolYaml11Tag, intTag, floatTag, mergeTag, strTag, seqTag, mapTag])

/** Only aliases can produce more nodes than this per character of the source. */
const maxNodes = (sourceLength: number) => 10_000 + 2 * sourceLength

/**
 * Parses one YAML document (JSON is YAML too) into a JSON value. An empty document is null.
 * @throws YamlSyntaxError
 */
export function parseYaml(text: string, options: YamlOptions = {}): unknown {
  const json = asJson(text)
  if (json !== undefined) return json
  return parseYamlDocuments(text, options)[0] ?? null
}

export interface YamlOptions {
  /** 'refuse' rejects repeated keys, as strict decoding does. Absent: the last value of a key counts. */
  readonly duplicates?: 'refuse' | undefined
}

/** Clients send JSON where YAML is allowed (every server-side apply of client-go): the native parser is a hundred times faster. */
function asJson(text: string): unknown {
  if (!/^\s*\{/.test(text)) return undefined
  try {
    return parseJson(text).value
  } catch (error) {
    // A YAML flow mapping, or an error that the YAML parser words better.
    if (error instanceof JsonSyntaxError) return undefined
    throw error
  }
}

/** Parses all documents of a stream; empty documents are left out. */
export function parseYamlDocuments(text: string, { duplicates }: YamlOptions = {}): unknown[] {
  let documents: unknown[]
  try {
    documents = loadAll(text, { schema: kubernetesSchema, json: duplicates !== 'refuse', maxDepth: 1_000 })
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    throw new YamlSyntaxError(error.mark ? `line ${error.mark.line + 1}: ${error.reason}` : error.reason)
  }
  const expander = new Expander(maxNodes(text.length))
  return documents.filter((document) => document !== null && document !== undefined).map((document) => expander.expand(document))
}

/** Gives every alias its own copy (objects are edited in place later) and counts what that costs. */
class Expander {
  #left: number
  readonly #seen = new Set<object>()

  constructor(budget: number) {
    this.#left = budget
  }

  expand(value: unknown): unknown {
    if (--this.#left < 0) throw new YamlSyntaxError('document contains excessive aliasing')
    if (typeof value !== 'object' || value === null) return value
    const known = this.#seen.has(value)
    this.#seen.add(value)
    if (Array.isArray(value)) {
      const list = known ? value.slice() : value
      for (let i = 0; i < list.length; i++) list[i] = this.expand(list[i])
      return list
    }
    const map = (known ? { ...value } : value) as Record<string, unknown>
    for (const key of Object.keys(map)) map[key] = this.expand(map[key])
    return map
  }
}

/** A JSON value as kubectl prints it with -o yaml: keys sorted, lists not indented, one document without a marker. */
export function toYaml(value: unknown): string {
  return dump(value, {
    schema: kubernetesSchema,
    sortKeys: true,
    seqNoIndent: true,
    lineWidth: -1,
    noRefs: true,
    quoteStyle: 'single',
    skipInvalid: true,
    scalarStyleRules: [...Object.values(DEFAULT_SCALAR_STYLE_RULES), doubleQuoteLookalikes],
  })
}

type StyleRule = (typeof DEFAULT_SCALAR_STYLE_RULES)['quoteInvalidPlain']

/** go-yaml double-quotes strings that would read as something else ("true", "1"), and single-quotes those that only need quoting. */
const doubleQuoteLookalikes: StyleRule = (layout) => {
  const { value, tag } = layout.node
  if (layout.style === SCALAR_STYLE.PLAIN) {
    if (tag === kubernetesSchema.defaultScalarTag.tagName && timeLike.test(value)) layout.style = SCALAR_STYLE.DOUBLE_QUOTED
  } else if (layout.style === SCALAR_STYLE.SINGLE_QUOTED) {
    if (value === '' || kubernetesSchema.resolveImplicitScalarTag(value).tag !== kubernetesSchema.defaultScalarTag) layout.style = SCALAR_STYLE.DOUBLE_QUOTED
  }
}

/** Dates and base-60 numbers of YAML 1.1: older readers would take them for something else, so go-yaml quotes them. */
const timeLike = /^(\d{4}-\d\d?-\d\d?([Tt ].*)?|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)$/
