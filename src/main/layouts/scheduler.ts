/** The scheduler alone (L5), with kube-scheduler's flags, in the foreground. Upstream: cmd/kube-scheduler (v1.36). */
import { type KubeSchedulerConfiguration, schedulerConfigOf } from '#scheduler/config/configuration'
import { createExplainer } from '#scheduler/explain/explainer'
import type { OptionsOf } from '../apiserver/options/readOptions.ts'
import { runComponentProcess } from '../component/componentProcess.ts'
import { configzOf } from '../component/configz.ts'
import { runInForeground } from '../component/foreground.ts'
import { connection } from '../component/options/connection.ts'
import { leaderElection, leaseOf } from '../component/options/leaderElection.ts'
import { processGroups } from '../component/options/process.ts'
import { schedulerOptions } from '../component/options/scheduler.ts'
import { secureServing } from '../component/options/secureServing.ts'
import { createPodResources } from '../component/podResourcesPage.ts'
import { schedulerComponent } from '../component/schedulerComponent.ts'
import { schedulingPage } from '../component/schedulingPage.ts'

const component = 'kube-scheduler'
const defaultPort = 10_259

export const schedulerGroups = {
  scheduler: schedulerOptions,
  connection: connection({ qps: 50, burst: 100 }),
  lease: leaderElection(component),
  serving: secureServing(defaultPort),
  ...processGroups,
} as const

type Options = OptionsOf<typeof schedulerGroups>

/** Resolves with the exit code. */
export function runSchedulerProcess(args: readonly string[], signal: AbortSignal): Promise<number> {
  const program = { command: 'scheduler', about: 'The scheduler of Skiff, alone in the foreground.', needs: '--kubeconfig FILE', groups: schedulerGroups, run }
  return runInForeground(program, args, signal)
}

async function run(options: Options, signal: AbortSignal): Promise<void> {
  const configuration = effectiveConfiguration(options)
  const { clientConnection, enableProfiling, leaderElection: lease } = configuration
  const { debugging: given } = options
  const explainer = createExplainer()
  const podResources = createPodResources()
  await runComponentProcess(
    {
      component,
      pages: [schedulingPage(explainer), podResources.page],
      name: 'scheduler',
      options: { ...options, debugging: { ...given, profiling: enableProfiling } },
      kubeconfig: { file: clientConnection.kubeconfig, master: options.connection.master },
      lease,
      configz: { componentconfig: configzOf(configuration) },
      async act({ access, tools, fence }, leading) {
        for (const warning of options.scheduler.warnings) tools.log.warn(warning)
        const client = fence(access.client(`${component}/scheduler`, { rateLimit: clientConnection }))
        await schedulerComponent(client, { ...tools, explainer, podResources }, schedulerConfigOf(configuration, options.scheduler.plugins)).run(leading)
      },
    },
    signal,
  )
}

/** As upstream: with a file, flags of leader election override it and other flags that say the same count for nothing. */
function effectiveConfiguration({ scheduler, connection: flags, lease, debugging: { profiling } }: Options): KubeSchedulerConfiguration {
  const { configuration, isFromFile } = scheduler
  const { clientConnection } = configuration
  const leaderElectionOf = leaseOf(lease, configuration.leaderElection)
  if (isFromFile) return { ...configuration, leaderElection: leaderElectionOf }
  return {
    ...configuration,
    leaderElection: leaderElectionOf,
    enableProfiling: profiling,
    clientConnection: { kubeconfig: flags.kubeconfig, qps: flags.qps ?? clientConnection.qps, burst: flags.burst ?? clientConnection.burst },
  }
}
