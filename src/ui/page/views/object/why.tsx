/** Why a pod is where it is, why a namespace does not end, how an autoscaler came to its replicas (L4): the answers of `skiff why`. */
import type { SchedulingExplanation } from '#api/debug/scheduling'
import { get } from '../../api.ts'
import { Button, Failure, Loading } from '../../parts/basics.tsx'
import { SchedulingAnswer } from '../../parts/matrix.tsx'
import { useAnswer } from '../../parts/useAnswer.ts'
import { isStill } from '../../session.ts'
import type { TabProps } from './types.ts'

export function WhyTab({ kind, name, object }: TabProps) {
  const isPod = kind.resource === 'pods'
  // A bundle has no scheduler that could be asked.
  const isScheduling = isPod && !isStill()
  const about: Record<string, string> = isPod ? { resource: kind.resource } : { kind: kind.kind }
  const path = isScheduling
    ? `/debug/scheduling?pod=${encodeURIComponent(`${name.namespace}/${name.name}`)}`
    : `/front/why?${new URLSearchParams({ ...about, namespace: name.namespace, name: name.name })}`
  const { value, error, again } = useAnswer((signal) => get<object>(path, { signal }), `${path} ${object.metadata.resourceVersion}`)
  if (error !== '') return <Failure text={error} retry={again} />
  if (!value) return <Loading text="Asking…" />
  return (
    <div class="summary">
      <p class="asked">
        <Button onClick={again}>Ask again</Button>
      </p>
      {isScheduling ? <SchedulingAnswer found={value as SchedulingExplanation} /> : <Explanation value={value} />}
    </div>
  )
}

/** Answers of other kinds: names and values, lists of them as tables. */
function Explanation({ value }: { readonly value: object }) {
  return (
    <section class="panel" aria-label="Explanation">
      {Object.entries(value).map(([name, held]) => (
        <div key={name} class="explained">
          <h2>{name.replace(/([A-Z])/g, ' $1').toLowerCase()}</h2>
          <Value value={held} />
        </div>
      ))}
    </section>
  )
}

function Value({ value }: { readonly value: unknown }) {
  if (Array.isArray(value)) {
    if (value.length === 0) return <p class="quiet">none</p>
    return (
      <ul>
        {value.map((one, index) => (
          <li key={`${index}`}>
            <Value value={one} />
          </li>
        ))}
      </ul>
    )
  }
  if (typeof value !== 'object' || value === null) return <>{String(value)}</>
  return (
    <>
      {Object.entries(value).map(([name, held]) => (
        <span key={name} class="pair">
          <span class="quiet">{name} </span>
          <Value value={held} />{' '}
        </span>
      ))}
    </>
  )
}
