/** The processes that a server has started and that run now (L5), in a file for commands that show the cluster. */
import type { ProcessStatus } from '#cli/clusterManager'
import { writeSmallJson } from '#host/files'
import { startTimeOf } from '#host/processes'

export interface ProcessList {
  /** @param key the process's place, such as the node of an agent @param running undefined: it has ended */
  set(key: string, running: ProcessStatus | undefined): Promise<void>
}

/** @param file where the list is kept */
export function createProcessList(file: string): ProcessList {
  const alive = new Map<string, ProcessStatus>()
  // One write at a time: two that overlap could leave the older list in the file.
  let last: Promise<void> = Promise.resolve()
  const write = async () => {
    const list = await Promise.all([...alive.values()].map(async (one) => ({ ...one, startTime: (await startTimeOf(one.pid)) ?? '' })))
    await writeSmallJson(file, JSON.stringify(list), 0o600)
  }
  return {
    set: (key, running) => {
      if (running) alive.set(key, running)
      else alive.delete(key)
      last = last.catch(() => {}).then(write)
      return last
    },
  }
}
