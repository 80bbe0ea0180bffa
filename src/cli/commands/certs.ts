/** `skiff certs check|renew [NAME]`: until when a cluster's certificates last, and new ones before that (L4). Upstream: kubeadm certs. */
import { humanDuration } from '#api/machinery/duration'
import { formatTime } from '#base/time'
import { type CliCommand, type CommandContext, progressFor, resolveCluster } from '../command.ts'
import { printFound } from '../output.ts'
import { table } from './status.ts'

export const certs: CliCommand = {
  name: 'certs',
  register: (program, context) => {
    const command = program.command('certs').description('the certificates of a cluster; they are renewed by themselves while it runs')
    command
      .command('check [name]')
      .description('list them with the time they have left')
      .action(async (name: string | undefined) => check(context, await resolveCluster(context, name)))
    command
      .command('renew [name]')
      .description('renew all but the authorities now; a running cluster takes them up without a restart')
      .option('-q, --quiet', 'print nothing but errors')
      .action(async (name: string | undefined, flags: { quiet?: boolean }) => {
        const cluster = await resolveCluster(context, name)
        await context.clusters.renewCertificates(cluster, progressFor(context, flags.quiet ?? false))
      })
  },
}

async function check(context: CommandContext, name: string): Promise<void> {
  const found = [...(await context.clusters.certificates(name))].sort((a, b) => Number(a.isAuthority) - Number(b.isAuthority))
  const rows = found.map(({ name: certificate, expiresMs, isAuthority, authority }) => [
    certificate,
    formatTime(expiresMs),
    humanDuration(expiresMs - context.clock.now()),
    isAuthority ? '' : authority,
  ])
  printFound(context, 'text', [['CERTIFICATE', 'EXPIRES', 'RESIDUAL TIME', 'AUTHORITY'], ...rows], table)
}
