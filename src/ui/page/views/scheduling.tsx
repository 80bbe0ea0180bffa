/** The scheduler's view (L4): the pods that wait, and for one of them each node against each filter. */
import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { SchedulingExplanation } from '#api/debug/scheduling'
import { listPath, placeText } from '../../model/places.ts'
import { cellText, sortRows } from '../../model/tables.ts'
import { get } from '../api.ts'
import { useLiveTable } from '../live.ts'
import { Age, Button, Empty, Failure, Loading } from '../parts/basics.tsx'
import { SchedulingAnswer } from '../parts/matrix.tsx'
import { useAnswer } from '../parts/useAnswer.ts'
import { isStill } from '../session.ts'
import { go, namespace, place, set } from '../state.ts'

const pods = { group: '', version: 'v1', resource: 'pods' }
const mostShown = 200

export function Scheduling() {
  const waiting = useLiveTable(`${listPath(pods, namespace.value)}?fieldSelector=${encodeURIComponent('spec.nodeName=')}`)
  const rows = useMemo(() => sortRows(waiting.items.value, { by: '', descending: false, columns: [] }), [waiting.items.value])
  const chosen = place.value.query.pod ?? ''
  const typed = useSignal(chosen)
  return (
    <section class="split">
      <header class="bar">
        <h1>Scheduling</h1>
        <form
          onSubmit={(event) => {
            event.preventDefault()
            go(placeText(['scheduling'], { pod: typed.value.includes('/') ? typed.value : `${namespace.value || 'default'}/${typed.value}` }))
          }}
        >
          <input
            aria-label="Pod as namespace/name"
            placeholder="any pod: namespace/name"
            value={typed.value}
            onInput={({ currentTarget }) => set(typed, currentTarget.value)}
          />
          <button type="submit">Explain</button>
        </form>
      </header>
      <nav class="side" aria-label="Pods without a node">
        <h2>
          Without a node <span class="count">{rows.length}</span>
        </h2>
        {waiting.state.value === 'failed' && <Failure text={waiting.error.value} />}
        {waiting.state.value === 'loading' ? <Loading /> : rows.length === 0 && <p class="quiet">Every pod has a node.</p>}
        <ul>
          {rows.slice(0, mostShown).map(({ object: { metadata }, cells }) => {
            const pod = `${metadata.namespace}/${metadata.name}`
            return (
              <li key={metadata.uid}>
                <a href={placeText(['scheduling'], { pod })} aria-current={pod === chosen ? 'true' : undefined}>
                  <span class="quiet">{metadata.namespace}/</span>
                  {metadata.name}
                  <span class="quiet">
                    {' '}
                    {cellText(cells[2])} <Age since={metadata.creationTimestamp} />
                  </span>
                </a>
              </li>
            )
          })}
        </ul>
      </nav>
      <div class="main">
        {chosen === '' ? (
          <Empty title="Choose a pod">The matrix shows what each filter says about each node now, and what would have to change.</Empty>
        ) : (
          <Explained pod={chosen} />
        )}
      </div>
    </section>
  )
}

function Explained({ pod }: { readonly pod: string }) {
  return isStill() ? <Empty title="The scheduler of a running cluster explains it: this is a bundle, whose pods have events" /> : <Explanation pod={pod} />
}

function Explanation({ pod }: { readonly pod: string }) {
  const { value, error, again } = useAnswer((signal) => get<SchedulingExplanation>(`/debug/scheduling?pod=${encodeURIComponent(pod)}`, { signal }), pod)
  if (error !== '') return <Failure text={error} retry={again} />
  if (!value) return <Loading text="Asking the scheduler…" />
  return (
    <>
      <p class="asked">
        <strong>{pod}</strong> <Button onClick={again}>Ask again</Button>
      </p>
      <SchedulingAnswer found={value} />
    </>
  )
}
