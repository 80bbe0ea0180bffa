/**
 * What would allow a refused request (L3): at most three lines, by the message of the refusal, which is upstream's, and by the objects and rules as they
 * are now. Authorization is explained by the authorizers themselves.
 */
import type { TracedRequest } from '#api/debug/traces'
import { accessAdvice } from './accessAdvice.ts'
import { admissionAdvice } from './admissionAdvice.ts'
import type { AdviceDeps, AdviceRule } from './adviceRule.ts'
import { requestAdvice } from './requestAdvice.ts'
import { stateAdvice } from './stateAdvice.ts'

const mostLines = 3
const mostLength = 300

/** Rules that read objects believe a message only from who refused: clients choose the names that stand in messages. */
function rulesFor({ refusedBy }: TracedRequest): readonly AdviceRule[] {
  if (refusedBy === 'authorization') return accessAdvice
  return refusedBy === undefined ? [...stateAdvice, ...requestAdvice] : [...admissionAdvice, ...stateAdvice, ...requestAdvice]
}

export async function adviceFor(request: TracedRequest, deps: AdviceDeps): Promise<readonly string[] | undefined> {
  if (request.code < 400) return undefined
  // The first that fits a refusal explains it.
  for (const { code, message, lines } of rulesFor(request)) {
    if (code !== undefined && code !== request.code) continue
    const match = message.exec(request.message ?? '')
    if (!match) continue
    const said = await lines(match, request, deps)
    return said.slice(0, mostLines).map((line) => (line.length > mostLength ? `${line.slice(0, mostLength)}…` : line))
  }
  return undefined
}
