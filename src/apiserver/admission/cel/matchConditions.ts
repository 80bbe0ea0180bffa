/**
 * Match conditions of webhooks and policies (L3): if any is false, the request is not matched; errors count only if none is false.
 * Upstream: apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go (v1.36).
 */
import { matchConditionsCostBudget } from '#api/cel/admission'
import type { AdmissionCompiler, AdmissionExpression } from '#api/cel/admissionCompiler'
import type { MatchCondition } from '#api/gen/types/admissionregistration.v1'
import type { Frozen } from '#api/machinery/meta'
import { boolType } from '#cel/types'
import { aggregateReasons } from '../../core/reasons.ts'
import { AdmissionActivation, type AdmissionInput, BudgetExceeded, type Evaluated } from './activation.ts'

export interface MatchConditions {
  readonly conditions: readonly AdmissionExpression[]
  readonly variables: ReadonlyMap<string, AdmissionExpression>
}

export function compileMatchConditions(compiler: AdmissionCompiler, conditions: readonly Frozen<MatchCondition>[]): MatchConditions {
  return {
    conditions: conditions.map(({ expression }) => compiler.compile(expression, { results: [boolType] })),
    variables: compiler.variables,
  }
}

export interface MatchOutcome {
  readonly matches: boolean
  /** Set when the failure policy refuses the request. */
  readonly error?: string | undefined
  /** How many conditions failed to evaluate. */
  readonly failures: number
}

export async function evaluateMatchConditions({ conditions, variables }: MatchConditions, input: AdmissionInput, failurePolicy: string): Promise<MatchOutcome> {
  const outcome = await settled(input, () => evaluateOnce(conditions, new AdmissionActivation(input, variables)))
  if (outcome.isFalse) return { matches: false, failures: outcome.errors.length }
  if (outcome.errors.length === 0) return { matches: true, failures: 0 }
  const failures = outcome.errors.length
  return failurePolicy === 'Ignore' ? { matches: false, failures } : { matches: false, error: aggregateReasons(outcome.errors), failures }
}

/** Repeats the evaluation until no authorization check is pending. */
export async function settled<T>({ authorizer }: AdmissionInput, run: () => T): Promise<T> {
  for (;;) {
    const result = run()
    const pending = authorizer?.pending()
    if (!pending) return result
    await pending
  }
}

function evaluateOnce(conditions: readonly AdmissionExpression[], activation: AdmissionActivation): { isFalse: boolean; errors: string[] } {
  let budget = matchConditionsCostBudget
  const results: Evaluated[] = []
  try {
    for (const condition of conditions) {
      const evaluated = activation.evaluate(condition, budget)
      budget = evaluated.budget
      results.push(evaluated.result)
    }
  } catch (error) {
    if (error instanceof BudgetExceeded) return { isFalse: false, errors: [error.message] }
    throw error
  }
  return { isFalse: results.some(({ value }) => value === false), errors: results.flatMap(({ error }) => (error === undefined ? [] : [error])) }
}
