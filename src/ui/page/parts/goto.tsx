/** The way to everything by a few letters (L4): kinds, views and namespaces. */
import { signal } from '@preact/signals'
import { useLayoutEffect, useState } from 'preact/hooks'
import { listPlace, nameOfKind, placeText } from '../../model/places.ts'
import { go, kinds, namespace } from '../state.ts'
import { offeredViews } from '../views.ts'
import { Dialog } from './basics.tsx'

export const gotoOpen = signal(false)

interface Target {
  readonly title: string
  readonly hint: string
  readonly words: string
  readonly address: string
}

function targets(namespaces: readonly string[]): Target[] {
  return [
    ...offeredViews().map(({ title, path }) => ({ title, hint: 'view', words: title.toLowerCase(), address: placeText(path) })),
    ...kinds.value.map((kind) => ({
      title: kind.kind,
      hint: nameOfKind(kind),
      words: [kind.kind.toLowerCase(), nameOfKind(kind), ...kind.shortNames].join(' '),
      address: listPlace(kind),
    })),
    ...['', ...namespaces].map((one) => ({
      title: one === '' ? 'all namespaces' : one,
      hint: 'namespace',
      words: `ns namespace ${one === '' ? 'all' : one}`,
      address: `#ns=${one}`,
    })),
  ]
}

/** Users who may not list namespaces can name one. */
const isNamespace = (text: string): boolean => /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(text)

/** Those that begin with the words come first, then short names, then other matches. */
function matching(all: readonly Target[], text: string): Target[] {
  const wanted = text.trim().toLowerCase()
  const rank = ({ title, words }: Target) => {
    if (words.split(' ').includes(wanted)) return 0
    return title.toLowerCase().startsWith(wanted) ? 1 : words.includes(wanted) ? 2 : 3
  }
  return all
    .filter((target) => rank(target) < 3)
    .sort((one, other) => rank(one) - rank(other))
    .slice(0, 60)
}

export function Goto({ namespaces }: { readonly namespaces: readonly string[] }) {
  const [text, setText] = useState('')
  const [selected, setSelected] = useState(0)
  const found = matching(targets(namespaces.length === 0 && isNamespace(text) ? [text] : namespaces), text)
  const close = () => {
    gotoOpen.value = false
  }
  const take = (target: Target | undefined) => {
    close()
    if (target?.address.startsWith('#ns=')) namespace.value = target.address.slice(4)
    else if (target) go(target.address)
  }
  // Right after the login the kinds are not known yet: the choice waits for the matches among them.
  const [isWaiting, setWaiting] = useState(false)
  const isKnown = kinds.value.length > 0
  useLayoutEffect(() => {
    if (isWaiting && isKnown) take(found[selected])
  })
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') setSelected(Math.min(found.length - 1, selected + 1))
    else if (event.key === 'ArrowUp') setSelected(Math.max(0, selected - 1))
    else if (event.key === 'Enter') isKnown ? take(found[selected]) : setWaiting(true)
    else return
    event.preventDefault()
  }
  return (
    <Dialog title="Go to" class="goto" onClose={close}>
      <input
        type="text"
        role="combobox"
        aria-label="Go to a kind, a view or a namespace"
        aria-expanded="true"
        aria-controls="goto-list"
        aria-activedescendant={`goto-${selected}`}
        placeholder="A kind, a view or a namespace: po, deploy, kube-system…"
        value={text}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value)
          setSelected(0)
          setWaiting(false)
        }}
        onKeyDown={onKeyDown}
      />
      <ul id="goto-list" role="listbox" aria-label="Found">
        {found.map((target, index) => (
          <li
            key={target.address + target.hint}
            id={`goto-${index}`}
            role="option"
            aria-selected={index === selected}
            ref={(element) => void (index === selected && element?.scrollIntoView({ block: 'nearest' }))}
            onMouseDown={(event) => {
              event.preventDefault()
              take(target)
            }}
          >
            <span>{target.title}</span>
            <span class="quiet">{target.hint}</span>
          </li>
        ))}
      </ul>
    </Dialog>
  )
}
