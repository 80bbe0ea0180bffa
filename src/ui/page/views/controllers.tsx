/** The controllers at work (L4, LRN-05): each queue with what waits, fails and how long it takes, and the last reconciles with the objects that they were about. */
import { useSignal } from '@preact/signals'
import type { ObjectEvent } from '#api/debug/traces'
import { objectPlace } from '../../model/places.ts'
import { type Queue, queuesOf } from '../../model/queues.ts'
import { laneOf, msText } from '../../model/waterfall.ts'
import { Empty, Failure, Icon, Loading } from '../parts/basics.tsx'
import { timeText } from '../parts/waterfall.tsx'
import { isStill } from '../session.ts'
import { kinds, set } from '../state.ts'
import { useReadings } from './live/readings.ts'
import { useRecording } from './live/recording.ts'

const mostReconciles = 60

export function Controllers() {
  const readings = useReadings()
  const recorded = useRecording().value
  const search = useSignal('')
  const { last, before, error } = readings
  if (!last) return error === '' ? <Loading /> : <Failure text={error} retry={readings.again} />
  const queues = queuesOf(last, before).filter(({ name }) => name.includes(search.value))
  const reconciles = recorded.events.filter(({ component, object }) => laneOf(component) === 'controller' && `${component} ${object}`.includes(search.value))
  return (
    <section class="controllers">
      <header class="bar">
        <h1>Controllers</h1>
        <span class="quiet">{isStill() ? 'counts and averages since the server started' : 'rates and averages of the last two seconds'}</span>
        <label class="search">
          <Icon name="search" />
          <input
            aria-label="Controller or object"
            placeholder="controller or object"
            value={search.value}
            onInput={({ currentTarget }) => set(search, currentTarget.value)}
          />
        </label>
      </header>
      {queues.length === 0 && search.value === '' ? (
        <Empty title="This server runs no controllers">Their process has metrics of its own.</Empty>
      ) : (
        <Queues queues={queues} />
      )}
      <section class="panel" aria-label="Reconciles">
        <h2>
          Last reconciles <span class="quiet">{recorded.error || recorded.text}</span>
        </h2>
        {reconciles.length === 0 && <p class="quiet">{isStill() ? 'The bundle has none.' : 'None is recorded since this view is open.'}</p>}
        <ol class="reconciles">
          {reconciles
            .slice(-mostReconciles)
            .reverse()
            .map((event) => (
              <Reconcile key={`${event.component} ${event.object} ${event.atMs}`} event={event} />
            ))}
        </ol>
      </section>
    </section>
  )
}

function Queues({ queues }: { readonly queues: readonly Queue[] }) {
  return (
    <div class="panel matrix queues" tabIndex={0}>
      <table aria-label="Queues">
        <thead>
          <tr>
            {['Queue', 'Waiting', 'Reconciles/s', 'Reconciles', 'Retries', 'In the queue', 'At work', 'Longest now'].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {queues.map(({ name, depth, reconciles, retries, reconcilesPerSecond, retriesPerSecond, waitMs, workMs, longestSeconds }) => (
            <tr key={name} class={depth > 0 || reconcilesPerSecond > 0 ? 'busy' : ''}>
              <th scope="row">{name}</th>
              <td class={depth > 0 ? 'warning' : ''}>{depth}</td>
              <td>{reconcilesPerSecond > 0 ? reconcilesPerSecond.toFixed(1) : ''}</td>
              <td>{reconciles}</td>
              <td class={retriesPerSecond > 0 ? 'warning' : ''}>{retries}</td>
              <td>{waitMs === undefined ? '' : msText(waitMs)}</td>
              <td>{workMs === undefined ? '' : msText(workMs)}</td>
              <td>{longestSeconds > 0 ? msText(1000 * longestSeconds) : ''}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Reconcile({ event: { component, object, atMs, durationMs, waitedMs, result } }: { readonly event: ObjectEvent }) {
  const parts = object.split('/')
  const [resource = '', namespace = '', name = ''] = parts.length === 3 ? parts : [parts[0], '', parts[1]]
  const kind = kinds.value.find((one) => one.resource === resource)
  return (
    <li>
      <time class="quiet">{timeText(atMs)}</time>
      <strong>{component}</strong>
      <span class="why">{kind ? <a href={objectPlace(kind, { namespace, name }, 'trace')}>{object}</a> : object}</span>
      <span class="quiet">
        {msText(durationMs)}
        {waitedMs !== undefined && `, waited ${msText(waitedMs)}`}
      </span>
      <span class={result.startsWith('failed') ? 'warning' : 'quiet'}>{result}</span>
    </li>
  )
}
