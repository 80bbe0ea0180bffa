/** The flags with which the commands of the trace choose a cluster (L4): those of the commands that read the past, and --name. */
import type { Command } from 'commander'
import { CommandError } from '../exitCodes.ts'
import { type ConnectionFlags, withConnectionFlags } from '../past/connection.ts'

export interface NamedClusterFlags extends ConnectionFlags {
  readonly name?: string
}

export function withNamedCluster(command: Command): Command {
  return withConnectionFlags(command, 'a kubeconfig whose cluster and user are taken instead').option('--name <cluster>', 'the same as --cluster')
}

export function clusterFlags<T extends NamedClusterFlags>(flags: T): ConnectionFlags {
  const { name, cluster, kubeconfig, context } = flags
  if (name !== undefined && cluster !== undefined && name !== cluster) throw new CommandError('usage', 'give --name or --cluster, not both')
  const chosen = name ?? cluster
  return {
    ...(chosen === undefined ? {} : { cluster: chosen }),
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    ...(context === undefined ? {} : { context }),
  }
}
