/**
 * The environment of the language alone (L1, pure): its types, functions and macros, to be extended with variables and libraries.
 * Upstream: cel-go cel/env.go NewEnv, common/stdlib/standard.go (v0.26).
 */
import type { NameDeclaration } from './checker/checker.ts'
import { check } from './checker/checker.ts'
import { compileOnce } from './compilingInSteps.ts'
import { estimateCost } from './cost/estimate.ts'
import type { CallCost, CallEstimator } from './cost/model.ts'
import type { FunctionDeclaration, Library } from './declarations.ts'
import type { CheckedExpression, CompileResult, Environment, EnvironmentOptions, Issue } from './environment.ts'
import { planProgram } from './interpreter/planner.ts'
import { formatIssues } from './issues.ts'
import { arithmetic } from './library/arithmetic.ts'
import { comparison, standardCallCosts } from './library/comparison.ts'
import { conversions } from './library/conversions.ts'
import { times } from './library/times.ts'
import { SyntaxFault } from './syntax/lexer.ts'
import type { Macro } from './syntax/macro.ts'
import { macroTable, standardMacros } from './syntax/macro.ts'
import { parse } from './syntax/parser.ts'
import {
  boolType,
  bytesType,
  doubleType,
  durationType,
  dynType,
  intType,
  listType,
  mapType,
  nullType,
  stringType,
  timestampType,
  typeName,
  typeType,
  uintType,
} from './types.ts'
import { validate } from './validators.ts'
import { TypeValue } from './values.ts'

const standardLibrary: Library = {
  functions: [...arithmetic, ...comparison, ...conversions, ...times],
  macros: standardMacros,
  callCosts: standardCallCosts,
  typeNames: [
    boolType,
    bytesType,
    doubleType,
    durationType,
    intType,
    listType(dynType),
    mapType(dynType, dynType),
    nullType,
    stringType,
    timestampType,
    typeType(),
    uintType,
  ],
}

interface Parts {
  readonly names: ReadonlyMap<string, NameDeclaration>
  readonly functions: ReadonlyMap<string, FunctionDeclaration>
  readonly macros: ReadonlyMap<string, Macro>
  readonly callCosts: ReadonlyMap<string, CallCost>
  readonly callEstimates: ReadonlyMap<string, CallEstimator>
  readonly resolveType: NonNullable<EnvironmentOptions['resolveType']>
  readonly homogeneousLiterals: boolean
  readonly validateLiterals: boolean
}

const empty: Parts = {
  names: new Map(),
  functions: new Map(),
  macros: new Map(),
  callCosts: new Map(),
  callEstimates: new Map(),
  resolveType: () => undefined,
  homogeneousLiterals: false,
  validateLiterals: false,
}

class CelEnvironment implements Environment {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  extend(options: EnvironmentOptions): Environment {
    return new CelEnvironment(extended(this.#parts, options))
  }

  #name(name: string): NameDeclaration | undefined {
    const declared = this.#parts.names.get(name)
    if (declared) return declared
    const type = this.#parts.resolveType(name)
    return type && { type: typeType(type), value: new TypeValue(name) }
  }

  compile(source: string): CompileResult {
    return compileOnce(source, () => this.#compile(source))
  }

  #compile(source: string): CompileResult {
    const fail = (issues: readonly Issue[]): CompileResult => ({ ok: false, issues, message: formatIssues(source, issues) })
    try {
      const { functions, macros, homogeneousLiterals } = this.#parts
      const { checked, issues } = check(source, parse(source, macros), { names: { get: (name) => this.#name(name) }, functions, homogeneousLiterals })
      if (issues.length > 0) return fail(issues)
      const faults = this.#parts.validateLiterals ? validate(checked) : []
      if (faults.length > 0) return fail(faults)
      return {
        ok: true,
        checked,
        variables: namesIn(checked),
        program: planProgram(checked, this.#parts),
        estimateCost: (sizes) => estimateCost(checked, this.#parts.callEstimates, sizes),
      }
    } catch (error) {
      if (error instanceof SyntaxFault) return fail([{ message: error.message, offset: error.offset }])
      throw error
    }
  }
}

function namesIn({ references }: CheckedExpression): ReadonlySet<string> {
  const names = new Set<string>()
  for (const { name } of references.values()) if (name !== undefined) names.add(name)
  return names
}

function extended(parts: Parts, options: EnvironmentOptions): Parts {
  const { variables = {}, types = [], libraries = [] } = options
  const names = new Map(parts.names)
  for (const type of [...libraries.flatMap((library) => library.typeNames ?? []), ...types]) {
    const name = typeName(type)
    names.set(name, { type: typeType(type), value: new TypeValue(name) })
  }
  for (const [name, type] of Object.entries(variables)) names.set(name, { type })
  return {
    // An environment of variables alone is made for each field of a definition: it shares the libraries.
    ...(libraries.length === 0 ? parts : withLibraries(parts, libraries)),
    names,
    resolveType: options.resolveType ? (name) => options.resolveType?.(name) ?? parts.resolveType(name) : parts.resolveType,
    homogeneousLiterals: options.homogeneousLiterals ?? parts.homogeneousLiterals,
    validateLiterals: options.validateLiterals ?? parts.validateLiterals,
  }
}

function withLibraries(parts: Parts, libraries: readonly Library[]): Parts {
  const functions = new Map(parts.functions)
  for (const { name, overloads } of libraries.flatMap((library) => library.functions ?? [])) {
    functions.set(name, { name, overloads: [...(functions.get(name)?.overloads ?? []), ...overloads] })
  }
  return {
    ...parts,
    functions,
    macros: new Map([...parts.macros, ...macroTable(libraries.flatMap((library) => library.macros ?? []))]),
    callCosts: new Map([...parts.callCosts, ...libraries.flatMap((library) => Object.entries(library.callCosts ?? {}))]),
    callEstimates: new Map([...parts.callEstimates, ...libraries.flatMap((library) => Object.entries(library.callEstimates ?? {}))]),
  }
}

/** The language without variables or extensions. */
export const standardEnvironment: Environment = new CelEnvironment(empty).extend({ libraries: [standardLibrary] })
