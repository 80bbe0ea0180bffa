/**
 * Chooses the format of a scrape by the client's Accept header and writes it (L0, pure): Prometheus' text, OpenMetrics, or Prometheus' protobuf.
 * Upstream: prometheus/client_golang promhttp with EnableOpenMetrics, prometheus/common expfmt/encode.go (NegotiateIncludingOpenMetrics).
 */
import type { MetricFamily } from './metricFamily.ts'
import { openMetricsText } from './openMetricsText.ts'
import { delimitedFamilies } from './prometheusProtobuf.ts'
import { prometheusText } from './prometheusText.ts'

/** The body of an answer to a scrape. */
export interface Exposition {
  readonly contentType: string
  readonly body: string | Uint8Array
}

interface Format {
  readonly contentType: string
  accepts(type: string, parameters: ReadonlyMap<string, string>): boolean
  write(families: Iterable<MetricFamily>): string | Uint8Array
}

const openMetrics = (version: string, versions: readonly string[]): Format => ({
  contentType: `application/openmetrics-text; version=${version}; charset=utf-8`,
  accepts: (type, parameters) => type === 'application/openmetrics-text' && versions.includes(parameters.get('version') ?? ''),
  write: openMetricsText,
})

const text: Format = {
  contentType: 'text/plain; version=0.0.4; charset=utf-8',
  accepts: (type, parameters) => type === 'text/plain' && ['', '0.0.4'].includes(parameters.get('version') ?? ''),
  write: prometheusText,
}

const message = 'io.prometheus.client.MetricFamily'
const protobuf: Format = {
  contentType: `application/vnd.google.protobuf; proto=${message}; encoding=delimited`,
  accepts: (type, parameters) =>
    type === 'application/vnd.google.protobuf' && parameters.get('proto') === message && parameters.get('encoding') === 'delimited',
  write: delimitedFamilies,
}

const formats: readonly Format[] = [protobuf, text, openMetrics('1.0.0', ['1.0.0']), openMetrics('0.0.1', ['0.0.1', ''])]

/** How names that are not ASCII would be escaped; no name of ours is. Answered as the client writes it. */
const escapings: ReadonlySet<string> = new Set(['allow-utf-8', 'underscores', 'dots', 'values'])

/** @param accept the Accept header; absent, or without a format that is known: Prometheus' text */
export function exposition(families: Iterable<MetricFamily>, accept: string | readonly string[] | undefined): Exposition {
  const { format, escaping } = negotiated(typeof accept === 'string' ? accept : (accept ?? []).join(','))
  return { contentType: `${format.contentType}; escaping=${escaping}`, body: format.write(families) }
}

function negotiated(accept: string): { readonly format: Format; readonly escaping: string } {
  let escaping = 'underscores'
  for (const { type, parameters } of clausesOf(accept)) {
    const wanted = parameters.get('escaping')
    if (wanted !== undefined && escapings.has(wanted)) escaping = wanted
    const format = formats.find((one) => one.accepts(type, parameters))
    if (format) return { format, escaping }
  }
  return { format: text, escaping }
}

interface Clause {
  readonly type: string
  readonly parameters: ReadonlyMap<string, string>
  readonly quality: number
}

/** Clauses beyond these are not read: the header is the client's. */
const mostClauses = 32

/** The clauses of the header, the preferred one first. */
function clausesOf(accept: string): Clause[] {
  return accept
    .split(',', mostClauses)
    .map(clauseOf)
    .sort((a, b) => b.quality - a.quality)
}

function clauseOf(clause: string): Clause {
  const [type = '', ...rest] = clause.split(';', mostClauses).map((part) => part.trim())
  const parameters = new Map<string, string>()
  for (const part of rest) {
    const at = part.indexOf('=')
    if (at > 0) parameters.set(part.slice(0, at).trim().toLowerCase(), unquoted(part.slice(at + 1).trim()))
  }
  const quality = Number(parameters.get('q') ?? 1)
  return { type: type.toLowerCase(), parameters, quality: Number.isFinite(quality) ? quality : 1 }
}

function unquoted(value: string): string {
  return /^".*"$/.test(value) ? value.slice(1, -1) : value
}
