/**
 * Makes text safe for a terminal and for logs of one entry a line (L0, pure): control characters, line and paragraph separators and the marks that turn
 * the direction of text are written as `\uXXXX`. JSON stays the same JSON. Called where text leaves the process, so that no caller has to remember it.
 */

const marks = '\\p{Cc}\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff'
const inLine = new RegExp(`[${marks}]`, 'gu')
const inLines = new RegExp(`(?![\\n\\t])[${marks}]`, 'gu')

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Text as part of one line: line feeds and tabs are escaped, too. */
export function printable(text: string): string {
  return text.replace(inLine, escaped)
}

/** Text of several lines that are its writer's own: line feeds and tabs stay. */
export function printableLines(text: string): string {
  return text.replace(inLines, escaped)
}

/** Data to be shown as text: each string in it, names of members included, as part of one line. */
export function printableData<T>(data: T): T {
  return escapeIn(data) as T
}

function escapeIn(data: unknown): unknown {
  if (typeof data === 'string') return printable(data)
  if (Array.isArray(data)) return data.map(escapeIn)
  if (typeof data !== 'object' || data === null) return data
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [printable(key), escapeIn(value)]))
}

/** An error as text: its message is one line, the places of its stack follow. */
export function printableError(error: unknown): string {
  if (!(error instanceof Error)) return printable(String(error))
  const places = (error.stack ?? '').split('\n').filter((line) => /^ {4}at /.test(line))
  return [printable(error.message), ...places.map(printable)].join('\n')
}
