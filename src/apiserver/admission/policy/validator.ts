/**
 * Evaluates a validating policy on one request with one parameter (L3): its match conditions, its validations with their messages, and what it
 * notes for the audit log.
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
  /** Ignore: what fails to evaluate lets the request pass. */
  readonly failsOpen: boolean
}

interface CompiledValidation {
  readonly expression: AdmissionExpression
  readonly message: string
  readonly messageExpression: AdmissionExpression | undefined
  readonly reason: string
}

/** Never throws: what does not compile says so when it is evaluated. */
export function compileValidations({ spec }: Frozen<ValidatingAdmissionPolicy>): CompiledValidations {
  const compiler = new AdmissionCompiler({ hasParams: spec.paramKind !== undefined }, true)
  for (const { name, expression } of spec.variables ?? []) compiler.addVariable(name, expression)
  return {
    variables: compiler.variables,
    conditions: compileMatchConditions(compiler, spec.matchConditions),
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

/** What one validation decided. */
export interface Decision {
  readonly denied: boolean
  /** Set when it could not be evaluated, denied or not. */
  readonly error?: string | undefined
  readonly message: string
  readonly reason: string
  /** Its place in the policy. */
  readonly index: number
}

export interface ValidationOutcome {
  readonly decisions: readonly Decision[]
  /** Values to note, by key. */
  readonly annotations: readonly { readonly key: string; readonly value: string }[]
  /** Annotations that could not be worked out, which refuses the request whatever the binding's actions are. */
  readonly annotationFaults: readonly string[]
  readonly conditions?: MatchOutcome | undefined
}

const nothing: ValidationOutcome = { decisions: [], annotations: [], annotationFaults: [] }

/** Authorization checks may be waited for; budgets are upstream's: one for the conditions, one for the validations with their messages, one for annotations. */
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
  const { validations, annotations, variables } = compiled
  const activation = new AdmissionActivation(input, variables)
  const results: Evaluated[] = []
  let budget = requestCostBudget
  for (const { expression } of validations) {
    const evaluated = activation.evaluate(expression, budget)
    budget = evaluated.budget
    results.push(evaluated.result)
  }
  // Every group has variables of its own, and pays for them.
  const messages = new AdmissionActivation(input, variables)
  const decisions = results.map((result, index) => {
    const decided = decide(compiled, result, index, { messages, budget })
    budget = decided.budget
    return decided.decision
  })
  return { decisions, ...annotate(compiled, annotations.length > 0 ? new AdmissionActivation(input, variables) : activation) }
}

interface MessageState {
  readonly messages: AdmissionActivation
  readonly budget: number
}

function decide(compiled: CompiledValidations, { value, error }: Evaluated, index: number, state: MessageState): { decision: Decision; budget: number } {
  const { budget } = state
  const validation = compiled.validations[index] as CompiledValidation
  const { reason, expression } = validation
  if (error !== undefined) return { decision: { denied: !compiled.failsOpen, error, message: error, reason: '', index }, budget }
  if (value === true) return { decision: { denied: false, message: '', reason: '', index }, budget }
  const made = messageOf(validation, state)
  if (made === 'outOfBudget') {
    const message = `failed messageExpression: ${new BudgetExceeded().message}`
    return { decision: { denied: !compiled.failsOpen, error: message, message, reason: '', index }, budget: 0 }
  }
  const message = made.text || validation.message || `failed expression: ${expression.source.trim()}`
  return { decision: { denied: true, message, reason, index }, budget: made.budget }
}

/** What the message expression gives, if that is one short line. */
function messageOf({ messageExpression }: CompiledValidation, { messages, budget }: MessageState): { text: string; budget: number } | 'outOfBudget' {
  if (!messageExpression) return { text: '', budget }
  try {
    const evaluated = messages.evaluate(messageExpression, budget)
    const { value } = evaluated.result
    const text = typeof value === 'string' ? value.trim() : ''
    return { text: text.includes('\n') || Buffer.byteLength(text) > maxMessageBytes ? '' : text, budget: evaluated.budget }
  } catch (error) {
    if (error instanceof BudgetExceeded) return 'outOfBudget'
    throw error
  }
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
