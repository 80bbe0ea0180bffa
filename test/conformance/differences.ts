/** Two JSON values compared as a list of differences, each with its place: what the conformance tests count and print. */

export interface Difference {
  readonly at: string
  readonly want: unknown
  readonly got: unknown
}

/** Every place where the values differ. Arrays are compared item by item; sort those whose order means nothing before. */
export function differences(want: unknown, got: unknown, at = ''): Difference[] {
  if (Object.is(want, got)) return []
  if (Array.isArray(want) && Array.isArray(got) && want.length === got.length) return want.flatMap((item, i) => differences(item, got[i], `${at}[${i}]`))
  if (!isObject(want) || !isObject(got)) return [{ at, want, got }]
  return [...new Set([...Object.keys(want), ...Object.keys(got)])].flatMap((key) => differences(want[key], got[key], `${at}/${key}`))
}

/** As lines for a failed test. */
export function show(found: readonly Difference[], most = 40): string {
  const lines = found.slice(0, most).map(({ at, want, got }) => `${at}: want ${brief(want)}, got ${brief(got)}`)
  return [`${found.length} differences`, ...lines].join('\n')
}

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
