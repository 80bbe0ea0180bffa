/**
 * What a scrape shows (L0, pure): metric families with their samples, independent of the format. ./exposition.ts writes them as the client asks for.
 * Upstream: prometheus/client_model, metrics.proto.
 */
export type MetricFamily = ValueFamily | HistogramFamily | SummaryFamily

interface FamilyHead {
  readonly name: string
  readonly help: string
}

export interface ValueFamily extends FamilyHead {
  readonly type: 'counter' | 'gauge'
  readonly samples: Iterable<ValueSample>
}

export interface HistogramFamily extends FamilyHead {
  readonly type: 'histogram'
  /** Upper bounds of the buckets, ascending, without +Inf. */
  readonly bounds: readonly number[]
  readonly samples: Iterable<HistogramSample>
}

export interface SummaryFamily extends FamilyHead {
  readonly type: 'summary'
  readonly samples: Iterable<SummarySample>
}

interface Sample {
  /** Written by {@link labelsText}. */
  readonly labels: string
}

export interface ValueSample extends Sample {
  readonly value: number
  /** When the value was measured, in milliseconds since 1970; absent: at the scrape. */
  readonly atMs?: number | undefined
}

export interface HistogramSample extends Sample {
  /** Observations by bucket, not summed up; one more than there are bounds. */
  readonly counts: readonly number[]
  readonly sum: number
  /** At most one for each bucket. */
  readonly exemplars?: readonly (Exemplar | undefined)[] | undefined
}

export interface SummarySample extends Sample {
  readonly count: number
  readonly sum: number
  readonly quantiles?: readonly { readonly quantile: number; readonly value: number }[] | undefined
}

/** An observation of a sampled trace. */
export interface Exemplar {
  readonly traceId: string
  readonly spanId: string
  readonly value: number
  readonly atMs: number
}

/** `name="value"`, escaped. */
export function labelPair(name: string, value: string | number): string {
  return `${name}="${escaped(String(value)).replaceAll('"', '\\"')}"`
}

/** Labels as every text format has them between braces: pairs with commas between them. */
export function labelsText(labels: Readonly<Record<string, string | number>>): string {
  let text = ''
  for (const name of Object.keys(labels)) text += `${text === '' ? '' : ','}${labelPair(name, labels[name] as string | number)}`
  return text
}

/** The names and values of {@link labelsText}, in the same order. */
export function labelsOf(text: string): (readonly [name: string, value: string])[] {
  return [...text.matchAll(/([^=,]+)="((?:[^"\\]|\\.)*)"/g)].map(([, name = '', value = '']) => [name, unescaped(value)])
}

/** Escapes what every text format escapes: backslashes and line feeds. */
export function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function unescaped(text: string): string {
  return text.includes('\\') ? text.replaceAll(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char)) : text
}
