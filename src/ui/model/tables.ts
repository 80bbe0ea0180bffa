/** The server's tables as the page shows them (L4, pure): rows by identity, events of a watch, sorting, and the search in them. */

export interface Column {
  readonly name: string
  readonly type: string
  readonly format?: string
  readonly priority?: number
  readonly description?: string
}

export interface RowObject {
  readonly metadata: {
    readonly name?: string
    readonly namespace?: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly creationTimestamp?: string
    readonly deletionTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
  }
}

export interface Row {
  readonly cells: readonly unknown[]
  readonly object: RowObject
}

export interface TableAnswer {
  readonly kind?: string
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string; readonly remainingItemCount?: number }
  readonly columnDefinitions?: readonly Column[]
  readonly rows?: readonly Row[] | null
}

export type Rows = ReadonlyMap<string, Row>

export const keyOfRow = ({ object: { metadata } }: Row): string => metadata.uid ?? `${metadata.namespace ?? ''}/${metadata.name ?? ''}`

export function cellText(value: unknown): string {
  return value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value)
}

export interface ShownColumn extends Column {
  /** In the cells of a row. */
  readonly index: number
}

/** The columns of the narrow form, or all when `wide`. */
export function shownColumns(columns: readonly Column[], wide: boolean): ShownColumn[] {
  return columns.map((column, index) => ({ ...column, index })).filter(({ priority = 0 }) => wide || priority === 0)
}

/** Columns of ages: the page counts on from the object's own time, as cells would stand still. */
export const isAge = ({ name }: Column): boolean => name === 'Age'

export interface Order {
  /** A column's name; empty: by namespace and name. */
  readonly by: string
  readonly descending: boolean
}

export interface TableQuery extends Order {
  readonly text: string
  readonly columns: readonly Column[]
}

/** The rows that match, in order. */
export function selectRows(rows: Rows, { text, columns, by, descending }: TableQuery): Row[] {
  const matches = matcher(text)
  const found = [...rows.values()].filter((row) => matches(row))
  const index = columns.findIndex(({ name }) => name === by)
  const column = columns[index]
  const compare = column === undefined ? compareNames : isAge(column) ? compareAges : compareCells(index)
  found.sort((one, other) => (descending ? -1 : 1) * compare(one, other) || compareNames(one, other))
  return found
}

/**
 * Words that must all be there, in the name, the namespace or a cell; `!word` must not, `key=value` is a label. Letters match in both cases.
 */
function matcher(text: string): (row: Row) => boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return () => true
  return (row) => {
    const { name = '', namespace = '', labels = {} } = row.object.metadata
    const all = [name, namespace, ...row.cells.map(cellText)].join('\n').toLowerCase()
    return words.every((word) => {
      const [key = '', value] = word.split('=', 2)
      if (value !== undefined) return Object.entries(labels).some(([label, held]) => label.toLowerCase() === key && held.toLowerCase() === value)
      return word.startsWith('!') && word.length > 1 ? !all.includes(word.slice(1)) : all.includes(word)
    })
  }
}

const collator = new Intl.Collator('en', { numeric: true })

function compareNames(one: Row, other: Row): number {
  const [a, b] = [one.object.metadata, other.object.metadata]
  return collator.compare(a.namespace ?? '', b.namespace ?? '') || collator.compare(a.name ?? '', b.name ?? '')
}

function compareAges(one: Row, other: Row): number {
  const [a = '', b = ''] = [one, other].map(({ object }) => object.metadata.creationTimestamp)
  return a < b ? 1 : a > b ? -1 : 0
}

function compareCells(index: number): (one: Row, other: Row) => number {
  return (one, other) => {
    const [a, b] = [one.cells[index], other.cells[index]]
    return typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(cellText(a), cellText(b))
  }
}
