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

export interface TableOrder extends Order {
  readonly columns: readonly Column[]
}

/**
 * The rows in order.
 * @param before the rows in an earlier order: what is in order already costs one comparison a row
 */
export function sortRows(rows: Rows, { columns, by, descending }: TableOrder, before: readonly Row[] = []): Row[] {
  const found: Row[] = []
  const added = new Map(rows)
  for (const row of before) {
    const key = keyOfRow(row)
    const now = added.get(key)
    if (now && added.delete(key)) found.push(now)
  }
  for (const row of added.values()) found.push(row)
  const index = columns.findIndex(({ name }) => name === by)
  const column = columns[index]
  const compare = column === undefined ? compareNames : isAge(column) ? compareAges : compareCells(index)
  found.sort((one, other) => (descending ? -1 : 1) * compare(one, other) || compareNames(one, other))
  return found
}

/**
 * Whether a row has all words, in the name, the namespace or a cell; `!word` must not, `key=value` is a label. Letters match in both cases.
 */
export function matcher(text: string): (row: Row) => boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return () => true
  return (row) => {
    const { labels = {} } = row.object.metadata
    const all = wordsOf(row)
    return words.every((word) => {
      const [key = '', value] = word.split('=', 2)
      if (value !== undefined) return Object.entries(labels).some(([label, held]) => label.toLowerCase() === key && held.toLowerCase() === value)
      return word.startsWith('!') && word.length > 1 ? !all.includes(word.slice(1)) : all.includes(word)
    })
  }
}

const words = new WeakMap<Row, string>()

/** Made once for each row: each letter of a search looks at all rows. */
function wordsOf(row: Row): string {
  const known = words.get(row)
  if (known !== undefined) return known
  const { name = '', namespace = '' } = row.object.metadata
  const made = [name, namespace, ...row.cells.map(cellText)].join('\n').toLowerCase()
  words.set(row, made)
  return made
}

const collator = new Intl.Collator('en', { numeric: true })
const places = new WeakMap<Row, string>()

/** Namespace and name, with digits in groups of equal length: a comparison of these strings costs a fraction of a collator's. */
function placeOf(row: Row): string {
  const known = places.get(row)
  if (known !== undefined) return known
  const { name = '', namespace = '' } = row.object.metadata
  const made = `${namespace}\0${name}`.replace(/\d+/g, (digits) => digits.padStart(12, '0'))
  places.set(row, made)
  return made
}

function compareNames(one: Row, other: Row): number {
  const [a, b] = [placeOf(one), placeOf(other)]
  return a < b ? -1 : a > b ? 1 : 0
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
