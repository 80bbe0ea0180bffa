/**
 * A pod template as Go's spew dumps it for a hash (L1): every field of every struct in Go's order and with its Go type, absent ones too.
 * A template has here what upstream's protobuf keeps of it: empty lists and maps are nil.
 * Upstream: k8s.io/utils/dump ForHash, github.com/davecgh/go-spew (v1.36).
 */
import { goStructs } from '../gen/goStructs.ts'
import { once } from '../gen/table.ts'
import { goQuantityDump } from './goQuantity.ts'

type LeafType = { readonly is: 'scalar'; readonly name: string; readonly zero: string } | { readonly is: Leaf; readonly name: string }
interface Composite<Kind> {
  readonly is: Kind
  readonly name: string
  readonly of: GoType
}
type GoType = LeafType | { readonly is: 'struct'; readonly name: string } | Composite<'pointer'> | Composite<'slice'> | Composite<'map'>

interface Field {
  /** `Name:(type)`, after a space unless it is the first field. */
  readonly head: string
  /** '' for an embedded struct. */
  readonly jsonName: string
  readonly type: GoType
}

interface KnownField extends Field {
  /** The dump of the field where it is absent, with its head. */
  readonly absent: string
}

type Write = (text: string) => void

const leafNames = { quantity: 'resource.Quantity', intOrString: 'intstr.IntOrString', time: 'v1.Time', managedFields: 'v1.ManagedFieldsEntry' }
type Leaf = keyof typeof leafNames
const zeros: ReadonlyMap<string, string> = new Map([
  ['string', ''],
  ['bool', 'false'],
  ['int32', '0'],
  ['int64', '0'],
])
const zeroTime = '{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}'

const shapes = once(() => new Map(Object.entries(goStructs).map(([id, fields]) => [id, fields.split(' ').map(fieldOf)])))

interface KnownStruct {
  readonly fields: readonly KnownField[]
  /** The dump of the struct without any member. */
  readonly zero: string
}

/** Most fields of a template are absent: their dumps are made once. */
const structs = once(
  () =>
    new Map([...shapes()].map(([id, fields]): [string, KnownStruct] => [id, { fields: fields.map(withAbsent), zero: zeroText({ is: 'struct', name: id }) }])),
)

/** Writes the dump piece by piece: the dump of a large template is many times the template's size. */
export function dumpPodTemplate(template: unknown, write: Write): void {
  write('(v1.PodTemplateSpec)')
  dumpStruct(template, 'core.PodTemplateSpec', write)
}

function fieldOf(text: string, at: number): Field {
  const [name = '', jsonName = '', typeText = ''] = text.split(':')
  const type = typeOf(typeText)
  return { head: `${at === 0 ? '' : ' '}${name}:(${goName(type)})`, jsonName, type }
}

function withAbsent(field: Field): KnownField {
  return { ...field, absent: field.head + zeroText(field.type) }
}

function zeroText(type: GoType): string {
  if (type.is === 'struct') return `{${(shapes().get(type.name) ?? []).map(({ head, type: inner }) => head + zeroText(inner)).join('')}}`
  return type.is === 'pointer' || type.is === 'slice' || type.is === 'map' ? '<nil>' : leafText(undefined, type)
}

/** Reads a type as scripts/generateGoStructs.mjs writes it. */
function typeOf(text: string): GoType {
  const [named, underlying] = text.split('=')
  if (underlying !== undefined && !/^[*[]/.test(text)) return { ...typeOf(underlying), name: named ?? '' }
  const [, prefix = '', inner = ''] = /^(\*|\[\]|map\[\w+\])(.*)$/.exec(text) ?? []
  if (prefix !== '') {
    const of = typeOf(inner)
    return { is: prefix === '*' ? 'pointer' : prefix === '[]' ? 'slice' : 'map', name: prefix + goName(of), of }
  }
  if (isLeaf(text)) return { is: text, name: leafNames[text] }
  const zero = zeros.get(text)
  return zero === undefined ? { is: 'struct', name: text } : { is: 'scalar', name: text, zero }
}

const isLeaf = (text: string): text is Leaf => Object.hasOwn(leafNames, text)

/** Both packages with structs are called v1. */
const goName = ({ name }: GoType): string => name.replace(/^(?:core|meta)\./, 'v1.')

function dumpStruct(value: unknown, id: string, write: Write): void {
  const members = (value ?? {}) as Readonly<Record<string, unknown>>
  const { fields, zero } = structs().get(id) as KnownStruct
  if (Object.keys(members).length === 0) {
    write(zero)
    return
  }
  let text = '{'
  for (const { head, absent, jsonName, type } of fields) {
    const member = jsonName === '' ? members : members[jsonName]
    if (member === undefined || member === null) {
      text += absent
      continue
    }
    write(text + head)
    text = ''
    dumpValue(member, type, write)
  }
  write(`${text}}`)
}

/** Without the value's own type: the field, list or map around it determines the type. */
function dumpValue(value: unknown, type: GoType, write: Write): void {
  if (type.is === 'struct') dumpStruct(value, type.name, write)
  else if (type.is === 'slice') dumpSlice((value ?? []) as readonly unknown[], type.of, write)
  else if (type.is === 'map') dumpMap((value ?? {}) as Readonly<Record<string, unknown>>, type.of, write)
  else if (type.is !== 'pointer') write(leafText(value, type))
  else if (value === undefined || value === null) write('<nil>')
  else dumpValue(value, type.of, write)
}

function leafText(value: unknown, type: LeafType): string {
  switch (type.is) {
    case 'scalar':
      return String(value ?? type.zero)
    case 'quantity':
      return goQuantityDump(String(value ?? '0'))
    case 'intOrString':
      return intOrString(value as number | string | undefined)
    default:
      return zeroTime
  }
}

function dumpSlice(items: readonly unknown[], type: GoType, write: Write): void {
  // Templates have no managed fields of their own.
  if (items.length === 0 || type.is === 'managedFields') {
    write('<nil>')
    return
  }
  items.forEach((item, at) => {
    write(at === 0 ? '[' : ' ')
    dumpValue(item, type, write)
  })
  write(']')
}

function dumpMap(entries: Readonly<Record<string, unknown>>, type: GoType, write: Write): void {
  const keys = Object.keys(entries).sort()
  if (keys.length === 0) {
    write('<nil>')
    return
  }
  keys.forEach((key, at) => {
    write(`${at === 0 ? 'map[' : ' '}${key}:`)
    dumpValue(entries[key], type, write)
  })
  write(']')
}

function intOrString(value: number | string = 0): string {
  const isText = typeof value === 'string'
  return `{Type:(intstr.Type)${isText ? 1 : 0} IntVal:(int32)${isText ? 0 : value} StrVal:(string)${isText ? value : ''}}`
}
