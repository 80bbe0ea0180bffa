/**
 * `skiff at WHEN [COMMAND...]`: a read-only API of the past on localhost (L4), for one command of kubectl, for another program, or until Ctrl-C for all that
 * read the kubeconfig whose path is printed.
 */
import path from 'node:path'
import type { CliCommand, CommandContext } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { type ConnectionFlags, keepMore, type PastConnection, pointOf, withConnection, withConnectionFlags } from '../past/connection.ts'
import { servePast } from '../past/pastServer.ts'
import { writeKubeconfigOf } from '../past/servedKubeconfig.ts'

export const at: CliCommand = {
  name: 'at',
  register: (program, context) => {
    withConnectionFlags(
      program
        .command('at <when> [command...]')
        .description('read a cluster as it was: skiff at -10m get pods -A; WHEN is 14:03, -10m, 2026-01-31T14:03:00Z or a revision')
        .addHelpText(
          'after',
          '\nskiff at WHEN SUBCOMMAND... runs kubectl, skiff at WHEN -- PROGRAM... another program, skiff at WHEN serves until Ctrl-C.\nThe flags of skiff come before WHEN, as in: skiff at --cluster lab -10m get pods',
        ),
    )
      // -10m is no flag, and the flags behind it are the program's.
      .allowUnknownOption()
      .passThroughOptions()
      .action((_when: string, _command: string[], flags: ConnectionFlags, { args }: { readonly args: readonly string[] }) => {
        const [when = '', ...words] = args[0] === '--' ? args.slice(1) : args
        refuseConnectionFlags(words)
        return withConnection(context, flags, (connection) => travel(context, connection, when, words))
      })
  },
}

const connectionFlags: ReadonlySet<string> = new Set(['--cluster', '--context', '--kubeconfig'])

/** Behind WHEN they are kubectl's: two of them name nothing that is in the kubeconfig of the past, and --kubeconfig leads to the present. */
function refuseConnectionFlags(words: readonly string[]): void {
  const own = words.includes('--') ? words.slice(0, words.indexOf('--')) : words
  const flag = own.map((word) => word.split('=', 1)[0] as string).find((name) => connectionFlags.has(name))
  if (flag !== undefined) throw new CommandError('usage', `${flag} comes before WHEN: skiff at ${flag} … WHEN ${own[0]} …`)
}

async function travel(context: CommandContext, connection: PastConnection, when: string, words: readonly string[]): Promise<void> {
  const [point, certificate] = await Promise.all([pointOf(connection, when, context.clock.now()), context.local.certificate()])
  const server = await servePast({ transport: connection.transport, revision: point.revision, certificate })
  try {
    const directory = context.local.directory()
    const { url, token } = server
    const place = { name: `revision-${point.revision}`, namespace: connection.namespace }
    const kubeconfig = await writeKubeconfigOf(directory, { url, token, ca: certificate.ca }, place)
    if (words.length === 0) return await serveUntilInterrupted(context, kubeconfig, point.revision)
    const [program = '', ...args] = words[0] === '--' ? words.slice(1) : ['kubectl', ...words]
    if (program === '') throw new CommandError('usage', 'at WHEN --: expected a program')
    // kubectl keeps what it discovers by host and port, and the port is another one each time.
    const code = await context.local.run(program, args, { KUBECONFIG: kubeconfig, KUBECACHEDIR: path.join(directory, 'cache') })
    if (code === undefined) throw new CommandError('unmetPrerequisite', `${program} is not on the PATH`)
    if (server.hasExpired) context.stderr.write(`hint: ${keepMore(connection.cluster)}\n`)
    context.local.exitWith(code)
  } finally {
    await server.close()
  }
}

async function serveUntilInterrupted({ stdout, stderr }: CommandContext, kubeconfig: string, revision: number): Promise<never> {
  stderr.write(`The cluster at revision ${revision}, read-only, until Ctrl-C. Use it with: export KUBECONFIG=${kubeconfig}\n`)
  stdout.write(`${kubeconfig}\n`)
  // The signal ends the process.
  return new Promise<never>(() => {})
}
