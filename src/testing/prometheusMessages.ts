/** Reads Prometheus' delimited protobuf format (L3), so that tests can compare it with the text formats. Upstream: prometheus/client_model metrics.proto. */
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'

export interface ReadFamily {
  readonly name: string
  readonly help: string
  /** The number of MetricType. */
  readonly type: number
  readonly metrics: readonly ReadMetric[]
}

/** Numbers by their path in the message: `histogram.bucket.2.upper_bound`; places of repeated fields count from 0. */
export interface ReadMetric {
  readonly labels: Readonly<Record<string, string>>
  readonly values: Readonly<Record<string, number>>
  /** Labels of the exemplars, in order. */
  readonly exemplars: readonly Readonly<Record<string, string>>[]
}

type Kind = 'text' | 'number' | 'double' | Message
interface Message {
  readonly [field: number]: readonly [name: string, kind: Kind, repeated?: 'repeated']
}

const pair: Message = { 1: ['name', 'text'], 2: ['value', 'text'] }
const timestamp: Message = { 1: ['seconds', 'number'], 2: ['nanos', 'number'] }
const exemplar: Message = { 1: ['label', pair, 'repeated'], 2: ['value', 'double'], 3: ['timestamp', timestamp] }
const single: Message = { 1: ['value', 'double'] }
const quantile: Message = { 1: ['quantile', 'double'], 2: ['value', 'double'] }
const summary: Message = { 1: ['sample_count', 'number'], 2: ['sample_sum', 'double'], 3: ['quantile', quantile, 'repeated'] }
const bucket: Message = { 1: ['cumulative_count', 'number'], 2: ['upper_bound', 'double'], 3: ['exemplar', exemplar] }
const histogram: Message = { 1: ['sample_count', 'number'], 2: ['sample_sum', 'double'], 3: ['bucket', bucket, 'repeated'] }
const metric: Message = {
  1: ['label', pair, 'repeated'],
  2: ['gauge', single],
  3: ['counter', single],
  4: ['summary', summary],
  6: ['timestamp_ms', 'number'],
  7: ['histogram', histogram],
}

type Visit = (path: string, value: string | number) => void

/** Calls `visit` for every field that is no message. @throws Error for a field that is not in the description */
function read(reader: BinaryReader, end: number, message: Message, path: string, visit: Visit): void {
  const counts = new Map<string, number>()
  while (reader.pos < end) {
    const [field, wireType] = reader.tag()
    const known = message[field]
    if (!known) throw new Error(`${path} has no field ${field} of type ${wireType}`)
    const [name, kind, repeated] = known
    const at = counts.get(name) ?? 0
    counts.set(name, at + 1)
    const own = `${path === '' ? '' : `${path}.`}${name}${repeated ? `.${at}` : ''}`
    if (kind === 'text' && wireType === WireType.LengthDelimited) visit(own, reader.string())
    else if (kind === 'number' && wireType === WireType.Varint) visit(own, Number(reader.uint64()))
    else if (kind === 'double' && wireType === WireType.Bit64) visit(own, reader.double())
    else if (typeof kind === 'object' && wireType === WireType.LengthDelimited) {
      const length = reader.uint32()
      read(reader, reader.pos + length, kind, own, visit)
    } else throw new Error(`${own} has wire type ${wireType}`)
  }
}

function readMetric(reader: BinaryReader, end: number): ReadMetric {
  const texts = new Map<string, string>()
  const values = new Map<string, number>()
  read(reader, end, metric, '', (path, value) => {
    if (typeof value === 'string') texts.set(path, value)
    else values.set(path, value)
  })
  // By the exemplar's path; those of the metric itself have none.
  const labels = new Map<string, [name: string, value: string][]>()
  for (const [path, name] of texts) {
    const [, owner = ''] = /^(?:(.*)\.)?label\.\d+\.name$/.exec(path) ?? []
    if (!path.endsWith('.name')) continue
    const pairs = labels.get(owner) ?? []
    pairs.push([name, texts.get(path.replace(/name$/, 'value')) ?? ''])
    labels.set(owner, pairs)
  }
  const own = Object.fromEntries(labels.get('') ?? [])
  labels.delete('')
  return { labels: own, values: Object.fromEntries(values), exemplars: [...labels.values()].map((pairs) => Object.fromEntries(pairs)) }
}

/** @throws Error when the bytes are no such messages */
export function readFamilies(bytes: Uint8Array): ReadFamily[] {
  const reader = new BinaryReader(bytes)
  const families: ReadFamily[] = []
  while (reader.pos < reader.len) {
    const length = reader.uint32()
    const end = reader.pos + length
    const family = { name: '', help: '', type: 0, metrics: [] as ReadMetric[] }
    while (reader.pos < end) {
      const [field] = reader.tag()
      if (field === 1) family.name = reader.string()
      else if (field === 2) family.help = reader.string()
      else if (field === 3) family.type = reader.uint32()
      else if (field === 4) {
        const size = reader.uint32()
        family.metrics.push(readMetric(reader, reader.pos + size))
      } else throw new Error(`a family has no field ${field}`)
    }
    families.push(family)
  }
  return families
}
