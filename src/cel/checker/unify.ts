/**
 * When one type may stand for another (L1, pure): assignability with type parameters, whose meanings gather in a mapping.
 * Upstream: cel-go checker/types.go, checker/mapping.go (v0.26).
 */
import type { CelType } from '../types.ts'
import { dynType, isDyn, listType, mapType, opaqueType, parametersOf, typesEqual, typeType } from '../types.ts'

/** Type parameters, by name, and what they turned out to be. Grows with each call of an expression, so an attempt changes it and is undone, not copied. */
export class Mapping {
  readonly #types: Map<string, CelType>
  /** What the present attempt replaced, oldest first. */
  readonly #replaced: (readonly [name: string, before: CelType | undefined])[] = []

  constructor(types: Iterable<readonly [string, CelType]> = []) {
    this.#types = new Map(types)
  }

  get(name: string): CelType | undefined {
    return this.#types.get(name)
  }

  set(name: string, type: CelType): void {
    this.#replaced.push([name, this.#types.get(name)])
    this.#types.set(name, type)
  }

  /** Keeps what `work` sets when it returns true, and restores what there was otherwise. */
  attempt(work: () => boolean): boolean {
    this.#replaced.length = 0
    if (work()) return true
    for (const [name, before] of this.#replaced.reverse()) {
      if (before === undefined) this.#types.delete(name)
      else this.#types.set(name, before)
    }
    return false
  }
}

const isNullable = (type: CelType): boolean => ['opaque', 'object', 'timestamp', 'duration', 'wrapper', 'null'].includes(type.kind)

/** Whether each source may be passed where its target is wanted; extends the mapping only when so. */
export function assign(mapping: Mapping, sources: readonly CelType[], targets: readonly CelType[]): boolean {
  if (sources.length !== targets.length) return false
  return mapping.attempt(() => sources.every((source, i) => isAssignable(mapping, source, targets[i]!)))
}

function isAssignable(mapping: Mapping, source: CelType, target: CelType): boolean {
  if (target.kind === 'parameter') {
    const { valid, bound } = bind(mapping, source, target.name, target)
    if (valid) return true
    if (bound) return false
  }
  if (source.kind === 'parameter') return bind(mapping, target, source.name, source).valid
  if (isDyn(source) || isDyn(target)) return true
  if (source.kind === 'null') return isNullable(target)
  if (target.kind === 'null') return isNullable(source)
  if (source.kind === 'wrapper') return isAssignable(mapping, source.wrapped, target)
  if (target.kind === 'wrapper') return isAssignable(mapping, source, target.wrapped)
  if (source.kind !== target.kind) return false
  switch (source.kind) {
    case 'type':
      return true
    case 'list':
    case 'map':
    case 'opaque': {
      if (source.kind === 'opaque' && source.name !== (target as typeof source).name) return false
      const [from, to] = [parametersOf(source), parametersOf(target)]
      return from.length === to.length && from.every((parameter, i) => isAssignable(mapping, parameter, to[i]!))
    }
    default:
      return typesEqual(source, target)
  }
}

/** Whether a parameter may mean `type`; records it when so. */
function bind(mapping: Mapping, type: CelType, name: string, parameter: CelType): { valid: boolean; bound: boolean } {
  if (typesEqual(type, parameter)) return { valid: true, bound: true }
  const current = mapping.get(name)
  if (current === undefined) {
    if (occursIn(mapping, parameter, type)) return { valid: false, bound: false }
    mapping.set(name, type)
    return { valid: true, bound: false }
  }
  if (typesEqual(type, current)) return { valid: true, bound: true }
  if (!isAssignable(mapping, type, current)) return { valid: false, bound: true }
  const general = mostGeneral(type, current)
  if (!occursIn(mapping, parameter, general)) mapping.set(name, general)
  return { valid: true, bound: true }
}

function occursIn(mapping: Mapping, parameter: CelType, within: CelType): boolean {
  if (typesEqual(parameter, within)) return true
  if (within.kind === 'parameter') {
    const meaning = mapping.get(within.name)
    return meaning !== undefined && occursIn(mapping, parameter, meaning)
  }
  return parametersOf(within).some((inner) => occursIn(mapping, parameter, inner))
}

/** The more general of two assignable types. */
export function mostGeneral(a: CelType, b: CelType): CelType {
  return isEqualOrLessSpecific(a, b) ? a : b
}

function isEqualOrLessSpecific(a: CelType, b: CelType): boolean {
  if (a.kind === 'dyn' || a.kind === 'parameter') return true
  if (b.kind === 'dyn' || b.kind === 'parameter' || a.kind !== b.kind) return false
  switch (a.kind) {
    case 'type':
      return true
    case 'list':
    case 'map':
    case 'opaque': {
      if (a.kind === 'opaque' && a.name !== (b as typeof a).name) return false
      const [left, right] = [parametersOf(a), parametersOf(b)]
      return left.length === right.length && left.every((parameter, i) => isEqualOrLessSpecific(parameter, right[i]!))
    }
    default:
      return typesEqual(a, b)
  }
}

/** Replaces known parameters by their meaning; unknown ones by dyn when `free` is set. */
export function substitute(mapping: Mapping, type: CelType, free: 'keep' | 'dyn'): CelType {
  switch (type.kind) {
    case 'parameter': {
      const meaning = mapping.get(type.name)
      if (meaning) return substitute(mapping, meaning, free)
      return free === 'dyn' ? dynType : type
    }
    case 'list':
      return listType(substitute(mapping, type.element, free))
    case 'map':
      return mapType(substitute(mapping, type.key, free), substitute(mapping, type.value, free))
    case 'opaque':
      return type.parameters.length === 0 ? type : opaqueType(type.name, ...type.parameters.map((parameter) => substitute(mapping, parameter, free)))
    case 'type':
      return type.of ? typeType(substitute(mapping, type.of, free)) : type
    default:
      return type
  }
}
