/**
 * Reads the small part of the protocol buffer language that our own service descriptions use (L1) into the JSON form of protobufjs: package, flat
 * messages, flat enums, services; one statement after another, fields in snake_case (they become camelCase in JavaScript).
 */
import { emptyMap } from '#base/bareMap'

export interface ProtoField {
  readonly type: string
  readonly id: number
  readonly rule?: 'repeated'
  /** Type of the keys of a map field. */
  readonly keyType?: string
  /** A number of 64 bits as decimal text in JavaScript, where it must be exact beyond 2^53. */
  readonly options?: { readonly jstype: 'JS_STRING' }
}

export interface ProtoMethod {
  readonly requestType: string
  readonly responseType: string
  readonly requestStream?: boolean
  readonly responseStream?: boolean
}

/** What a package holds under one name. */
export type ProtoEntry =
  | { readonly fields: Readonly<Record<string, ProtoField>> }
  | { readonly values: Readonly<Record<string, number>> }
  | { readonly methods: Readonly<Record<string, ProtoMethod>> }
  | ProtoNamespace

export interface ProtoNamespace {
  readonly nested: Readonly<Record<string, ProtoEntry>>
}

const block = /\b(message|enum|service)\s+(\w+)\s*\{([^}]*)\}/g
const mapField = /^map<(\w+), *([\w.]+)> +(\w+) *= *(\d+)$/
const plainField = /^(repeated +)?([\w.]+) +(\w+) *= *(\d+)( *\[jstype *= *JS_STRING\])?$/
const rpc = /^rpc +(\w+)\((stream +)?([\w.]+)\) +returns +\((stream +)?([\w.]+)\)$/

const camelCase = (name: string) => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
const statements = (body: string) =>
  body
    .split(';')
    .map((statement) => statement.trim())
    .filter(Boolean)

function field(statement: string): [string, ProtoField] {
  const map = mapField.exec(statement)
  if (map) return [camelCase(map[3] ?? ''), { keyType: map[1] ?? '', type: map[2] ?? '', id: Number(map[4]) }]
  const plain = plainField.exec(statement)
  if (!plain) throw new Error(`not a field: ${statement}`)
  const [, repeated, type = '', name = '', id, isText] = plain
  return [
    camelCase(name),
    { type, id: Number(id), ...(repeated ? { rule: 'repeated' as const } : {}), ...(isText ? { options: { jstype: 'JS_STRING' as const } } : {}) },
  ]
}

function method(statement: string): [string, ProtoMethod] {
  const match = rpc.exec(statement)
  if (!match) throw new Error(`not a method: ${statement}`)
  const [, name = '', requestStream, requestType = '', responseStream, responseType = ''] = match
  return [name, { requestType, responseType, ...(requestStream ? { requestStream: true } : {}), ...(responseStream ? { responseStream: true } : {}) }]
}

function enumValue(statement: string): [string, number] {
  const [name = '', value = ''] = statement.split('=').map((part) => part.trim())
  return [name, Number(value)]
}

/** The protobufjs JSON descriptor of a description. Throws on anything outside the supported part. */
export function parseProto(text: string): ProtoNamespace {
  const nested: Record<string, ProtoEntry> = emptyMap()
  for (const [, keyword, name = '', body = ''] of text.matchAll(block)) {
    if (keyword === 'message') nested[name] = { fields: Object.fromEntries(statements(body).map(field)) }
    else if (keyword === 'enum') nested[name] = { values: Object.fromEntries(statements(body).map(enumValue)) }
    else nested[name] = { methods: Object.fromEntries(statements(body).map(method)) }
  }
  const packageName = /\bpackage +([\w.]+);/.exec(text)?.[1] ?? ''
  return packageName
    .split('.')
    .filter(Boolean)
    .reduceRight<ProtoNamespace>((inner, part) => ({ nested: { [part]: inner } }), { nested: { ...nested } })
}
