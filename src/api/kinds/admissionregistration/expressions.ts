/**
 * Checks the CEL of webhooks, policies and device selectors when they are written (L1). Conditions are compiled: their names and functions
 * must exist and the result must be a bool; the shape of the objects is not known yet. Other expressions are read for their grammar.
 * Upstream: apiserver/pkg/admission/plugin/cel/compile.go (v1.36).
 */
import { admissionEnvironment } from '#api/cel/admission'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Environment } from '#cel/environment'
import { formatIssues } from '#cel/issues'
import { SyntaxFault } from '#cel/syntax/lexer'
import { macroTable, standardMacros } from '#cel/syntax/macro'
import { parse } from '#cel/syntax/parser'
import { boolType, dynType, openObjectType, typeName } from '#cel/types'

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

/** An expression that was there before need not be read again. */
export function checkUnless(known: readonly (string | undefined)[]): (expression: string, path: FieldPath) => FieldError[] {
  return (expression, path) => (known.includes(expression) ? [] : checkExpression(expression, path))
}

/** Conditions of webhooks, and of policies without and with parameters. */
export type ConditionScope = 'webhook' | 'policy' | 'policyWithParams'

/** As `checkUnless`, for expressions that must be true or false. */
export function checkConditionUnless(known: readonly (string | undefined)[], scope: ConditionScope): (expression: string, path: FieldPath) => FieldError[] {
  return (expression, path) => (known.includes(expression) ? [] : checkCondition(expression, environments[scope], path))
}

/** Of variables, only their names are known when a condition is written: their own expressions may be at fault. */
const variables = openObjectType('kubernetes.variables')
const environments: Readonly<Record<ConditionScope, Environment>> = {
  webhook: admissionEnvironment({ hasParams: false, hasAuthorizer: true }),
  policy: admissionEnvironment({ hasParams: false, hasAuthorizer: true, variables }),
  policyWithParams: admissionEnvironment({ hasParams: true, hasAuthorizer: true, variables }),
}

function checkCondition(expression: string, environment: Environment, path: FieldPath): FieldError[] {
  const compiled = environment.compile(expression)
  if (!compiled.ok) return [fieldError.invalid(path, expression, `compilation failed: ${compiled.message}`)]
  const result = typeName(compiled.checked.resultType)
  return result === typeName(boolType) || result === typeName(dynType) ? [] : [fieldError.invalid(path, expression, 'must evaluate to bool')]
}
