/**
 * The x-kubernetes-validations of one schema node, compiled (L1): for the check when a definition is written, and for every write of its
 * resources. Upstream: apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go (v1.36).
 */
import { type Declaration, declaredSizes } from '#api/cel/declaration'
import { kubernetesEnvironment } from '#api/cel/environment'
import type { ValidationRule } from '#api/gen/types/apiextensions.v1'
import type { FieldPath } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import type { CompileResult, Environment, Program } from '#cel/environment'
import { optionalType } from '#cel/types'
import { resolveFieldPath } from './fieldPaths.ts'
import type { Props } from './schemaWalk.ts'

export interface CompiledExpression {
  /** Absent when the expression does not compile. */
  readonly program?: Program | undefined
  readonly fault?: string | undefined
  /** The most that one evaluation can cost. */
  readonly maxCost: number
}

export interface CompiledRule {
  readonly rule: Frozen<ValidationRule>
  readonly condition: CompiledExpression
  readonly message?: CompiledExpression | undefined
  readonly usesOldSelf: boolean
  /** Where the rule's errors point to, below the node. */
  readonly fieldPath?: FieldPath | undefined
}

/** Compiles the rules of a node, each when it is asked for. */
export function* compileRules(props: Props, declaration: Declaration): Generator<CompiledRule, undefined> {
  const { type } = declaration
  const environments = {
    plain: kubernetesEnvironment.extend({ variables: { self: type, oldSelf: type } }),
    optional: kubernetesEnvironment.extend({ variables: { self: type, oldSelf: optionalType(type) } }),
  }
  for (const rule of props['x-kubernetes-validations'] ?? [])
    yield compileRule(props, rule, declaration, rule.optionalOldSelf ? environments.optional : environments.plain)
}

function compileRule(props: Props, rule: Frozen<ValidationRule>, declaration: Declaration, environment: Environment): CompiledRule {
  const result = environment.compile(rule.rule)
  const condition = expressionOf(result, declaration, 'bool', ['compilation failed', 'cel expression must evaluate to a bool'])
  const usesOldSelf = result.ok && result.variables.has('oldSelf')
  const message =
    rule.messageExpression && condition.program
      ? expressionOf(environment.compile(rule.messageExpression), declaration, 'string', [
          'messageExpression compilation failed',
          'messageExpression must evaluate to a string',
        ])
      : undefined
  const resolved = rule.fieldPath ? resolveFieldPath(rule.fieldPath, props, { arrays: true }) : undefined
  return { rule, condition, message, usesOldSelf, fieldPath: resolved?.ok ? resolved.path : undefined }
}

function expressionOf(
  result: CompileResult,
  declaration: Declaration,
  wanted: 'bool' | 'string',
  [failed, wrongType]: readonly [string, string],
): CompiledExpression {
  if (!result.ok) return { fault: `${failed}: ${result.message}`, maxCost: 0 }
  if (result.checked.resultType.kind !== wanted) return { fault: wrongType, maxCost: 0 }
  return { program: result.program, maxCost: result.estimateCost(declaredSizes(declaration)).max }
}
