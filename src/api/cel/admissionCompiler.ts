/**
 * Compiles the expressions of one webhook or policy (L1): variables first, each of which may use those before it, then everything else.
 * What does not compile is kept with its fault, which evaluation reports.
 * Upstream: apiserver/pkg/admission/plugin/cel (compile.go, composition.go, v1.36).
 */
import type { CompileResult, Environment, Program } from '#cel/environment'
import { type CelType, dynType, objectType, typeString, typesEqual } from '#cel/types'
import { type AdmissionVariables, admissionEnvironment } from './admission.ts'

export interface AdmissionExpression {
  readonly source: string
  /** Undefined: it does not compile. */
  readonly program: Program | undefined
  readonly fault?: string | undefined
  readonly resultType: CelType
}

export interface CompileOptions {
  /** One of these must be the result's type; absent: any. */
  readonly results?: readonly CelType[] | undefined
  readonly hasAuthorizer?: boolean | undefined
  readonly hasPatchTypes?: boolean | undefined
}

export class AdmissionCompiler {
  readonly #given: Omit<AdmissionVariables, 'variables'>
  readonly #withVariables: boolean
  /** The environments read it as it grows: copying it for each variable would take minutes for a policy of thousands. */
  readonly #types = new Map<string, CelType>()
  readonly #environments = new Map<string, Environment>()
  /** By name, in the order of their declaration. */
  readonly variables = new Map<string, AdmissionExpression>()

  /** `withVariables`: webhooks have no `variables`, policies have them even when they are empty. */
  constructor(given: Omit<AdmissionVariables, 'variables' | 'hasAuthorizer' | 'hasPatchTypes'>, withVariables: boolean) {
    this.#given = { hasAuthorizer: true, ...given }
    this.#withVariables = withVariables
  }

  addVariable(name: string, source: string): AdmissionExpression {
    const compiled = this.compile(source)
    this.variables.set(name, compiled)
    this.#types.set(name, compiled.program ? compiled.resultType : dynType)
    return compiled
  }

  compile(source: string, { results, hasAuthorizer = true, hasPatchTypes = false }: CompileOptions = {}): AdmissionExpression {
    const compiled = this.#environment(hasAuthorizer, hasPatchTypes).compile(source)
    if (!compiled.ok) return { source, program: undefined, fault: `compilation failed: ${compiled.message}`, resultType: dynType }
    const fault = results && wrongResult(compiled, results)
    const { resultType } = compiled.checked
    return fault === undefined ? { source, program: compiled.program, resultType } : { source, program: undefined, fault, resultType }
  }

  #environment(hasAuthorizer: boolean, hasPatchTypes: boolean): Environment {
    const key = `${hasAuthorizer} ${hasPatchTypes}`
    const known = this.#environments.get(key)
    if (known) return known
    const variables = this.#withVariables ? objectType('kubernetes.variables', this.#types) : undefined
    const made = admissionEnvironment({ ...this.#given, hasAuthorizer, hasPatchTypes, variables })
    this.#environments.set(key, made)
    return made
  }
}

function wrongResult({ checked }: Extract<CompileResult, { ok: true }>, results: readonly CelType[]): string | undefined {
  const got = checked.resultType
  if (results.some((one) => typesEqual(one, got))) return undefined
  const wanted = results.map(typeString)
  return wanted.length === 1
    ? `must evaluate to ${wanted[0]} but got ${typeString(got)}`
    : `must evaluate to one of [${wanted.join(' ')}] but got ${typeString(got)}`
}
