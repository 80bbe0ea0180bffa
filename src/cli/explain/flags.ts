/** The flags with which the commands of the trace choose a cluster (L4): those of the commands that read the past, for which no history must be kept. */
import type { Command } from 'commander'
import { withConnectionFlags } from '../past/connection.ts'

export function withNamedCluster(command: Command): Command {
  return withConnectionFlags(command, 'a kubeconfig whose cluster and user are taken instead')
}
