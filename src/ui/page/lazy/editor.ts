/** The editor (L4), loaded when it is first shown: CodeMirror with YAML, and the difference to another text. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { bracketMatching, defaultHighlightStyle, foldGutter, foldKeymap, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { unifiedMergeView } from '@codemirror/merge'
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search'
import { EditorState } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'

export interface EditorOptions {
  readonly text: string
  /** Shows what differs from this text. */
  readonly against?: string | undefined
  readonly isReadOnly: boolean
  readonly onChange: (text: string) => void
}

export interface Editor {
  /** Puts the cursor into the text. Escape takes it out again, so that keys belong to the page. */
  focus(): void
  close(): void
}

const colors = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--key)' },
  { tag: [tags.string, tags.content], color: 'var(--string)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--number)' },
  { tag: [tags.comment, tags.meta], color: 'var(--quiet)' },
])

function leave({ contentDOM }: EditorView): boolean {
  contentDOM.blur()
  return true
}

export function openEditor(parent: HTMLElement, { text, against, isReadOnly, onChange }: EditorOptions): Editor {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        ...[lineNumbers(), foldGutter(), history(), drawSelection(), indentOnInput(), bracketMatching(), highlightActiveLine(), highlightSelectionMatches()],
        ...[search({ top: true }), yaml(), syntaxHighlighting(colors), syntaxHighlighting(defaultHighlightStyle, { fallback: true })],
        keymap.of([...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, indentWithTab, { key: 'Escape', run: leave }]),
        EditorState.readOnly.of(isReadOnly),
        EditorView.contentAttributes.of({ 'aria-label': 'YAML', tabindex: '0' }),
        EditorView.updateListener.of(({ docChanged, state }) => docChanged && onChange(state.doc.toString())),
        ...(against === undefined ? [] : [unifiedMergeView({ original: against, mergeControls: false, collapseUnchanged: { margin: 3, minSize: 6 } })]),
      ],
    }),
  })
  return { focus: () => view.focus(), close: () => view.destroy() }
}
