/**
 * Regular expressions (L1, pure): RE2 syntax, matched in linear time, so that no pattern can hang the server. Compiling one takes about 15 microseconds an
 * instruction here, a hundred times Go's, so what a pattern and an evaluation may compile is bounded.
 */
import { RE2JS } from 're2js'
import { messageOf } from '#base/messageOf'
import { patternSize } from './patternSize.ts'
import { EvaluationError } from './values.ts'

/** Instructions of one pattern; the name of a domain with its 63-character labels takes 8,000. Upstream's limit is Go's, 3 million. */
const maxPatternSize = 10_000
/** Instructions of all patterns that one evaluation compiles. */
const maxSizePerEvaluation = 15_000

let compiledSize = 0
let evaluationEnd = Number.POSITIVE_INFINITY

/** Instructions compiled by this process so far: the difference of two readings is what the work between them has compiled. */
export const compiledPatternSize = (): number => compiledSize

/** @throws EvaluationError with Go's text when the pattern is no RE2, or is too large */
export function compileRegularExpression(pattern: string): RE2JS {
  const size = patternSize(pattern)
  if (size > maxPatternSize || compiledSize + size > evaluationEnd) throw new EvaluationError(`error parsing regexp: expression too large`)
  compiledSize += size
  try {
    return RE2JS.compile(pattern)
  } catch (error) {
    throw new EvaluationError(messageOf(error))
  }
}

/** Runs one evaluation, which may compile a bounded amount of patterns. */
export function withBoundedPatterns<T>(evaluate: () => T): T {
  const outer = evaluationEnd
  evaluationEnd = compiledSize + maxSizePerEvaluation
  try {
    return evaluate()
  } finally {
    evaluationEnd = outer
  }
}

/** Compiles patterns, remembering the last one: a call mostly comes with the same. */
export function patternCompiler(): (pattern: string) => RE2JS {
  let last: { pattern: string; compiled: RE2JS } | undefined
  return (pattern) => {
    if (last?.pattern !== pattern) last = { pattern, compiled: compileRegularExpression(pattern) }
    return last.compiled
  }
}
