/** Prometheus' exposition format 0.0.4 (L0, pure): the one place that writes its lines. Callers supply the numbers. */
export interface FamilyHead {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  readonly help: string
}

/** `name="value"`, escaped. */
export function labelPair(name: string, value: string | number): string {
  return `${name}="${escaped(String(value)).replaceAll('"', '\\"')}"`
}

/** @param pairs made by {@link labelPair} @param atMs when the value was measured; absent: at the scrape */
export function sampleLine(name: string, pairs: readonly string[], value: number, atMs?: number): string {
  return `${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${numberText(value)}${atMs === undefined ? '' : ` ${atMs}`}`
}

/** A family with its lines; empty when it has none. */
export function familyText({ name, type, help }: FamilyHead, lines: readonly string[]): string {
  return lines.length === 0 ? '' : `# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${type}\n${lines.join('\n')}\n`
}

export function numberText(value: number): string {
  return value === Number.POSITIVE_INFINITY ? '+Inf' : value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}
