/** The host path CSI driver (L5): `skiff csi-hostpath`, in the foreground, for one node. */

import { aborted } from '#base/orAborted'
import { openHostPathDriver } from '#csi/hostpath/driver'
import { serveCsi } from '#csi/server/serveCsi'
import { createExec } from '#host/exec'
import { UsageError } from '../apiserver/options/flags.ts'
import { logs } from '../apiserver/options/logs.ts'
import type { OptionsOf } from '../apiserver/options/readOptions.ts'
import { runInForeground } from '../component/foreground.ts'
import { csiHostPathOptions } from '../component/options/csiHostPath.ts'
import { processTools } from './processTools.ts'

const groups = { driver: csiHostPathOptions, logs } as const

/** Resolves with the exit code after the signal has stopped the driver, or immediately for invalid flags. */
export function runCsiHostPath(args: readonly string[], signal: AbortSignal): Promise<number> {
  const about = 'A CSI driver whose volumes are directories and files of this node, in the foreground.'
  return runInForeground({ command: 'csi-hostpath', about, needs: '--endpoint unix:///PATH --node-id NAME --state-dir DIR', groups, run: serve }, args, signal)
}

async function serve({ driver: { endpoint, ...settings }, logs: logSettings }: OptionsOf<typeof groups>, signal: AbortSignal): Promise<void> {
  const { clock, log } = processTools('csi-hostpath', logSettings)
  const driver = await openHostPathDriver({ ...settings, exec: createExec(), now: () => clock.now() })
  const server = await serveCsi(driver, endpoint).catch((error: Error) => {
    throw new UsageError([`--endpoint: ${error.message}`])
  })
  log.info('Serving CSI', { endpoint, driver: driver.name, node: settings.nodeId })
  await aborted(signal)
  await server.close()
}
