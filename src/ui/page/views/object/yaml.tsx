/**
 * An object's YAML, and changing it (L4): the server checks the text as a dry run and the page shows what would change, before anything is written. A write
 * names the revision that was edited, so that no other writer's change is lost.
 */
import { useEffect, useReducer, useRef } from 'preact/hooks'
import { objectPath } from '../../../model/places.ts'
import { type EditingEvent, isDirty, nextEditing, notLoaded } from '../../../model/yamlEditing.ts'
import { withoutManagedFields } from '../../../model/yamlText.ts'
import { ApiError, getText, messageOf, write } from '../../api.ts'
import { type Editor, openEditor } from '../../lazy/editor.ts'
import { Button, Loading } from '../../parts/basics.tsx'
import { say, wantsToEdit } from '../../state.ts'
import type { TabProps } from './types.ts'

const yaml = 'application/yaml'

const read = async (path: string) => withoutManagedFields(await getText(path, { accept: yaml }))

/** Writes the text, or lets the server check it. @returns what happened */
async function put(path: string, text: string, dryRun: boolean): Promise<EditingEvent> {
  try {
    const query = `fieldManager=skiff-ui&fieldValidation=Strict${dryRun ? '&dryRun=All' : ''}`
    const { body, warnings } = await write<string>('PUT', `${path}?${query}`, text, { contentType: yaml, accept: yaml })
    for (const warning of warnings) say('bad', warning)
    return dryRun ? { type: 'checked', text: withoutManagedFields(body) } : { type: 'loaded', text: await read(path) }
  } catch (error) {
    return error instanceof ApiError && error.status === 409 ? { type: 'overtaken', newest: await read(path) } : { type: 'failed', error: messageOf(error) }
  }
}

export function YamlTab({ kind, name, object }: TabProps) {
  const path = objectPath(kind, name)
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<Editor>(null)
  const [editing, dispatch] = useReducer(nextEditing, notLoaded)
  const { base, text, step, error, opened } = editing
  const canWrite = kind.verbs.includes('update')

  useEffect(() => {
    if (!opened || !host.current) return
    const made = openEditor(host.current, { ...opened, isReadOnly: !canWrite, onChange: (changed) => dispatch({ type: 'typed', text: changed }) })
    editor.current = made
    return () => made.close()
  }, [opened])
  // A look at the text leaves the keys to the page.
  useEffect(() => {
    if (!wantsToEdit.value || !editor.current) return
    wantsToEdit.value = false
    editor.current.focus()
  }, [opened, wantsToEdit.value])

  const failed = (reason: unknown) => dispatch({ type: 'failed', error: messageOf(reason) })
  const load = () => void read(path).then((newest) => dispatch({ type: 'loaded', text: newest }), failed)
  const send = async (dryRun: boolean) => {
    dispatch({ type: 'asked' })
    const event = await put(path, text, dryRun)
    if (event.type === 'loaded') say('good', `${name.name} is changed`)
    dispatch(event)
  }
  // What the user has typed stays when the object changes meanwhile.
  useEffect(() => {
    if (!isDirty(editing)) load()
  }, [path, object.metadata.resourceVersion])

  return (
    <section class="yaml" aria-label="YAML">
      <div class="bar">
        {step.type === 'conflict' ? (
          <>
            <span class="warning" role="alert">
              The object changed while you edited it. Below: your text against the newest version.
            </span>
            <Button onClick={() => dispatch({ type: 'kept' })}>Keep my changes</Button>
            <Button onClick={load}>Take the newest</Button>
          </>
        ) : (
          canWrite && (
            <>
              <Button disabled={!isDirty(editing)} onClick={() => void send(true).catch(failed)}>
                Check
              </Button>
              <Button class="main" disabled={!isDirty(editing)} onClick={() => void send(false).catch(failed)}>
                Save
              </Button>
              <Button disabled={!isDirty(editing)} onClick={load}>
                Undo all
              </Button>
              {step.type === 'checked' && <span class="good">The server accepts it. Nothing is written yet.</span>}
            </>
          )
        )}
        <Button onClick={() => void navigator.clipboard.writeText(text).then(() => say('good', 'copied'), failed)}>Copy</Button>
      </div>
      {error !== '' && (
        <p class="warning" role="alert">
          {error}
        </p>
      )}
      {base === undefined && error === '' && <Loading />}
      <div ref={host} class="editor" />
    </section>
  )
}
