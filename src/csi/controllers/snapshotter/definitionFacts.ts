/** The form of the tables of snapshotFacts.ts and groupFacts.ts (L3), and the schemas that both use. */

export type Schema = Readonly<Record<string, unknown>>

export const text = { type: 'string' }
export const flag = { type: 'boolean' }
export const time = { type: 'string', format: 'date-time' }
export const whole = { type: 'integer', format: 'int64' }
export const policy = { type: 'string', enum: ['Delete', 'Retain'] }

export const object = (properties: Schema, required: readonly string[] = [], rules: readonly Schema[] = []) => ({
  type: 'object',
  properties,
  ...(required.length > 0 ? { required } : {}),
  ...(rules.length > 0 ? { 'x-kubernetes-validations': rules } : {}),
})
export const failure = object({ message: text, time })
export const fixed = (name: string, type: Schema = text) => ({
  ...type,
  'x-kubernetes-validations': [{ message: `${name} is immutable`, rule: 'self == oldSelf' }],
})
export const onceSet = (name: string) => ({ message: `${name} is required once set`, rule: `!has(oldSelf.${name}) || has(self.${name})` })
/** The field cannot be changed, and may be set later. */
export const onceGiven = (name: string, type: Schema = text) => ({
  ...type,
  'x-kubernetes-validations': [{ message: `${name} is immutable once set`, rule: 'self == oldSelf' }],
})
const oneOf = (a: string, b: string) => ({ message: `exactly one of ${a} and ${b} must be set`, rule: `has(self.${a}) != has(self.${b})` })
/** Exactly one of the two, for good. */
export const source = (a: string, b: string, types: Readonly<Record<string, Schema>> = {}) =>
  object({ [a]: fixed(a, types[a]), [b]: fixed(b, types[b]) }, [], [onceSet(a), onceSet(b), oneOf(b, a)])
export const className = (name: string) => ({
  ...text,
  'x-kubernetes-validations': [{ message: `${name} must not be the empty string when set`, rule: 'size(self) > 0' }],
})
/** @param path in messages */
export const reference = (path: string, rules: readonly Schema[] = []) => ({
  ...object(Object.fromEntries(['apiVersion', 'fieldPath', 'kind', 'name', 'namespace', 'resourceVersion', 'uid'].map((name) => [name, text]))),
  'x-kubernetes-map-type': 'atomic',
  'x-kubernetes-validations': [{ message: `both ${path}.name and ${path}.namespace must be set`, rule: 'has(self.name) && has(self.__namespace__)' }, ...rules],
})

export interface DefinitionFacts {
  readonly kind: string
  readonly shortNames: readonly string[]
  readonly scope: string
  /** The change in which the API was reviewed. */
  readonly approval: number
  readonly fields: Schema
  readonly required: readonly string[]
  /** Name, type if it is no text, path. */
  readonly columns: readonly (readonly [name: string, path: string, type?: string])[]
}

export const age = ['Age', '.metadata.creationTimestamp', 'date'] as const
