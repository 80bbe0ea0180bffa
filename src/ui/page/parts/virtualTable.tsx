/** A table of any length (L4): only the rows in sight are in the document. Keys move through it, also outside of what is drawn. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { useKeys } from '../keys.ts'
import { go, isNarrow } from '../state.ts'

export interface TableColumn<T> {
  readonly name: string
  /** Characters that it wants. */
  readonly width: number
  readonly cell: (item: T) => ComponentChildren
  readonly title?: string | undefined
}

interface VirtualTableProps<T> {
  readonly label: string
  readonly columns: readonly TableColumn<T>[]
  readonly items: readonly T[]
  readonly keyOf: (item: T) => string
  readonly linkOf: (item: T) => string
  readonly order: { readonly by: string; readonly descending: boolean }
  readonly onOrder: (column: string) => void
}

const rowHeights = { wide: 34, narrow: 60 }
const overscan = 8

export function VirtualTable<T>({ label, columns, items, keyOf, linkOf, order, onOrder }: VirtualTableProps<T>) {
  const scroller = useRef<HTMLDivElement>(null)
  const [top, height, selected] = [useSignal(0), useSignal(600), useSignal(-1)]
  const rowHeight = isNarrow.value ? rowHeights.narrow : rowHeights.wide
  useEffect(() => {
    const element = scroller.current
    if (!element) return
    const observer = new ResizeObserver(() => {
      height.value = element.clientHeight
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  const select = (index: number) => {
    const next = Math.max(0, Math.min(items.length - 1, index))
    selected.value = next
    const element = scroller.current
    if (!element) return
    const [from, to] = [next * rowHeight, (next + 2) * rowHeight]
    if (from < element.scrollTop) element.scrollTop = from
    else if (to > element.scrollTop + element.clientHeight) element.scrollTop = to - element.clientHeight
  }
  const open = () => {
    const item = items[selected.value]
    if (item !== undefined) go(linkOf(item))
  }
  const page = Math.max(1, Math.floor(height.value / rowHeight) - 2)
  useKeys([
    { key: 'j', text: 'next row', act: () => select(selected.value + 1) },
    { key: 'k', text: 'previous row', act: () => select(selected.value - 1) },
    { key: 'ArrowDown', text: 'next row', act: () => select(selected.value + 1) },
    { key: 'ArrowUp', text: 'previous row', act: () => select(selected.value - 1) },
    { key: 'PageDown', text: 'a page down', act: () => select(selected.value + page) },
    { key: 'PageUp', text: 'a page up', act: () => select(selected.value - page) },
    { key: 'Home', text: 'first row', act: () => select(0) },
    { key: 'End', text: 'last row', act: () => select(items.length - 1) },
    { key: 'Enter', text: 'open the row', act: open },
  ])
  const first = Math.max(0, Math.floor(top.value / rowHeight) - overscan)
  const last = Math.min(items.length, Math.ceil((top.value + height.value) / rowHeight) + overscan)
  const template = columns.map(({ width }, index) => `minmax(${Math.min(width, index === 0 ? 20 : 12)}ch, ${index === 0 ? width + 8 : width}fr)`).join(' ')
  return (
    <div
      ref={scroller}
      class="table"
      role="grid"
      aria-label={label}
      aria-rowcount={items.length + 1}
      tabIndex={0}
      style={{ '--columns': template, '--row': `${rowHeight}px` }}
      onScroll={({ currentTarget }) => {
        top.value = currentTarget.scrollTop
      }}
    >
      <HeaderRow columns={columns} order={order} onOrder={onOrder} />
      <div class="rows" role="rowgroup" style={{ height: `${items.length * rowHeight}px` }}>
        <div role="presentation" style={{ transform: `translateY(${first * rowHeight}px)` }}>
          {items.slice(first, last).map((item, index) => {
            const at = first + index
            return <TableRow key={keyOf(item)} item={item} columns={columns} index={at} isSelected={at === selected.value} link={linkOf(item)} />
          })}
        </div>
      </div>
    </div>
  )
}

function HeaderRow<T>({ columns, order, onOrder }: Pick<VirtualTableProps<T>, 'columns' | 'order' | 'onOrder'>) {
  const sortOf = (name: string) => (order.by !== name ? 'none' : order.descending ? 'descending' : 'ascending')
  return (
    <div class="head" role="row" aria-rowindex={1}>
      {columns.map(({ name, title }) => (
        <div key={name} role="columnheader" aria-sort={sortOf(name)} title={title}>
          <button type="button" onClick={() => onOrder(name)}>
            {name}
            {order.by === name && <span aria-hidden="true">{order.descending ? ' ↓' : ' ↑'}</span>}
          </button>
        </div>
      ))}
    </div>
  )
}

interface TableRowProps<T> {
  readonly item: T
  readonly columns: readonly TableColumn<T>[]
  readonly index: number
  readonly isSelected: boolean
  readonly link: string
}

function TableRow<T>({ item, columns: [first, ...others], index, isSelected, link }: TableRowProps<T>) {
  return (
    <div class="row" role="row" aria-rowindex={index + 2} aria-selected={isSelected}>
      {first && (
        <div role="gridcell">
          {/* This link covers the row. */}
          <a href={link} tabIndex={-1}>
            {first.cell(item)}
          </a>
        </div>
      )}
      {/* A line of its own on phones. */}
      <div class="rest" role="presentation">
        {others.map(({ name, cell }) => (
          <div key={name} role="gridcell">
            {cell(item)}
          </div>
        ))}
      </div>
    </div>
  )
}
