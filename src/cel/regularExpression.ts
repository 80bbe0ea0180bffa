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
/** Instructions of all patterns that one evaluation uses, whether they are remembered or compiled: the result does not depend on earlier evaluations. */
export const maxSizePerEvaluation = 15_000

const tooLarge = 'error parsing regexp: expression too large'
let compiledSize = 0
let evaluation: { left: number } | undefined

/** Instructions compiled by this process so far: the difference of two readings is what the work between them has compiled. */
export const compiledPatternSize = (): number => compiledSize

/** @throws EvaluationError with Go's text when the pattern is no RE2, or is too large */
export function compileRegularExpression(pattern: string): RE2JS {
  const size = patternSize(pattern)
  if (size > maxPatternSize) throw new EvaluationError(tooLarge)
  compiledSize += size
  try {
    return RE2JS.compile(pattern)
  } catch (error) {
    throw new EvaluationError(messageOf(error))
  }
}

/** Runs one evaluation, which may use a bounded amount of patterns. */
export function withBoundedPatterns<T>(evaluate: () => T): T {
  const outer = evaluation
  evaluation = { left: maxSizePerEvaluation }
  try {
    return evaluate()
  } finally {
    evaluation = outer
  }
}

function charge(size: number): void {
  if (!evaluation) return
  evaluation.left -= size
  if (evaluation.left < 0) throw new EvaluationError(tooLarge)
}

/** Compiles patterns, remembering the last one: a call mostly comes with the same. */
export function patternCompiler(): (pattern: string) => RE2JS {
  let last: { pattern: string; compiled: RE2JS; chargedTo: object | undefined } | undefined
  return (pattern) => {
    if (last?.pattern === pattern && last.chargedTo === evaluation) return last.compiled
    charge(patternSize(pattern))
    last = { pattern, compiled: last?.pattern === pattern ? last.compiled : compileRegularExpression(pattern), chargedTo: evaluation }
    return last.compiled
  }
}
