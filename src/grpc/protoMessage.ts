/**
 * Messages of our service descriptions as plain objects (L1): camelCase members, 64-bit numbers as numbers or, with `jstype`, as decimal text, enums by
 * name, bytes as Buffer. What a
 * message does not say is there with its default, and null for a message within.
 */
import { bareMap } from '#base/bareMap'
import { type ProtoEntry, type ProtoField, type ProtoNamespace, parseProto } from './protoText.ts'
import { ProtoReader, ProtoWriter, type ReadLimits, wireFixed64, wireLengthDelimited, wireVarint } from './protoWire.ts'

export interface MessageCodec {
  /** Members that are undefined or null are left out. @throws TypeError naming a member that is not what it should be */
  encode(message: object): Buffer
  /** @throws Error when the bytes are no such message; ReadLimitError */
  decode(bytes: Uint8Array, limits?: ReadLimits): object
}

export interface ServiceMethod {
  /** `/package.Service/Method` */
  readonly path: string
  readonly request: MessageCodec
  readonly response: MessageCodec
}

type Message = Record<string, unknown>

/** One value of a field's type, without its tag. */
interface ValueCodec {
  readonly wireType: number
  readonly initial: unknown
  write(writer: ProtoWriter, value: unknown): void
  read(reader: ProtoReader): unknown
}

interface FieldCodec {
  readonly id: number
  readonly name: string
  readonly initial: () => unknown
  write(writer: ProtoWriter, value: unknown): void
  read(reader: ProtoReader, wireType: number, into: Message): void
}

function writeNumber(writer: ProtoWriter, value: unknown): void {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new TypeError(`wants a number, not ${JSON.stringify(value)}`)
  writer.varint(Math.trunc(value))
}

const number = (read: (reader: ProtoReader) => number): ValueCodec => ({ wireType: wireVarint, initial: 0, write: writeNumber, read })

/** A decimal text, like the 64-bit numbers that no double holds. */
const fixed64: ValueCodec = {
  wireType: wireFixed64,
  initial: '0',
  write: (writer, value) => writer.fixed64(BigInt(value as string)),
  read: (reader) => reader.fixed64Text(),
}

const scalars: Readonly<Record<string, ValueCodec>> = bareMap({
  int32: number((reader) => reader.int32()),
  int64: number((reader) => reader.int64()),
  uint32: number((reader) => reader.uint32()),
  uint64: number((reader) => reader.uint64()),
  fixed64,
  bool: {
    wireType: wireVarint,
    initial: false,
    write: (writer, value) => writer.varint(value ? 1 : 0),
    read: (reader) => reader.bool(),
  },
  string: {
    wireType: wireLengthDelimited,
    initial: '',
    write: (writer, value) => {
      if (typeof value !== 'string') throw new TypeError(`wants a string, not ${JSON.stringify(value)}`)
      writer.string(value)
    },
    read: (reader) => reader.string(),
  },
  bytes: {
    wireType: wireLengthDelimited,
    initial: Buffer.alloc(0),
    write: (writer, value) => {
      if (!(value instanceof Uint8Array)) throw new TypeError('wants bytes')
      writer.bytes(value)
    },
    read: (reader) => reader.bytes(),
  },
})

const numberText = (read: (reader: ProtoReader) => string): ValueCodec => ({
  wireType: wireVarint,
  initial: '0',
  write: (writer, value) => {
    if (!/^-?\d+$/.test(String(value))) throw new TypeError(`wants a whole number, not ${JSON.stringify(value)}`)
    writer.varint64(BigInt(value as string | number | bigint))
  },
  read,
})

/** Scalars with the option `jstype = JS_STRING`. */
const texts: Readonly<Record<string, ValueCodec>> = bareMap({
  int64: numberText((reader) => reader.int64Text()),
  uint64: numberText((reader) => reader.uint64Text()),
})

function enumCodec(values: Readonly<Record<string, number>>): ValueCodec {
  const names = new Map(Object.entries(values).map(([name, value]) => [value, name]))
  return {
    wireType: wireVarint,
    initial: names.get(0) ?? 0,
    write: (writer, value) => {
      const known = typeof value === 'string' ? values[value] : undefined
      if (known === undefined) throw new TypeError(`wants one of ${Object.keys(values).join(', ')}, not ${JSON.stringify(value)}`)
      writer.varint(known)
    },
    // A value of later times stays a number.
    read: (reader) => {
      const value = reader.int32()
      return names.get(value) ?? value
    },
  }
}

/** The messages of one package; what they consist of is looked up when first used. */
class Messages {
  readonly #entries: Readonly<Record<string, ProtoEntry>>
  readonly #fields = new Map<string, readonly FieldCodec[]>()
  readonly #byId = new Map<string, ReadonlyMap<number, FieldCodec>>()

  constructor(entries: Readonly<Record<string, ProtoEntry>>) {
    this.#entries = entries
  }

  codec(name: string): MessageCodec {
    const entry = this.#entries[name]
    if (!entry || !('fields' in entry)) throw new Error(`the service description has no message ${name}`)
    return { encode: (message) => this.#encode(name, message as Message), decode: (bytes, limits) => this.#decode(name, bytes, limits) }
  }

  #fieldsOf(name: string): readonly FieldCodec[] {
    const known = this.#fields.get(name)
    if (known) return known
    const entry = this.#entries[name]
    if (!entry || !('fields' in entry)) throw new Error(`the service description has no message ${name}`)
    const fields = Object.entries(entry.fields).map(([member, field]) => this.#field(member, field))
    this.#fields.set(name, fields)
    this.#byId.set(name, new Map(fields.map((field) => [field.id, field])))
    return fields
  }

  #encode(name: string, message: Message): Buffer {
    const writer = new ProtoWriter()
    for (const field of this.#fieldsOf(name)) {
      const value = message[field.name]
      if (value === undefined || value === null) continue
      try {
        field.write(writer, value)
      } catch (error) {
        throw new TypeError(`${name}.${field.name}: ${(error as Error).message}`, { cause: error })
      }
    }
    return writer.finish()
  }

  #decode(name: string, bytes: Uint8Array, limits: ReadLimits | undefined): Message {
    limits?.enter()
    const message: Message = {}
    for (const field of this.#fieldsOf(name)) message[field.name] = field.initial()
    const byId = this.#byId.get(name)
    const reader = new ProtoReader(bytes, limits)
    while (reader.hasMore) {
      limits?.takeField()
      const tag = reader.uint32()
      const field = byId?.get(tag >>> 3)
      if (field) field.read(reader, tag & 7, message)
      else reader.skip(tag & 7)
    }
    limits?.leave()
    return message
  }

  #value(type: string, isText = false): ValueCodec {
    const scalar = (isText ? texts : scalars)[type]
    if (scalar) return scalar
    const entry = this.#entries[type]
    if (entry && 'values' in entry) return enumCodec(entry.values)
    return {
      wireType: wireLengthDelimited,
      initial: null,
      write: (writer, value) => writer.bytes(this.#encode(type, value as Message)),
      read: (reader) => this.#decode(type, reader.bytes(), reader.limits),
    }
  }

  #field(name: string, { type, id, rule, keyType, options }: ProtoField): FieldCodec {
    const value = this.#value(type, options?.jstype === 'JS_STRING')
    if (keyType !== undefined) return mapField(name, id, this.#value(keyType), value)
    if (rule === 'repeated') return repeatedField(name, id, value)
    return {
      id,
      name,
      initial: () => value.initial,
      write: (writer, member) => {
        writer.tag(id, value.wireType)
        value.write(writer, member)
      },
      read: (reader, wireType, into) => {
        if (wireType === value.wireType) into[name] = value.read(reader)
        else reader.skip(wireType)
      },
    }
  }
}

/** Numbers travel together under one tag; both ways are read. */
function repeatedField(name: string, id: number, value: ValueCodec): FieldCodec {
  const isPacked = value.wireType === wireVarint
  return {
    id,
    name,
    initial: () => [],
    write: (writer, members) => {
      const list = members as readonly unknown[]
      if (list.length === 0) return
      if (isPacked) {
        const together = new ProtoWriter()
        for (const member of list) value.write(together, member)
        writer.tag(id, wireLengthDelimited)
        writer.bytes(together.finish())
        return
      }
      for (const member of list) {
        writer.tag(id, value.wireType)
        value.write(writer, member)
      }
    },
    read: (reader, wireType, into) => {
      const list = into[name] as unknown[]
      if (wireType === value.wireType) list.push(value.read(reader))
      else if (isPacked && wireType === wireLengthDelimited) {
        for (const together = new ProtoReader(reader.bytes()); together.hasMore; ) list.push(value.read(together))
      } else reader.skip(wireType)
    },
  }
}

/** On the wire a list of pairs: the key as field 1, the value as field 2. */
function mapField(name: string, id: number, key: ValueCodec, value: ValueCodec): FieldCodec {
  return {
    id,
    name,
    initial: () => ({}),
    write: (writer, members) => {
      for (const [member, content] of Object.entries(members as object)) {
        const pair = new ProtoWriter()
        pair.tag(1, key.wireType)
        key.write(pair, key.wireType === wireVarint ? Number(member) : member)
        pair.tag(2, value.wireType)
        value.write(pair, content)
        writer.tag(id, wireLengthDelimited)
        writer.bytes(pair.finish())
      }
    },
    read: (reader, wireType, into) => {
      if (wireType !== wireLengthDelimited) return reader.skip(wireType)
      const pair = new ProtoReader(reader.bytes(), reader.limits)
      let member = key.initial
      let content = value.initial
      while (pair.hasMore) {
        const tag = pair.uint32()
        if (tag === 8 + key.wireType) member = key.read(pair)
        else if (tag === 16 + value.wireType) content = value.read(pair)
        else pair.skip(tag & 7)
      }
      // A key may be any text, also the name of a setter that objects inherit.
      Object.defineProperty(into[name], String(member), { value: content, configurable: true, enumerable: true, writable: true })
    },
  }
}

function entriesOf(namespace: ProtoNamespace, path: readonly string[]): Readonly<Record<string, ProtoEntry>> {
  return path.reduce((entries, part) => {
    const inner = entries[part]
    return inner && 'nested' in inner ? inner.nested : {}
  }, namespace.nested)
}

/** A message of a service description. @param name its package and name */
export function loadMessage(text: string, name: string): MessageCodec {
  const parts = name.split('.')
  return new Messages(entriesOf(parseProto(text), parts.slice(0, -1))).codec(parts.at(-1) ?? '')
}

/**
 * The methods of a service.
 * @param text the service's description, in the notation of ./protoText.ts
 * @param name its package and name: `v2.KeyManagementService`
 */
export function loadService(text: string, name: string): ReadonlyMap<string, ServiceMethod> {
  const parts = name.split('.')
  const entries = entriesOf(parseProto(text), parts.slice(0, -1))
  const service = entries[parts.at(-1) ?? '']
  if (!service || !('methods' in service)) throw new Error(`the service description has no ${name}`)
  const messages = new Messages(entries)
  return new Map(
    Object.entries(service.methods).map(([method, { requestType, responseType }]) => [
      method,
      { path: `/${name}/${method}`, request: messages.codec(requestType), response: messages.codec(responseType) },
    ]),
  )
}
