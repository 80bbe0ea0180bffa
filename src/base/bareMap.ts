/**
 * Objects that serve as maps (L0). An ordinary object answers for `constructor` and `toString` without having them, and an assignment to `__proto__`
 * replaces what it inherits. A bare map has its own keys and no others, whatever a client calls them. Its shape stays one that the engine reads fast,
 * unlike that of `Object.create(null)`.
 */

function Bare(): void {}
Bare.prototype = Object.freeze(Object.create(null))
const Constructor = Bare as unknown as new () => object

/** A map without entries yet. */
export function emptyMap<V>(): Record<string, V> {
  return new Constructor() as Record<string, V>
}

/** A map with these entries. */
export function bareMap<T extends object>(entries: T): T {
  return Object.assign(new Constructor(), entries) as T
}

/** A map's own value, for objects decoded from JSON, which have a prototype. */
export function ownValue<V>(map: Readonly<Record<string, V>> | undefined, key: string): V | undefined {
  return map !== undefined && Object.hasOwn(map, key) ? map[key] : undefined
}
