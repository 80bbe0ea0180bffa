/** `skiff history KIND NAME`: the versions of one object that the store still has, with the time, the manager and the changed fields of each (L4). */
import { isStatus } from '#api/machinery/status'
import type { CliCommand, CommandContext } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { printFound } from '../output.ts'
import { type ConnectionFlags, keepMore, type PastConnection, revisionsOf, withConnection, withConnectionFlags } from '../past/connection.ts'
import { describeChanges, type FieldChange, fieldChanges } from '../past/fieldChanges.ts'
import { type Kind, kindNamed, listableKinds, nameOf } from '../past/objects.ts'
import { managerOf, type Version, versionsOf } from '../past/versions.ts'

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
    withConnectionFlags(program.command('history <kind> [name]').description('show how an object changed: when, by whom, and each field'))
      .option('-n, --namespace <namespace>', 'of the object (default: default)')
      .option('--limit <n>', `versions that are shown, the newest first, at most ${mostVersions}`, '50')
      .option('--show-secrets', 'print the values of Secrets')
      .option('-o, --output <format>', 'json')
      .action((kind: string, name: string | undefined, flags: Flags) =>
        withConnection(context, flags, (connection) => show(context, connection, kind, name, flags)),
      )
  },
}

interface Shown {
  readonly revision: number
  readonly time: string | null
  readonly type: 'created' | 'updated' | 'deleted' | 'oldest'
  readonly by?: string | undefined
  readonly changes: readonly FieldChange[]
}

async function show(context: CommandContext, connection: PastConnection, first: string, second: string | undefined, flags: Flags): Promise<void> {
  const [kindText = '', name = ''] = second === undefined ? first.split('/', 2) : [first, second]
  if (name === '') throw new CommandError('usage', 'history: expected KIND NAME or KIND/NAME')
  if (flags.output !== undefined && flags.output !== 'json') throw new CommandError('usage', `-o ${flags.output}: expected json`)
  const limit = Number(flags.limit)
  if (!Number.isInteger(limit) || limit < 1 || limit > mostVersions) throw new CommandError('usage', `--limit ${flags.limit}: expected 1 to ${mostVersions}`)
  const { transport } = connection
  const [{ revision: newest, oldestRevision: oldest }, kinds] = await Promise.all([revisionsOf(transport), listableKinds(transport)])
  const kind = kindNamed(kinds, kindText)
  const namespace = flags.namespace ?? connection.namespace
  const found = await versionsOf(transport, { kind, namespace, name, oldest, newest, limit })
  if (found.versions.length === 0) throw missing(connection, kind, name, oldest)
  const times = await timesOf(connection, found.versions)
  const shown = found.versions.map((version): Shown => {
    const type = typeOf(version, oldest)
    const changes = type === 'updated' ? fieldChanges(version.before, version.object, { showSecrets: flags.showSecrets ?? false }) : []
    return { revision: version.revision, time: times[version.revision] ?? null, type, by: managerOf(version), changes }
  })
  printFound(context, flags.output === 'json' ? 'json' : 'text', shown, describe)
  if (found.isCut && flags.output !== 'json') context.stderr.write(`${olderVersions(connection, found.versions.length === limit)}\n`)
}

function olderVersions({ cluster }: PastConnection, isLimited: boolean): string {
  return isLimited ? 'There are older versions: raise --limit' : `Older versions are not there: ${keepMore(cluster)}`
}

function missing({ cluster }: PastConnection, kind: Kind, name: string, oldest: number): CommandError {
  return new CommandError('notFound', `${nameOf(kind)} "${name}" is not in the history, which begins at revision ${oldest}`, { hint: keepMore(cluster) })
}

async function timesOf({ transport }: PastConnection, versions: readonly Version[]): Promise<Readonly<Record<string, string | null>>> {
  try {
    return (await revisionsOf(transport, { revisions: versions.map(({ revision }) => revision).join(',') })).times ?? {}
  } catch (error) {
    if (isStatus(error, 'Forbidden')) return {}
    throw error
  }
}

/** `oldest`: the state before it is compacted, so that it may have been created or updated. */
function typeOf({ revision, object, before }: Version, oldest: number): Shown['type'] {
  if (!object) return 'deleted'
  if (before) return 'updated'
  return revision > oldest ? 'created' : 'oldest'
}

const words: Readonly<Record<Shown['type'], string>> = { created: 'created', updated: 'updated', deleted: 'deleted', oldest: 'the oldest version there is' }

function describe(shown: readonly Shown[]): string {
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
