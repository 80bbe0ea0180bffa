/**
 * Starts and ends processes of this program in a cluster's network namespace (L5), which Node cannot enter by itself. Such a process has a channel for messages
 * and descriptors, and ends when the server does.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { exists } from '#host/files'
import { inNetworkNamespace } from '#host/netns'
import type { ProcessTools } from './processTools.ts'

const graceMs = 2000
/** Enough for the connections that such a process allows at the same time. */
export const memoryFlags = ['--max-old-space-size=32', '--max-semi-space-size=1']

/**
 * Undefined while the namespace does not exist.
 * @param self words that run this program
 * @param role the words that follow: which of its processes it becomes
 */
export async function startInNamespace(namespace: string, self: readonly string[], role: readonly string[]): Promise<ChildProcess | undefined> {
  if (!(await exists(`/run/netns/${namespace}`))) return undefined
  const [node = '', ...entry] = self
  const [enter = '', ...rest] = [...inNetworkNamespace(namespace), node, ...memoryFlags, ...entry, ...role]
  const child = spawn(enter, rest, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], cwd: '/' })
  await once(child, 'spawn')
  return child
}

/** Closes the channel, at which the process ends; kills it when it takes too long. */
export async function endInNamespace(child: ChildProcess, ended: Promise<unknown>, { clock }: Pick<ProcessTools, 'clock'>): Promise<void> {
  if (child.connected) child.disconnect()
  const late = clock.timer(graceMs, () => child.kill('SIGKILL'))
  await ended
  late.cancel()
}
