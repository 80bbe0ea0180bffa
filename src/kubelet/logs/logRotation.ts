/**
 * Keeps container logs small (L3): a log that has grown too large is renamed, the runtime opens a new one, the older ones are compressed and the
 * oldest removed. Upstream: kubelet/logs/container_log_manager.go (v1.36).
 */
import { createReadStream, createWriteStream } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { KubeletContext } from '../core/context.ts'
import { compressedSuffix, rotatedBeside, rotationStamp, sortRotated, temporaryOf } from './logFiles.ts'

type RotationContext = Pick<KubeletContext, 'runtime' | 'host' | 'config' | 'clock' | 'log'>

/** Looks at every running container's log again and again until aborted. Simulated nodes have no logs on disk. */
export async function runLogRotation(context: RotationContext, signal: AbortSignal): Promise<void> {
  const { host, config, clock, log } = context
  if (!host || config.containerLogMaxSizeBytes < 0) return
  while (!signal.aborted) {
    await clock.sleep(config.containerLogMonitorIntervalMs, signal).catch(() => {})
    if (signal.aborted) return
    await rotateAll(context).catch((error: unknown) => log.warn('Failed to rotate container logs', { error: String(error) }))
  }
}

/** Rotates logs of running containers only: the others write no more, and their newest log must not be empty. */
async function rotateAll(context: RotationContext): Promise<void> {
  const { runtime, config, log } = context
  const waiting = (await runtime.listContainers()).filter(({ state }) => state === 'CONTAINER_RUNNING')
  const work = async () => {
    for (let container = waiting.shift(); container; container = waiting.shift()) {
      const { id } = container
      await rotateIfGrown(context, id).catch((error: unknown) => log.warn('Failed to rotate log for container', { containerID: id, error: String(error) }))
    }
  }
  await Promise.all(Array.from({ length: config.containerLogMaxWorkers }, work))
}

/** True when it was rotated. */
export async function rotateIfGrown({ runtime, host, config, clock }: RotationContext, id: string): Promise<boolean> {
  const status = await runtime.containerStatus(id)
  if (!status?.logPath || !host) return false
  const path = host.path(status.logPath)
  const size = async () => (await stat(path).catch(() => undefined))?.size
  let bytes = await size()
  if (bytes === undefined) {
    // The file was removed: until it is reopened, the container's lines are lost.
    await runtime.reopenContainerLog(id)
    bytes = await size()
  }
  if (bytes === undefined || bytes < config.containerLogMaxSizeBytes) return false
  const rotated = `${path}.${rotationStamp(clock.now())}`
  // Names have a resolution of one second: a second rotation within it would overwrite the first.
  if ((await rotatedBeside(path)).some((file) => file.startsWith(rotated))) return false
  await tidyRotated(path, config.containerLogMaxFiles)
  await rename(path, rotated)
  try {
    await runtime.reopenContainerLog(id)
  } catch (error) {
    await rename(rotated, path)
    throw error
  }
  return true
}

/** Leaves room for the file that is about to be renamed and the one that follows it. */
async function tidyRotated(path: string, maxFiles: number): Promise<void> {
  const { inUse, unused } = sortRotated(await rotatedBeside(path))
  for (const file of unused) await rm(file, { force: true })
  // Removes the oldest first, because followers of the log read the newer ones.
  const excess = Math.max(0, inUse.length - Math.max(0, maxFiles - 2))
  for (const file of inUse.slice(0, excess)) await rm(file, { force: true })
  for (const file of inUse.slice(excess)) if (!file.endsWith(compressedSuffix)) await compress(file)
}

async function compress(file: string): Promise<void> {
  const temporary = temporaryOf(file)
  try {
    const { mode } = await stat(file)
    await pipeline(createReadStream(file), createGzip(), createWriteStream(temporary, { mode: mode & 0o777 }))
    await rename(temporary, `${file}${compressedSuffix}`)
    await rm(file, { force: true })
  } finally {
    await rm(temporary, { force: true })
  }
}

/** Before a container is removed: its log with all that was renamed away from it. */
export async function removeContainerLogs({ runtime, host }: Pick<KubeletContext, 'runtime' | 'host'>, id: string): Promise<void> {
  if (!host) return
  const path = (await runtime.containerStatus(id))?.logPath
  if (!path) return
  for (const file of [...(await rotatedBeside(host.path(path))), host.path(path)]) await rm(file, { force: true })
}
