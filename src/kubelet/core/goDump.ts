/**
 * Go's dump of a value as upstream hashes it for checkpoints (L3, pure), and the checksum over it: without both, a kubelet of the other kind would refuse our files.
 * Upstream: apimachinery/pkg/util/dump ForHash, kubelet/checkpointmanager/checksum (v1.36).
 */
import { fnv32a } from '#base/fnv'

/** A value with its Go type, which a dump names. */
export type GoValue =
  | { readonly go: 'scalar'; readonly type: string; readonly value: string | number | boolean }
  | { readonly go: 'struct'; readonly type: string; readonly fields: readonly (readonly [string, GoValue])[] }
  | { readonly go: 'map'; readonly type: string; readonly entries: readonly (readonly [string, GoValue])[] }
  | { readonly go: 'slice'; readonly type: string; readonly items: readonly GoValue[] }
  | { readonly go: 'pointer'; readonly to: GoValue }

export const goScalar = (type: string, value: string | number | boolean): GoValue => ({ go: 'scalar', type, value })
export const goString = (value: string): GoValue => goScalar('string', value)
export const goStruct = (type: string, ...fields: (readonly [string, GoValue])[]): GoValue => ({ go: 'struct', type, fields })
export const goSlice = (type: string, items: readonly GoValue[]): GoValue => ({ go: 'slice', type, items })
export const goPointer = (to: GoValue): GoValue => ({ go: 'pointer', to })

/** A map with its keys sorted: by their texts, or by value when all of them are numbers. */
export function goMap<T>(type: string, entries: Readonly<Record<string, T>>, value: (entry: T, key: string) => GoValue): GoValue {
  const numeric = type.startsWith('map[int]') || type === 'state.NUMANodeMap'
  const keys = Object.keys(entries).sort(numeric ? (a, b) => Number(a) - Number(b) : undefined)
  return { go: 'map', type, entries: keys.map((key) => [key, value(entries[key] as T, key)]) }
}

/** spew's `%#v`: elements of maps and slices are written without their types, which the container's type determines. */
export function goDump(value: GoValue, typed = true): string {
  if (value.go === 'pointer') return typed ? goDump(value.to).replace('(', '(*') : `<*>${goDump(value.to, false)}`
  const type = typed ? `(${value.type})` : ''
  switch (value.go) {
    case 'struct':
      return `${type}{${value.fields.map(([name, field]) => `${name}:${goDump(field)}`).join(' ')}}`
    case 'map':
      return `${type}map[${value.entries.map(([key, entry]) => `${key}:${goDump(entry, false)}`).join(' ')}]`
    case 'slice':
      return `${type}[${value.items.map((item) => goDump(item, false)).join(' ')}]`
    default:
      return `${type}${value.value}`
  }
}

/** The checksum of a checkpoint is that of its dump with a checksum of 0 as the last member. */
export function goChecksum(type: string, ...fields: (readonly [string, GoValue])[]): number {
  return fnv32a(goDump(goPointer(goStruct(type, ...fields, ['Checksum', goScalar('checksum.Checksum', 0)]))))
}
