/**
 * meta.k8s.io/v1 Table and PartialObjectMetadata (L1): the forms for `kubectl get` and for clients that watch only metadata.
 * Upstream: apiserver/pkg/endpoints/handlers/response.go, kubernetes/pkg/printers (v1.36).
 */
import { parseTime } from '#base/time'
import { humanDuration } from '../machinery/duration.ts'
import type { Frozen, KubeObject, ListMeta, ObjectMeta } from '../machinery/meta.ts'
import { withNils } from '../schema/nils.ts'

/** The part of a column that a table needs; kinds/defineKind.ts has the full one. */
export interface TableColumn<T> {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  readonly format?: string | undefined
  readonly priority?: number | undefined
  readonly description?: string | undefined
  readonly value: (obj: Frozen<T>, nowMs: number) => string | number | bigint | boolean | undefined | null
}

export interface TableColumnDefinition {
  name: string
  type: string
  format: string
  description: string
  priority: number
}

export interface TableRow {
  cells: unknown[]
  object: unknown
}

export interface Table {
  kind: 'Table'
  apiVersion: 'meta.k8s.io/v1'
  metadata: ListMeta
  columnDefinitions: TableColumnDefinition[]
  rows: TableRow[]
}

export interface PartialObjectMetadata {
  kind: 'PartialObjectMetadata'
  apiVersion: 'meta.k8s.io/v1'
  metadata: Frozen<ObjectMeta>
}

/** The object that each row carries with its cells. Metadata is the default of the query parameter includeObject. */
export type IncludeObject = 'None' | 'Metadata' | 'Object'

/** The metadata alone, as clients that ask for `as=PartialObjectMetadata` get it. */
export function partialObjectMetadata(object: Frozen<KubeObject>): PartialObjectMetadata {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata }
}

/**
 * The table of some objects of one kind.
 * @param listMeta the list's metadata, or the object's resourceVersion for a single object
 */
export function toTable<T extends KubeObject>(
  objects: readonly Frozen<T>[],
  columns: readonly TableColumn<T>[],
  nowMs: number,
  include: IncludeObject,
  listMeta: ListMeta = {},
): Table {
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: listMeta,
    columnDefinitions: columnDefinitions(columns),
    rows: objects.map((object) => tableRow(object, columns, nowMs, include)),
  }
}

/** One row, as watches send them one by one. */
export function tableRow<T extends KubeObject>(object: Frozen<T>, columns: readonly TableColumn<T>[], nowMs: number, include: IncludeObject): TableRow {
  const cells = columns.map((column) => {
    const value = column.value(object, nowMs)
    return column.type === 'date' ? dateCell(value, nowMs) : (value ?? null)
  })
  const plain = object as Frozen<KubeObject>
  return { cells, object: include === 'None' ? null : include === 'Object' ? withNils(object) : partialObjectMetadata(plain) }
}

/** The cell of a time. Null stays empty; a value that is not a time shows `<invalid>`. */
function dateCell(value: unknown, nowMs: number): string | null {
  if (value === null) return null
  if (value === undefined || value === '') return ageOf(undefined, nowMs)
  const text = String(value)
  return parseTime(text) === undefined ? '<invalid>' : ageOf(text, nowMs)
}

export function columnDefinitions<T>(columns: readonly TableColumn<T>[]): TableColumnDefinition[] {
  return columns.map(({ name, type, format = '', description = '', priority = 0 }) => ({ name, type, format, description, priority }))
}

/** The age of an RFC 3339 time as tables show it: `<unknown>` without one. */
export function ageOf(time: string | undefined, nowMs: number): string {
  const at = time ? parseTime(time) : undefined
  return at === undefined ? '<unknown>' : humanDuration(nowMs - at)
}
