/** The process of one command of a CNI plugin (L5): the runtime starts it inside the node, and reads the result from standard output. */
import { text } from 'node:stream/consumers'
import { createExec } from '#host/exec'
import { runPlugin } from '#network/cni/plugin'
import { createRealClock } from '../realClock.ts'
import { nodePaths } from '../vnode/files.ts'

export async function runCniPlugin(): Promise<void> {
  const deps = { exec: createExec(), clock: createRealClock(), env: process.env, directory: nodePaths.cniState }
  const { output, code } = await runPlugin(deps, await text(process.stdin))
  process.stdout.write(output)
  process.exitCode = code
}
