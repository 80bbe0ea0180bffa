/**
 * The CEL rules of a version, run at every write and timed (L3). Upstream times each node of a schema, and this the rules of a version together.
 * Upstream: apiserver/pkg/cel/metrics (v1.36).
 */
import type { JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import { evaluateRules, ruleTreeInSteps } from '#api/kinds/apiextensions/ruleEvaluation'
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import type { RuleValidation } from './strategy.ts'

/** Makes the rules of a version; undefined when the schema has none. Pauses while it compiles many. */
export type MakeRules = (props: JSONSchemaProps) => Generator<undefined, RuleValidation | undefined>

export function validationRules(clock: Clock, metrics: Metrics): MakeRules {
  const compilation = metrics.histogram({ name: 'apiserver_cel_compilation_duration_seconds', help: 'How long CEL rules took to compile, in seconds.' })
  const evaluation = metrics.histogram({ name: 'apiserver_cel_evaluation_duration_seconds', help: 'How long CEL rules took to evaluate, in seconds.' })
  return function* make(props) {
    const startedMs = clock.monotonicMs()
    const tree = yield* ruleTreeInSteps(props, true)
    if (!tree) return undefined
    compilation.observe((clock.monotonicMs() - startedMs) / 1000)
    return (object, old) => {
      const beganMs = clock.monotonicMs()
      try {
        return evaluateRules(tree, object, old)
      } finally {
        evaluation.observe((clock.monotonicMs() - beganMs) / 1000)
      }
    }
  }
}
