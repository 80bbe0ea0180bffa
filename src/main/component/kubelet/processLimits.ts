/**
 * What a kubelet asks of the machine for its own process (L5): how late the kernel may kill it, how many files it may have open; and whether the node may
 * have swap. Upstream: cmd/kubelet/app/server.go run, RunKubelet, kubelet/cm/container_manager_linux.go (v1.36).
 */
import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import { promisify } from 'node:util'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import type { ConfigurationDocument } from '#kubelet/configuration/document'

/** A limit that cannot be set is logged and skipped, as upstream. */
export async function applyProcessLimits({ oomScoreAdj, maxOpenFiles }: ConfigurationDocument, log: Logger): Promise<void> {
  const failed = (what: string) => (error: unknown) => log.warn(what, { error: messageOf(error) })
  await fs.writeFile('/proc/self/oom_score_adj', String(oomScoreAdj)).catch(failed('Failed to apply the OOM score adjustment of oomScoreAdj'))
  const limit = ['--pid', String(process.pid), `--nofile=${maxOpenFiles}:${maxOpenFiles}`]
  await promisify(execFile)('prlimit', limit).catch(failed('Failed to set the limit of maxOpenFiles'))
}

/**
 * A node with swap is refused when its configuration sets failSwapOn, and gives a warning where failSwapOn is only the default: upstream refuses both.
 * @param swaps the text of /proc/swaps
 * @returns a warning, if any. @throws Error
 */
export function checkSwap(swaps: string, document: ConfigurationDocument, given: ConfigurationDocument): string | undefined {
  const used = swaps.trim().split('\n').slice(1)
  if (used.length === 0 || document.failSwapOn !== true) return undefined
  const fault = 'running with swap on is not supported, please disable swap or set --fail-swap-on flag to false'
  if (given.failSwapOn === true) throw new Error(`${fault}. /proc/swaps contained: [${used.join(' ')}]`)
  return `${fault}; it runs all the same, because failSwapOn was not set explicitly`
}
