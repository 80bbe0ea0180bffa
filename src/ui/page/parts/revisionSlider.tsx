/** Chooses a revision of the store (L4): a slider with steps, and the time of the revision. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { RevisionHistory } from '#api/debug/revisions'
import { get } from '../api.ts'
import { set } from '../state.ts'
import { useAnswer } from './useAnswer.ts'

const askEveryMs = 5_000

/** The revisions that can be read. `first` is the newest one when the view was opened: the newest grows all the time. */
export function useHistory() {
  const first = useSignal<number | undefined>(undefined)
  const asked = useAnswer((signal) => get<RevisionHistory>('/skiff/revisions', { signal }), 'revisions', askEveryMs)
  useEffect(() => {
    first.value ??= asked.value?.revision
  }, [asked.value])
  return { ...asked, first: first.value }
}

export const within = ({ revision: newest, oldestRevision: oldest }: RevisionHistory, wanted: number): number => Math.min(newest, Math.max(oldest, wanted))

interface RevisionSliderProps {
  readonly history: RevisionHistory
  readonly shown: number
  readonly onMove: (revision: number) => void
}

export function RevisionSlider({ history, shown, onMove }: RevisionSliderProps) {
  const { revision: newest, oldestRevision: oldest } = history
  const dragged = useSignal<number | undefined>(undefined)
  const revision = within(history, dragged.value ?? shown)
  const time = useAnswer((signal) => get<RevisionHistory>(`/skiff/revisions?revisions=${shown}`, { signal }), `time ${shown}`).value?.times?.[shown]
  const moveTo = (next: number) => onMove(within(history, next))
  return (
    <div class="slider">
      <button type="button" aria-label="One revision back" onClick={() => moveTo(shown - 1)}>
        ‹
      </button>
      <input
        type="range"
        aria-label="Revision"
        min={oldest}
        max={newest}
        value={revision}
        onInput={({ currentTarget }) => set(dragged, currentTarget.valueAsNumber)}
        onChange={({ currentTarget }) => {
          dragged.value = undefined
          moveTo(currentTarget.valueAsNumber)
        }}
      />
      <button type="button" aria-label="One revision forward" onClick={() => moveTo(shown + 1)}>
        ›
      </button>
      <button type="button" onClick={() => moveTo(newest)}>
        now
      </button>
      <output>
        revision <strong>{revision}</strong> {time && <span class="quiet">{new Date(time).toLocaleString()}</span>}
      </output>
    </div>
  )
}
