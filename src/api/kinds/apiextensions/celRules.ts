/**
 * The CEL rules of a schema, checked when the definition is written (L1): they compile, they are not too expensive, alone and together, and
 * they compare old and new only where those belong together.
 * Upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation (validation.go, cel_validation.go; v1.36).
 */
import { declareSchema } from '#api/cel/declaration'
import type { CustomResourceDefinitionSpec, JSONSchemaProps, ValidationRule } from '#api/gen/types/apiextensions.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { type CompiledRule, compileRules } from './compiledRules.ts'
import type { SchemaRuleChecker, SchemaRuleCheckerFactory } from './definitionRules.ts'
import { evaluateRules, type RuleNode, ruleTree } from './ruleEvaluation.ts'
import type { Place } from './schemaRules.ts'
import type { Props } from './schemaWalk.ts'

/** The most that one expression, and all of one schema together, may cost by estimate. */
const expressionCostLimit = 10_000_000
const schemaCostLimit = 100_000_000
const maxRequestBytes = 3 * 1024 * 1024

export function createRuleChecker(_old: Frozen<CustomResourceDefinitionSpec> | undefined): SchemaRuleCheckerFactory {
  return (schema, unchanged) => new Checker(schema, unchanged)
}

class Checker implements SchemaRuleChecker {
  readonly #unchanged: boolean
  readonly #root: Props
  #total = 0
  #expensive: { readonly path: FieldPath; readonly cost: number }[] = []
  #trees = new Map<Props, RuleNode | undefined>()

  constructor(root: Props, unchanged: boolean) {
    this.#root = root
    this.#unchanged = unchanged
  }

  readonly check = (props: Props, path: FieldPath, place: Place): FieldError[] => {
    const declaration = declareSchema(props as JSONSchemaProps, 'selfType', place.isRoot || props['x-kubernetes-embedded-resource'] === true)
    const at = path.child('x-kubernetes-validations')
    if (!declaration) return [{ type: 'InternalError', field: at.toString(), body: `Internal error: ${noDeclaration}` }]
    const repeated = place.maxCardinality ?? Math.floor(maxRequestBytes / (declaration.minSerializedSize + 1))
    return [...compileRules(props, declaration)].flatMap((rule, index) => this.#ruleFaults(rule, at.index(index), place, repeated))
  }

  readonly checkDefault = (props: Props, value: unknown, path: FieldPath): readonly FieldError[] => {
    if (!this.#trees.has(props)) this.#trees.set(props, ruleTree(props, props === this.#root))
    const tree = this.#trees.get(props)
    if (!tree) return []
    // A create or an update can apply the default, so transition rules see it as old value and without an old value.
    const alone = evaluateRules(tree, value, value, path)
    return alone.errors.length > 0 ? alone.errors : evaluateRules(tree, value, undefined, path).errors
  }

  totalFaults(path: FieldPath): readonly FieldError[] {
    if (this.#total <= schemaCostLimit) return []
    const contributed = 'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema'
    const total = costFault('x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema', this.#total, schemaCostLimit)
    return [...this.#expensive.map((one) => fieldError.forbidden(one.path, contributed)), fieldError.forbidden(path, total)]
  }

  #ruleFaults({ rule, condition, message, usesOldSelf }: CompiledRule, at: FieldPath, place: Place, repeated: number): FieldError[] {
    const errors: FieldError[] = []
    const cost = Math.min(condition.maxCost * repeated, 2 ** 64)
    const tooExpensive = (field: string, name: string, value: number) => {
      if (!this.#unchanged && value > expressionCostLimit) errors.push(fieldError.forbidden(at.child(field), costFault(name, value, expressionCostLimit)))
      this.#observe(at.child(field), value)
    }
    tooExpensive('rule', 'estimated rule cost', cost)
    if (condition.fault !== undefined) errors.push(fieldError.invalid(at.child('rule'), goRule(rule), condition.fault))
    if (message?.fault !== undefined) errors.push(fieldError.invalid(at.child('messageExpression'), goRule(rule), message.fault))
    else if (message) tooExpensive('messageExpression', 'estimated messageExpression cost', message.maxCost)
    if (usesOldSelf && place.uncorrelated) {
      const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${place.uncorrelated}`
      errors.push(fieldError.invalid(at.child('rule'), rule.rule, detail))
    } else if (!usesOldSelf && rule.optionalOldSelf !== undefined && condition.fault === undefined) {
      errors.push(fieldError.invalid(at.child('optionalOldSelf'), rule.optionalOldSelf, 'may not be set if oldSelf is not used in rule'))
    }
    return errors
  }

  /** The four most expensive rules are named when all together are too much. */
  #observe(path: FieldPath, cost: number): void {
    this.#total = Math.min(this.#total + cost, 2 ** 64)
    if (cost < schemaCostLimit / 100) return
    this.#expensive = [...this.#expensive, { path, cost }].sort((a, b) => b.cost - a.cost).slice(0, 4)
  }
}

const noDeclaration =
  'internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations'

function costFault(name: string, cost: number, limit: number): string {
  const factor = cost / limit
  const shown = factor > 100 ? 'more than 100x' : factor < 1.5 ? `${factor.toFixed(6)}x` : `${factor.toFixed(1)}x`
  const advice = 'try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared'
  return `${name} exceeds budget by factor of ${shown} (${advice})`
}

/** The rule as Go prints its struct. */
function goRule({ rule, message = '', messageExpression = '', reason, fieldPath = '', optionalOldSelf }: Frozen<ValidationRule>): object {
  return {
    Rule: rule,
    Message: message,
    MessageExpression: messageExpression,
    Reason: reason ?? null,
    FieldPath: fieldPath,
    OptionalOldSelf: optionalOldSelf ?? null,
  }
}
