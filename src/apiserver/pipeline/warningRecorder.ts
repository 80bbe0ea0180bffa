/**
 * Adds the request's warnings to the answer (L3), without duplicates; beyond 4,096 characters in all, each is cut to 256, and those that still
 * exceed the limit are left out. Upstream: apiserver/pkg/endpoints/filters/warning.go.
 */
import type { ServerRequest } from '../core/request.ts'
import { finished, type Stage } from '../core/stage.ts'

const mostCharacters = 4 * 1024
const mostOfEach = 256

export const warningRecorderStage: Stage = { name: 'warningRecorder', handle: (request, next) => finished(next, request, () => record(request)) }

function record({ warnings, responseHeaders }: ServerRequest): void {
  if (warnings.length > 0 && responseHeaders) responseHeaders.warning = warningHeaders(warnings)
}

/** `299 - "text"` for each, as RFC 7234 has it. An object may cause many thousands: no more of them are read than are written. */
export function warningHeaders(warnings: readonly string[]): string[] {
  const cut = exceeds(warnings)
  const headers: string[] = []
  let written = 0
  for (const text of printable(warnings)) {
    if (cut && written >= mostCharacters) break
    const shown = firstCharacters(text, cut ? mostOfEach : mostCharacters)
    written += shown.length
    headers.push(`299 - ${quoted(shown.join(''))}`)
  }
  return headers
}

/** Whether all together have more characters than headers may. */
function exceeds(warnings: readonly string[]): boolean {
  let total = 0
  for (const text of printable(warnings)) {
    total += firstCharacters(text, mostCharacters + 1).length
    if (total > mostCharacters) return true
  }
  return false
}

function* printable(warnings: readonly string[]): Generator<string> {
  const seen = new Set<string>()
  for (const text of warnings) {
    if (text === '' || seen.has(text)) continue
    seen.add(text)
    if (!controls.test(text)) yield text
  }
}

/** Unicode characters, of which a string's units may be halves. */
function firstCharacters(text: string, most: number): string[] {
  return [...text.slice(0, 2 * most)].slice(0, most)
}

// As upstream: a text with control characters makes no header.
const controls = /\p{Cc}/u

/** A quoted string of one line, as headers need it. */
function quoted(text: string): string {
  const clean = text.replace(/[^\x20-\x7e\u00a0-\u00ff]/g, ' ')
  return `"${clean.replace(/["\\]/g, '\\$&')}"`
}
