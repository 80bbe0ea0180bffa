/**
 * CRD-02, ADM-06: our CEL engine against the conformance data of the CEL specification (npm @bufbuild/cel-spec, which also holds the
 * types that cel-go infers). Every test runs or is excluded with a named reason; the counts are printed by section.
 */
import assert from 'node:assert/strict'
import test from 'node:test'
import { tests as suite } from '@bufbuild/cel-spec/testdata/conformance.js'
import type { Overload } from '#cel/declarations'
import type { Environment } from '#cel/environment'
import { equal } from '#cel/equality'
import { bindings, twoVariableComprehensions } from '#cel/library/comprehensions'
import { lists, sets } from '#cel/library/lists'
import { optionals } from '#cel/library/optionals'
import { strings } from '#cel/library/strings'
import { standardEnvironment } from '#cel/standardEnvironment'
import { parseDuration, parseTimestamp } from '#cel/time'
import type { CelType } from '#cel/types'
import * as types from '#cel/types'
import type { Value } from '#cel/values'
import { ArrayList, Double, HashMap, int, TypeValue, typeNameOf, Uint } from '#cel/values'

type Json = Record<string, unknown>
interface Case {
  readonly section: string
  readonly path: string
  readonly name: string
  readonly expr: string
  readonly type: string | undefined
  readonly original: Json
}
interface Suite {
  readonly name: string
  readonly suites?: readonly Suite[]
  readonly tests?: readonly { readonly original: Json; readonly type?: string }[]
}

function casesOf({ name, suites = [], tests = [] }: Suite, path: readonly string[]): Case[] {
  const here = [...path, name]
  const own = tests.map(({ original, type }) => ({
    section: here[1] ?? '',
    path: here.slice(1).join('/'),
    name: String(original.name),
    expr: String(original.expr),
    type,
    original,
  }))
  return [...own, ...suites.flatMap((inner) => casesOf(inner, here))]
}

const cases = casesOf(suite as unknown as Suite, [])

/** What Kubernetes' CEL does not have. */
const messages =
  /TestAllTypes|GlobalEnum|NestedEnum|google\.protobuf\.(?!Timestamp|Duration)|cel\.expr\.conformance|proto\.(has|get)Ext|type\.googleapis\.com\/(?!google\.protobuf\.(Timestamp|Duration))/
const wholeSections: Readonly<Record<string, string>> = {
  block_ext: 'cel.block is an optimizer’s output, not in Kubernetes',
  encoders_ext: 'base64 functions are not in Kubernetes',
  math_ext: 'math functions are not in Kubernetes',
  proto2: 'protobuf messages',
  proto2_ext: 'protobuf messages',
  proto3: 'protobuf messages',
  wrappers: 'protobuf messages',
  enums: 'protobuf messages',
  dynamic: 'protobuf messages',
  namespace: 'containers: Kubernetes has none',
}
/** Tests that cel-go v0.26, which is Kubernetes' engine, fails itself (its conformance/BUILD.bazel), by path and name. */
const skippedUpstream = new Set(
  Object.entries({
    'fields/qualified_identifier_resolution': ['map_key_float', 'map_key_null', 'map_value_repeat_key', 'map_value_repeat_key_heterogeneous'],
    'macros/map': ['map_extract_keys'],
    'timestamps/duration_converters': ['get_milliseconds'],
    'optionals/optionals': ['map_optional_select_has'],
    'string_ext/value_errors': ['indexof_out_of_range', 'lastindexof_out_of_range'],
  }).flatMap(([path, names]) => names.map((name) => `${path}/${name}`)),
)

/** Kubernetes has version 2 of the strings library; the data is for a later one, which prints these otherwise. */
const laterFormats = [
  /scientific notation/,
  /infinity support for (decimal|fixed-point)/,
  /NaN support for decimal/,
  /^(list support for string|map support|dyntype support for (lists|maps)$|dyntype NaN)/,
]

function exclusion({ section, path, name, original, expr }: Case): string | undefined {
  if (wholeSections[section]) return wholeSections[section]
  if (messages.test(JSON.stringify(original))) return 'protobuf messages'
  if (skippedUpstream.has(`${path}/${name}`)) return 'cel-go fails it too'
  if (section === 'string_ext' && /reverse\(/.test(expr)) return 'string.reverse() is in a later version of the library'
  if (path === 'string_ext/format' && laterFormats.some((pattern) => pattern.test(name))) return 'format() prints otherwise in a later version of the library'
  if (/`/.test(expr)) return 'quoted field names are not enabled in Kubernetes'
  if (original.disableCheck && !original.evalError && !environmentFor(original).compile(expr).ok)
    return 'runs only without checking, which Kubernetes never skips'
  return undefined
}

function toValue(json: Json): Value {
  const [kind, content] = Object.entries(json)[0]!
  switch (kind) {
    case 'int64Value':
      return int(BigInt(content as string))
    case 'uint64Value':
      return new Uint(BigInt(content as string))
    case 'doubleValue':
      return new Double(Number(content))
    case 'bytesValue':
      return new Uint8Array(Buffer.from(content as string, 'base64'))
    case 'listValue':
      return new ArrayList(((content as Json).values as Json[] | undefined)?.map(toValue) ?? [])
    case 'mapValue': {
      const map = new HashMap()
      for (const { key, value } of ((content as Json).entries as { key: Json; value: Json }[] | undefined) ?? []) map.set(toValue(key), toValue(value))
      return map
    }
    case 'objectValue': {
      const { '@type': type, value } = content as { '@type': string; value: string }
      return (type.endsWith('Timestamp') ? parseTimestamp(value) : parseDuration(value))!
    }
    case 'typeValue':
      return new TypeValue(content as string)
    case 'nullValue':
      return null
    default:
      return content as string | boolean
  }
}

function typeOf(json: Json): CelType {
  const [kind, content] = Object.entries(json)[0] as [string, never]
  const primitives: Record<string, CelType> = {
    INT64: types.intType,
    UINT64: types.uintType,
    DOUBLE: types.doubleType,
    STRING: types.stringType,
    BYTES: types.bytesType,
    BOOL: types.boolType,
    TIMESTAMP: types.timestampType,
    DURATION: types.durationType,
  }
  switch (kind) {
    case 'primitive':
    case 'wellKnown':
      return primitives[content] ?? types.dynType
    case 'listType':
      return types.listType(typeOf((content as Json).elemType as Json))
    case 'mapType':
      return types.mapType(typeOf((content as Json).keyType as Json), typeOf((content as Json).valueType as Json))
    case 'abstractType': {
      const { name, parameterTypes = [] } = content as { name: string; parameterTypes?: Json[] }
      return types.opaqueType(name, ...parameterTypes.map(typeOf))
    }
    case 'typeParam':
      return types.typeParameter(content)
    default:
      return types.dynType
  }
}

const environment = standardEnvironment.extend({ libraries: [strings, lists, sets, optionals, twoVariableComprehensions, bindings] })

interface Declaration {
  readonly name: string
  readonly ident?: { readonly type: Json }
  readonly function?: { readonly overloads: readonly DeclaredOverload[] }
}
interface DeclaredOverload {
  readonly overloadId: string
  readonly params?: readonly Json[]
  readonly resultType: Json
  readonly typeParams?: readonly string[]
  readonly isInstanceFunction?: boolean
}

const overloadOf = ({ overloadId, params = [], resultType, typeParams = [], isInstanceFunction = false }: DeclaredOverload): Overload => ({
  id: overloadId,
  parameters: params.map(typeOf),
  result: typeOf(resultType),
  member: isInstanceFunction,
  typeParameters: typeParams,
  invoke: () => {
    throw new Error('declared for its type only')
  },
})

function environmentFor(original: Json): Environment {
  let extended = environment
  for (const { name, ident, function: declared } of (original.typeEnv as Declaration[] | undefined) ?? []) {
    if (ident) extended = extended.extend({ variables: { [name]: typeOf(ident.type) } })
    if (declared) extended = extended.extend({ libraries: [{ functions: [{ name, overloads: declared.overloads.map(overloadOf) }] }] })
  }
  return extended
}

/** What went wrong, or undefined. */
function run({ original, expr, type }: Case): string | undefined {
  const compiled = environmentFor(original).compile(expr)
  if (!compiled.ok) {
    // The data also has tests of evaluation without checking: a fault found earlier is as good.
    return original.evalError ? undefined : `does not compile: ${compiled.message}`
  }
  if (type !== undefined && !messages.test(type) && !original.disableCheck && types.formatType(compiled.checked.resultType) !== type) {
    return `type ${types.formatType(compiled.checked.resultType)}, wanted ${type}`
  }
  if (original.checkOnly) return undefined
  const variables = Object.entries((original.bindings as Record<string, { value: Json }> | undefined) ?? {})
  const result = compiled.program.evaluate(new Map(variables.map(([name, { value }]) => [name, toValue(value)])))
  if (original.evalError) return result.error ? undefined : `no error, but ${String(result.value)}`
  if (result.error) return `failed: ${result.error.message}`
  const wanted = (original.value ?? (original.typedResult as Json | undefined)?.result ?? { boolValue: true }) as Json
  return same(result.value, toValue(wanted)) ? undefined : `got ${JSON.stringify(result.value, (_, v) => (typeof v === 'bigint' ? `${v}n` : v))}`
}

function same(got: Value, wanted: Value): boolean {
  if (typeNameOf(got) !== typeNameOf(wanted)) return false
  if (got instanceof Double && wanted instanceof Double) return Object.is(got.value, wanted.value)
  return equal(got, wanted)
}

test('CRD-02: the CEL specification’s conformance data', (context) => {
  const counts = new Map<string, { passed: number; failed: number; excluded: number }>()
  const reasons = new Map<string, number>()
  const failures: string[] = []
  for (const one of cases) {
    const count = counts.get(one.section) ?? { passed: 0, failed: 0, excluded: 0 }
    counts.set(one.section, count)
    const reason = exclusion(one)
    const failure = reason === undefined ? run(one) : undefined
    if (reason !== undefined) {
      count.excluded += 1
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
    } else if (failure !== undefined) {
      count.failed += 1
      failures.push(`${one.path}/${one.name}: ${one.expr}: ${failure}`)
    } else count.passed += 1
  }
  for (const [section, { passed, failed, excluded }] of counts) context.diagnostic(`${section}: ${passed} passed, ${failed} failed, ${excluded} excluded`)
  for (const [reason, count] of reasons) context.diagnostic(`excluded ${count}: ${reason}`)
  const passed = [...counts.values()].reduce((sum, count) => sum + count.passed, 0)
  context.diagnostic(`${passed} of ${passed + failures.length} passed`)
  assert.ok(passed > 1000, 'the data was found')
  assert.deepEqual(failures, [])
})
