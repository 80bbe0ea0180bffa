/**
 * The engine's interface (L1, pure): declare an environment, compile an expression in it, estimate its cost, evaluate it.
 * The language alone is standardEnvironment.ts, Kubernetes' own environment src/api/cel/environment.ts.
 *
 *   const environment = kubernetesEnvironment.extend({ variables: { self: declaration.type } })
 *   const compiled = environment.compile('self.replicas <= self.maxReplicas')
 *   if (compiled.ok) compiled.program.evaluate(new Map([['self', declaration.toValue(json)]]), { costLimit: 10_000_000 })
 *
 * Upstream: cel-go cel/env.go, cel/program.go (v0.26).
 */
import type { CostEstimate, SizeEstimator } from './cost/model.ts'
import type { Library } from './declarations.ts'
import type { Expression } from './syntax/ast.ts'
import type { CelType, ObjectType } from './types.ts'
import type { EvaluationError, Value } from './values.ts'

/** A fault of an expression. */
export interface Issue {
  readonly message: string
  /** Zero-based offset into the expression, in UTF-16 units. */
  readonly offset: number
}

export interface CheckedExpression {
  readonly source: string
  readonly expression: Expression
  readonly resultType: CelType
  /** The type of each node, by its id. */
  readonly types: ReadonlyMap<number, CelType>
  /** What each name and each call means, by node id: a variable's full name, or the overloads that fit. */
  readonly references: ReadonlyMap<number, Reference>
}

export interface Reference {
  readonly name?: string | undefined
  readonly value?: Value | undefined
  readonly overloads?: readonly string[] | undefined
}

/** The source of variables: a Map, or an implementation that computes values on first use. Undefined: no such variable. */
export interface Activation {
  get(variable: string): Value | undefined
}

export interface EvaluateOptions {
  /** In cost units; evaluation stops with a fatal error above it. Default: none. */
  readonly costLimit?: number
  /** Asked at every 100th iteration of loops; evaluation stops with a fatal error when it returns true. Operators without a cost may take long, too. */
  readonly isInterrupted?: (() => boolean) | undefined
}

/** `cost` is what was spent, also when the evaluation failed. */
export type EvaluationResult =
  | { readonly value: Value; readonly error?: undefined; readonly cost: number }
  | { readonly value?: undefined; readonly error: EvaluationError; readonly cost: number }

export interface Program {
  evaluate(activation: Activation, options?: EvaluateOptions): EvaluationResult
}

export type CompileResult =
  | {
      readonly ok: true
      readonly checked: CheckedExpression
      /** The names that it refers to. */
      readonly variables: ReadonlySet<string>
      readonly program: Program
      estimateCost(sizes?: SizeEstimator): CostEstimate
    }
  | {
      readonly ok: false
      readonly issues: readonly Issue[] /** All issues as upstream prints them, with line, column and a caret. */
      readonly message: string
    }

export interface EnvironmentOptions {
  readonly variables?: Readonly<Record<string, CelType>>
  /** Types that expressions may name: in `Type{field: value}` and as a value. */
  readonly types?: readonly ObjectType[]
  /** Further types, known by a rule about their names. */
  readonly resolveType?: (name: string) => ObjectType | undefined
  readonly libraries?: readonly Library[]
  /** Whether items of a list literal, and keys and values of a map literal, must be of one type. Default: as in the environment extended. */
  readonly homogeneousLiterals?: boolean
  /** Whether literals that their function will refuse, such as `duration('x')`, are faults already when compiling. Default: likewise. */
  readonly validateLiterals?: boolean
}

export interface Environment {
  extend(options: EnvironmentOptions): Environment
  /** Parses, checks and plans; never throws for a bad expression. */
  compile(expression: string): CompileResult
}
