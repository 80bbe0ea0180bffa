/** What happened to an object (L4): its events, live, the last first. */
import { type EventObject, timeOfEvent } from '../../../model/health.ts'
import { listPath } from '../../../model/places.ts'
import { useLiveObjects } from '../../live.ts'
import { Age, Empty, Failure, Loading, Status } from '../../parts/basics.tsx'
import type { TabProps } from './types.ts'

export function EventsTab({ kind, name, object }: TabProps) {
  // Kubelets give the name of their Node in place of its uid.
  const isNode = kind.group === '' && kind.resource === 'nodes'
  const selector = isNode ? `involvedObject.kind=Node,involvedObject.name=${name.name}` : `involvedObject.uid=${object.metadata.uid ?? ''}`
  // Events on objects of the cluster are in the namespace default.
  const path = listPath({ group: '', version: 'v1', resource: 'events' }, kind.namespaced ? name.namespace : '')
  const live = useLiveObjects<EventObject>(`${path}?fieldSelector=${encodeURIComponent(selector)}`)
  const events = [...live.items.value.values()].sort((one, other) => (timeOfEvent(one) < timeOfEvent(other) ? 1 : -1))
  if (live.state.value === 'failed') return <Failure text={live.error.value} />
  if (live.state.value === 'loading') return <Loading />
  if (events.length === 0) return <Empty title="No events">The cluster keeps events for an hour.</Empty>
  return (
    <ul class="panel events" aria-label="Events">
      {events.map((event) => (
        <li key={event.metadata.uid}>
          <span class="when">
            <Age since={timeOfEvent(event)} />
          </span>
          <Status text={event.reason ?? ''} tone={event.type === 'Warning' ? 'bad' : 'quiet'} />
          <span class="why">{event.message}</span>
          <span class="quiet">
            {event.source?.component || event.reportingComponent}
            {(event.count ?? event.series?.count ?? 1) > 1 && ` ×${event.count ?? event.series?.count}`}
          </span>
        </li>
      ))}
    </ul>
  )
}
