/**
 * Compiles a mutating policy and runs one of its mutations (L3). Upstream: apiserver/pkg/admission/plugin/policy/mutating/compilation.go,
 * plugin/cel/mutation.go (v1.36).
 */
import { AdmissionCompiler, type AdmissionExpression } from '#api/cel/admissionCompiler'
import { requestCostBudget } from '#api/cel/environment'
import { applyConfigurationType, jsonPatchType } from '#api/cel/mutation'
import type { MutatingAdmissionPolicy } from '#api/gen/types/admissionregistration.v1'
import type { Frozen } from '#api/machinery/meta'
import { listType } from '#cel/types'
import type { Value } from '#cel/values'
import { AdmissionActivation, type AdmissionInput, BudgetExceeded } from '../cel/activation.ts'
import { compileMatchConditions, type MatchConditions, settled } from '../cel/matchConditions.ts'
import { MutationFault } from './patchers.ts'

export interface CompiledMutation {
  readonly patchType: string
  readonly expression: AdmissionExpression
}

export interface CompiledMutations {
  readonly variables: ReadonlyMap<string, AdmissionExpression>
  readonly conditions: MatchConditions | undefined
  readonly mutations: readonly CompiledMutation[]
}

/** Never throws: an expression that does not compile fails when it is evaluated. */
export function compileMutations({ spec }: Frozen<MutatingAdmissionPolicy>): CompiledMutations {
  const compiler = new AdmissionCompiler({ hasParams: spec.paramKind !== undefined }, true)
  for (const { name, expression } of spec.variables ?? []) compiler.addVariable(name, expression)
  return {
    variables: compiler.variables,
    conditions: spec.matchConditions?.length ? compileMatchConditions(compiler, spec.matchConditions) : undefined,
    mutations: (spec.mutations ?? []).map(({ patchType, applyConfiguration, jsonPatch }) => {
      const isJson = patchType === 'JSONPatch'
      const source = (isJson ? jsonPatch?.expression : applyConfiguration?.expression) ?? ''
      const results = [isJson ? listType(jsonPatchType) : applyConfigurationType]
      return { patchType, expression: compiler.compile(source, { results, hasPatchTypes: true }) }
    }),
  }
}

/** The result of the mutation's expression. @throws MutationFault */
export function evaluateMutation({ variables }: CompiledMutations, { expression }: CompiledMutation, input: AdmissionInput): Promise<Value> {
  if (expression.fault !== undefined) throw new MutationFault(expression.fault)
  return settled(input, () => {
    try {
      const { result } = new AdmissionActivation(input, variables).evaluate(expression, requestCostBudget)
      return result
    } catch (error) {
      if (error instanceof BudgetExceeded) return { error: error.message }
      throw error
    }
  }).then((result) => {
    if (result.error !== undefined) throw new MutationFault(result.error)
    return result.value as Value
  })
}
