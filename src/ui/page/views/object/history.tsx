/** The versions of an object that the store still has (L4, LRN-02): the time, the writer and the changed fields of each. */
import { type Kind, nameOfKind, type ObjectName, placeText } from '../../../model/places.ts'
import { get } from '../../api.ts'
import { Age, Empty, Failure, Loading, Status } from '../../parts/basics.tsx'
import { useAnswer } from '../../parts/useAnswer.ts'
import type { AnyObject } from './types.ts'

interface FieldChange {
  readonly path: string
  readonly from?: unknown
  readonly to?: unknown
}

interface History {
  readonly shown: readonly {
    readonly revision: number
    readonly time: string | null
    readonly type: 'created' | 'updated' | 'deleted' | 'oldest'
    readonly by?: string
    readonly changes: readonly FieldChange[]
  }[]
  readonly isCut: boolean
}

const tones = { created: 'good', updated: 'quiet', deleted: 'bad', oldest: 'quiet' } as const
const mostFields = 60

export function HistoryTab({ kind, name, object }: { readonly kind: Kind; readonly name: ObjectName; readonly object?: AnyObject }) {
  const query = new URLSearchParams({ group: kind.group, resource: kind.resource, namespace: name.namespace, name: name.name })
  const version = object?.metadata.resourceVersion
  // The search for earlier objects of the name takes hundreds of reads: the versions of the present one are shown meanwhile.
  const soon = useAnswer((signal) => get<History>(`/front/history?${query}&searches=0`, { signal }), `soon ${query} ${version}`)
  const all = useAnswer((signal) => get<History>(`/front/history?${query}`, { signal }), `${query} ${version}`)
  const value = all.value ?? (soon.value?.shown.length ? soon.value : undefined)
  if (all.error !== '') return <Failure text={all.error} retry={all.again} />
  if (!value) return <Loading text="Reading the store’s versions…" />
  if (value.shown.length === 0) return <Empty title="The store keeps no version of it" />
  return (
    <ol class="panel history" aria-label="Versions">
      {value.shown.map(({ revision, time, type, by, changes }) => (
        <li key={revision}>
          <header>
            <a href={placeText(['past'], { revision: String(revision), kind: nameOfKind(kind) })} title={`All ${kind.resource} at this revision`}>
              revision {revision}
            </a>
            <Status text={type} tone={tones[type]} />
            <span>{by}</span>
            <span class="when">
              <Age since={time} />
            </span>
          </header>
          {changes.slice(0, mostFields).map((change) => (
            <Change key={change.path} change={change} />
          ))}
          {changes.length > mostFields && <p class="quiet">and {changes.length - mostFields} more fields</p>}
        </li>
      ))}
      {all.value?.isCut && <li class="quiet">Older versions are compacted, or beyond the first 30.</li>}
      {!all.value && <li class="quiet">Looking for earlier objects of this name…</li>}
    </ol>
  )
}

export function Change({ change: { path, from, to } }: { readonly change: FieldChange }) {
  return (
    <div class="change">
      <code>{path}</code>
      {from !== undefined && <del>{shortText(from)}</del>}
      {to !== undefined && <ins>{shortText(to)}</ins>}
    </div>
  )
}

const mostCharacters = 400

function shortText(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > mostCharacters ? `${text.slice(0, mostCharacters)}…` : text
}
