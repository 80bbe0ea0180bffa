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

/** `299 - "text"` for each, as RFC 7234 has it. */
export function warningHeaders(warnings: readonly string[]): string[] {
  const texts = [...new Set(warnings)].filter((text) => text !== '' && !controls.test(text)).map((text) => [...text])
  const total = texts.reduce((sum, text) => sum + text.length, 0)
  const cut = total > mostCharacters
  const headers: string[] = []
  let written = 0
  for (const text of texts) {
    if (cut && written >= mostCharacters) break
    const shown = cut ? text.slice(0, mostOfEach) : text
    written += shown.length
    headers.push(`299 - ${quoted(shown.join(''))}`)
  }
  return headers
}

// As upstream: a text with control characters makes no header.
const controls = /\p{Cc}/u

/** A quoted string of one line, as headers need it. */
function quoted(text: string): string {
  const clean = text.replace(/[^\x20-\x7e\u00a0-\u00ff]/g, ' ')
  return `"${clean.replace(/["\\]/g, '\\$&')}"`
}
