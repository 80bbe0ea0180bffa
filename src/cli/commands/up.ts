/** `skiff up [NAME]` (and `start`): a running cluster, a merged kubeconfig, and one command to try (L4). */
import type { Command } from 'commander'
import type { UpOptions } from '../clusterManager.ts'
import { type CliCommand, type CommandContext, checkName, defaultClusterName, progressFor, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { kubeconfigPath, mergeKubeconfig } from '../kubeconfigFile.ts'
import { formatSeconds } from '../progress.ts'
import { applyConfigFile } from '../upConfig.ts'

interface UpFlags {
  nodes?: string
  simulatedNodes?: string
  runtime?: string
  port?: string
  podCidr?: string
  serviceCidr?: string
  kubeApiserverArg?: string[]
  kubeControllerManagerArg?: string[]
  kubeSchedulerArg?: string[]
  v?: string
  kubeconfig?: string | boolean
  quiet?: boolean
  output?: string
}

const runtimes = ['auto', 'containerd', 'simulated'] as const

export const up: CliCommand = {
  name: 'up',
  register: (program, context) => {
    withUpFlags(program.command('up [name]').description('create a cluster, or start it, and wait until it serves'))
      .option('--config <file>', 'a YAML file with these flags as keys; a flag on the command line wins')
      .action(async (name: string | undefined, { config }: { config?: string }, command: Command) => {
        const named = config === undefined ? undefined : await applyConfigFile(command, config)
        await run(context, checkName(name ?? named ?? defaultClusterName), command.opts<UpFlags>())
      })
  },
}

export const start: CliCommand = {
  name: 'start',
  register: (program, context) => {
    withUpFlags(program.command('start [name]').description('start a stopped cluster')).action(async (name: string | undefined, flags: UpFlags) =>
      run(context, await resolveCluster(context, name), flags),
    )
  },
}

function withUpFlags(command: Command): Command {
  return command
    .option('--nodes <n>', 'real nodes, each with its own containerd (default: 1)')
    .option('--simulated-nodes <n>', 'simulated nodes, in addition (default: 0)')
    .option('--runtime <name>', 'auto, containerd or simulated (default: auto)')
    .option('--port <port>', 'port of the API on 127.0.0.1; 0 picks one and keeps it (default: 0)')
    .option('--pod-cidr <range>', 'range of the addresses of pods (default: one that nothing on this host uses)')
    .option('--service-cidr <range>', 'range of the addresses of Services (default: likewise)')
    .option('--kube-apiserver-arg <flag=value>', 'a flag of kube-apiserver, such as audit-log-path=/var/log/audit.log; may be repeated', repeated)
    .option('--kube-controller-manager-arg <flag=value>', 'a flag of kube-controller-manager, such as controllers=-ttl; may be repeated', repeated)
    .option('--kube-scheduler-arg <flag=value>', 'a flag of kube-scheduler: config=/etc/scheduler.yaml; may be repeated', repeated)
    .option('--kubeconfig <file>', 'the kubeconfig to merge into')
    .option('--no-kubeconfig', 'leave every kubeconfig alone')
    .option('-v, --v <n>', 'verbosity of the logs (default: 2)')
    .option('-q, --quiet', 'print nothing but errors')
    .option('-o, --output <format>', 'json: print the status as JSON')
}

function repeated(value: string, before: string[] = []): string[] {
  return [...before, value]
}

async function run(context: CommandContext, name: string, flags: UpFlags): Promise<void> {
  const started = context.clock.monotonicMs()
  const progress = progressFor(context, flags.quiet ?? false)
  const { created, status } = await context.clusters.up(name, parseOptions(flags), progress)
  const contextName = `skiff-${name}`
  if (flags.kubeconfig !== false) {
    const file = await kubeconfigPath({
      flag: typeof flags.kubeconfig === 'string' ? flags.kubeconfig : undefined,
      variable: context.env.KUBECONFIG,
      home: context.home,
    })
    const { previous } = await mergeKubeconfig(file, await context.clusters.kubeconfig(name), context.clock)
    await context.clusters.rememberKubeconfig(name, file, previous)
  }
  if (flags.output === 'json') {
    context.stdout.write(`${JSON.stringify(status, null, 2)}\n`)
    return
  }
  progress.note(
    `\nCluster "${name}" ${created ? 'is up' : 'runs'} (${formatSeconds(context.clock.monotonicMs() - started)}): ${status.server}, context ${contextName}`,
  )
  progress.note(`Try:  kubectl --context ${contextName} get nodes`)
}

function parseOptions(flags: UpFlags): UpOptions {
  const runtime = flags.runtime === undefined ? undefined : runtimes.find((known) => known === flags.runtime)
  if (flags.runtime !== undefined && !runtime) throw new CommandError('usage', `--runtime ${flags.runtime}: expected ${runtimes.join(', ')}`)
  if (flags.output !== undefined && flags.output !== 'json') throw new CommandError('usage', `-o ${flags.output}: expected json`)
  return {
    runtime,
    nodes: wholeNumber('--nodes', flags.nodes, 0, 20),
    simulatedNodes: wholeNumber('--simulated-nodes', flags.simulatedNodes, 0, 10_000),
    port: wholeNumber('--port', flags.port, 0, 65_535),
    podCidr: flags.podCidr,
    serviceCidr: flags.serviceCidr,
    verbosity: wholeNumber('-v', flags.v, 0, 10),
    apiServerArgs: flags.kubeApiserverArg?.map(asFlag),
    controllerManagerArgs: flags.kubeControllerManagerArg?.map(asFlag),
    schedulerArgs: flags.kubeSchedulerArg?.map(asFlag),
  }
}

function asFlag(text: string): string {
  return `--${text.replace(/^--/, '')}`
}

function wholeNumber(flag: string, text: string | undefined, min: number, max: number): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < min || value > max) throw new CommandError('usage', `${flag} ${text}: expected a whole number from ${min} to ${max}`)
  return value
}
