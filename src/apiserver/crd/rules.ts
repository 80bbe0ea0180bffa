/** The CEL rules of a version, run at every write (L3). */
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import { evaluateRules, ruleTreeInSteps } from '#api/kinds/apiextensions/ruleEvaluation'
import type { RuleValidation } from './strategy.ts'

/** Undefined when the schema has no rules. Pauses while it compiles many. */
export function* validationRules(props: JSONSchemaProps): Generator<undefined, RuleValidation | undefined> {
  const tree = yield* ruleTreeInSteps(props, true)
  return tree && ((object, old) => evaluateRules(tree, object, old))
}
