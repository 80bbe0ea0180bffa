/**
 * Runs the CEL rules of a custom resource (L1): every node of its schema that has some, on the data that is there, within one budget. Rules
 * about oldSelf run where an old value belongs to the new one; what was wrong before and is unchanged is only warned of.
 * Upstream: apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go (v1.36).
 */
import { type Declaration, declareSchema } from '#api/cel/declaration'
import { perCallLimit, requestCostBudget } from '#api/cel/environment'
import type { JSONSchemaProps, ValidationRule } from '#api/gen/types/apiextensions.v1'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isObject, jsonEqual } from '#api/machinery/objects'
import { correlateItems, uncorrelated } from '#api/schema/structuralValidation'
import { EvaluationError, Optional, type Value } from '#cel/values'
import { type CompiledRule, compileRules } from './compiledRules.ts'
import { additionalOf, itemsOf, type Props } from './schemaWalk.ts'

/** A schema node with rules, or with such nodes below it. */
export interface RuleNode {
  readonly type: string
  readonly rules: readonly CompiledRule[]
  readonly declaration: Declaration | undefined
  readonly properties: ReadonlyMap<string, RuleNode>
  readonly additional?: RuleNode | undefined
  readonly items?: RuleNode | undefined
  /** Of lists of type map. */
  readonly keys?: readonly string[] | undefined
}

/** The rules of a schema; undefined when it has none. Writes of definitions check that rules compile; a rule that does not compile throws here. */
export function ruleTree(props: Props, isResource: boolean): RuleNode | undefined {
  const steps = ruleTreeInSteps(props, isResource)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/** Pauses after each share of compiled text: a definition may have thousands of rules, and tens of thousands of fields. */
export function* ruleTreeInSteps(props: Props, isResource: boolean): Generator<undefined, RuleNode | undefined> {
  return yield* new TreeBuilder().build(props, isResource)
}

/** Characters of rules after which others get a turn: some ten milliseconds of compiling. */
const share = 4096
/** What the shortest rule counts for. */
const perRule = 128
/** What a schema without rules counts for. */
const perSchema = 1

class TreeBuilder {
  #compiled = 0;

  *build(props: Props, isResource: boolean): Generator<undefined, RuleNode | undefined> {
    const properties = new Map<string, RuleNode>()
    yield* this.#spend(perSchema)
    for (const [name, child] of Object.entries(props.properties ?? {})) {
      const node = yield* this.#below(child)
      if (node) properties.set(name, node)
    }
    const additional = yield* this.#below(additionalOf(props))
    const items = yield* this.#below(itemsOf(props))
    const own = (props['x-kubernetes-validations']?.length ?? 0) > 0
    if (!own && properties.size === 0 && !additional && !items) return undefined
    const declaration = own ? declareSchema(props as JSONSchemaProps, 'selfType', isResource) : undefined
    const rules = declaration ? yield* this.#rules(props, declaration) : []
    const keys = props['x-kubernetes-list-type'] === 'map' ? props['x-kubernetes-list-map-keys'] : undefined
    return { type: props.type ?? '', rules, declaration, properties, additional, items, keys }
  }

  *#below(child: Props | undefined): Generator<undefined, RuleNode | undefined> {
    return child && (yield* this.build(child, child['x-kubernetes-embedded-resource'] === true))
  }

  *#rules(props: Props, declaration: Declaration): Generator<undefined, CompiledRule[]> {
    const rules: CompiledRule[] = []
    for (const compiled of compileRules(props, declaration)) {
      rules.push(compiled)
      yield* this.#spend(perRule + compiled.rule.rule.length + (compiled.rule.messageExpression?.length ?? 0))
    }
    return rules
  }

  *#spend(cost: number): Generator<undefined, void> {
    this.#compiled += cost
    if (this.#compiled < share) return
    this.#compiled = 0
    yield
  }
}

export interface RuleOutcome {
  readonly errors: FieldError[]
  /** Faults that were there before and are tolerated. */
  readonly warnings: string[]
}

/** `old`: undefined on creates. */
export function evaluateRules(node: RuleNode, value: unknown, old: unknown, path?: FieldPath): RuleOutcome {
  const run = new RuleRun()
  run.visit(node, value, { path, old: old ?? uncorrelated, unchanged: () => false })
  return { errors: run.errors, warnings: run.warnings }
}

interface Spot {
  /** Undefined: the object itself. */
  readonly path: FieldPath | undefined
  readonly old: unknown
  /** Whether the nearest ancestor with an old value equals it; asked only where a rule is broken. */
  unchanged(): boolean
}

const outOfBudget = 'validation failed due to running out of cost budget, no further validation rules will be run'

class RuleRun {
  readonly errors: FieldError[] = []
  readonly warnings: string[] = []
  /** Negative: nothing more is run. */
  #budget = requestCostBudget

  visit(node: RuleNode, value: unknown, spot: Spot): void {
    if (this.#budget < 0 || value === null || value === undefined) return
    if (node.rules.length > 0) this.#runRules(node, value, spot)
    if (Array.isArray(value)) this.#visitItems(node, value, spot)
    else if (isObject(value)) this.#visitMembers(node, value, spot)
  }

  #visitItems({ items, keys }: RuleNode, value: readonly unknown[], spot: Spot): void {
    if (!items) return
    const oldItem = correlateItems(spot.old, keys)
    const unchanged = () => isUnchanged(value, spot)
    for (const [index, item] of value.entries()) {
      if (this.#budget < 0) return
      this.visit(items, item, { path: (spot.path ?? FieldPath.of()).index(index), old: oldItem(item), unchanged })
    }
  }

  #visitMembers({ properties, additional }: RuleNode, value: Readonly<Record<string, unknown>>, spot: Spot): void {
    if (properties.size === 0 && !additional) return
    const unchanged = () => isUnchanged(value, spot)
    const path = spot.path ?? FieldPath.of()
    for (const [name, member] of Object.entries(value)) {
      if (this.#budget < 0) return
      const old = isObject(spot.old) && Object.hasOwn(spot.old, name) ? spot.old[name] : uncorrelated
      const property = properties.get(name)
      if (property) this.visit(property, member, { path: path.child(name), old, unchanged })
      else if (additional) this.visit(additional, member, { path: path.key(name), old, unchanged })
    }
  }

  #runRules(node: RuleNode, value: unknown, spot: Spot): void {
    const self = new LazyValue(node.declaration as Declaration, value)
    const hasOld = spot.old !== uncorrelated && spot.old !== null && spot.old !== undefined
    const oldSelf = hasOld ? new LazyValue(node.declaration as Declaration, spot.old) : undefined
    for (const compiled of node.rules) {
      if (this.#budget < 0) return
      const { rule, condition, usesOldSelf } = compiled
      if (condition.fault !== undefined || !condition.program) {
        this.#fail(node, spot, `rule compile error: ${condition.fault ?? ''}`)
        continue
      }
      // A transition rule needs an old value, unless it has optionalOldSelf.
      if (usesOldSelf && !oldSelf && !rule.optionalOldSelf) continue
      const activation = {
        get: (name: string) => (name === 'self' ? self.value : name === 'oldSelf' ? oldValue(oldSelf, rule.optionalOldSelf === true) : undefined),
      }
      const result = evaluate(condition.program, activation)
      if (!this.#spend(result.cost)) {
        this.#fail(node, spot, outOfBudget)
        return
      }
      if (result.error) this.#evaluationFailed(node, spot, result.error, rule)
      else if (result.value !== true) this.#violated(node, compiled, value, spot, activation)
    }
  }

  /** False when the budget is used up. */
  #spend(cost: number): boolean {
    this.#budget = cost > this.#budget ? -1 : this.#budget - cost
    return this.#budget >= 0
  }

  #fail(node: RuleNode, { path }: Spot, detail: string): void {
    this.errors.push(fieldError.invalid(path ?? wholeObject, node.type, detail))
  }

  #evaluationFailed(node: RuleNode, spot: Spot, { message }: EvaluationError, rule: Frozen<ValidationRule>): void {
    const which = textOf(rule)
    if (message.startsWith('no such overload')) {
      this.#fail(node, spot, `'${message}': call arguments did not match a supported operator, function or macro signature for rule: ${which}`)
    } else if (message.startsWith('operation cancelled: actual cost limit exceeded')) {
      this.#fail(node, spot, `'${message}': no further validation rules will be run due to call cost exceeds limit for rule: ${which}`)
      this.#budget = -1
    } else this.#fail(node, spot, `${message} evaluating rule: ${which}`)
  }

  #violated(node: RuleNode, { rule, message, usesOldSelf, fieldPath }: CompiledRule, value: unknown, spot: Spot, activation: Activation): void {
    const path = fieldPath ? (spot.path ?? FieldPath.of()).child(fieldPath.toString()) : (spot.path ?? wholeObject)
    const detail = (message?.program && this.#message(message.program, rule, activation)) || rule.message?.trim() || `failed rule: ${rule.rule.trim()}`
    const error = violation(path, node.type, value, detail, rule.reason)
    // A transition that is forbidden was made just now.
    if (!usesOldSelf && isUnchanged(value, spot)) this.warnings.push(`${error.field}: ${error.body}`)
    else this.errors.push(error)
  }

  /** Undefined: the rule's plain message has to do. */
  #message(program: NonNullable<NonNullable<CompiledRule['message']>['program']>, rule: Frozen<ValidationRule>, activation: Activation): string | undefined {
    const result = evaluate(program, activation)
    if (!this.#spend(result.cost)) return 'messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run'
    if (result.error) {
      if (!result.error.message.startsWith('operation cancelled: actual cost limit exceeded')) return undefined
      this.#budget = -1
      return `no further validation rules will be run due to call cost exceeds limit for messageExpression: ${JSON.stringify(rule.messageExpression)}`
    }
    const text = typeof result.value === 'string' ? result.value.trim() : ''
    return text === '' || text.length > maxMessageLength || text.includes('\n') ? undefined : text
  }
}

const maxMessageLength = 5 * 1024
/** An absent path as upstream prints it. */
const wholeObject = FieldPath.of('<nil>')

type Activation = { get(name: string): Value | undefined }

/** Converted when a rule first asks for it. */
class LazyValue {
  readonly #declaration: Declaration
  readonly #json: unknown
  #value: { readonly made: Value } | undefined

  constructor(declaration: Declaration, json: unknown) {
    this.#declaration = declaration
    this.#json = json
  }

  get value(): Value {
    this.#value ??= { made: this.#declaration.toValue(this.#json) }
    return this.#value.made
  }
}

function oldValue(oldSelf: LazyValue | undefined, optional: boolean): Value | undefined {
  if (!optional) return oldSelf?.value
  return oldSelf ? new Optional(oldSelf.value) : Optional.none
}

function evaluate(program: NonNullable<CompiledRule['condition']['program']>, activation: Activation) {
  try {
    return program.evaluate(activation, { costLimit: perCallLimit })
  } catch (error) {
    // Data that does not fit its schema fails when it is looked at.
    if (error instanceof EvaluationError) return { error, cost: 0 }
    throw error
  }
}

/** A value with an old one is judged by that, one without by its nearest ancestor that has one. */
function isUnchanged(value: unknown, { old, unchanged }: Spot): boolean {
  return old === uncorrelated ? unchanged() : jsonEqual(value, old)
}

function textOf({ rule, message }: Frozen<ValidationRule>): string {
  return (message || rule).trim()
}

function violation(path: FieldPath, type: string, value: unknown, detail: string, reason: string | undefined): FieldError {
  if (reason === 'FieldValueForbidden') return fieldError.forbidden(path, detail)
  if (reason === 'FieldValueRequired') return fieldError.required(path, detail)
  const composite = type === 'object' || type === 'array'
  if (reason === 'FieldValueDuplicate') return composite ? { ...fieldError.duplicate(path, ''), body: 'Duplicate value' } : fieldError.duplicate(path, value)
  // Whole objects and lists are not repeated in the message.
  return composite ? { ...fieldError.invalid(path, '', detail), body: `Invalid value: ${detail}` } : fieldError.invalid(path, value, detail)
}
