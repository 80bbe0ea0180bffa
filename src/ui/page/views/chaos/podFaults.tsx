/** Faults of pods on simulated nodes (L4): their containers crash, exit or turn unready, and random ones are deleted at a rate for a while. */
import { type Signal, useSignal } from '@preact/signals'
import { type FaultyPod, faultPatch, faultTexts, mostMinutes, mostPerMinute, namesOf, type PodFault, podFaults, someOf } from '../../../model/chaos.ts'
import { objectPath } from '../../../model/places.ts'
import { mergePatch, messageOf } from '../../api.ts'
import { ask } from '../../parts/confirm.tsx'
import { namespace, say, set } from '../../state.ts'
import { startDeletion } from './deletion.ts'
import { mostCandidates, podKind, sendToAll, simulatedPods } from './requests.ts'

const scopeText = () => (namespace.value === '' ? 'of all namespaces but kube-system' : `of ${namespace.value}`)

/** Those that match now. Undefined: there are none, or the server refuses the question, which the user sees. */
async function matching(labels: string): Promise<FaultyPod[] | undefined> {
  try {
    const found = await simulatedPods(namespace.value, labels)
    if (found.length > 0) return found
    say('bad', `No running pod on a simulated node matches ${labels === '' ? 'here' : labels}`)
  } catch (error) {
    say('bad', messageOf(error))
  }
  return undefined
}

async function apply(labels: string, count: number, fault: PodFault): Promise<void> {
  const found = await matching(labels)
  if (!found) return
  const possible = found.filter((pod) => faultPatch(pod, fault) !== undefined)
  if (possible.length === 0) {
    say('bad', 'No pod of the selection has a readiness probe: all stay ready')
    return
  }
  const chosen = someOf(possible, count, Math.random)
  const text = (
    <>
      <p>These pods get the fault until you undo it: {namesOf(chosen)}.</p>
      {possible.length < found.length && <p class="warning">Without a readiness probe, and so left out: {found.length - possible.length}.</p>}
    </>
  )
  if (chosen.length > 1 && !(await ask({ title: `Let ${chosen.length} pods ${faultTexts[fault]}`, text, action: 'Apply', isDangerous: true }))) return
  await sendToAll(chosen, 'Pods with the fault', (pod) => mergePatch(pathOf(pod), faultPatch(pod, fault) ?? {}))
}

const pathOf = ({ metadata: { namespace: ns = '', name = '' } }: FaultyPod) => objectPath(podKind, { namespace: ns, name })

interface Rate {
  readonly perMinute: number
  readonly minutes: number
  readonly isEviction: boolean
}

async function deleteSome(labels: string, rate: Rate): Promise<void> {
  const found = await matching(labels)
  if (!found) return
  const scope = namespace.value
  const all = found.length < mostCandidates ? `matching now: ${found.length}` : `chosen from the first ${mostCandidates}`
  const text = `Random pods are ${rate.isEviction ? 'evicted' : 'deleted'}, ${rate.perMinute} a minute for ${rate.minutes} min, while this tab is open; ${all}: ${namesOf(found)}. Deleted pods are gone: their controllers make others.`
  if (!(await ask({ title: 'Delete random pods', text, action: 'Begin', isDangerous: true }))) return
  startDeletion({ scope, labels, ...rate })
}

export function PodFaults() {
  const labels = useSignal('')
  const [fault, count] = [useSignal<PodFault>('crash'), useSignal(1)]
  const [perMinute, minutes, how] = [useSignal(6), useSignal(5), useSignal('evict')]
  return (
    <section class="panel" aria-label="Pods">
      <h2>
        Pods <span class="quiet">{scopeText()}</span>
      </h2>
      <form class="bar" onSubmit={(event) => event.preventDefault()}>
        <label>
          Label selector
          <input placeholder="app=web; empty: all" value={labels.value} onInput={({ currentTarget }) => set(labels, currentTarget.value.trim())} />
        </label>
      </form>
      <form
        class="bar"
        aria-label="Faults of containers"
        onSubmit={(event) => {
          event.preventDefault()
          void apply(labels.value, count.value, fault.value)
        }}
      >
        <NumberField label="Let random pods" value={count} most={mostCandidates} />
        <select aria-label="Fault" value={fault.value} onChange={({ currentTarget }) => set(fault, currentTarget.value as PodFault)}>
          {podFaults.map((one) => (
            <option key={one} value={one}>
              {faultTexts[one]}
            </option>
          ))}
        </select>
        <button type="submit" class="danger">
          Apply
        </button>
      </form>
      <form
        class="bar"
        aria-label="Deletions"
        onSubmit={(event) => {
          event.preventDefault()
          void deleteSome(labels.value, { perMinute: perMinute.value, minutes: minutes.value, isEviction: how.value === 'evict' })
        }}
      >
        <select aria-label="How pods are removed" value={how.value} onChange={({ currentTarget }) => set(how, currentTarget.value)}>
          <option value="evict">Evict, as budgets allow</option>
          <option value="delete">Delete</option>
        </select>
        <NumberField label="pods a minute" value={perMinute} most={mostPerMinute} />
        <NumberField label="for minutes" value={minutes} most={mostMinutes} />
        <button type="submit" class="danger">
          Begin…
        </button>
      </form>
    </section>
  )
}

function NumberField({ label, value, most }: { readonly label: string; readonly value: Signal<number>; readonly most: number }) {
  return (
    <label>
      {label}
      <input
        type="number"
        min={1}
        max={most}
        step={1}
        required
        value={value.value}
        onInput={({ currentTarget }) => set(value, currentTarget.valueAsNumber || 1)}
      />
    </label>
  )
}
