/** Runs one of this program's roles inside a real node (L5), whose process 1 reaps it, and keeps it running. */
import fs from 'node:fs/promises'
import path from 'node:path'
import type { ProcessStatus } from '#cli/clusterManager'
import type { RealNode } from '../localCluster/clusterState.ts'
import { vnodeProcess } from '../vnode/vnode.ts'
import type { AgentsOptions } from './agentsOptions.ts'
import { type SupervisedProcess, superviseProcess } from './superviseProcess.ts'
import { endFormer, startInVnode, type VnodeChild } from './vnodeChild.ts'

export interface NodeProgram {
  /** Also the name of its log. */
  readonly role: ProcessStatus['role']
  /** In its command, and in that of no other program of the node. */
  readonly word: string
  /** What follows this program's own words. */
  readonly args: readonly string[]
  /** Longer than an orderly end takes. */
  readonly graceMs: number
}

/** Resolves when the signal has ended it. */
export async function runNodeProgram(options: AgentsOptions, node: RealNode, program: NodeProgram, signal: AbortSignal): Promise<void> {
  const { tools, processes } = options
  const { role, graceMs } = program
  const key = `${node.name}/${role}`
  const supervised: SupervisedProcess<VnodeChild> = {
    start: () => startNodeProgram(options, node, program, role),
    onMissing: () => {},
    onStarted: async ({ pid }) => processes.set(key, { role, pid, node: node.name }),
    onEnded: async (_, stopped) => {
      if (!stopped) tools.log.warn('A program of a node ended, starting it again', { node: node.name, program: role })
      await processes.set(key, undefined)
    },
    end: (child, ended) => child.end(ended, graceMs, tools.clock),
  }
  await superviseProcess(supervised, tools, signal)
}

/** Undefined when the node itself does not run. @param logName without its ending */
export async function startNodeProgram(
  { tools: { clock }, paths, self, verbosity }: AgentsOptions,
  node: RealNode,
  { word, args, graceMs }: Omit<NodeProgram, 'role'>,
  logName: string,
): Promise<VnodeChild | undefined> {
  const dir = paths.node(node.name)
  const init = await vnodeProcess(dir)
  if (!init) return undefined
  const file = await fs.open(path.join(dir, `${logName}.log`), 'a', 0o600)
  try {
    await file.chmod(0o600)
    // A server that was killed leaves a program that is about to end, or one that was stopped and never would.
    await endFormer(init, word, graceMs, clock)
    return await startInVnode(init, [...self, ...args, '--v', String(verbosity)], { log: file.fd, clock })
  } finally {
    await file.close()
  }
}
