/**
 * Checks the CEL of webhooks and policies when they are written (L1): it is compiled as it will run, except that conditions see no policy
 * variables and the types of the objects are unknown. An unchanged expression is compiled again, because the variables that it uses may have changed.
 * Upstream: pkg/apis/admissionregistration/validation (v1.36).
 */
import { AdmissionCompiler, type CompileOptions } from '#api/cel/admissionCompiler'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { boolType } from '#cel/types'
import type { ExpressionCheck } from './matchRules.ts'

/** For expressions whose result must be one of some types. */
export function checkWith(compiler: AdmissionCompiler, options: CompileOptions): ExpressionCheck {
  return (expression, path) => expressionFaults(expression, compiler.compile(expression, options), path)
}

/** Checks match conditions. @param hasParams whether they belong to a policy with parameters */
export function checkConditions(hasParams: boolean): ExpressionCheck {
  return checkWith(new AdmissionCompiler({ hasParams }, false), { results: [boolType] })
}

/** `shown`: the expression as the object has it. */
export function expressionFaults(shown: string, { fault }: { readonly fault?: string | undefined }, path: FieldPath): FieldError[] {
  return fault === undefined ? [] : [fieldError.invalid(path, shown, fault)]
}
