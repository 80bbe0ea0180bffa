/**
 * Compiles and evaluates CEL over the claims of a token and over the user made of them (L3).
 * Names of claims that are no identifiers are written escaped: `claims.example__dot__com`.
 * Upstream: apiserver/pkg/authentication/cel, plugin/pkg/authenticator/token/oidc (newClaimsValue, newUserInfoValue).
 */
import { kubernetesEnvironment, perCallLimit } from '#api/cel/environment'
import { unescapeIdentifier } from '#api/cel/escaping'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { CheckedExpression, Environment, Program } from '#cel/environment'
import { JsonList } from '#cel/json'
import { dynType, listType, mapType, objectType, stringType } from '#cel/types'
import { Double, ListValue, MapValue, type Value } from '#cel/values'
import type { UserInfo } from '../../core/request.ts'

export interface CompiledExpression {
  readonly expression: string
  readonly checked: CheckedExpression
  readonly program: Program
}

export type Variable = 'claims' | 'user'

const userType = objectType('kubernetes.UserInfo', {
  username: stringType,
  uid: stringType,
  groups: listType(stringType),
  extra: mapType(stringType, listType(stringType)),
})
const environments: Readonly<Record<Variable, Environment>> = {
  claims: kubernetesEnvironment.extend({ variables: { claims: mapType(stringType, dynType) } }),
  user: kubernetesEnvironment.extend({ variables: { user: userType }, types: [userType] }),
}

/** The compiled expression, or its error. `isCondition`: its type must be bool. */
export function compileExpression(variable: Variable, expression: string, isCondition: boolean, path: FieldPath): CompiledExpression | FieldError {
  const compiled = environments[variable].compile(expression)
  if (!compiled.ok) return fieldError.invalid(path, expression, `compilation failed: ${compiled.message}`)
  if (isCondition && compiled.checked.resultType.kind !== 'bool') return fieldError.invalid(path, expression, 'must evaluate to bool')
  return { expression, checked: compiled.checked, program: compiled.program }
}

/** @throws Error with the expression and what went wrong */
export function evaluate({ expression, program }: CompiledExpression, variable: Variable, value: Value): Value {
  const result = program.evaluate(new Map([[variable, value]]), { costLimit: perCallLimit })
  if (result.error) throw new Error(`expression '${expression}' resulted in error: ${result.error.message}`)
  return result.value
}

/** JSON as a CEL value, with numbers as doubles, and keys that can be selected by their escaped form. */
export function jsonValue(json: unknown): Value {
  if (typeof json === 'string' || typeof json === 'boolean') return json
  if (typeof json === 'number') return new Double(json)
  if (json === null || json === undefined) return null
  return Array.isArray(json) ? new JsonList(json, jsonValue) : new EscapedMap(json as Readonly<Record<string, unknown>>)
}

export function userValue({ name, uid = '', groups, extra = {} }: UserInfo): Value {
  return jsonValue({ username: name, uid, groups, extra })
}

class EscapedMap extends MapValue {
  readonly #entries: Readonly<Record<string, unknown>>

  constructor(entries: Readonly<Record<string, unknown>>) {
    super()
    this.#entries = entries
  }
  get size(): number {
    return Object.keys(this.#entries).length
  }
  get(key: Value): Value | undefined {
    const name = typeof key === 'string' ? unescapeIdentifier(key) : undefined
    return name !== undefined && Object.hasOwn(this.#entries, name) ? jsonValue(this.#entries[name]) : undefined
  }
  keys(): Iterable<string> {
    return Object.keys(this.#entries)
  }
}

const notTexts = 'expression must return a string or a list of strings'

/** A text or a list of texts as a list without empty texts. @throws Error for anything else */
export function textsOf(value: Value): string[] {
  if (value === null) return []
  const all = typeof value === 'string' ? [value] : value instanceof ListValue ? Array.from({ length: value.size }, (_, at) => value.at(at)) : undefined
  if (!all?.every((one) => typeof one === 'string')) throw new Error(notTexts)
  return all.filter((one) => one !== '')
}
