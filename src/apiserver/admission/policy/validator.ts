/**
 * Evaluates a validating policy on one request with one parameter (L3): its match conditions, its validations with their messages, and its
 * audit annotations.
 * Upstream: apiserver/pkg/admission/plugin/policy/validating/{plugin,validator}.go (v1.36).
 */
import { maxMessageBytes } from '#api/cel/admission'
import { AdmissionCompiler, type AdmissionExpression } from '#api/cel/admissionCompiler'
import { requestCostBudget } from '#api/cel/environment'
import type { ValidatingAdmissionPolicy } from '#api/gen/types/admissionregistration.v1'
import type { Frozen } from '#api/machinery/meta'
import { boolType, nullType, stringType } from '#cel/types'
import { AdmissionActivation, type AdmissionInput, BudgetExceeded, type Evaluated } from '../cel/activation.ts'
import { compileMatchConditions, evaluateMatchConditions, type MatchConditions, type MatchOutcome, settled } from '../cel/matchConditions.ts'

export interface CompiledValidations {
  readonly variables: ReadonlyMap<string, AdmissionExpression>
  readonly conditions: MatchConditions | undefined
  readonly validations: readonly CompiledValidation[]
  readonly annotations: readonly { readonly key: string; readonly expression: AdmissionExpression }[]
  /** True for the failure policy Ignore: an evaluation error admits the request. */
  readonly failsOpen: boolean
}

interface CompiledValidation {
  readonly expression: AdmissionExpression
  readonly message: string
  readonly messageExpression: AdmissionExpression | undefined
  readonly reason: string
}

/** Never throws: an expression that does not compile fails when it is evaluated. */
export function compileValidations({ spec }: Frozen<ValidatingAdmissionPolicy>): CompiledValidations {
  const compiler = new AdmissionCompiler({ hasParams: spec.paramKind !== undefined }, true)
  for (const { name, expression } of spec.variables ?? []) compiler.addVariable(name, expression)
  return {
    variables: compiler.variables,
    conditions: spec.matchConditions?.length ? compileMatchConditions(compiler, spec.matchConditions) : undefined,
    validations: (spec.validations ?? []).map(({ expression, message, messageExpression, reason }) => ({
      expression: compiler.compile(expression, { results: [boolType] }),
      message: message?.trim() ?? '',
      messageExpression: messageExpression ? compiler.compile(messageExpression, { results: [stringType], hasAuthorizer: false }) : undefined,
      reason: reason ?? 'Invalid',
    })),
    annotations: (spec.auditAnnotations ?? []).map(({ key, valueExpression }) => ({
      key,
      expression: compiler.compile(valueExpression, { results: [stringType, nullType] }),
    })),
    failsOpen: spec.failurePolicy === 'Ignore',
  }
}

/** The decision of one validation. */
export interface Decision {
  readonly denied: boolean
  /** Set on an evaluation error, whether it denies or not. */
  readonly error?: string | undefined
  readonly message: string
  readonly reason: string
  /** Its index in the policy. */
  readonly index: number
}

export interface ValidationOutcome {
  readonly decisions: readonly Decision[]
  /** Audit annotations by key. */
  readonly annotations: readonly { readonly key: string; readonly value: string }[]
  /** Errors of annotations, which refuse the request whatever the binding's actions are. */
  readonly annotationFaults: readonly string[]
  readonly conditions?: MatchOutcome | undefined
}

const nothing: ValidationOutcome = { decisions: [], annotations: [], annotationFaults: [] }

/** Awaits authorization checks. Budgets are upstream's: one for the conditions, one for the validations with their messages, one for annotations. */
export async function evaluateValidations(compiled: CompiledValidations, input: AdmissionInput): Promise<ValidationOutcome> {
  const failed = (message: string): Decision => ({ denied: !compiled.failsOpen, error: message, message, reason: '', index: 0 })
  let conditions: MatchOutcome | undefined
  if (compiled.conditions) {
    conditions = await evaluateMatchConditions(compiled.conditions, input, compiled.failsOpen ? 'Ignore' : 'Fail')
    if (conditions.error !== undefined) return { ...nothing, decisions: [failed(conditions.error)], conditions }
    if (!conditions.matches) return { ...nothing, conditions }
  }
  return settled(input, () => {
    try {
      return { ...evaluateAll(compiled, input), conditions }
    } catch (error) {
      if (error instanceof BudgetExceeded) return { ...nothing, decisions: [failed(error.message)], conditions }
      throw error
    }
  })
}

function evaluateAll(compiled: CompiledValidations, input: AdmissionInput): ValidationOutcome {
  const { validations, variables } = compiled
  const activation = new AdmissionActivation(input, variables)
  const results: Evaluated[] = []
  let budget = requestCostBudget
  for (const { expression } of validations) {
    const evaluated = activation.evaluate(expression, budget)
    budget = evaluated.budget
    results.push(evaluated.result)
  }
  // Each group of expressions evaluates its own variables, at its own cost. Messages and annotations may not use the authorizer.
  const withoutAuthorizer = { ...input, authorizer: undefined }
  const messages = messagesOf(validations, new AdmissionActivation(withoutAuthorizer, variables), budget)
  const decisions = results.map((result, index) => decide(compiled, result, index, messages))
  return { decisions, ...annotate(compiled, new AdmissionActivation(withoutAuthorizer, variables)) }
}

/** The results of the message expressions, if they are one short line. All are evaluated, also for validations that pass, since their cost counts. */
function messagesOf(validations: readonly CompiledValidation[], activation: AdmissionActivation, budget: number): readonly string[] | BudgetExceeded {
  let left = budget
  try {
    return validations.map(({ messageExpression }) => {
      if (!messageExpression) return ''
      const evaluated = activation.evaluate(messageExpression, left)
      left = evaluated.budget
      const { value } = evaluated.result
      const text = typeof value === 'string' ? value.trim() : ''
      return text.includes('\n') || Buffer.byteLength(text) > maxMessageBytes ? '' : text
    })
  } catch (error) {
    if (error instanceof BudgetExceeded) return error
    throw error
  }
}

function decide(compiled: CompiledValidations, { value, error }: Evaluated, index: number, messages: readonly string[] | BudgetExceeded): Decision {
  const failed = (fault: string): Decision => ({ denied: !compiled.failsOpen, error: fault, message: fault, reason: '', index })
  if (error !== undefined) return failed(error)
  // Fails even a validation that holds, because the cost of its message is unknown.
  if (messages instanceof BudgetExceeded) return failed(`failed messageExpression: ${messages.message}`)
  if (value === true) return { denied: false, message: '', reason: '', index }
  const { message, reason, expression } = compiled.validations[index] as CompiledValidation
  return { denied: true, message: messages[index] || message || `failed expression: ${expression.source.trim()}`, reason, index }
}

function annotate(
  { annotations, failsOpen }: CompiledValidations,
  activation: AdmissionActivation,
): Pick<ValidationOutcome, 'annotations' | 'annotationFaults'> {
  const values: { key: string; value: string }[] = []
  const faults: string[] = []
  let budget = requestCostBudget
  for (const { key, expression } of annotations) {
    const evaluated = activation.evaluate(expression, budget)
    budget = evaluated.budget
    const { value, error } = evaluated.result
    if (error !== undefined) {
      if (!failsOpen) faults.push(error)
    } else if (typeof value === 'string' && value.trim() !== '') values.push({ key, value: value.trim() })
  }
  return { annotations: values, annotationFaults: faults }
}
