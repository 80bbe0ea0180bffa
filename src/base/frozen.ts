/** Deep immutability (L0): objects that come from a cache or cross a component border are frozen and typed read-only. */
export type DeepReadonly<T> = T extends (infer U)[] ? readonly DeepReadonly<U>[] : T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T

/** The opposite of {@link DeepReadonly}. */
export type Mutable<T> = T extends readonly (infer U)[] ? Mutable<U>[] : T extends object ? { -readonly [K in keyof T]: Mutable<T[K]> } : T

/** Freezes a JSON value in place, all the way down, and returns it. Already frozen parts are not walked again. */
export function deepFreeze<T>(value: T): DeepReadonly<T> {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    if (Array.isArray(value)) for (const item of value) deepFreeze(item)
    else
      for (const key in value) {
        const member = (value as Record<string, unknown>)[key]
        if (typeof member === 'object') deepFreeze(member)
      }
  }
  return value as DeepReadonly<T>
}

/** A mutable deep copy of a JSON value, to change and send back. */
export function deepCopy<T>(value: T | DeepReadonly<T>): T {
  if (typeof value !== 'object' || value === null) return value as T
  if (Array.isArray(value)) return value.map((item) => deepCopy(item)) as T
  const copy: Record<string, unknown> = {}
  for (const key in value) {
    const own = (value as Record<string, unknown>)[key]
    const member = typeof own === 'object' ? deepCopy(own) : own
    setMember(copy, key, member)
  }
  return copy as T
}

/** Assigning to `__proto__` would set the prototype instead, whose members would then pass for the object's own. */
function setMember(copy: Record<string, unknown>, key: string, member: unknown): void {
  if (key === '__proto__') Object.defineProperty(copy, key, { value: member, configurable: true, enumerable: true, writable: true })
  else copy[key] = member
}

/** Members and items that are copied before others get a turn: some ten milliseconds. */
const copiesPerTurn = 10_000

/** As {@link deepCopy}; pauses after many members and items, at any depth. */
export function* deepCopyInSteps<T>(value: T | DeepReadonly<T>, done = { copies: 0 }): Generator<undefined, T> {
  if (typeof value !== 'object' || value === null) return value as T
  const copy: Record<string, unknown> | unknown[] = Array.isArray(value) ? [] : {}
  for (const key in value) {
    const own = (value as Record<string, unknown>)[key]
    const member = typeof own === 'object' ? yield* deepCopyInSteps(own, done) : own
    if (Array.isArray(copy)) copy.push(member)
    else setMember(copy, key, member)
    if (++done.copies % copiesPerTurn === 0) yield
  }
  return copy as T
}

/** As {@link deepCopy}, for callers that do not know the value's own type: the result's type is the value's without `readonly`. */
export function mutableCopy<T>(value: T): Mutable<T> {
  return deepCopy(value) as Mutable<T>
}
