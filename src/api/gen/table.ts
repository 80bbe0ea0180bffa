/**
 * The typed door to the generated table (L1): parsed once, on first use (about 2 ms), then shared read-only.
 * Only src/api/schema/builtIn.ts and src/api/discovery/resources.ts read it; other files call those two.
 */
import { factsJson } from './facts.ts'

export interface FieldExtras {
  /** Required. */
  readonly r?: 1
  readonly lt?: 'atomic' | 'set' | 'map'
  readonly lk?: readonly string[]
  readonly mt?: 'atomic' | 'granular'
  readonly ps?: string
  readonly pk?: string
  /** Constant default. */
  readonly d?: unknown
  /** A pointer in Go: zero is a value of its own. */
  readonly p?: 1
  /** Go always writes it, empty at worst. */
  readonly a?: 1
  /** Protobuf numbers of the messages around the field that JSON shows inline, outermost first. */
  readonly in?: readonly number[]
}

export type FieldRow = readonly [name: string, type: string, protobufNumber: number, extras?: FieldExtras]

export interface DefinitionExtras {
  readonly gvk?: readonly [group: string, version: string, kind: string]
  /** The kind exists under this name in every group-version (DeleteOptions, WatchEvent). */
  readonly every?: string
  readonly mt?: 'atomic' | 'granular'
  readonly unions?: unknown
  /** Any JSON value. */
  readonly any?: 1
}

export type DefinitionRow = readonly [name: string, fields: readonly FieldRow[], extras: DefinitionExtras]

export interface SubresourceRow {
  readonly n: string
  readonly k: readonly [group: string, version: string, kind: string]
  readonly verbs: readonly string[]
  readonly c?: 1
  readonly p?: readonly (readonly [name: string, type: string])[]
}

export interface ResourceRow {
  readonly g: string
  readonly v: string
  readonly k: string
  readonly r: string
  readonly s: string
  readonly n: 0 | 1
  readonly verbs: readonly string[]
  readonly sub: readonly SubresourceRow[]
  readonly short?: readonly string[]
  readonly cat?: readonly string[]
  /** DELETE answers with the object instead of a Status. */
  readonly del?: 1
  readonly prefix?: string
  readonly sg?: string
  readonly sv?: string
  /** Version in which upstream writes it to etcd, where that is not `sv`. */
  readonly wv?: string
  readonly hash?: string
}

export interface FactsTable {
  readonly definitions: readonly DefinitionRow[]
  /** `off`: not served by default. */
  readonly groups: readonly { readonly g: string; readonly v: string; readonly gp: number; readonly vp: number; readonly off?: 1 }[]
  readonly resources: readonly ResourceRow[]
  /** The group-versions in which upstream registers DeleteOptions and WatchEvent. */
  readonly optionGroups: readonly (readonly [group: string, version: string])[]
}

export const factsTable: () => FactsTable = once(() => JSON.parse(factsJson) as FactsTable)

/** A constant computed on first use. */
export function once<T>(compute: () => T): () => T {
  let cell: { readonly value: T } | undefined
  return () => {
    cell ??= { value: compute() }
    return cell.value
  }
}
