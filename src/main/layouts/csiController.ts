/** The controllers for one CSI driver (L5): `skiff csi-controller`, in the foreground. */
import os from 'node:os'
import { abortScope } from '#base/abortScope'
import { randomUid } from '#base/random'
import { inClusterKubeconfig } from '#client/kubeconfigFiles'
import { runCsiControllers } from '#csi/controllers/csiControllers'
import { connectCsi, learnDriver } from '#csi/controllers/driver'
import { logs } from '../apiserver/options/logs.ts'
import type { OptionsOf } from '../apiserver/options/readOptions.ts'
import { openAccess } from '../component/access.ts'
import { runInForeground } from '../component/foreground.ts'
import { connection } from '../component/options/connection.ts'
import { csiControllerOptions, csiDriverOptions, csiLeaseOptions, csiRegistrationOptions } from '../component/options/csiController.ts'
import { machine } from '../package/connect.ts'
import { registerWithKubelet } from './csiRegistration.ts'
import { processTools } from './processTools.ts'

const component = 'csi-controller'
const defaultRate = { qps: 5, burst: 10 }

export const csiControllerGroups = {
  driver: csiDriverOptions,
  registration: csiRegistrationOptions,
  controllers: csiControllerOptions,
  connection: connection(defaultRate),
  lease: csiLeaseOptions,
  logs,
} as const

/** Resolves with the exit code after the signal has stopped the controllers, or immediately for invalid flags. */
export function runCsiController(args: readonly string[], signal: AbortSignal): Promise<number> {
  const about = 'The controllers for one CSI driver: they create, attach, resize and delete its volumes, as the driver can, in the foreground.'
  return runInForeground({ command: component, about, needs: '--csi-address PATH', groups: csiControllerGroups, run }, args, signal)
}

async function run(
  { driver, registration, controllers, connection: given, lease, logs: logSettings }: OptionsOf<typeof csiControllerGroups>,
  signal: AbortSignal,
): Promise<void> {
  const tools = processTools(component, logSettings)
  const access = await openAccess(given.kubeconfig, given.master, tools)
  const { qps = defaultRate.qps, burst = defaultRate.burst } = given
  const { capacity } = controllers
  const identity = `${os.hostname()}_${randomUid(tools.random)}`
  const settings = {
    connection: connectCsi(driver.address),
    options: {
      ...controllers,
      timeoutMs: driver.timeoutMs,
      identity,
      capacity: capacity && { ...capacity, namespace: capacity.namespace || (await ownNamespace()) },
    },
    // A call for a Lease must not wait behind the controllers' own, and one that hangs must leave time for another.
    lease: lease && {
      ...lease,
      identity,
      namespace: lease.namespace || (await ownNamespace()),
      client: access.client(`${component}/leader-election`, { requestTimeoutMs: lease.renewDeadlineMs / 2 }),
    },
  }
  using scope = abortScope(signal)
  try {
    const { name } = await learnDriver(settings.connection, tools, scope.signal)
    await using _registration = registration && (await registerWithKubelet({ ...registration, name }, tools.log, scope))
    await runCsiControllers({ ...tools, client: access.client(component, { rateLimit: { qps, burst } }) }, settings, scope.signal)
    scope.signal.throwIfAborted()
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    await access.close()
  }
}

async function ownNamespace(): Promise<string> {
  const config = await inClusterKubeconfig(machine)
  return config?.contexts?.[0]?.context?.namespace || 'default'
}
