/** Small parts of all views (L4): ages, words of status, states of loading, dialogs and icons. Whatever the cluster says is text. */
import type { ButtonHTMLAttributes, ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { humanDuration } from '#api/machinery/duration'
import { type Tone, toneOf } from '../../model/health.ts'
import { now } from '../state.ts'

/** How long ago, as kubectl prints it. */
export function Age({ since }: { readonly since: string | null | undefined }) {
  const ms = Date.parse(since ?? '')
  if (Number.isNaN(ms)) return <span class="quiet">–</span>
  return (
    <time dateTime={since ?? ''} title={new Date(ms).toLocaleString()}>
      {humanDuration(Math.max(0, now.value - ms))}
    </time>
  )
}

export function Status({ text, tone = toneOf(text) }: { readonly text: string; readonly tone?: Tone }) {
  return (
    <span class={`status ${tone}`}>
      <i aria-hidden="true" />
      {text}
    </span>
  )
}

export function Loading({ text = 'Loading…' }: { readonly text?: string }) {
  return (
    <p class="loading" role="status">
      <i aria-hidden="true" />
      {text}
    </p>
  )
}

export function Failure({ text, retry }: { readonly text: string; readonly retry?: (() => void) | undefined }) {
  return (
    <div class="failure" role="alert">
      <p>{text}</p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  )
}

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  readonly class?: string
}

/** Modal: the platform keeps the focus inside, and Escape closes it. */
export function Dialog({ title, onClose, children, class: name = '' }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null)
  // Before the next key: what the user types right after the key that opens it belongs to the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement
    ref.current?.showModal()
    // The platform would focus the button that closes.
    ref.current?.querySelector<HTMLElement>('input, select, footer button')?.focus()
    return () => before instanceof HTMLElement && before.focus()
  }, [])
  return (
    <dialog ref={ref} class={name} aria-label={title} onClose={onClose} onCancel={onClose}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="icon" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  )
}

const icons = {
  boat: 'M3 14h18l-3 5H6zM11 3v9H5zM13 6v6h5z',
  heart: 'M12 20 4 12a5 5 0 0 1 8-6 5 5 0 0 1 8 6z',
  list: 'M4 6h16M4 12h16M4 18h16',
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zm5 12 4 4',
  close: 'M5 5l14 14M19 5 5 19',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M5 19l2-2M17 7l2-2',
  key: 'M8 11a4 4 0 1 0 0 8 4 4 0 0 0 0-8zm3 1 9-9M16 7l3 3',
  clock: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zm0 4v5l3 3',
  grid: 'M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z',
  pulse: 'M2 12h5l3-8 4 16 3-8h5',
  turn: 'M4 12a8 8 0 0 1 14-5l2 2M20 4v5h-5M20 12a8 8 0 0 1-14 5l-2-2M4 20v-5h5',
  drum: 'M4 6c0-4 16-4 16 0s-16 4-16 0v12c0 4 16 4 16 0V6M4 12c0 4 16 4 16 0',
  bars: 'M4 20V10M10 20V4M16 20v-8M21 20H2',
  chart: 'M4 4v16h16M7 15l4-5 3 3 5-7',
  out: 'M10 4H4v16h6M15 8l4 4-4 4M19 12H9',
  bolt: 'M13 2 4 14h7l-1 8 9-12h-7z',
  help: 'M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 18v.5',
  box: 'M4 7l8-4 8 4v10l-8 4-8-4zM4 7l8 4 8-4M12 11v10',
} as const

export type IconName = keyof typeof icons

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="svg" viewBox="0 0 24 24" aria-hidden="true">
      <path d={icons[name]} />
    </svg>
  )
}

export function Button(props: ButtonHTMLAttributes<HTMLButtonElement>) {
  return <button type="button" {...props} />
}

/** Pairs of a name and a value. */
export function Facts({ facts }: { readonly facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) =>
        value === undefined || value === '' ? undefined : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  )
}
