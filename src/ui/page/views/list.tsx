/** The objects of a kind, as the server prints them, live (L4). */
import { useSignal } from '@preact/signals'
import { useMemo, useRef } from 'preact/hooks'
import { type Kind, listPath, listPlace, nameOfKind, objectPlace } from '../../model/places.ts'
import { cellText, isAge, keyOfRow, matcher, type Order, type Row, shownColumns, sortRows } from '../../model/tables.ts'
import { useKeys } from '../keys.ts'
import { type Live, useLiveTable } from '../live.ts'
import { Age, Empty, Failure, Icon, Loading, Status } from '../parts/basics.tsx'
import { type TableColumn, VirtualTable } from '../parts/virtualTable.tsx'
import { namespace, place, set } from '../state.ts'

export function ListView({ kind }: { readonly kind: Kind }) {
  const scope = kind.namespaced ? namespace.value : ''
  const live = useLiveTable(listPath(kind, scope))
  return <LiveTable key={`${nameOfKind(kind)}/${scope}`} kind={kind} live={live} scope={scope} />
}

interface LiveTableProps {
  readonly kind: Kind
  readonly live: Pick<Live<Row>, 'items' | 'columns' | 'state' | 'error'>
  readonly scope: string
}

export function LiveTable({ kind, live, scope }: LiveTableProps) {
  const [text, order, wide] = [useSignal(place.value.query.q ?? ''), useSignal<Order>({ by: '', descending: false }), useSignal(false)]
  const search = useRef<HTMLInputElement>(null)
  useKeys([
    { key: '/', text: 'search in the table', act: () => search.current?.focus() },
    { key: 'w', text: 'more columns', act: () => set(wide, !wide.value) },
  ])
  const [rows, columns] = [live.items.value, live.columns.value]
  const before = useRef<readonly Row[]>([])
  const sorted = useMemo(() => sortRows(rows, { columns, ...order.value }, before.current), [rows, columns, order.value])
  before.current = sorted
  const shown = useMemo(() => (text.value.trim() === '' ? sorted : sorted.filter(matcher(text.value))), [sorted, text.value])
  const tableColumns = useMemo(() => columnsOf(kind, scope, columns, wide.value, rows), [kind, scope, columns, wide.value, rows.size > 0])
  const onOrder = (by: string) => {
    order.value = { by, descending: order.value.by === by && !order.value.descending }
  }
  const { state, error } = live
  return (
    <section class="list">
      <header class="bar">
        <h1>{kind.kind}</h1>
        <span class="count" role="status">
          {shown.length === rows.size ? rows.size : `${shown.length} of ${rows.size}`}
        </span>
        <StateMark state={state.value} />
        <label class="search">
          <Icon name="search" />
          <input
            ref={search}
            type="search"
            aria-label={`Search in ${kind.resource}`}
            placeholder="Search   /"
            value={text.value}
            onInput={({ currentTarget }) => set(text, currentTarget.value)}
            onKeyDown={({ key, currentTarget }) => ['Escape', 'Enter'].includes(key) && currentTarget.blur()}
          />
        </label>
        <button type="button" aria-pressed={wide.value} title="More columns (w)" onClick={() => set(wide, !wide.value)}>
          Wide
        </button>
      </header>
      {state.value === 'failed' || (error.value !== '' && rows.size === 0) ? (
        <Failure text={error.value} />
      ) : state.value === 'loading' && rows.size === 0 ? (
        <Loading />
      ) : shown.length === 0 ? (
        <Empty title={rows.size === 0 ? `No ${kind.resource} here` : `Nothing matches “${text.value}”`}>
          {rows.size === 0 && scope !== '' && <a href={listPlace(kind, { ns: '*' })}>Look in all namespaces</a>}
        </Empty>
      ) : (
        <VirtualTable
          label={kind.resource}
          columns={tableColumns}
          items={shown}
          keyOf={keyOfRow}
          linkOf={({ object: { metadata } }) => objectPlace(kind, { namespace: metadata.namespace ?? '', name: metadata.name ?? '' })}
          order={order.value}
          onOrder={onOrder}
        />
      )}
    </section>
  )
}

function StateMark({ state }: { readonly state: string }) {
  const text = state === 'live' ? 'Changes are shown as they happen' : state === 'reconnecting' ? 'Connecting again…' : ''
  return text === '' ? null : (
    <span class={`mark ${state}`} title={text} role="img" aria-label={text}>
      <i />
      {state === 'reconnecting' && 'connecting again'}
    </span>
  )
}

const toned = new Set(['Status', 'Phase', 'Condition', 'Type', 'Reason', 'State'])
const sample = 200

function columnsOf(
  kind: Kind,
  scope: string,
  columns: LiveTableProps['live']['columns']['value'],
  wide: boolean,
  rows: ReadonlyMap<string, Row>,
): TableColumn<Row>[] {
  const some = [...rows.values()].slice(0, sample)
  const widthOf = (name: string, texts: readonly string[]) => Math.min(48, Math.max(name.length, ...texts.map(({ length }) => length)) + 2)
  const shown = shownColumns(columns, wide).map((column): TableColumn<Row> => {
    const { name, index, description } = column
    const textOf = ({ cells }: Row) => cellText(cells[index])
    const cell = (row: Row) => {
      if (isAge(column)) return <Age since={row.object.metadata.creationTimestamp} />
      const text = textOf(row)
      return toned.has(name) ? <Status text={text} /> : <span title={text.length > 24 ? text : undefined}>{text}</span>
    }
    return { name, title: description, width: isAge(column) ? 8 : widthOf(name, some.map(textOf)), cell }
  })
  if (!kind.namespaced || scope !== '') return shown
  const of = ({ object }: Row) => object.metadata.namespace ?? ''
  const namespaceColumn = { name: 'Namespace', width: widthOf('Namespace', some.map(of)), cell: (row: Row) => <span class="quiet">{of(row)}</span> }
  return [...shown.slice(0, 1), namespaceColumn, ...shown.slice(1)]
}
