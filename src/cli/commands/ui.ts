/** `skiff ui`: a page in the browser that shows and changes a cluster, served on localhost until Ctrl-C, with the rights of the user who logs in to it (L4). */
import { messageOf } from '#base/messageOf'
import { ConnectionError } from '#client/httpConnection'
import { createHttpTransport, type HttpTransportOptions } from '#client/httpTransport'
import type { CliCommand, CommandContext } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { chosenConnection, connectionError } from '../past/connection.ts'

interface Flags {
  readonly name?: string
  readonly port: string
  readonly printUrl?: boolean
  readonly kubeconfig?: string
  readonly context?: string
  readonly user?: string
}

export const ui: CliCommand = {
  name: 'ui',
  register: (program, context) => {
    program
      .command('ui [bundle]')
      .description('serve a page in the browser that shows and changes a cluster, or shows a file of skiff bundle, on 127.0.0.1 until Ctrl-C')
      .option('--name <cluster>', 'the cluster, where there are several')
      .option('--port <port>', 'the port of the page; 0 is any free one', '0')
      .option('--print-url', 'print the address and nothing else')
      .option('--kubeconfig <file>', 'a kubeconfig whose cluster and user are taken instead')
      .option('--context <name>', 'the context of that kubeconfig')
      .option('--user <name>', 'the user of that kubeconfig')
      .action((bundle: string | undefined, flags: Flags) => serve(context, bundle, flags))
  },
}

/** @throws CommandError unmetPrerequisite when the cluster does not answer */
async function checkAnswers(options: HttpTransportOptions, cluster: string | undefined): Promise<void> {
  const transport = createHttpTransport(options)
  try {
    await transport.request({ method: 'GET', path: '/version' })
  } catch (error) {
    if (!(error instanceof ConnectionError)) return
    throw connectionError(error, { cluster })
  } finally {
    await transport.close()
  }
}

interface Shown {
  readonly options: HttpTransportOptions
  /** As the page names the cluster. */
  readonly title: string
  readonly namespace: string
  /** When the bundle was taken; absent: a cluster. */
  readonly takenMs?: number
}

async function clusterShown(context: CommandContext, { name, ...flags }: Pick<Flags, 'name' | 'kubeconfig' | 'context' | 'user'>): Promise<Shown> {
  if (flags.user !== undefined && flags.kubeconfig === undefined) throw new CommandError('usage', '--user needs --kubeconfig')
  const { options, namespace, cluster } = await chosenConnection(context, { ...flags, ...(name === undefined ? {} : { cluster: name }) })
  await checkAnswers(options, cluster)
  return { options, namespace, title: cluster ?? new URL(options.server).host }
}

async function bundleShown(context: CommandContext, file: string, { name, kubeconfig }: Flags): Promise<Shown> {
  if (name !== undefined || kubeconfig !== undefined) throw new CommandError('usage', 'give a bundle or a cluster, not both')
  const { url, token, ca, index } = await context.bundles.serve(file)
  const options = { server: url, tls: { ca }, bearerToken: token, clock: context.clock }
  return { options, namespace: 'default', takenMs: index.takenMs, title: `${index.cluster} of ${new Date(index.takenMs).toISOString().slice(0, 19)}Z (bundle)` }
}

async function serve(context: CommandContext, bundle: string | undefined, flags: Flags): Promise<void> {
  const { printUrl } = flags
  const port = Number(flags.port)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new CommandError('usage', `--port ${flags.port}: expected 0 to 65535`)
  // Another thread unpacks a bundle, or the cluster answers, while this one reads the code of the page's server.
  const loading = Promise.all([import('#ui/server/front'), import('../page/answers.ts')])
  const { options, title, namespace, takenMs } = bundle === undefined ? await clusterShown(context, flags) : await bundleShown(context, bundle, flags)
  const { server, tls: { cert: _, key: __, ...tls } = {}, clock } = options
  const [{ startFront }, { pageAnswers }] = await loading
  const front = await startFront({
    clock,
    port,
    assets: context.local.pageFolder,
    cluster: { name: title, server, namespace, takenMs },
    transport: createHttpTransport(options),
    transportAs: (bearerToken) => createHttpTransport({ server, tls, clock, bearerToken }),
    computed: pageAnswers,
  }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') throw new CommandError('conflict', `port ${port} is in use`, { hint: 'choose another --port' })
    throw new CommandError('internal', `the page cannot be served: ${messageOf(error)}`, { cause: error })
  })
  if (!printUrl) context.stderr.write('The page is open until Ctrl-C. This address logs in once, within 15 minutes:\n')
  context.stdout.write(`${front.newUrl()}\n`)
  // The signal ends the process.
  return new Promise<never>(() => {})
}
