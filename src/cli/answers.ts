/** The answer of a cluster's API to a command (L4). */
import { CommandError } from './exitCodes.ts'

/** The body. @throws CommandError when the cluster did not answer, or refused */
export function bodyOf(cluster: string, answer: { readonly status: number; readonly body: string } | undefined): string {
  if (!answer) throw new CommandError('unmetPrerequisite', `cluster "${cluster}" does not answer`, { hint: `start it first: skiff start ${cluster}` })
  if (answer.status < 300) return answer.body
  const { message = `status ${answer.status}` } = JSON.parse(answer.body || '{}') as { readonly message?: string }
  throw new CommandError('internal', message)
}
