/** `skiff explain`: what each stage of the API server decided about a request, by which rule, in how long; of a refusal, what would allow it (L4). */
import { type ExplainedRequest, objectKey, type TraceList } from '#api/debug/traces'
import type { CliCommand, CommandContext } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { describeEvents, describeOthers, describeRequest } from '../explain/describe.ts'
import { withNamedCluster } from '../explain/flags.ts'
import { askBefore, followFirst, traceOf, tracesOf } from '../explain/traces.ts'
import { pathOf } from '../hops/manifest.ts'
import { createReader } from '../net/reader.ts'
import { printFound } from '../output.ts'
import { type ConnectionFlags, type PastConnection, withConnection } from '../past/connection.ts'
import { type Kind, kindNamed, listableKinds, nameOf } from '../past/objects.ts'

interface Flags extends ConnectionFlags {
  readonly namespace?: string
  readonly user?: string
  readonly output?: string
}

export const explain: CliCommand = {
  name: 'explain',
  register: (program, context) => {
    withNamedCluster(
      program
        .command('explain <what> [name]')
        .description(
          'explain a request: by its Audit-ID, the last one that you made (last), or the newest about an object (pod/NAME or pod NAME, with what components did about it)',
        ),
    )
      .option('-n, --namespace <namespace>', 'of the object (default: default)')
      .option('--user <name>', 'with last: of another user')
      .option('-o, --output <format>', 'json')
      .action((first: string, name: string | undefined, flags: Flags) => {
        if (flags.output !== undefined && flags.output !== 'json') throw new CommandError('usage', `-o ${flags.output}: expected json`)
        const what = name === undefined ? first : `${first}/${name}`
        return withConnection(context, flags, (connection) => run(context, connection, what, flags))
      })
  },
}

async function run(context: CommandContext, connection: PastConnection, what: string, flags: Flags): Promise<void> {
  const format = flags.output === 'json' ? 'json' : 'text'
  if (what.includes('/')) {
    const found = await aboutObject(connection, what, flags.namespace)
    printFound(context, format, found, describeList)
    return
  }
  printFound(context, format, what === 'last' ? await last(connection, flags.user) : await traceOf(connection.transport, what), describeRequest)
}

async function last({ transport }: PastConnection, user: string | undefined): Promise<ExplainedRequest> {
  const { requests } = await tracesOf(transport, { last: '1', ...(user === undefined ? {} : { user }) })
  const [found] = requests
  if (!found)
    throw new CommandError('notFound', `no request of ${user ?? 'yours'} is recorded`, { hint: user === undefined ? askBefore : followFirst({ user }) })
  return found
}

async function aboutObject(connection: PastConnection, what: string, namespace = connection.namespace): Promise<TraceList> {
  const [kindText = '', name = '', ...more] = what.split('/')
  if (name === '' || more.length > 0) throw new CommandError('usage', `${what}: expected KIND/NAME`)
  const kind = kindNamed(await listableKinds(connection.transport), kindText)
  const object = objectKey(kind.resource, kind.namespaced ? namespace : '', name)
  // Successful reads explain nothing about the object, unless there is nothing else.
  const changes = await tracesOf(connection.transport, { object, changes: '1' })
  const found = changes.requests.length > 0 ? changes : await tracesOf(connection.transport, { object })
  if (found.requests.length === 0 && found.events.length === 0) throw await withoutRecords(connection, kind, namespace, name)
  return found
}

async function withoutRecords({ transport }: PastConnection, kind: Kind, namespace: string, name: string): Promise<CommandError> {
  const what = kind.namespaced ? `${kind.kind} ${namespace}/${name}` : `${kind.kind} ${name}`
  const { found, notShown } = await createReader(transport).get(pathOf(kind, namespace, name))
  if (found || notShown !== undefined)
    return new CommandError('notFound', `nothing is recorded about ${what}`, {
      hint: followFirst({ object: objectKey(kind.resource, kind.namespaced ? namespace : '', name) }),
    })
  return new CommandError('notFound', `there is no ${what}, and nothing is recorded about one`, {
    hint: kind.namespaced ? `look with: kubectl get ${nameOf(kind)} -A` : `look with: kubectl get ${nameOf(kind)}`,
  })
}

function describeList({ requests: [newest, ...others], events, truncated }: TraceList): string {
  const sections = [newest ? describeRequest(newest) : '', describeOthers(others), describeEvents(events), truncated ? 'There is more than is shown.\n' : '']
  return sections.filter((section) => section !== '').join('\n')
}
