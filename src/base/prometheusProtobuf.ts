/**
 * Metric families as Prometheus' protobuf format (L0, pure): io.prometheus.client.MetricFamily messages, each after its length.
 * Upstream: prometheus/client_model io/prometheus/client/metrics.proto, prometheus/common expfmt/encode.go.
 */
import { type Exemplar, type HistogramSample, labelsOf, type MetricFamily } from './metricFamily.ts'

/** Numbers of MetricType. */
const types = { counter: 0, gauge: 1, summary: 2, histogram: 4 } as const

/** A family without samples is left out. */
export function delimitedFamilies(families: Iterable<MetricFamily>): Uint8Array {
  const writer = new Writer()
  for (const family of families) {
    const start = writer.length
    let isEmpty = true
    writer.delimited(() => {
      writer.text(1, family.name)
      writer.text(2, family.help)
      writer.uint(3, types[family.type])
      isEmpty = !writeMetrics(writer, family)
    })
    if (isEmpty) writer.cut(start)
  }
  return writer.finish()
}

/** @returns whether there was one */
function writeMetrics(writer: Writer, family: MetricFamily): boolean {
  let any = false
  const metric = (labels: string, write: () => void) => {
    any = true
    writer.message(4, () => {
      writeLabels(writer, labelsOf(labels))
      write()
    })
  }
  if (family.type === 'histogram') {
    const { bounds } = family
    for (const sample of family.samples) metric(sample.labels, () => writer.message(7, () => writeHistogram(writer, sample, bounds)))
  } else if (family.type === 'summary') {
    for (const { labels, count, sum, quantiles = [] } of family.samples)
      metric(labels, () =>
        writer.message(4, () => {
          writer.uint(1, count)
          writer.double(2, sum)
          for (const { quantile, value } of quantiles) writer.message(3, () => writer.doubles([1, quantile], [2, value]))
        }),
      )
  } else {
    const field = family.type === 'gauge' ? 2 : 3
    for (const { labels, value, atMs } of family.samples)
      metric(labels, () => {
        writer.message(field, () => writer.double(1, value))
        if (atMs !== undefined) writer.uint(6, atMs)
      })
  }
  return any
}

/** As client_golang, without a bucket for +Inf, which has the number of all observations, unless it has an exemplar. */
function writeHistogram(writer: Writer, { counts, sum, exemplars }: HistogramSample, bounds: readonly number[]): void {
  let total = 0
  for (const count of counts) total += count
  writer.uint(1, total)
  writer.double(2, sum)
  let cumulative = 0
  for (let at = 0; at <= bounds.length; at++) {
    cumulative += counts[at] ?? 0
    const exemplar = exemplars?.[at]
    if (at === bounds.length && !exemplar) break
    writer.message(3, () => {
      writer.uint(1, cumulative)
      writer.double(2, bounds[at] ?? Number.POSITIVE_INFINITY)
      if (exemplar) writer.message(3, () => writeExemplar(writer, exemplar))
    })
  }
}

function writeExemplar(writer: Writer, { traceId, spanId, value, atMs }: Exemplar): void {
  writeLabels(writer, [
    ['trace_id', traceId],
    ['span_id', spanId],
  ])
  writer.double(2, value)
  writer.message(3, () => {
    writer.uint(1, Math.floor(atMs / 1000))
    writer.uint(2, Math.round((atMs % 1000) * 1e6))
  })
}

function writeLabels(writer: Writer, labels: readonly (readonly [name: string, value: string])[]): void {
  for (const [name, value] of labels)
    writer.message(1, () => {
      writer.text(1, name)
      writer.text(2, value)
    })
}

const varint = 0
const fixed64 = 1
const lengthDelimited = 2
const initialBytes = 64 * 1024
const encoder = new TextEncoder()

/** Grows as it is written to. Every field is written, also one that has its default: proto2 distinguishes them. */
class Writer {
  #bytes = new Uint8Array(initialBytes)
  #view = new DataView(this.#bytes.buffer)
  length = 0

  uint(field: number, value: number): void {
    this.#tag(field, varint)
    this.#varint(value)
  }

  double(field: number, value: number): void {
    this.#tag(field, fixed64)
    this.#reserve(8)
    this.#view.setFloat64(this.length, value, true)
    this.length += 8
  }

  doubles(...fields: readonly (readonly [field: number, value: number])[]): void {
    for (const [field, value] of fields) this.double(field, value)
  }

  text(field: number, text: string): void {
    this.message(field, () => {
      // A UTF-16 unit takes three bytes at most.
      this.#reserve(text.length * 3)
      this.length += encoder.encodeInto(text, this.#bytes.subarray(this.length)).written
    })
  }

  message(field: number, write: () => void): void {
    this.#tag(field, lengthDelimited)
    this.delimited(write)
  }

  /** What is written, after its length. One byte is kept for the length; a longer one moves what follows. */
  delimited(write: () => void): void {
    this.#reserve(1)
    const at = this.length++
    write()
    const written = this.length - at - 1
    const more = varintBytes(written) - 1
    if (more > 0) {
      this.#reserve(more)
      this.#bytes.copyWithin(at + 1 + more, at + 1, this.length)
    }
    this.length = at
    this.#varint(written)
    this.length += written
  }

  /** Forgets all that was written since. */
  cut(length: number): void {
    this.length = length
  }

  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.length)
  }

  #tag(field: number, wireType: number): void {
    this.#varint(field * 8 + wireType)
  }

  #varint(value: number): void {
    this.#reserve(10)
    let rest = Math.floor(value)
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#bytes[this.length++] = (rest % 0x80) | 0x80
    this.#bytes[this.length++] = rest
  }

  #reserve(count: number): void {
    if (this.length + count <= this.#bytes.length) return
    const larger = new Uint8Array(Math.max(this.#bytes.length * 2, this.length + count))
    larger.set(this.#bytes.subarray(0, this.length))
    this.#bytes = larger
    this.#view = new DataView(larger.buffer)
  }
}

function varintBytes(value: number): number {
  let bytes = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes++
  return bytes
}
