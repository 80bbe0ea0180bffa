/** The controllers alone (L5), with kube-controller-manager's flags, in the foreground. Upstream: cmd/kube-controller-manager (v1.36). */
import { secretTokens } from '#apiserver/authn/secretTokens'
import { createControllerManager } from '#controllers/framework/manager'
import { controllers, turnableFeatures } from '#controllers/index'
import { followCertificates } from '../apiserver/fromOptions.ts'
import type { OptionsOf } from '../apiserver/options/readOptions.ts'
import { runComponentProcess } from '../component/componentProcess.ts'
import { configzOf } from '../component/configz.ts'
import { controllerClients } from '../component/controllerClients.ts'
import { controllersConfigz } from '../component/controllersConfigz.ts'
import { runInForeground } from '../component/foreground.ts'
import { hostPaths } from '../component/hostPaths.ts'
import { connection } from '../component/options/connection.ts'
import { controllerOptions } from '../component/options/controllers.ts'
import { elsewhereOptions } from '../component/options/elsewhere.ts'
import { defaultLease, leaderElection, leaseOf } from '../component/options/leaderElection.ts'
import { processGroups } from '../component/options/process.ts'
import { secureServing } from '../component/options/secureServing.ts'
import { signing } from '../component/options/signing.ts'
import { volumeOptions } from '../component/options/volumes.ts'
import { serviceAccountToken } from '../component/serviceAccountClients.ts'

const component = 'kube-controller-manager'
const defaultPort = 10_257
const defaultRate = { qps: 20, burst: 30 }

export const controllerManagerGroups = {
  controllers: controllerOptions,
  elsewhere: elsewhereOptions,
  volumes: volumeOptions,
  signing,
  connection: connection(defaultRate),
  lease: leaderElection(component),
  serving: secureServing(defaultPort),
  ...processGroups,
} as const

type Options = OptionsOf<typeof controllerManagerGroups>

/** Resolves with the exit code. */
export function runControllerManagerProcess(args: readonly string[], signal: AbortSignal): Promise<number> {
  const about = 'The controllers of Skiff, alone in the foreground.'
  return runInForeground({ command: 'controller-manager', about, needs: '--kubeconfig FILE', groups: controllerManagerGroups, run }, args, signal)
}

async function run(options: Options, signal: AbortSignal): Promise<void> {
  const { qps = defaultRate.qps, burst = defaultRate.burst, kubeconfig, master } = options.connection
  const lease = leaseOf(options.lease, defaultLease(component))
  const rateLimit = { qps, burst }
  await runComponentProcess(
    {
      component,
      name: 'controllers',
      options,
      kubeconfig: { file: kubeconfig, master },
      lease,
      turnable: turnableFeatures,
      configz: { 'kubecontrollermanager.config.k8s.io': configuration(options, lease, rateLimit) },
      async act({ access, tools, fence }, leading) {
        for (const warning of options.controllers.warnings) tools.log.warn(warning)
        const own = fence(access.client(component, { rateLimit }))
        const clients = controllerClients({
          component,
          rateLimit,
          open: (userAgent, given) => fence(access.client(userAgent, given)),
          tokenOf: options.controllers.useServiceAccountCredentials ? (account) => serviceAccountToken(own, tools.clock, account) : undefined,
        })
        followCertificates(options.signing.files, () => {}, tools.log, leading)
        const { serviceAccountKey, options: given } = options.controllers
        await createControllerManager({ ...tools, ...clients }, controllers, {
          ...given,
          ...options.volumes,
          featureGates: options.features,
          hostPaths,
          controllers: options.controllers.controllers,
          clusterSigning: options.signing.signing,
          rootCa: given.rootCa ?? access.transport.tls?.ca?.toString(),
          serviceAccountToken: serviceAccountKey === undefined ? undefined : secretTokens(serviceAccountKey),
        }).run(leading)
      },
    },
    signal,
  )
}

function configuration(
  { controllers: { controllers: names, useServiceAccountCredentials, options }, volumes, connection: given, debugging: debug }: Options,
  lease: object,
  rate: object,
) {
  return configzOf({
    generic: {
      clientConnection: { kubeconfig: given.kubeconfig, ...rate },
      controllers: names,
      debugging: { enableProfiling: debug.profiling },
      leaderElection: lease,
    },
    ...controllersConfigz({ ...options, ...volumes }),
    kubeCloudShared: { clusterCIDR: options.clusterCidr, nodeMonitorPeriodMs: options.nodeMonitorPeriodMs, useServiceAccountCredentials },
  })
}
