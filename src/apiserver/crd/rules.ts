/** The CEL rules of a version, run at every write (L3). */
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import { evaluateRules, ruleTree } from '#api/kinds/apiextensions/ruleEvaluation'
import type { RuleValidation } from './strategy.ts'

/** Undefined when the schema has no rules. */
export function validationRules(props: JSONSchemaProps): RuleValidation | undefined {
  const tree = ruleTree(props, true)
  return tree && ((object, old) => evaluateRules(tree, object, old))
}
