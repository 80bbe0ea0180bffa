/**
 * Checks the CEL of webhooks and policies when they are written (L1): the grammar. Names and types are found wrong when the expression runs.
 * Upstream: apiserver/pkg/admission/plugin/cel/compile.go (v1.36).
 */

import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { formatIssues } from '#cel/issues'
import { SyntaxFault } from '#cel/syntax/lexer'
import { macroTable, standardMacros } from '#cel/syntax/macro'
import { parse } from '#cel/syntax/parser'

const macros = macroTable(standardMacros)

/** The fault of an expression that cannot be read. */
export function checkExpression(expression: string, path: FieldPath): FieldError[] {
  try {
    parse(expression, macros)
    return []
  } catch (error) {
    if (!(error instanceof SyntaxFault)) throw error
    return [fieldError.invalid(path, expression, `compilation failed: ${formatIssues(expression, [error])}`)]
  }
}

/** An expression that compiled before need not compile again. */
export function checkUnless(known: readonly (string | undefined)[]): (expression: string, path: FieldPath) => FieldError[] {
  return (expression, path) => (known.includes(expression) ? [] : checkExpression(expression, path))
}
