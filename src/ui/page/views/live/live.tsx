/**
 * The cluster's parts at work (L4, X9): a map of the components with what they do now, from the server's metrics every two seconds, and recorded requests that
 * light up on their way through it. The server records a sample for as long as the view is open.
 */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { ObjectEvent, TracedRequest } from '#api/debug/traces'
import type { PodTrace } from '#trace/hops'
import { isRead, joined, lengthOf, mostTelling, stopsOf } from '../../../model/liveMap.ts'
import { type Sample, sumBy, sumOf } from '../../../model/prometheus.ts'
import { get } from '../../api.ts'
import { type ListedObject, useLiveObjects } from '../../live.ts'
import { Age, Failure, Loading } from '../../parts/basics.tsx'
import { isStill } from '../../session.ts'
import { set } from '../../state.ts'
import { Chart, Ranking } from './cards.tsx'
import { Lens, Recent } from './lens.tsx'
import { ComponentMap, type Played, playMs } from './map.tsx'
import { factsOf, type Lease } from './mapFacts.tsx'
import { type Readings, useReadings } from './readings.ts'
import { type Recorded, useRecording } from './recording.ts'

const mib = 2 ** 20

export function LiveView() {
  const readings = useReadings()
  const recorded = useRecording().value
  const shown = useShown(recorded)
  const leases = useLiveObjects<Lease>('/apis/coordination.k8s.io/v1/namespaces/kube-system/leases')
  const nodes = useLiveObjects<NodeObject>('/api/v1/nodes')
  const { last, error } = readings
  if (!last) return error === '' ? <Loading /> : <Failure text={error} retry={readings.again} />
  const facts = factsOf({ ...readings, last, leases: [...leases.items.value.values()], nodes: readyOf([...nodes.items.value.values()]) })
  return (
    <section class="live">
      <header class="bar">
        <h1>Live</h1>
        <span class="quiet">{isStill() ? 'from the API server’s metrics, when the bundle was taken' : 'from the API server’s metrics, every two seconds'}</span>
        {[error, recorded.error].filter(Boolean).map((text) => (
          <span key={text} class="mark reconnecting">
            {text}
          </span>
        ))}
      </header>
      <ComponentMap facts={facts} played={shown.played} />
      <div class="watched">
        {shown.request ? (
          <Lens
            key={shown.request.id}
            request={shown.request}
            stops={stopsOf(shown.request, joined(recorded.events, shown.ofNode ?? []))}
            isPinned={shown.isPinned}
            onRelease={shown.release}
          />
        ) : (
          <section class="panel lens">
            <p class="quiet">
              {isStill() ? 'A recorded request is shown here, stage by stage.' : 'The next request that changes something is shown here, stage by stage.'}
            </p>
          </section>
        )}
        <Recent requests={recorded.requests} current={shown.request?.id} text={recorded.text} onChoose={shown.pin} />
      </div>
      <Cards readings={readings} samples={last.samples} />
      <Leases leases={leases.items.value.values()} error={leases.error.value} />
    </section>
  )
}

interface NodeObject extends ListedObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

function readyOf(nodes: readonly NodeObject[]) {
  const ready = nodes.filter(({ status }) => status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True'))
  return { ready: ready.length, all: nodes.length }
}

const changeStaysMs = 15_000

/** Time for what follows from a request to be recorded, too. */
const settleMs = 1_500

interface Shown {
  readonly request: TracedRequest
  /** What a real node knows about the pod. */
  readonly ofNode: readonly ObjectEvent[]
  readonly played: Played
  readonly isPinned: boolean
}

/** The agent of a real node keeps its own notes, and the front asks it for those of one pod. */
async function eventsOfNode({ object, revision }: TracedRequest): Promise<readonly ObjectEvent[]> {
  if (object?.resource !== 'pods' || object.subresource !== undefined || revision === undefined) return []
  const query = new URLSearchParams({ namespace: object.namespace, name: object.name })
  return get<PodTrace>(`/front/trace?${query}`).then(
    ({ events }) => events,
    () => [],
  )
}

/** The request on the map: the user's choice, or the most telling one of those that came since the last one. */
function useShown(recorded: Recorded) {
  const shown = useSignal<Shown | undefined>(undefined)
  const begunAt = useRef(0)
  const show = async (request: TracedRequest, isPinned: boolean) => {
    const begun = performance.now()
    begunAt.current = begun
    const ofNode = await eventsOfNode(request)
    // Another one was chosen meanwhile.
    if (begunAt.current !== begun) return
    const stops = stopsOf(request, joined(recorded.events, ofNode))
    // A request that is chosen again is played again.
    shown.value = { request, ofNode, played: { id: `${request.id} ${begun}`, stops, lengthMs: lengthOf(stops) }, isPinned }
  }
  useEffect(() => {
    const before = shown.peek()
    if (before?.isPinned || performance.now() - begunAt.current < playMs + 600) return
    const settled = recorded.requests.filter(({ atMs }) => atMs < recorded.nowMs - settleMs && atMs > (before?.request.atMs ?? 0))
    const next = mostTelling(settled)
    // A change stays in sight for a while when there are only reads after it.
    const isDull = next && before && isRead(next) && !isRead(before.request) && performance.now() - begunAt.current < changeStaysMs
    if (next && !isDull) void show(next, false)
  }, [recorded])
  return {
    ...shown.value,
    isPinned: shown.value?.isPinned ?? false,
    pin: (request: TracedRequest) => void show(request, true),
    release: () => shown.value && set(shown, { ...shown.value, isPinned: false }),
  }
}

function Cards({ readings: { rates, last }, samples }: { readonly readings: Readings; readonly samples: readonly Sample[] }) {
  const series = (pick: (rate: (typeof rates)[number]) => number) => rates.map(pick)
  const queues = sumBy(samples, 'workqueue_depth', 'name')
  return (
    <div class="cards">
      <Chart
        title="Requests a second"
        values={series(({ requests }) => requests)}
        rows={sumBy(samples, 'apiserver_request_total', 'verb').slice(0, 5)}
        head="requests since the start"
      />
      <Chart title="Writes a second" values={series(({ writes }) => writes)} rows={storeRows(last)} head="store" />
      <Chart
        title="Store, MiB"
        values={series(({ storeBytes }) => storeBytes / mib)}
        rows={sumBy(samples, 'apiserver_storage_objects', 'resource').slice(0, 5)}
        head="objects"
      />
      <Chart
        title="Time of a request, ms"
        values={series(({ averageMs }) => averageMs)}
        rows={sumBy(samples, 'apiserver_current_inflight_requests', 'request_kind')}
        head="in flight"
      />
      <Chart
        title="CPU of the server, cores"
        values={series(({ cpu }) => cpu)}
        rows={[['memory, MiB', Math.round(sumOf(samples, 'process_resident_memory_bytes') / mib)]]}
        head="process"
      />
      <Ranking title="Long-running requests" rows={sumBy(samples, 'apiserver_longrunning_requests', 'resource')} />
      <Ranking
        title="Queues of controllers"
        rows={queues}
        empty={queues.length > 0 ? 'every queue is empty' : 'the controllers’ process has its own metrics'}
      />
      <Ranking title="Pods in the scheduler" rows={sumBy(samples, 'scheduler_pending_pods', 'queue')} empty="no pod waits" />
    </div>
  )
}

function storeRows(last: Readings['last']): (readonly [string, number])[] {
  if (!last?.store) return []
  const { revision, oldestRevision, bytes } = last.store
  return [
    ['revision', revision],
    ['oldest readable', oldestRevision],
    ['history, KiB', Math.round(bytes / 1024)],
  ]
}

function Leases({ leases, error }: { readonly leases: Iterable<Lease>; readonly error: string }) {
  const all = [...leases]
  return (
    <article class="card leases" aria-label="Leases">
      <div class="title">
        <h2>Leases and leaders</h2>
        <span class="total">{all.length}</span>
      </div>
      {error !== '' && <p class="quiet">{error}</p>}
      <ul>
        {all.slice(0, 12).map(({ metadata, spec }) => (
          <li key={metadata?.uid}>
            <strong>{metadata?.name}</strong>
            <span class="why">{spec?.holderIdentity ?? 'nobody'}</span>
            <span class="quiet">
              renewed <Age since={spec?.renewTime} /> ago{spec?.leaseTransitions ? `, ${spec.leaseTransitions} changes of the holder` : ''}
            </span>
          </li>
        ))}
      </ul>
    </article>
  )
}
