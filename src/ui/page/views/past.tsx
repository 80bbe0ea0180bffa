/** The store's past (L4, LRN-02): any kind as it was at a revision, chosen with a slider, and what changed since. */
import { useComputed, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { RevisionHistory } from '#api/debug/revisions'
import { type Kind, listPath, nameOfKind, objectPlace, placeText } from '../../model/places.ts'
import { tableForm } from '../../model/protocols.ts'
import { keyOfRow, type Row, type TableAnswer } from '../../model/tables.ts'
import { get } from '../api.ts'
import type { LiveState } from '../live.ts'
import { Failure, Loading, Status } from '../parts/basics.tsx'
import { RevisionSlider, useHistory, within } from '../parts/revisionSlider.tsx'
import { useAnswer } from '../parts/useAnswer.ts'
import { go, kindNamed, kinds, namespace, place } from '../state.ts'
import { LiveTable } from './list.tsx'

export function Past() {
  const history = useHistory()
  if (history.error !== '' && !history.value) return <Failure text={history.error} retry={history.again} />
  if (!history.value) return <Loading />
  const { revision, kind: kindName = 'pods' } = place.value.query
  const kind = kindNamed(kindName) ?? kinds.value[0]
  return kind ? <PastAt kind={kind} history={history.value} wanted={Number(revision ?? history.first ?? history.value.revision)} /> : <Loading />
}

interface PastAtProps {
  readonly kind: Kind
  readonly history: RevisionHistory
  readonly wanted: number
}

function PastAt({ kind, history, wanted }: PastAtProps) {
  const shown = within(history, wanted)
  return (
    <section class="past">
      <header class="bar">
        <h1>Time travel</h1>
        <select
          aria-label="Kind"
          value={nameOfKind(kind)}
          onChange={({ currentTarget }) => go(placeText(['past'], { kind: currentTarget.value, revision: String(shown) }))}
        >
          {kinds.value.map((one) => (
            <option key={nameOfKind(one)} value={nameOfKind(one)}>
              {nameOfKind(one)}
            </option>
          ))}
        </select>
      </header>
      <RevisionSlider history={history} shown={shown} onMove={(next) => go(placeText(['past'], { kind: nameOfKind(kind), revision: String(next) }))} />
      <TableAt kind={kind} revision={shown} newest={history.revision} />
    </section>
  )
}

const readAt = async (kind: Kind, scope: string, revision: number, signal: AbortSignal) =>
  get<TableAnswer>(`${listPath(kind, scope)}?resourceVersion=${revision}&resourceVersionMatch=Exact`, { accept: tableForm, signal })

interface Compared {
  readonly then: TableAnswer
  readonly changed: readonly { readonly type: 'created' | 'changed' | 'deleted'; readonly row: Row }[]
}

async function compare(kind: Kind, scope: string, revision: number, newest: number, signal: AbortSignal): Promise<Compared> {
  const [then, now] = await Promise.all([readAt(kind, scope, revision, signal), readAt(kind, scope, newest, signal)])
  const [before, after] = [then, now].map(({ rows }) => new Map((rows ?? []).map((row) => [keyOfRow(row), row]))) as [Map<string, Row>, Map<string, Row>]
  const versionOf = (row: Row | undefined) => row?.object.metadata.resourceVersion
  return {
    then,
    changed: [
      ...[...before].flatMap(([key, row]) => (after.has(key) ? [] : [{ type: 'deleted' as const, row }])),
      ...[...after].flatMap(([key, row]) => {
        const type = !before.has(key) ? 'created' : versionOf(before.get(key)) !== versionOf(row) ? 'changed' : undefined
        return type === undefined ? [] : [{ type, row } as const]
      }),
    ],
  }
}

const mostChanges = 100
const tones = { created: 'good', changed: 'busy', deleted: 'bad' } as const

function TableAt({ kind, revision, newest }: { readonly kind: Kind; readonly revision: number; readonly newest: number }) {
  const scope = kind.namespaced ? namespace.value : ''
  const { value, error, isAsking } = useAnswer((signal) => compare(kind, scope, revision, newest, signal), `${nameOfKind(kind)} ${scope} ${revision} ${newest}`)
  const last = useSignal<Compared | undefined>(undefined)
  useEffect(() => {
    if (value) last.value = value
  }, [value])
  // The rows of the revision before stay until the next ones are there.
  const shown = value ?? last.value
  const live = {
    items: useComputed(() => new Map((last.value?.then.rows ?? []).map((row) => [keyOfRow(row), row]))),
    columns: useComputed(() => last.value?.then.columnDefinitions ?? []),
    state: useSignal<LiveState>('still'),
    error: useSignal(''),
  }
  if (error !== '') return <Failure text={error} />
  if (!shown) return <Loading />
  return (
    <div class={isAsking ? 'two asking' : 'two'}>
      <LiveTable key={nameOfKind(kind)} kind={kind} live={live} scope={scope} />
      <aside class="panel" aria-label="Changed since then">
        <h2>
          Changed since then <span class="count">{shown.changed.length}</span>
        </h2>
        <ul>
          {shown.changed.slice(0, mostChanges).map(({ type, row: { object } }) => (
            <li key={object.metadata.uid}>
              <Status text={type} tone={tones[type]} />
              <a href={objectPlace(kind, { namespace: object.metadata.namespace ?? '', name: object.metadata.name ?? '' }, 'history')}>
                {object.metadata.name}
              </a>
            </li>
          ))}
          {shown.changed.length > mostChanges && <li class="quiet">and {shown.changed.length - mostChanges} more</li>}
          {shown.changed.length === 0 && <li class="quiet">nothing</li>}
        </ul>
      </aside>
    </div>
  )
}
