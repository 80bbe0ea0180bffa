/** The host path CSI driver (L5): `skiff csi-hostpath`, in the foreground, for one node. */
import path from 'node:path'
import { abortScope } from '#base/abortScope'
import { aborted } from '#base/orAborted'
import { openHostPathDriver } from '#csi/hostpath/driver'
import { serveCsi, socketPathOf } from '#csi/server/serveCsi'
import { createExec } from '#host/exec'
import { lockFile } from '#host/fileLock'
import { makePrivateDirectory } from '#host/files'
import { UsageError } from '../../apiserver/options/flags.ts'
import { logs } from '../../apiserver/options/logs.ts'
import type { OptionsOf } from '../../apiserver/options/readOptions.ts'
import { runInForeground } from '../../component/foreground.ts'
import { csiHostPathOptions } from '../../component/options/csiHostPath.ts'
import { registerWithKubelet } from '../csiRegistration.ts'
import { processTools } from '../processTools.ts'

const groups = { driver: csiHostPathOptions, logs } as const

/** Resolves with the exit code after the signal has stopped the driver, or immediately for invalid flags. */
export function runCsiHostPath(args: readonly string[], signal: AbortSignal): Promise<number> {
  const about = 'A CSI driver whose volumes are directories and files of this node, in the foreground.'
  return runInForeground({ command: 'csi-hostpath', about, needs: '--endpoint unix:///PATH --node-id NAME --state-dir DIR', groups, run: serve }, args, signal)
}

async function serve({ driver: { endpoint, registry, driver: settings }, logs: logSettings }: OptionsOf<typeof groups>, signal: AbortSignal): Promise<void> {
  const { clock, log } = processTools('csi-hostpath', logSettings)
  const { directory } = settings
  await makePrivateDirectory(directory)
  // The driver deletes unlisted content at start; another process on this directory may still be writing it.
  await using _lock = atEnd(
    await lockFile(path.join(directory, 'lock'), {
      waitMs: 0,
      refuse: (pid) => new UsageError([`--state-dir: ${directory} is used by another driver${pid === undefined ? '' : `, process ${pid}`}`]),
    }),
  )
  const driver = await openHostPathDriver({ ...settings, exec: createExec(), now: () => clock.now() })
  const server = await serveCsi(driver, endpoint).catch((error: Error) => {
    throw new UsageError([`--endpoint: ${error.message}`])
  })
  await using _server = atEnd(server.close)
  log.info('Serving CSI', { endpoint, driver: driver.name, node: settings.nodeId })
  using scope = abortScope(signal)
  const place = { name: driver.name, endpoint: socketPathOf(endpoint), registry }
  await using _registration = registry === '' ? undefined : await registerWithKubelet(place, log, scope)
  await aborted(scope.signal)
  if (!signal.aborted) throw scope.signal.reason
}

/** Closes it at the end of the block, after what was opened later. */
const atEnd = (close: () => void | Promise<void>): AsyncDisposable => ({ [Symbol.asyncDispose]: async () => close() })
