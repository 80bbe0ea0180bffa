/** Questions before something is changed (L4): one at a time, answered by a promise. */
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Button, Dialog } from './basics.tsx'

export interface Question {
  readonly title: string
  readonly text: ComponentChildren
  /** What the button says. */
  readonly action: string
  readonly isDangerous?: boolean
  /** A number to ask for, with its present value. */
  readonly number?: { readonly label: string; readonly value: number }
  /** A text to ask for, with its first value. */
  readonly field?: { readonly label: string; readonly value: string }
  /** Things to choose, one of them. */
  readonly choice?: { readonly label: string; readonly values: readonly { readonly value: string; readonly text: string }[] }
}

export interface Reply {
  readonly number: number
  readonly choice: string
  readonly field: string
}

const open = signal<{ readonly question: Question; readonly answer: (reply: Reply | undefined) => void } | undefined>(undefined)

/** Undefined: the user decided against it. */
export function ask(question: Question): Promise<Reply | undefined> {
  open.value?.answer(undefined)
  return new Promise((resolve) => {
    const answer = (reply: Reply | undefined) => {
      open.value = undefined
      resolve(reply)
    }
    open.value = { question, answer }
  })
}

export function OpenQuestion() {
  const asked = open.value
  return asked && <QuestionDialog key={asked.question.title} {...asked} />
}

function QuestionDialog({ question, answer }: { readonly question: Question; readonly answer: (reply: Reply | undefined) => void }) {
  const { title, text, action, isDangerous, number, choice, field } = question
  const [value, setValue] = useState(number?.value ?? 0)
  const [written, setWritten] = useState(field?.value ?? '')
  const [chosen, setChosen] = useState(choice?.values[0]?.value ?? '')
  return (
    <Dialog title={title} class="question" onClose={() => answer(undefined)}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault()
          answer({ number: value, choice: chosen, field: written.trim() })
        }}
      >
        <div class="text">{text}</div>
        {number && (
          <label>
            {number.label}
            <input type="number" min={0} step={1} required value={value} onInput={({ currentTarget }) => setValue(currentTarget.valueAsNumber)} />
          </label>
        )}
        {field && (
          <label>
            {field.label}
            <input required value={written} onInput={({ currentTarget }) => setWritten(currentTarget.value)} />
          </label>
        )}
        {choice && (
          <label>
            {choice.label}
            <select value={chosen} onChange={({ currentTarget }) => setChosen(currentTarget.value)}>
              {choice.values.map((one) => (
                <option key={one.value} value={one.value}>
                  {one.text}
                </option>
              ))}
            </select>
          </label>
        )}
        <footer>
          <Button onClick={() => answer(undefined)}>Cancel</Button>
          <button type="submit" class={isDangerous ? 'danger' : 'main'}>
            {action}
          </button>
        </footer>
      </form>
    </Dialog>
  )
}
