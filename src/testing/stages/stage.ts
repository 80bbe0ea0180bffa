/**
 * Stages (testing): how pods and nodes that no kubelet runs change by themselves. Reads kwok.x-k8s.io/v1alpha1 Stage objects and compiles them, so
 * that what is not understood is refused when a file is read, with the Stage's name. What they do to an object is lifecycle.ts's work.
 * Upstream: kwok pkg/apis/v1alpha1/stage_types.go, pkg/apis/internalversion/conversion.go.
 */
import { kubernetesEnvironment } from '#api/cel/environment'
import type { KubeObject } from '#api/machinery/meta'
import { parseYamlDocuments } from '#api/machinery/yaml'
import { bareMap, ownValue } from '#base/bareMap'
import { messageOf } from '#base/messageOf'
import { dynamicValue, toJson } from '#cel/json'
import { dynType } from '#cel/types'
import { compileJsonQuery } from './jsonQuery.ts'
import { compileTemplate, type Template } from './template.ts'

export interface Stage extends KubeObject {
  readonly spec: StageSpec
}

export interface StageSpec {
  readonly resourceRef: { readonly apiGroup?: string; readonly kind: string }
  readonly selector?: {
    readonly matchLabels?: Readonly<Record<string, string>>
    readonly matchAnnotations?: Readonly<Record<string, string>>
    readonly matchExpressions?: readonly (Partial<Requirement> & { readonly jq?: Requirement; readonly cel?: { readonly expression: string } })[]
  }
  readonly weight?: number
  readonly weightFrom?: ExpressionFrom
  readonly delay?: {
    readonly durationMilliseconds?: number
    readonly durationFrom?: ExpressionFrom
    readonly jitterDurationMilliseconds?: number
    readonly jitterDurationFrom?: ExpressionFrom
  }
  readonly immediateNextStage?: boolean
  readonly next?: {
    readonly event?: StageEvent
    readonly finalizers?: StageFinalizers
    readonly patches?: readonly StagePatch[]
    readonly statusTemplate?: string
    readonly statusSubresource?: string
    readonly statusPatchAs?: unknown
    readonly delete?: boolean
  }
  readonly steps?: readonly StageStep[]
}

interface Requirement {
  readonly key: string
  readonly operator: string
  readonly values?: readonly string[]
}

interface ExpressionFrom {
  readonly expressionFrom?: string
  readonly jq?: { readonly expression: string }
  readonly cel?: { readonly expression: string }
}

export interface StageEvent {
  readonly type?: string
  readonly reason?: string
  readonly message?: string
}

export interface StageFinalizers {
  readonly add?: readonly { readonly value: string }[]
  readonly remove?: readonly { readonly value: string }[]
  readonly empty?: boolean
}

interface StagePatch {
  readonly subresource?: string
  readonly root?: string
  readonly template?: string
  readonly type?: string
  readonly impersonation?: unknown
}

interface StageStep {
  readonly patch?: StagePatch
  readonly event?: StageEvent
  readonly finalizers?: StageFinalizers
  readonly delete?: boolean
  readonly apply?: unknown
}

type Test = (object: KubeObject) => boolean
/** What an expression gives: undefined when there is none, or it has no result. */
type Expression = (object: unknown) => unknown

export interface CompiledStep {
  readonly event?: StageEvent | undefined
  readonly finalizers?: StageFinalizers | undefined
  readonly delete: boolean
  readonly patch?:
    | { readonly type: 'json' | 'merge' | 'strategic'; readonly subresource: string | undefined; readonly root: string; readonly template: Template }
    | undefined
}

export interface CompiledStage {
  readonly name: string
  readonly kind: 'Pod' | 'Node'
  readonly tests: readonly Test[]
  readonly weight: number
  readonly weightFrom: Expression
  readonly delay?: { readonly ms: number; readonly from: Expression; readonly jitterMs: number | undefined; readonly jitterFrom: Expression } | undefined
  readonly immediateNextStage: boolean
  readonly steps: readonly CompiledStep[]
}

export class StageError extends Error {
  constructor(stage: string, message: string) {
    super(`Stage "${stage}": ${message}`)
  }
}

export const stageApiVersion = 'kwok.x-k8s.io/v1alpha1'

/** The functions beyond the generic ones: they need to know of nodes and addresses. */
export const clusterFunctionNames = ['NodeIP', 'NodeName', 'NodePort', 'PodIP', 'NodeIPWith', 'NodeIPsWith', 'PodIPWith', 'PodIPsWith'] as const

/** All Stages of a YAML text with one document or more. @throws Error for what is not a Stage */
export function parseStages(text: string): Stage[] {
  return parseYamlDocuments(text).flatMap((document) => {
    if (document === null || document === undefined) return []
    const stage = document as Partial<Stage>
    if (stage.apiVersion !== stageApiVersion || stage.kind !== 'Stage') {
      throw new Error(`expected a Stage of ${stageApiVersion}, found kind ${JSON.stringify(stage.kind)} of ${JSON.stringify(stage.apiVersion)}`)
    }
    return [document as Stage]
  })
}

/** @throws StageError naming what is not understood */
export function compileStage(stage: Stage, functionNames: ReadonlySet<string>): CompiledStage {
  const { name = '' } = stage.metadata
  try {
    return compile(name, stage.spec, functionNames)
  } catch (error) {
    throw new StageError(name, messageOf(error))
  }
}

function compile(name: string, spec: StageSpec, functionNames: ReadonlySet<string>): CompiledStage {
  const { apiGroup = 'v1', kind } = spec.resourceRef
  if (apiGroup !== 'v1' || (kind !== 'Pod' && kind !== 'Node')) {
    throw new Error(`spec.resourceRef: ${apiGroup} ${kind} is not supported; Stages play v1 Pod and v1 Node`)
  }
  if (!spec.selector) throw new Error('spec.selector is missing')
  const { delay } = spec
  return {
    name,
    kind,
    tests: testsOf(spec.selector),
    weight: spec.weight ?? 0,
    weightFrom: expressionOf(spec.weightFrom),
    delay: delay && {
      ms: delay.durationMilliseconds ?? 0,
      from: expressionOf(delay.durationFrom),
      jitterMs: delay.jitterDurationMilliseconds,
      jitterFrom: expressionOf(delay.jitterDurationFrom),
    },
    immediateNextStage: spec.immediateNextStage ?? false,
    steps: stepsOf(spec).map((step) => compileStep(step, functionNames)),
  }
}

function testsOf({ matchLabels = {}, matchAnnotations = {}, matchExpressions = [] }: NonNullable<StageSpec['selector']>): Test[] {
  return [
    ...Object.entries(matchLabels).map(
      ([key, value]): Test =>
        ({ metadata }) =>
          ownValue(metadata.labels, key) === value,
    ),
    ...Object.entries(matchAnnotations).map(
      ([key, value]): Test =>
        ({ metadata }) =>
          ownValue(metadata.annotations, key) === value,
    ),
    ...matchExpressions.map(({ jq, cel, key, operator = '', values }) => {
      if (cel) return celTest(cel.expression)
      if (jq) return requirementTest(jq)
      if (key === undefined) throw new Error('spec.selector.matchExpressions: one of key, jq and cel is needed')
      return requirementTest({ key, operator, ...(values ? { values } : {}) })
    }),
  ]
}

function requirementTest({ key, operator, values = [] }: Requirement): Test {
  const query = compileJsonQuery(key)
  const has: Test = (object) => (query(object) ?? []).some((value) => ['string', 'boolean', 'number'].includes(typeof value) && values.includes(String(value)))
  const exists: Test = (object) => (query(object) ?? []).length > 0
  const tests: Readonly<Record<string, Test>> = bareMap({ In: has, NotIn: (object) => !has(object), Exists: exists, DoesNotExist: (object) => !exists(object) })
  const test = tests[operator]
  if (!test) throw new Error(`operator ${JSON.stringify(operator)} is not supported; there are ${Object.keys(tests).join(', ')}`)
  const takesValues = operator.endsWith('In')
  if (takesValues !== values.length > 0) throw new Error(`${key}: operator ${operator} takes ${takesValues ? 'values' : 'no values'}`)
  return test
}

const environment = kubernetesEnvironment.extend({ variables: { self: dynType } })
const celCostLimit = 1_000_000

function compileCel(expression: string): Expression {
  const compiled = environment.compile(expression)
  if (!compiled.ok) throw new Error(`cel: ${compiled.message}`)
  return (object) => {
    const result = compiled.program.evaluate(new Map([['self', dynamicValue(object)]]), { costLimit: celCostLimit })
    if (result.error) throw new Error(`cel: ${expression}: ${result.error.message}`)
    return toJson(result.value)
  }
}

function celTest(expression: string): Test {
  const evaluate = compileCel(expression)
  return (object) => evaluate(object) === true
}

function expressionOf(from: ExpressionFrom | undefined): Expression {
  const source = from?.jq?.expression ?? from?.expressionFrom
  if (from?.cel) return compileCel(from.cel.expression)
  if (source === undefined) return () => undefined
  const query = compileJsonQuery(source)
  return (object) => query(object)?.[0]
}

/** The older form, next, as steps. */
function stepsOf({ steps = [], next = {} }: StageSpec): readonly StageStep[] {
  if (steps.length > 0) return steps
  const { event, finalizers, patches = [], statusTemplate, statusSubresource = 'status', statusPatchAs } = next
  const fromTemplate = statusTemplate
    ? [{ patch: { subresource: statusSubresource, root: 'status', template: statusTemplate, impersonation: statusPatchAs } }]
    : []
  return [
    ...(event ? [{ event }] : []),
    ...(finalizers ? [{ finalizers }] : []),
    ...(patches.length > 0 ? patches.map((patch) => ({ patch })) : fromTemplate),
    ...(next.delete ? [{ delete: true }] : []),
  ]
}

const patchTypes = ['json', 'merge', 'strategic'] as const

function compileStep(step: StageStep, functionNames: ReadonlySet<string>): CompiledStep {
  if (step.apply) throw new Error('spec.steps: apply is not supported; patch is')
  const { event, finalizers, patch } = step
  if (patch?.impersonation) throw new Error('spec.steps: impersonation is not supported')
  const type = patchTypes.find((known) => known === (patch?.type ?? 'strategic'))
  if (!type) throw new Error(`spec.steps: patch type ${JSON.stringify(patch?.type)} is not supported; there are ${patchTypes.join(', ')}`)
  return {
    event,
    finalizers,
    delete: step.delete ?? false,
    patch: patch && {
      type,
      subresource: patch.subresource || undefined,
      root: patch.root ?? '',
      template: compileTemplate(patch.template ?? '', functionNames),
    },
  }
}
