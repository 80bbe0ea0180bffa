/** The keys of the store (L4, LRN-02): folders and keys as they were at a revision, the versions of a key, and what changed between any two of them. */
import { useSignal } from '@preact/signals'
import { type FieldChange, fieldChanges } from '#api/debug/fieldChanges'
import type { RevisionHistory } from '#api/debug/revisions'
import { type StoredObjectName, type StoreKey, type StoreKeyVersions, type StoreListing, storePath } from '#api/debug/storeKeys'
import { type Kind, listPath, objectPlace, placeText } from '../../model/places.ts'
import { get } from '../api.ts'
import { Button, Empty, Failure, Loading } from '../parts/basics.tsx'
import { RevisionSlider, useHistory, within } from '../parts/revisionSlider.tsx'
import { useAnswer } from '../parts/useAnswer.ts'
import { go, kinds, place, set } from '../state.ts'
import { Change } from './object/history.tsx'

const root = '/registry/'

export function StoreView() {
  const history = useHistory()
  if (history.error !== '' && !history.value) return <Failure text={history.error} retry={history.again} />
  if (!history.value) return <Loading />
  const { revision, prefix = root, key } = place.value.query
  const shown = within(history.value, Number(revision ?? history.first ?? history.value.revision))
  const link = (query: { readonly prefix?: string; readonly key?: string }) => placeText(['store'], { prefix, revision: String(shown), ...query })
  return (
    <section class="store">
      <header class="bar">
        <h1>Store</h1>
        <Crumbs prefix={prefix} linkOf={(one) => link({ prefix: one })} />
      </header>
      <RevisionSlider
        history={history.value}
        shown={shown}
        onMove={(next) => go(placeText(['store'], { prefix, revision: String(next), ...(key ? { key } : {}) }))}
      />
      <div class="halves">
        <Listing key={`${prefix} ${shown}`} prefix={prefix} revision={shown} current={key} link={link} />
        {key ? <KeyVersions key={`${key} ${shown}`} storeKey={key} revision={shown} history={history.value} /> : <Empty title="Choose a key" />}
      </div>
    </section>
  )
}

function Crumbs({ prefix, linkOf }: { readonly prefix: string; readonly linkOf: (prefix: string) => string }) {
  const parts = prefix.split('/').slice(1, -1)
  return (
    <nav class="crumbs" aria-label="Folder">
      <a href={linkOf('/')}>/</a>
      {parts.map((part, index) => {
        const folder = `/${parts.slice(0, index + 1).join('/')}/`
        return (
          <a key={folder} href={linkOf(folder)}>
            {part}/
          </a>
        )
      })}
    </nav>
  )
}

interface ListingProps {
  readonly prefix: string
  readonly revision: number
  readonly current: string | undefined
  readonly link: (query: { readonly prefix?: string; readonly key?: string }) => string
}

function Listing({ prefix, revision, current, link }: ListingProps) {
  const from = useSignal<string | undefined>(undefined)
  const query = new URLSearchParams({ prefix, revision: String(revision), ...(from.value ? { from: from.value } : {}) })
  const { value, error, again } = useAnswer((signal) => get<StoreListing>(`${storePath}?${query}`, { signal }), `${query}`)
  if (error !== '') return <Failure text={error} retry={again} />
  if (!value) return <Loading />
  const { folders, keys, next } = value
  if (folders.length + keys.length === 0) return <Empty title="There was no such key at this revision" />
  return (
    <section class="panel folder" aria-label="Keys">
      <ul>
        {folders.map((folder) => (
          <li key={folder.prefix}>
            <a href={link({ prefix: folder.prefix })}>{folder.prefix.slice(prefix.length)}</a>
            <span class="count">{folder.count}</span>
          </li>
        ))}
        {keys.map((one) => (
          <KeyRow key={one.key} one={one} prefix={prefix} isCurrent={one.key === current} address={link({ key: one.key })} />
        ))}
      </ul>
      {(next !== undefined || from.value !== undefined) && (
        <p class="asked">
          {from.value !== undefined && <Button onClick={() => set(from, undefined)}>First page</Button>}
          {next !== undefined && <Button onClick={() => set(from, next)}>Next page</Button>}
        </p>
      )}
    </section>
  )
}

interface KeyRowProps {
  readonly one: StoreKey
  readonly prefix: string
  readonly isCurrent: boolean
  readonly address: string
}

function KeyRow({ one: { key, modRevision, createRevision, version, lease }, prefix, isCurrent, address }: KeyRowProps) {
  return (
    <li class={isCurrent ? 'current' : ''}>
      <a href={address} aria-current={isCurrent ? 'true' : undefined}>
        {key.slice(prefix.length)}
      </a>
      <span class="quiet" title={`created at revision ${createRevision}`}>
        revision {modRevision}, version {version}
        {lease && `, lease ${lease}`}
      </span>
    </li>
  )
}

interface KeyVersionsProps {
  readonly storeKey: string
  readonly revision: number
  readonly history: RevisionHistory
}

function KeyVersions({ storeKey, revision, history }: KeyVersionsProps) {
  const [before, after] = [useSignal<number | undefined>(undefined), useSignal<number | undefined>(undefined)]
  const query = new URLSearchParams({ key: storeKey, revision: String(revision) })
  const { value, error, again } = useAnswer((signal) => get<StoreKeyVersions>(`${storePath}?${query}`, { signal }), `${query}`)
  if (error !== '') return <Failure text={error} retry={again} />
  if (!value) return <Loading />
  const { versions, isCut, object } = value
  const [newest, previous] = versions
  if (!newest) return <Empty title="The key did not exist at this revision" />
  const kind = object && kinds.value.find(({ group, resource }) => group === object.group && resource === object.resource)
  // Two keys may be compared with the slider at a third revision.
  const [from, to] = [before.value ?? previous?.revision, after.value ?? newest.revision]
  return (
    <section class="panel versions" aria-label="Versions of the key">
      <h2>{kind && object ? <a href={objectPlace(kind, object, 'history')}>{storeKey}</a> : <code>{storeKey}</code>}</h2>
      <table>
        <thead>
          <tr>
            {['from', 'to', 'revision', 'version', 'bytes'].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {versions.map((one) => (
            <tr key={one.revision}>
              <td>
                <input
                  type="radio"
                  name="from"
                  aria-label={`From revision ${one.revision}`}
                  checked={from === one.revision}
                  onChange={() => set(before, one.revision)}
                />
              </td>
              <td>
                <input
                  type="radio"
                  name="to"
                  aria-label={`To revision ${one.revision}`}
                  checked={to === one.revision}
                  onChange={() => set(after, one.revision)}
                />
              </td>
              <td>{one.revision}</td>
              <td>{one.version}</td>
              <td>{one.bytes}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {isCut && <p class="quiet">Older versions are compacted, or beyond the first hundred.</p>}
      {kind && object ? (
        <Difference kind={kind} object={object} from={from} to={to} oldest={history.oldestRevision} />
      ) : (
        <p class="quiet">The API serves no such resource: its value cannot be read.</p>
      )}
    </section>
  )
}

interface DifferenceProps {
  readonly kind: Kind
  readonly object: StoredObjectName
  /** Undefined: nothing was there before. */
  readonly from: number | undefined
  readonly to: number
  readonly oldest: number
}

function Difference({ kind, object, from, to, oldest }: DifferenceProps) {
  const { value, error, again } = useAnswer(
    async (signal) => Promise.all([from === undefined ? undefined : valueAt(kind, object, from, oldest, signal), valueAt(kind, object, to, oldest, signal)]),
    `${kind.resource} ${object.namespace}/${object.name} ${from} ${to}`,
  )
  if (error !== '') return <Failure text={error} retry={again} />
  if (!value) return <Loading />
  const [before, after] = value
  const changes: readonly FieldChange[] = from === undefined ? [] : fieldChanges(before, after, { showSecrets: false })
  return (
    <div role="status" aria-label="Difference">
      {from !== undefined && (
        <>
          <h2>
            From revision {from} to {to}
          </h2>
          {changes.length === 0 && <p class="quiet">no field differs</p>}
          {changes.map((change) => (
            <Change key={change.path} change={change} />
          ))}
        </>
      )}
      <details>
        <summary>The value at revision {to}</summary>
        <pre>{shownText(after)}</pre>
      </details>
    </div>
  )
}

/** Through the API, with the rights of the user: as the version of the API that the page knows. */
async function valueAt(kind: Kind, { namespace, name }: StoredObjectName, revision: number, oldest: number, signal: AbortSignal): Promise<object | undefined> {
  const query = new URLSearchParams({
    fieldSelector: `metadata.name=${name}`,
    resourceVersion: String(Math.max(revision, oldest)),
    resourceVersionMatch: 'Exact',
  })
  const { items } = await get<{ readonly items: readonly object[] }>(`${listPath(kind, namespace)}?${query}`, { signal })
  const [found] = items
  return found && { apiVersion: kind.group === '' ? kind.version : `${kind.group}/${kind.version}`, kind: kind.kind, ...found }
}

function shownText(value: object | undefined): string {
  const isSecret = (value as { kind?: string } | undefined)?.kind === 'Secret'
  return (
    JSON.stringify(
      value,
      (key, held: unknown) => (key === 'managedFields' ? undefined : isSecret && (key === 'data' || key === 'stringData') ? '***' : held),
      2,
    ) ?? ''
  )
}
