/** One recorded request (L4): its stages and what followed from it as bars, and the list of recent requests to choose another. */
import type { TracedRequest } from '#api/debug/traces'
import { lengthOf, type Stop } from '../../../model/liveMap.ts'
import { objectPlace } from '../../../model/places.ts'
import { type Lane, msText } from '../../../model/waterfall.ts'
import { Button, Status } from '../../parts/basics.tsx'
import { Waterfall } from '../../parts/waterfall.tsx'
import { isStill } from '../../session.ts'
import { kinds } from '../../state.ts'
import { playMs } from './map.tsx'

export function titleOf({ verb, object, uri }: TracedRequest): string {
  if (!object) return `${verb} ${uri}`
  const { resource, subresource, namespace, name } = object
  return `${verb} ${resource}${subresource ? `/${subresource}` : ''} ${[namespace, name].filter(Boolean).join('/')}`
}

interface LensProps {
  readonly request: TracedRequest
  /** Those that are known by now. */
  readonly stops: readonly Stop[]
  readonly isPinned: boolean
  readonly onRelease: () => void
}

export function Lens({ request, stops, isPinned, onRelease }: LensProps) {
  const lengthMs = lengthOf(stops)
  const { user, as, code, atMs, watchers, object } = request
  const kind = object && kinds.value.find(({ group, resource }) => group === object.group && resource === object.resource)
  const bars = stops.map((stop, index) => barOfStop(stop, atMs, index))
  return (
    <section class="panel lens" aria-label="A request on its way">
      <header>
        <h2>
          {kind && object?.name ? <a href={objectPlace(kind, object, 'trace')}>{titleOf(request)}</a> : titleOf(request)}{' '}
          <span class="quiet">by {as ?? user}</span>
        </h2>
        <Status text={String(code)} tone={code < 400 ? 'good' : 'bad'} />
        <span class="quiet">
          {msText(lengthMs)}
          {watchers !== undefined && `, passed to ${watchers} watches`}; shown {slowness(lengthMs)}
        </span>
        {isPinned && <Button onClick={onRelease}>Show the next ones</Button>}
      </header>
      <Waterfall burst={{ startMs: atMs, endMs: atMs + lengthMs, bars }} label="Stages" />
    </section>
  )
}

const lanes: Readonly<Record<Stop['at'], Lane>> = {
  ...{ clients: 'request', apiServer: 'request', store: 'runtime', watchCache: 'kubelet' },
  ...{ controllers: 'controller', scheduler: 'scheduler', kubelets: 'kubelet', proxy: 'quiet' },
}

function barOfStop({ at, text, afterMs, durationMs }: Stop, startMs: number, index: number) {
  const [who = '', ...rest] = text.split(': ')
  return { id: String(index), lane: lanes[at], who, what: '', atMs: startMs + afterMs, durationMs, result: rest.join(': '), isBad: false }
}

function slowness(lengthMs: number): string {
  const factor = playMs / lengthMs
  return factor >= 2 ? `${factor >= 10 ? Math.round(factor) : factor.toFixed(1)} times slower` : 'at its own pace'
}

/** A bundle has nothing newer that would push them out. */
const mostListed = () => (isStill() ? 60 : 14)

interface RecentProps {
  readonly requests: readonly TracedRequest[]
  readonly current: string | undefined
  readonly text: string
  readonly onChoose: (request: TracedRequest) => void
}

export function Recent({ requests, current, text, onChoose }: RecentProps) {
  return (
    <article class="card recent" aria-label="Recorded requests">
      <div class="title">
        <h2>Recorded requests</h2>
      </div>
      <p class="quiet" role="status">
        {text}
      </p>
      <ul>
        {requests.slice(0, mostListed()).map((request) => (
          <li key={`${request.id} ${request.user}`}>
            <button type="button" aria-pressed={request.id === current} onClick={() => onChoose(request)}>
              <span class={request.code < 400 ? 'quiet' : 'warning'}>{request.code}</span>
              <span class="what">{titleOf(request)}</span>
              <span class="quiet">{msText(request.durationMs)}</span>
            </button>
          </li>
        ))}
      </ul>
    </article>
  )
}
