/** `skiff history KIND NAME`: the versions of one object that the store still has, with the time, the manager and the changed fields of each (L4). */
import { describeChanges } from '#api/debug/fieldChanges'
import type { CliCommand, CommandContext } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { printFound } from '../output.ts'
import { type ConnectionFlags, keepMore, type PastConnection, revisionsOf, withConnection, withConnectionFlags } from '../past/connection.ts'
import { type Kind, kindNamed, listableKinds, nameOf } from '../past/objects.ts'
import { type ShownVersion, shownHistory } from '../past/shownHistory.ts'

interface Flags extends ConnectionFlags {
  readonly namespace?: string
  readonly limit: string
  readonly showSecrets?: boolean
  readonly output?: string
}

const mostVersions = 500

export const history: CliCommand = {
  name: 'history',
  register: (program, context) => {
    withConnectionFlags(program.command('history <kind> [name]').description('show how an object changed: the time, the writer and the fields of each version'))
      .option('-n, --namespace <namespace>', 'of the object (default: default)')
      .option('--limit <n>', `versions that are shown, the newest first, at most ${mostVersions}`, '50')
      .option('--show-secrets', 'print the values of Secrets')
      .option('-o, --output <format>', 'json')
      .action((kind: string, name: string | undefined, flags: Flags) =>
        withConnection(context, flags, (connection) => show(context, connection, kind, name, flags)),
      )
  },
}

async function show(context: CommandContext, connection: PastConnection, first: string, second: string | undefined, flags: Flags): Promise<void> {
  const [kindText = '', name = ''] = second === undefined ? first.split('/', 2) : [first, second]
  if (name === '') throw new CommandError('usage', 'history: expected KIND NAME or KIND/NAME')
  if (flags.output !== undefined && flags.output !== 'json') throw new CommandError('usage', `-o ${flags.output}: expected json`)
  const limit = Number(flags.limit)
  if (!Number.isInteger(limit) || limit < 1 || limit > mostVersions) throw new CommandError('usage', `--limit ${flags.limit}: expected 1 to ${mostVersions}`)
  const { transport } = connection
  const [revisions, kinds] = await Promise.all([revisionsOf(transport), listableKinds(transport)])
  const kind = kindNamed(kinds, kindText)
  const namespace = flags.namespace ?? connection.namespace
  const { shown, isCut } = await shownHistory(transport, { kind, namespace, name, limit, showSecrets: flags.showSecrets ?? false }, revisions)
  if (shown.length === 0) throw missing(connection, kind, name, revisions.oldestRevision)
  printFound(context, flags.output === 'json' ? 'json' : 'text', shown, describe)
  if (isCut && flags.output !== 'json') context.stderr.write(`${olderVersions(connection, shown.length === limit)}\n`)
}

function olderVersions({ cluster }: PastConnection, isLimited: boolean): string {
  return isLimited ? 'There are older versions: raise --limit' : `Older versions are not there: ${keepMore(cluster)}`
}

function missing({ cluster }: PastConnection, kind: Kind, name: string, oldest: number): CommandError {
  return new CommandError('notFound', `${nameOf(kind)} "${name}" is not in the history, which begins at revision ${oldest}`, { hint: keepMore(cluster) })
}

const words: Readonly<Record<ShownVersion['type'], string>> = {
  created: 'created',
  updated: 'updated',
  deleted: 'deleted',
  oldest: 'the oldest version there is',
}

function describe(shown: readonly ShownVersion[]): string {
  return shown
    .map(({ revision, time, type, by, changes }) =>
      [
        `revision ${revision}   ${time ?? 'time unknown'}   ${words[type]}${by === undefined ? '' : ` by ${by}`}`,
        ...describeChanges(changes).map((line) => `  ${line}`),
      ]
        .map((line) => `${line}\n`)
        .join(''),
    )
    .join('')
}
