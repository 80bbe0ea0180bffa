/** Why an object waits (L4): the answer of `skiff why`, of a pod also the scheduler's, and of namespaces and autoscalers the facts behind it. */
import type { SchedulingExplanation } from '#api/debug/scheduling'
import type { Answer } from '#why/answer'
import type { Kind } from '../../../model/places.ts'
import { hasFacts } from '../../../model/whyTargets.ts'
import { ApiError, get } from '../../api.ts'
import { Button, Failure, Loading } from '../../parts/basics.tsx'
import { AnswerPanel } from '../../parts/explanation.tsx'
import { SchedulingAnswer } from '../../parts/matrix.tsx'
import { useAnswer } from '../../parts/useAnswer.ts'
import { isStill } from '../../session.ts'
import type { AnyObject, TabProps } from './types.ts'
import { type AutoscalerFacts, AutoscalerPanel, type NamespaceFacts, NamespacePanel } from './whyFacts.tsx'

/** Causes often stand on other objects, whose changes the page does not watch. */
const againMs = 5_000

export function WhyTab(props: TabProps) {
  const { kind, name, object } = props
  const withFacts = hasFacts(kind)
  const about: Record<string, string> = withFacts ? { kind: kind.kind } : { group: kind.group, resource: kind.resource }
  const path = `/front/why?${new URLSearchParams({ ...about, namespace: name.namespace, name: name.name })}`
  const { value, error, again } = useAnswer((signal) => get<object>(path, { signal }), path, isStill() ? undefined : againMs)
  if (error !== '') return <Failure text={error} retry={again} />
  if (!value) return <Loading text="Asking…" />
  const isPod = kind.group === '' && kind.resource === 'pods'
  return (
    <div class="summary">
      <p class="asked">
        <Button onClick={again}>Ask again</Button>
      </p>
      {withFacts ? <FactsPanel kind={kind} value={value} /> : <AnswerPanel answer={value as Answer} />}
      {isPod && asksScheduler(object, value as Answer) && <PodScheduling object={object} />}
    </div>
  )
}

/** The scheduler explains pods without a node, and where a pod that does not wait was placed. A bundle has no scheduler. */
function asksScheduler({ spec }: AnyObject, { causes }: Answer): boolean {
  return !isStill() && (spec?.nodeName === undefined || causes.length === 0)
}

function PodScheduling({ object: { metadata } }: { readonly object: AnyObject }) {
  const path = `/debug/scheduling?pod=${encodeURIComponent(`${metadata.namespace}/${metadata.name}`)}`
  const { value, error } = useAnswer((signal) => schedulingAt(path, signal), `${path} ${metadata.resourceVersion}`)
  if (error !== '') return <p class="quiet">The scheduler’s view is not shown: {error}</p>
  if (!value) return <Loading text="Asking the scheduler…" />
  return value.found ? <SchedulingAnswer found={value.found} /> : null
}

/** The scheduler does not know pods that have ended, or that name another scheduler. */
async function schedulingAt(path: string, signal: AbortSignal): Promise<{ readonly found?: SchedulingExplanation }> {
  try {
    return { found: await get<SchedulingExplanation>(path, { signal }) }
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return {}
    throw error
  }
}

function FactsPanel({ kind, value }: { readonly kind: Kind; readonly value: object }) {
  return kind.resource === 'namespaces' ? <NamespacePanel value={value as NamespaceFacts} /> : <AutoscalerPanel value={value as AutoscalerFacts} />
}
