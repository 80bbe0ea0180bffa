/**
 * Regular expressions of CEL (L1, pure): RE2 syntax, matched in linear time, so that no pattern can hang the server.
 */
import { RE2JS } from 're2js'
import { EvaluationError } from './values.ts'

/** @throws EvaluationError with Go's text when the pattern is no RE2. */
export function compileRegularExpression(pattern: string): RE2JS {
  try {
    return RE2JS.compile(pattern)
  } catch (error) {
    throw new EvaluationError(error instanceof Error ? error.message : String(error))
  }
}

/** Whether the pattern matches anywhere in the text. */
export const matches = (text: string, pattern: string): boolean => compileRegularExpression(pattern).matcher(text).find()
