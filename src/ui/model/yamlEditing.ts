/**
 * Editing an object's YAML (L4, pure): what is shown and what may be done next, after each thing that happens. Requests and the editor are the view's. A write
 * names the revision that was edited, so that no other writer's change is lost.
 */
export type Step =
  | { readonly type: 'editing' }
  /** The server would store this text, which has what admission and defaulting make of it. */
  | { readonly type: 'checked' }
  /** Another writer was faster. */
  | { readonly type: 'conflict'; readonly newest: string }

export interface Editing {
  /** As the server has it; undefined until it is read. */
  readonly base: string | undefined
  readonly text: string
  readonly step: Step
  readonly error: string
  /** Another value replaces the editor: with the text, and what it is compared with. */
  readonly opened: { readonly text: string; readonly against: string | undefined } | undefined
}

export type EditingEvent =
  | { readonly type: 'loaded'; readonly text: string }
  | { readonly type: 'typed'; readonly text: string }
  | { readonly type: 'asked' }
  | { readonly type: 'checked'; readonly text: string }
  | { readonly type: 'overtaken'; readonly newest: string }
  /** The user overwrites the change of the other writer. */
  | { readonly type: 'kept' }
  | { readonly type: 'failed'; readonly error: string }

export const notLoaded: Editing = { base: undefined, text: '', step: { type: 'editing' }, error: '', opened: undefined }

export const isDirty = ({ base, text }: Editing): boolean => base !== undefined && text !== base

export function nextEditing(before: Editing, event: EditingEvent): Editing {
  switch (event.type) {
    case 'loaded':
      return { ...before, base: event.text, step: { type: 'editing' }, ...opening(event.text, undefined) }
    case 'typed':
      // What the server accepted is another text. A conflict stays until the user decides.
      return { ...before, text: event.text, step: before.step.type === 'checked' ? { type: 'editing' } : before.step }
    case 'asked':
      return { ...before, error: '' }
    case 'checked':
      return { ...before, step: { type: 'checked' }, ...opening(event.text, before.base) }
    case 'overtaken':
      return { ...before, step: { type: 'conflict', newest: event.newest }, ...opening(before.text, event.newest) }
    case 'kept': {
      if (before.step.type !== 'conflict') return before
      const { newest } = before.step
      return { ...before, base: newest, step: { type: 'editing' }, ...opening(withRevisionOf(before.text, newest), newest) }
    }
    case 'failed':
      return { ...before, error: event.error }
  }
}

const opening = (text: string, against: string | undefined) => ({ text, opened: { text, against } })

/** The text with the revision of another: the next write means to replace that one. */
function withRevisionOf(text: string, newest: string): string {
  const [, revision] = /^ {2}resourceVersion: (.*)$/m.exec(newest) ?? []
  return revision === undefined ? text : text.replace(/^ {2}resourceVersion: .*$/m, () => `  resourceVersion: ${revision}`)
}
