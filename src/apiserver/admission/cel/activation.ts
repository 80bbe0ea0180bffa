/**
 * The variables of admission expressions for one request (L3), and their evaluation within a budget. Composited variables are evaluated on first use,
 * and their cost counts for the expression that used them.
 * Upstream: apiserver/pkg/admission/plugin/cel (activation.go, condition.go, composition.go, v1.36).
 */
import type { AdmissionExpression } from '#api/cel/admissionCompiler'
import { perCallLimit } from '#api/cel/environment'
import type { Namespace } from '#api/gen/types/core.v1'
import type { Frozen, GroupVersionKind, GroupVersionResource, KubeObject } from '#api/machinery/meta'
import { withNils } from '#api/schema/nils'
import type { Activation } from '#cel/environment'
import { dynamicValue } from '#cel/json'
import { EvaluationError, ObjectValue, type Value } from '#cel/values'
import type { AdmissionAttributes } from '../admission.ts'
import { requestNamespace } from '../attributes.ts'
import type { RequestAuthorizer } from './requestAuthorizer.ts'
import { userInfoOf } from './userInfo.ts'

export interface AdmissionInput {
  readonly attributes: AdmissionAttributes
  /** The resource that the webhook or policy matched: the request's own, or an equivalent one. */
  readonly resource: GroupVersionResource
  readonly kind: GroupVersionKind
  /** The objects in that kind's version. */
  readonly object: Frozen<KubeObject> | undefined
  readonly oldObject: Frozen<KubeObject> | undefined
  readonly params?: Frozen<KubeObject> | undefined
  readonly namespace?: Frozen<Namespace> | undefined
  /** Absent: expressions that name it fail. */
  readonly authorizer: RequestAuthorizer | undefined
}

export const outOfBudget = 'validation failed due to running out of cost budget, no further validation rules will be run'

/** The budget of a group of expressions is used up: none of their results counts. */
export class BudgetExceeded extends Error {
  constructor() {
    super(outOfBudget)
  }
}

export type Evaluated = { readonly value: Value; readonly error?: undefined } | { readonly value?: undefined; readonly error: string }

export class AdmissionActivation implements Activation {
  readonly #values = new Map<string, Value>()
  readonly #input: AdmissionInput
  readonly #variables: PolicyVariables

  constructor(input: AdmissionInput, variables: ReadonlyMap<string, AdmissionExpression>) {
    this.#input = input
    this.#variables = new PolicyVariables(variables, this)
  }

  get(name: string): Value | undefined {
    const known = this.#values.get(name)
    if (known !== undefined) return known
    const made = this.#make(name)
    if (made !== undefined) this.#values.set(name, made)
    return made
  }

  /**
   * @param budget what is left
   * @returns the result, and what is left after it
   * @throws BudgetExceeded
   */
  evaluate({ source, program, fault }: AdmissionExpression, budget: number): { readonly result: Evaluated; readonly budget: number } {
    if (!program) return { result: { error: `compilation error: ${fault}` }, budget }
    const { value, error, cost } = program.evaluate(this, { costLimit: perCallLimit })
    const left = budget - this.#variables.takeCost() - cost
    if (left < 0) throw new BudgetExceeded()
    if (error) return { result: { error: `expression '${source}' resulted in error: ${error.message}` }, budget: left }
    return { result: { value }, budget: left }
  }

  #make(name: string): Value | undefined {
    const { object, oldObject, params, namespace, authorizer } = this.#input
    switch (name) {
      case 'object':
        return dynamicValue(object && withNils(object))
      case 'oldObject':
        return dynamicValue(oldObject && withNils(oldObject))
      case 'params':
        return dynamicValue(params && withNils(params))
      case 'request':
        return dynamicValue(admissionRequest('', this.#input.attributes, this.#input, noObjects))
      case 'namespaceObject':
        return dynamicValue(namespace && shownNamespace(namespace))
      case 'authorizer':
        return authorizer?.authorizer
      case 'authorizer.requestResource':
        return authorizer?.requestResource
      case 'variables':
        return this.#variables
      default:
        return undefined
    }
  }
}

/** The value of `variables`. */
class PolicyVariables extends ObjectValue {
  readonly typeName = 'kubernetes.variables'
  readonly #expressions: ReadonlyMap<string, AdmissionExpression>
  readonly #activation: Activation
  readonly #results = new Map<string, Value | EvaluationError>()
  #cost = 0

  constructor(expressions: ReadonlyMap<string, AdmissionExpression>, activation: Activation) {
    super()
    this.#expressions = expressions
    this.#activation = activation
  }

  get(name: string): Value | undefined {
    const expression = this.#expressions.get(name)
    if (!expression) return undefined
    let result = this.#results.get(name)
    if (result === undefined) {
      result = this.#evaluate(name, expression)
      this.#results.set(name, result)
    }
    if (result instanceof EvaluationError) throw result
    return result
  }

  fieldNames(): Iterable<string> {
    return this.#expressions.keys()
  }

  /** The cost of variables since the last call. */
  takeCost(): number {
    const cost = this.#cost
    this.#cost = 0
    return cost
  }

  #evaluate(name: string, { program, fault }: AdmissionExpression): Value | EvaluationError {
    const quoted = JSON.stringify(name)
    if (!program) return new EvaluationError(`composited variable ${quoted} fails to compile: ${fault}`)
    const { value, error, cost } = program.evaluate(this.#activation, { costLimit: perCallLimit })
    this.#cost += cost
    return error ? new EvaluationError(`composited variable ${quoted} fails to evaluate: ${error.message}`) : value
  }
}

/** The request as webhooks and expressions see it: admission.k8s.io AdmissionRequest. */
export function admissionRequest(
  uid: string,
  attributes: AdmissionAttributes,
  { kind, resource }: Pick<AdmissionInput, 'kind' | 'resource'>,
  objects: { readonly object?: unknown; readonly oldObject?: unknown },
): object {
  const { options, subresource, name, operation, user, dryRun } = attributes
  const namespace = requestNamespace(attributes)
  return {
    uid,
    kind: kindOf(kind),
    resource: resourceOf(resource),
    ...(subresource ? { subResource: subresource } : {}),
    requestKind: kindOf(attributes.kind),
    requestResource: resourceOf(attributes.resource),
    ...(subresource ? { requestSubResource: subresource } : {}),
    ...(name ? { name } : {}),
    ...(namespace ? { namespace } : {}),
    operation,
    userInfo: userInfoOf(user),
    object: objects.object ?? null,
    oldObject: objects.oldObject ?? null,
    dryRun,
    options: options ?? null,
  }
}

/** The request without its objects, which are separate variables. */
const noObjects = {}

export function kindOf({ group, version, kind }: GroupVersionKind): GroupVersionKind {
  return { group, version, kind }
}

export function resourceOf({ group, version, resource }: GroupVersionResource): GroupVersionResource {
  return { group, version, resource }
}

/** The parts of a namespace that policies see. */
function shownNamespace({ metadata, spec, status }: Frozen<Namespace>): object {
  const { managedFields: _managedFields, ownerReferences: _ownerReferences, ...shown } = metadata
  return { metadata: shown, spec, status }
}
