/**
 * /livez, /readyz and /healthz with their named checks (L3).
 * Upstream: apiserver/pkg/server/healthz.
 */
import { exposition } from '#base/exposition'
import type { HealthSlis } from '#base/healthSlis'
import type { Answer } from './answer.ts'
import { expositionAnswer, textAnswer } from './answer.ts'
import type { ServerRequest } from './request.ts'

export interface HealthCheck {
  readonly name: string
  /** False: /livez does not ask it, since nothing is won by starting the server again. */
  readonly livez?: false | undefined
  /** Undefined when well; the reason otherwise, which is logged and not shown. */
  check(): string | undefined | Promise<string | undefined>
}

/** `path` is /livez, /readyz or /healthz, or a check below it. Undefined when there is no such check. */
export async function healthAnswer(
  root: 'livez' | 'readyz' | 'healthz',
  all: readonly HealthCheck[],
  slis: HealthSlis,
  request: ServerRequest,
): Promise<Answer | undefined> {
  const checks = root === 'livez' ? all.filter(({ livez }) => livez !== false) : all
  const only = request.path.slice(root.length + 2)
  if (only !== '') {
    const one = checks.find((check) => check.name === only)
    if (!one) return undefined
    const failure = await one.check()
    return failure === undefined ? textAnswer(200, 'ok') : textAnswer(500, `internal server error: ${failure}\n`)
  }
  const excluded = new Set(request.query.getAll('exclude'))
  const lines: string[] = []
  let failed = false
  for (const check of checks) {
    if (excluded.delete(check.name)) {
      lines.push(`[+]${check.name} excluded: ok`)
      continue
    }
    const failure = await check.check()
    slis.observe(check.name, root, failure === undefined)
    if (failure === undefined) lines.push(`[+]${check.name} ok`)
    else {
      failed = true
      lines.push(`[-]${check.name} failed: reason withheld`)
    }
  }
  for (const name of excluded) lines.push(`warn: some health checks cannot be excluded: no matches for ${JSON.stringify(name)}`)
  if (failed) return textAnswer(500, `${lines.join('\n')}\n${root} check failed\n`, { 'x-content-type-options': 'nosniff' })
  if (!request.query.has('verbose')) return textAnswer(200, 'ok', { 'x-content-type-options': 'nosniff' })
  return textAnswer(200, `${lines.join('\n')}\n${root} check passed\n`)
}

/** /metrics/slis. */
export function slisAnswer(slis: HealthSlis, request: ServerRequest): Answer {
  return expositionAnswer(exposition(slis.families(), request.headers.accept))
}
