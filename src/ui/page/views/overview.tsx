/** What is unhealthy, and why (L4): the kinds whose tables say how they are, live, each problem with its last warning. */
import { useComputed } from '@preact/signals'
import { type EventObject, judgedResources, type Problem, problemsOf, type Table, timeOfEvent, warningsByObject } from '../../model/health.ts'
import { type Kind, listPath, listPlace, objectPlace } from '../../model/places.ts'
import type { Row } from '../../model/tables.ts'
import { type Live, useLiveObjects, useLiveTable } from '../live.ts'
import { Age, Failure, Loading, Status } from '../parts/basics.tsx'
import { kinds, namespace, now } from '../state.ts'

const mostShown = 12

export function Overview() {
  const watched = judgedResources.flatMap(
    (resource) => kinds.value.find((kind) => kind.resource === resource && ['', 'apps', 'batch'].includes(kind.group)) ?? [],
  )
  const events = useLiveObjects<EventObject>(`${listPath({ group: '', version: 'v1', resource: 'events' }, namespace.value)}?fieldSelector=type%3DWarning`)
  const warnings = useComputed(() => warningsByObject(events.items.value.values()))
  if (watched.length === 0) return <Loading />
  return (
    <section class="overview">
      <header class="bar">
        <h1>Overview</h1>
        <span class="quiet">{namespace.value === '' ? 'all namespaces' : namespace.value}</span>
      </header>
      <div class="cards">
        {watched.map((kind) => (
          <HealthCard key={`${kind.resource}/${namespace.value}`} kind={kind} warnings={warnings.value} />
        ))}
      </div>
      <RecentWarnings live={events} />
    </section>
  )
}

function HealthCard({ kind, warnings }: { readonly kind: Kind; readonly warnings: ReadonlyMap<string, EventObject> }) {
  const live = useLiveTable(listPath(kind, kind.namespaced ? namespace.value : ''))
  const total = live.items.value.size
  // Once a second is often enough to see that something takes too long.
  const problems = useComputed(() => problemsOf(kind.resource, tableOf(live), now.value)).value
  const tone = problems.some((one) => one.tone === 'bad') ? 'bad' : problems.length > 0 ? 'busy' : total > 0 ? 'good' : 'quiet'
  const isLoading = live.state.value === 'loading'
  return (
    <article class={`card ${tone}`} aria-label={kind.kind}>
      <a class="title" href={listPlace(kind)}>
        <h2>{kind.kind}s</h2>
        <span class="total">{isLoading ? '…' : total}</span>
      </a>
      <Meter total={total} problems={problems} />
      {live.state.value === 'failed' ? (
        <p class="quiet">{live.error.value}</p>
      ) : problems.length === 0 ? (
        <p class="quiet">{isLoading ? 'reading…' : total === 0 ? 'none' : 'all healthy'}</p>
      ) : (
        <ul class="problems">
          {problems.slice(0, mostShown).map((problem) => (
            <ProblemLine
              key={`${problem.namespace}/${problem.name}`}
              kind={kind}
              problem={problem}
              warning={warnings.get(`${kind.kind}/${problem.namespace}/${problem.name}`)}
            />
          ))}
          {problems.length > mostShown && (
            <li>
              <a href={listPlace(kind)}>and {problems.length - mostShown} more</a>
            </li>
          )}
        </ul>
      )}
    </article>
  )
}

const tableOf = ({ columns, items }: Live<Row>): Table => ({ columns: columns.value, rows: items.value })

function Meter({ total, problems }: { readonly total: number; readonly problems: readonly Problem[] }) {
  const bad = problems.filter(({ tone }) => tone === 'bad').length
  const busy = problems.length - bad
  const percent = (count: number) => `${total === 0 ? 0 : Math.max(count > 0 ? 1 : 0, (100 * count) / total)}%`
  return (
    <div class="meter" role="img" aria-label={`${total - problems.length} healthy, ${busy} on the way, ${bad} broken`}>
      <i class="bad" style={{ width: percent(bad) }} />
      <i class="busy" style={{ width: percent(busy) }} />
      <i class="good" style={{ width: percent(total - problems.length) }} />
    </div>
  )
}

interface ProblemLineProps {
  readonly kind: Kind
  readonly problem: Problem
  readonly warning: EventObject | undefined
}

function ProblemLine({ kind, problem, warning }: ProblemLineProps) {
  const why = warning?.message ?? problem.text
  return (
    <li>
      <a href={objectPlace(kind, problem)}>
        <span class="name">
          {problem.namespace !== '' && namespace.value === '' && <span class="quiet">{problem.namespace}/</span>}
          {problem.name}
        </span>
        <Status text={problem.status} tone={problem.tone} />
        {why !== '' && <span class="why">{why}</span>}
      </a>
    </li>
  )
}

function RecentWarnings({ live }: { readonly live: Live<EventObject> }) {
  const last = useComputed(() => [...live.items.value.values()].sort((a, b) => (timeOfEvent(a) < timeOfEvent(b) ? 1 : -1)).slice(0, 30)).value
  if (live.state.value === 'failed') return <Failure text={live.error.value} />
  return (
    <article class="warnings" aria-label="Last warnings">
      <h2>Last warnings</h2>
      {last.length === 0 ? (
        <p class="quiet">none in the last hour</p>
      ) : (
        <ul>
          {last.map((event) => (
            <li key={event.metadata.uid}>
              <span class="when">
                <Age since={timeOfEvent(event)} />
              </span>
              <Status text={event.reason ?? ''} tone="busy" />
              <EventTarget event={event} />
              <span class="why">{event.message}</span>
            </li>
          ))}
        </ul>
      )}
    </article>
  )
}

function EventTarget({ event: { involvedObject = {} } }: { readonly event: EventObject }) {
  const kind = kinds.value.find((one) => one.kind === involvedObject.kind)
  const { namespace: ns = '', name = '' } = involvedObject
  const text = `${involvedObject.kind} ${name}`
  return kind ? <a href={objectPlace(kind, { namespace: kind.namespaced ? ns : '', name }, 'events')}>{text}</a> : <span>{text}</span>
}
