/** Puts a command into the clipboard (L4), to be run in a terminal. */
import { messageOf } from '../api.ts'
import { say } from '../state.ts'

export function copyCommand(command: string): Promise<void> {
  return navigator.clipboard.writeText(command).then(
    () => say('good', 'The command is copied: run it where your kubectl is'),
    (error: unknown) => say('bad', `Copy: ${messageOf(error)}`),
  )
}
