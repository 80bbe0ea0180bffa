/** How the commands that read the past, and those of `skiff net`, reach a cluster (L4): as the administrator of a local one, or as the user of a kubeconfig; and where in the past they read. */
import fs from 'node:fs/promises'
import type { Command } from 'commander'
import type { RevisionHistory } from '#api/debug/revisions'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { formatTime } from '#base/time'
import { ConnectionError, type TlsOptions } from '#client/httpConnection'
import { createHttpTransport, type HttpTransport, type HttpTransportOptions } from '#client/httpTransport'
import { resolveKubeconfig } from '#client/kubeconfig'
import { findKubeconfig } from '#client/kubeconfigFiles'
import type { Transport } from '#client/transport'
import { type CommandContext, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { kubeconfigPlace } from '../kubeconfigFile.ts'
import { isOfYesterday, parseWhen, type When } from './when.ts'

export interface ConnectionFlags {
  readonly cluster?: string
  readonly kubeconfig?: string
  readonly context?: string
}

export function withConnectionFlags(
  command: Command,
  kubeconfig = 'a kubeconfig whose cluster and user are taken instead; its server must keep the history',
): Command {
  return command
    .option('--cluster <name>', 'the cluster, where there are several')
    .option('--kubeconfig <file>', kubeconfig)
    .option('--context <name>', 'the context of that kubeconfig')
}

export interface PastConnection {
  readonly transport: HttpTransport
  readonly namespace: string
  /** For hints: the local cluster. */
  readonly cluster: string | undefined
  /** Calls back at each TLS handshake from now on: how long it took, and its result. */
  onHandshake?(listener: NonNullable<TlsOptions['onHandshake']>): void
}

/** Runs work with a connection, closed afterwards; failures of the connection become errors of the command. */
export async function withConnection<T>(context: CommandContext, flags: ConnectionFlags, work: (connection: PastConnection) => Promise<T>): Promise<T> {
  const connection = await connect(context, flags)
  try {
    return await work(connection)
  } catch (error) {
    throw connectionError(error, connection)
  } finally {
    await connection.transport.close()
  }
}

async function connect(context: CommandContext, flags: ConnectionFlags): Promise<PastConnection> {
  const { options, namespace, cluster } = await chosenConnection(context, flags)
  const handshakes: NonNullable<TlsOptions['onHandshake']>[] = []
  const onHandshake: TlsOptions['onHandshake'] = (...told) => {
    for (const listener of handshakes) listener(...told)
  }
  const transport = createHttpTransport({ ...options, tls: { ...options.tls, onHandshake }, exactIntegers: true })
  return { transport, namespace, cluster, onHandshake: (listener) => void handshakes.push(listener) }
}

export interface ChosenConnection extends Pick<PastConnection, 'namespace' | 'cluster'> {
  readonly options: HttpTransportOptions
}

/** What the flags choose. @throws CommandError */
export async function chosenConnection(
  context: CommandContext,
  { cluster: name, kubeconfig, context: contextName, user }: ConnectionFlags & { readonly user?: string },
): Promise<ChosenConnection> {
  const { clock, local } = context
  if (kubeconfig === undefined) {
    if (contextName !== undefined) throw new CommandError('usage', '--context needs --kubeconfig')
    const cluster = await resolveCluster(context, name)
    const { server, ca, clientCert: cert, clientKey: key } = await context.clusters.kubeconfig(cluster)
    return { options: { server, tls: { ca, cert, key }, clock, userAgent: 'skiff' }, namespace: 'default', cluster }
  }
  if (name !== undefined) throw new CommandError('usage', 'give the cluster or --kubeconfig, not both')
  try {
    const config = await findKubeconfig(kubeconfigPlace(context), kubeconfig)
    const { transport, namespace } = await resolveKubeconfig(
      config,
      { clock, readFile: fs.readFile, plugins: local.plugins },
      { context: contextName, user, userAgent: 'skiff' },
    )
    return { options: transport, namespace, cluster: undefined }
  } catch (error) {
    throw new CommandError('usage', messageOf(error), { cause: error })
  }
}

/** The error of a command for the failure of a connection. */
export function connectionError(error: unknown, { cluster }: Pick<PastConnection, 'cluster'>): unknown {
  if (error instanceof ConnectionError) {
    return new CommandError('unmetPrerequisite', `the cluster does not answer: ${error.message}`, {
      cause: error,
      ...(cluster === undefined ? {} : { hint: `start it with: skiff start ${cluster}` }),
    })
  }
  if (isStatus(error, 'Expired') || isStatus(error, 'Gone')) return new CommandError('notFound', error.message, { cause: error, hint: keepMore(cluster) })
  if (isStatus(error, 'Forbidden') && error.message.includes(revisionsPath))
    return new CommandError('internal', error.message, {
      cause: error,
      hint: 'without a role for this path, name revisions: skiff at REVISION, skiff diff FROM TO',
    })
  if (isStatus(error)) return new CommandError(error.code === 404 ? 'notFound' : 'internal', error.message, { cause: error })
  return error
}

export function keepMore(cluster: string | undefined): string {
  const [stop, start] = cluster === undefined ? ['skiff stop', 'skiff start'] : [`skiff stop ${cluster}`, `skiff start ${cluster}`]
  return `keep more history with --history: ${stop}; ${start} --history DURATION`
}

const revisionsPath = '/skiff/revisions'

export interface Point {
  readonly revision: number
  /** As the user named it. */
  readonly text: string
}

/** The server's times of revisions. @throws CommandError unmetPrerequisite for a server without them, StatusError Forbidden */
export async function revisionsOf(transport: Transport, query: Readonly<Record<string, string>> = {}): Promise<RevisionHistory> {
  try {
    return (await transport.request({ method: 'GET', path: revisionsPath, query })).body as RevisionHistory
  } catch (error) {
    if (!isStatus(error, 'NotFound')) throw error
    throw new CommandError('unmetPrerequisite', 'this server does not say which revision was the newest at which time', {
      hint: 'name a revision',
      cause: error,
    })
  }
}

/** The revision that was the newest then. @throws CommandError notFound, with the oldest time there is and how to keep more */
export async function pointOf({ transport, cluster }: PastConnection, text: string, nowMs: number): Promise<Point> {
  const when = parseWhen(text, nowMs)
  const history = await historyAt(transport, when)
  if (!history) return { revision: (when as { revision: number }).revision, text }
  const revision = when.type === 'revision' ? when.revision : when.type === 'time' ? history.at : history.revision
  if (revision !== undefined && revision > history.revision) throw new CommandError('usage', `${text}: the newest revision is ${history.revision}`)
  if (revision !== undefined && revision >= history.oldestRevision) return { revision, text }
  const { oldestTime, oldestRevision } = history
  const isToCome = when.type === 'time' && isOfYesterday(text, when.atMs, nowMs)
  const meant = isToCome ? `${text} is in the future today, and there is no history of ${text} yesterday` : `there is no history of ${text}`
  const since = oldestTime === undefined ? `revision ${oldestRevision}` : `${oldestTime} (revision ${oldestRevision})`
  throw new CommandError('notFound', `${meant}: the oldest is of ${since}`, isToCome ? {} : { hint: keepMore(cluster) })
}

/** Undefined: the user may not ask, and needs no answer because the revision is known. */
async function historyAt(transport: Transport, when: When): Promise<RevisionHistory | undefined> {
  if (when.type !== 'revision') return revisionsOf(transport, when.type === 'time' ? { time: formatTime(when.atMs) } : {})
  try {
    return await revisionsOf(transport)
  } catch (error) {
    if (isStatus(error, 'Forbidden') || error instanceof CommandError) return undefined
    throw error
  }
}
