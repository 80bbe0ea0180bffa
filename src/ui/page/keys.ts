/** Keys of the page (L4): views name theirs while they are shown; nothing is taken while the user types. */
import { useLayoutEffect, useRef } from 'preact/hooks'

export interface KeyBinding {
  readonly key: string
  readonly text: string
  readonly act: () => void
}

const bindings = new Set<{ readonly current: readonly KeyBinding[] }>()

export const activeBindings = (): KeyBinding[] => [...bindings].flatMap(({ current }) => current)

const typing = 'input, textarea, select, [contenteditable="true"], .xterm, .cm-editor'

addEventListener('keydown', (event) => {
  const { target, key } = event
  if (event.ctrlKey || event.metaKey || event.altKey || (target instanceof Element && target.closest(typing))) return
  // A dialog keeps the keys to itself.
  if (document.querySelector('dialog[open]')) return
  const binding = activeBindings().findLast((one) => one.key === key)
  if (!binding) return
  event.preventDefault()
  binding.act()
})

/** The binding that was added last wins. */
export function useKeys(list: readonly KeyBinding[]): void {
  const newest = useRef(list)
  newest.current = list
  useLayoutEffect(() => {
    bindings.add(newest)
    return () => void bindings.delete(newest)
  }, [])
}
