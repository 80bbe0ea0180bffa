import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type EditingEvent, isDirty, nextEditing, notLoaded } from './yamlEditing.ts'

const textAt = (revision: number, value: string) => `metadata:\n  resourceVersion: "${revision}"\ndata: ${value}\n`
const after = (...events: readonly EditingEvent[]) => events.reduce(nextEditing, notLoaded)
const [loaded, typed, checked] = [
  { type: 'loaded', text: textAt(1, 'a') },
  { type: 'typed', text: textAt(1, 'b') },
  { type: 'checked', text: textAt(1, 'b with defaults') },
] as const

test('ARC-16 a checked text is not called accepted once the user changes it', () => {
  assert.equal(after(loaded, typed, checked).step.type, 'checked')
  assert.equal(after(loaded, typed, checked, { type: 'typed', text: textAt(1, 'c') }).step.type, 'editing')
})

test('ARC-16 a checked text can be saved, also after the user changes it and takes the change back', () => {
  assert.equal(isDirty(after(loaded, typed, checked)), true)
  assert.equal(isDirty(after(loaded, typed, checked, { type: 'typed', text: 'x' }, { type: 'typed', text: checked.text })), true)
  assert.equal(isDirty(after(loaded, typed, { type: 'typed', text: loaded.text })), false)
})

test('ARC-16 a conflict shows the text against the newest version, and stays until the user decides', () => {
  const newest = textAt(2, 'theirs')
  const conflict = after(loaded, typed, { type: 'overtaken', newest }, { type: 'typed', text: textAt(1, 'c') })
  assert.deepEqual(
    [conflict.step, conflict.opened],
    [
      { type: 'conflict', newest },
      { text: typed.text, against: newest },
    ],
  )
  const kept = nextEditing(conflict, { type: 'kept' })
  assert.deepEqual([kept.step.type, kept.base, kept.opened], ['editing', newest, { text: textAt(2, 'c'), against: newest }])
  assert.equal(isDirty(kept), true)
})

test('ARC-16 a refused text stays with its error until the next request', () => {
  const refused = after(loaded, typed, { type: 'failed', error: 'no' })
  assert.deepEqual([refused.text, refused.error, nextEditing(refused, { type: 'asked' }).error], [typed.text, 'no', ''])
})
