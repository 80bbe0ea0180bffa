/** `skiff simulate load`: drives a load that a file describes, and reports percentiles (L4). */
import fs from 'node:fs/promises'
import { simulatedFailure } from '#api/helpers/nodes'
import { noLog } from '#base/log'
import { messageOf } from '#base/messageOf'
import { createClient } from '#client/clientOverTransport'
import { type CliCommand, type CommandContext, progressFor } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { withNamedCluster } from '../explain/flags.ts'
import type { LoadPlan } from '../load/loadPlan.ts'
import { loadLabel } from '../load/loadTargets.ts'
import { printFound } from '../output.ts'
import { type ConnectionFlags, withConnection } from '../past/connection.ts'
import { checkMemory } from '../simulatedMemory.ts'

interface Flags extends ConnectionFlags {
  readonly output?: string
  readonly keep?: boolean
  readonly quiet?: boolean
}

export const simulate: CliCommand = {
  name: 'simulate',
  register: (program, context) => {
    const group = program.command('simulate').description('load for the tests of schedulers, autoscalers and controllers')
    withNamedCluster(
      group
        .command('load <file>')
        .description('create the Deployments that a YAML file describes, change them at its rates, remove them, and report how long everything took'),
    )
      .option('--keep', 'leave the namespaces of the load')
      .option('-o, --output <format>', 'json')
      .option('-q, --quiet', 'print only the report')
      .action((file: string, flags: Flags) => load(context, file, flags))
  },
}

async function load(context: CommandContext, file: string, flags: Flags): Promise<void> {
  const text = await fs.readFile(file === '-' ? '/dev/stdin' : file, 'utf8').catch((error) => {
    throw new CommandError('notFound', `${file}: ${messageOf(error)}`)
  })
  const [{ podsOf, readLoadPlan }, { runLoad }, { describeLoad }] = await Promise.all([
    import('../load/loadPlan.ts'),
    import('../load/runLoad.ts'),
    import('../load/loadReport.ts'),
  ])
  const plan = readLoadPlan(file, text)
  const report = await withConnection(context, flags, ({ transport, cluster }) => {
    // The server of another cluster has another host's memory.
    if (cluster !== undefined) checkMemory({ pods: podsOf(plan) }, context.availableMemory())
    const deps = { client: createClient(transport), clock: context.clock, log: noLog, progress: progressFor(context, flags.quiet ?? false) }
    context.ifInterrupted(remainsOf(plan))
    return runLoad(deps, plan, flags.keep ?? false, new AbortController().signal)
  })
  printFound(context, flags.output === 'json' ? 'json' : 'text', report, describeLoad)
}

function remainsOf({ name, churn }: LoadPlan): string {
  const nodes = churn.rates.nodeFlap === undefined ? '' : `, and kubectl annotate nodes --all ${simulatedFailure}- lets failed nodes recover`
  return `the load is left: kubectl delete namespaces -l ${loadLabel}=${name} removes it${nodes}`
}
