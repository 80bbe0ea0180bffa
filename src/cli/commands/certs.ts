/**
 * `skiff certs check|renew|upload [NAME]`: until when a cluster's certificates last, new ones before that, and a copy for a further control plane (L4).
 * Upstream: kubeadm certs, kubeadm init phase upload-certs.
 */
import { randomBytes } from 'node:crypto'
import { humanDuration } from '#api/machinery/duration'
import { formatTime } from '#base/time'
import { type CliCommand, type CommandContext, progressFor, resolveCluster } from '../command.ts'
import { printFound } from '../output.ts'
import { givenSecret } from '../secretFile.ts'
import { table } from './status.ts'
import { controlPlaneCommand, createToken } from './token.ts'

/** As long as the certificates are in the cluster. */
const tokenTtlMs = 2 * 3_600_000

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
    command
      .command('upload [name]')
      .description('put the authorities and keys into the cluster for two hours, encrypted, and print the key: a further control plane joins with it')
      .option('--certificate-key <key>', 'encrypt them with this key, of 64 hexadecimal digits (default: a new one)')
      .option('--certificate-key-file <file>', 'a file with that key, or - for standard input: every user of the machine can read the arguments of a command')
      .option('--print-join-command', 'make a token, and print the whole command to join with instead of the key')
      .action(async (name: string | undefined, flags: UploadFlags) => upload(context, await resolveCluster(context, name), flags))
  },
}

interface UploadFlags {
  readonly certificateKey?: string
  readonly certificateKeyFile?: string
  readonly printJoinCommand?: boolean
}

async function upload(context: CommandContext, cluster: string, { certificateKey, certificateKeyFile, printJoinCommand }: UploadFlags): Promise<void> {
  const key = (await givenSecret('certificate-key', certificateKey, certificateKeyFile)) ?? randomBytes(32).toString('hex')
  await context.clusters.uploadCertificates(cluster, key)
  if (printJoinCommand) {
    const token = await createToken(context, cluster, tokenTtlMs)
    context.stdout.write(`${await controlPlaneCommand(context, cluster, token, key)}\n`)
    return
  }
  context.stderr.write(
    `The command for the other machine: skiff token create --cluster ${cluster} --print-join-command --certificate-key-file -, with the key in standard input\n`,
  )
  context.stdout.write(`${key}\n`)
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
