/**
 * Regular expressions of CEL (L1, pure): RE2 syntax, matched in linear time, so that no pattern can hang the server.
 */
import { RE2JS } from 're2js'
import { messageOf } from '#base/messageOf'
import { EvaluationError } from './values.ts'

/** @throws EvaluationError with Go's text when the pattern is no RE2. */
export function compileRegularExpression(pattern: string): RE2JS {
  try {
    return RE2JS.compile(pattern)
  } catch (error) {
    throw new EvaluationError(messageOf(error))
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
