/** Runs one measurement on a whole cluster in a process of its own: nothing that was measured before has warmed it up or filled its memory. */
import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { serverFlags } from '#main/localCluster/serverFlags'
import type { Tasks } from './tasks.ts'

const execute = promisify(execFile)
const child = path.join(import.meta.dirname, 'child.ts')

export async function inOwnProcess<Name extends keyof Tasks>(
  task: Name,
  options: Parameters<Tasks[Name]>[0],
  signal: AbortSignal,
): Promise<Awaited<ReturnType<Tasks[Name]>>> {
  const args = ['--import', 'tsx', ...serverFlags(), child, task, JSON.stringify(options)]
  const { stdout } = await execute(process.execPath, args, { signal, maxBuffer: 1 << 24 })
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Awaited<ReturnType<Tasks[Name]>>
}
