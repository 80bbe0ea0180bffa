/**
 * Lists that stay up to date (L4): read by pages, then followed by a watch over a WebSocket, with a new list when the server no longer knows the revision.
 * Events are handed on a few times a second, however many there are.
 */
import { batch, type Signal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { tableForm } from '../model/protocols.ts'
import { type Column, keyOfRow, type Row, type TableAnswer } from '../model/tables.ts'
import { ApiError, get, isRefusal, messageOf, openSocket, refusedAgainMs } from './api.ts'

/** `still`: a list of the past, which does not change. */
export type LiveState = 'loading' | 'live' | 'reconnecting' | 'failed' | 'still'

export interface Live<T> {
  /** By identity. */
  readonly items: Signal<ReadonlyMap<string, T>>
  readonly columns: Signal<readonly Column[]>
  readonly state: Signal<LiveState>
  readonly error: Signal<string>
  stop(): void
}

interface Event {
  readonly type: string
  readonly object: TableAnswer & ListedObject & { readonly code?: number }
}

export interface ListedObject {
  readonly metadata?: { readonly uid?: string; readonly name?: string; readonly namespace?: string; readonly resourceVersion?: string }
}

interface ListAnswer extends TableAnswer {
  readonly items?: readonly ListedObject[]
}

const pageSize = 1_000
const flushMs = 120
const shortestWaitMs = 250
const longestWaitMs = 10_000

interface Form<T> {
  readonly isTable: boolean
  itemsOf(answer: ListAnswer | Event['object'], isEvent: boolean): readonly T[]
  keyOf(item: T): string
}

const rows: Form<Row> = { isTable: true, itemsOf: (answer) => answer.rows ?? [], keyOf: keyOfRow }

const objects: Form<ListedObject> = {
  isTable: false,
  itemsOf: (answer, isEvent) => (isEvent ? [answer as ListedObject] : ((answer as ListAnswer).items ?? [])),
  keyOf: ({ metadata }) => metadata?.uid ?? `${metadata?.namespace}/${metadata?.name}`,
}

/** @param path of the list, with its selectors as a query */
export const liveTable = (path: string): Live<Row> => new LiveList(path, rows)
export const liveObjects = <T extends ListedObject>(path: string): Live<T> => new LiveList(path, objects) as unknown as Live<T>

class LiveList<T> implements Live<T> {
  readonly items = signal<ReadonlyMap<string, T>>(new Map())
  readonly columns = signal<readonly Column[]>([])
  readonly state = signal<LiveState>('loading')
  readonly error = signal('')
  readonly #path: string
  readonly #form: Form<T>
  readonly #stopping = new AbortController()
  #revision = ''
  #waitMs = shortestWaitMs
  #pending: Event[] = []
  #socket: WebSocket | undefined

  constructor(path: string, form: Form<T>) {
    this.#path = path
    this.#form = form
    void this.#list()
  }

  stop(): void {
    this.#stopping.abort()
    this.#socket?.close()
  }

  #url(query: Readonly<Record<string, string>>): string {
    return `${this.#path}${this.#path.includes('?') ? '&' : '?'}${new URLSearchParams(query)}`
  }

  async #list(): Promise<void> {
    const { signal: stopped } = this.#stopping
    const accept = this.#form.isTable ? tableForm : 'application/json'
    const found = new Map<string, T>()
    let token = ''
    try {
      do {
        const url = this.#url({ limit: String(pageSize), ...(token === '' ? {} : { continue: token }) })
        const page = await get<ListAnswer>(url, { accept, signal: stopped })
        for (const item of this.#form.itemsOf(page, false)) found.set(this.#form.keyOf(item), item)
        this.#revision = page.metadata?.resourceVersion ?? ''
        token = page.metadata?.continue ?? ''
        batch(() => {
          if (page.columnDefinitions?.length) this.columns.value = page.columnDefinitions
          // The first page is shown at once, and a list that grows each time it has doubled; a list that is read again replaces nothing before its end.
          const isGrowing = this.state.peek() === 'loading' && found.size >= 2 * this.items.peek().size
          if (token === '' || isGrowing) this.items.value = new Map(found)
        })
      } while (token !== '')
      batch(() => {
        this.state.value = 'live'
        this.error.value = ''
      })
      this.#watch()
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    if (this.#stopping.signal.aborted) return
    const isFinal = error instanceof ApiError && [401, 404, 405].includes(error.status)
    batch(() => {
      this.state.value = isFinal || isRefusal(error) ? 'failed' : 'reconnecting'
      this.error.value = messageOf(error)
    })
    if (isRefusal(error)) this.#after(refusedAgainMs, () => void this.#list())
    else if (!isFinal) this.#later(() => void this.#list())
  }

  #later(act: () => void): void {
    this.#after(this.#waitMs, act)
    this.#waitMs = Math.min(this.#waitMs * 2, longestWaitMs)
  }

  #after(ms: number, act: () => void): void {
    setTimeout(() => this.#stopping.signal.aborted || act(), ms)
  }

  #watch(): void {
    if (this.#stopping.signal.aborted) return
    const query = { watch: '1', allowWatchBookmarks: 'true', resourceVersion: this.#revision }
    const socket = openSocket(this.#url(query), [], { table: this.#form.isTable })
    this.#socket = socket
    let [isOpen, isExpired] = [false, false]
    socket.onopen = () => {
      isOpen = true
      this.#waitMs = shortestWaitMs
    }
    socket.onmessage = ({ data }: MessageEvent<string>) => {
      const event = JSON.parse(data) as Event
      isExpired ||= event.type === 'ERROR'
      if (event.type !== 'ERROR') this.#take(event)
    }
    // A kind that cannot be watched is listed again and again.
    socket.onclose = () => this.#later(() => (isOpen && !isExpired ? this.#watch() : void this.#list()))
  }

  #take(event: Event): void {
    this.#revision = event.object.metadata?.resourceVersion ?? this.#revision
    if (event.type === 'BOOKMARK') return
    if (this.#pending.push(event) === 1) setTimeout(() => this.#flush(), flushMs)
  }

  #flush(): void {
    const events = this.#pending
    this.#pending = []
    const next = new Map(this.items.peek())
    for (const { type, object } of events) {
      for (const item of this.#form.itemsOf(object, true)) {
        if (type === 'DELETED') next.delete(this.#form.keyOf(item))
        else next.set(this.#form.keyOf(item), item)
      }
    }
    this.items.value = next
  }
}

/** A live list for as long as the component is there and the path stays the same. */
function useLive<T>(path: string, start: (path: string) => Live<T>): Live<T> {
  const live = useMemo(() => start(path), [path])
  useEffect(() => () => live.stop(), [live])
  return live
}

export const useLiveTable = (path: string): Live<Row> => useLive(path, liveTable)
export const useLiveObjects = <T extends ListedObject>(path: string): Live<T> => useLive(path, liveObjects<T>)
