/** What was recorded about an object as waterfalls (L4, LRN-01, LRN-05): a pod's twelve hops, and requests, reconciles, scheduling and kubelet calls by time. */
import { objectKey, type TraceList, tracesPath } from '#api/debug/traces'
import type { PodTrace } from '#trace/hops'
import { barsOf, barsOfHops, burstOf, burstsOf } from '../../../model/waterfall.ts'
import { get, messageOf, write } from '../../api.ts'
import { Age, Button, Empty, Failure, Loading } from '../../parts/basics.tsx'
import { useAnswer } from '../../parts/useAnswer.ts'
import { Waterfall } from '../../parts/waterfall.tsx'
import { isStill } from '../../session.ts'
import { say } from '../../state.ts'
import type { TabProps } from './types.ts'

const everyMs = 3_000
/** What a bundle has does not change. */
const pollMs = () => (isStill() ? undefined : everyMs)
const recordSeconds = 600
const mostBursts = 12

export function TraceTab({ kind, name }: TabProps) {
  const isPod = kind.group === '' && kind.resource === 'pods'
  const key = objectKey(kind.resource, name.namespace, name.name)
  const list = useAnswer((signal) => get<TraceList>(`${tracesPath}?${new URLSearchParams({ object: key, changes: '1' })}`, { signal }), key, pollMs())
  const { error, again } = list
  if (error !== '') return <Failure text={error} retry={again} />
  if (!list.value) return <Loading />
  const record = () =>
    void write('POST', `${tracesPath}/rules`, { object: key, seconds: recordSeconds }).then(
      () => say('good', `What happens to ${name.name} is recorded for ${recordSeconds / 60} minutes`),
      (refused: unknown) => say('bad', `Record: ${messageOf(refused)}`),
    )
  return (
    <div class="summary">
      <p class="asked">
        {!isStill() && <Button onClick={record}>Record for {recordSeconds / 60} minutes</Button>}
        <span class="quiet">{isStill() ? 'The bundle has what was recorded before.' : 'The server records what a reader asks for, and refusals.'}</span>
      </p>
      {isPod ? <PodTraceOf list={list.value} name={name} /> : <Bursts list={list.value} />}
    </div>
  )
}

function PodTraceOf({ list, name }: { readonly list: TraceList; readonly name: TabProps['name'] }) {
  const query = new URLSearchParams({ namespace: name.namespace, name: name.name })
  // The front gathers the notes of owners, and those of the node.
  const { value, error, again } = useAnswer((signal) => get<PodTrace>(`/front/trace?${query}`, { signal }), `${query}`, pollMs())
  if (error !== '' && !value) return <Failure text={error} retry={again} />
  if (!value) return <Loading />
  const isKnown = value.hops.some(({ source }) => source === 'measured')
  return (
    <>
      <section class="panel" aria-label="Hops">
        <h2>
          The twelve hops <span class="quiet">{isKnown ? '' : 'nothing is recorded: these are times of the pod, in whole seconds'}</span>
        </h2>
        <Waterfall burst={burstOf(barsOfHops(value))} label="Hops of the pod" />
      </section>
      <Bursts list={{ ...list, events: value.events }} />
    </>
  )
}

function Bursts({ list }: { readonly list: TraceList }) {
  const bursts = burstsOf(barsOf(list)).reverse()
  if (bursts.length === 0)
    return (
      <Empty title="Nothing is recorded about it">
        {!isStill() && <p>Record it, and change it: each request, reconcile and call is shown here with its times.</p>}
      </Empty>
    )
  return (
    <>
      {bursts.slice(0, mostBursts).map((burst) => (
        <section key={burst.startMs} class="panel" aria-label="What happened">
          <h2>
            <Age since={new Date(burst.startMs).toISOString()} /> ago
          </h2>
          <Waterfall burst={burst} label="Requests and what components did" />
        </section>
      ))}
      {(list.truncated || bursts.length > mostBursts) && <p class="quiet">There is more than is shown.</p>}
    </>
  )
}
