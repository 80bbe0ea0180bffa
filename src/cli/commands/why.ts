/**
 * `skiff why`: why an object waits; of a pod also where the scheduler would place it; where a pod would run that does not exist; why a namespace does not end;
 * how an autoscaler came to its replicas; why a user may or may not do something (L4). The answers are in cli/why and in why.
 */
import { readFile } from 'node:fs/promises'
import { messageOf } from '#base/messageOf'
import { printableData } from '#base/printable'
import type { Transport } from '#client/transport'
import type { CliCommand, CommandContext } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { withNamedCluster } from '../explain/flags.ts'
import { printFound } from '../output.ts'
import { type ConnectionFlags, withConnection } from '../past/connection.ts'
import { describeAccess, explainAccess } from '../why/access.ts'
import { describeAutoscaler, explainAutoscaler } from '../why/autoscaler.ts'
import { explainManifest } from '../why/manifest.ts'
import { describeNamespace, explainNamespace } from '../why/namespace.ts'
import { describeObject, explainNamed } from '../why/object.ts'
import { type Ask, askOver } from '../why/questions.ts'
import { describeScheduling } from '../why/scheduling.ts'

interface Flags extends ConnectionFlags {
  readonly namespace?: string
  readonly filename?: string
  readonly asGroup?: readonly string[]
  readonly output?: string
}

export const why: CliCommand = {
  name: 'why',
  register: (program, context) => {
    withNamedCluster(
      program
        .command('why [what...]')
        .description(
          'explain why an object waits (KIND/NAME, or the name of a pod), where a pod would run (-f FILE), why a namespace stays in Terminating (ns/NAME), why an autoscaler set its replicas (hpa/NAME), or why a user may do something (can USER VERB RESOURCE [NAME])',
        ),
    )
      .option('-f, --filename <file>', 'a manifest of a pod or a workload; - is standard input; nothing is created')
      .option('-n, --namespace <namespace>', 'of the object (default: default)')
      .option('--as-group <group...>', 'for can: groups of the user')
      .option('-o, --output <format>', 'json')
      .action(async (what: string[], flags: Flags) => {
        if (flags.output !== undefined && flags.output !== 'json') throw new CommandError('usage', `-o ${flags.output}: expected json`)
        const question = questionOf(what, flags)
        await withConnection(context, flags, async ({ transport, cluster, namespace }) => {
          const ask: Ask = cluster === undefined ? askOver(transport) : (path, body) => context.clusters.ask(cluster, path, body)
          const print = await question({ ask, transport, namespace: flags.namespace ?? namespace })
          print(context, flags.output === 'json' ? 'json' : 'text')
        })
      })
  },
}

interface Asked {
  readonly ask: Ask
  readonly transport: Transport
  readonly namespace: string
}

type Print = (context: CommandContext, format: 'json' | 'text') => void
type Question = (asked: Asked) => Promise<Print>

function answer<T>(found: T, describeFound: (found: T) => string): Print {
  return (context, format) => printFound(context, format, found, describeFound)
}

function questionOf(what: readonly string[], { namespace: given, filename, asGroup = [] }: Flags): Question {
  const [first, ...rest] = what
  if (filename !== undefined) {
    if (first !== undefined) throw new CommandError('usage', `why -f ${filename} ${first}: expected a file or a name, not both`)
    return async ({ ask }) => answer(await explainManifest(ask, await textOf(filename), filename, given), describeScheduling)
  }
  if (first === undefined) throw new CommandError('usage', 'why: expected KIND/NAME, the name of a pod, can USER VERB RESOURCE, or -f FILE')
  if (first === 'can') return accessQuestion(rest, asGroup)
  if (rest.length > 0) throw new CommandError('usage', `why ${what.join(' ')}: expected one name`)
  const ended = /^(?:ns|namespaces?)\/([^/]+)$/.exec(first)?.[1]
  if (ended !== undefined) return async ({ ask }) => answer(await explainNamespace(ask, ended), describeNamespace)
  const autoscaler = /^(?:hpa|horizontalpodautoscalers?)\/([^/]+)$/.exec(first)?.[1]
  if (autoscaler !== undefined) return async ({ ask, namespace }) => answer(await explainAutoscaler(ask, namespace, autoscaler), describeAutoscaler)
  return async ({ transport, ask, namespace }) => answer(await explainNamed(transport, ask, first, namespace), describeObject)
}

function accessQuestion([user, verb, resource, name, ...more]: readonly string[], groups: readonly string[]): Question {
  if (!user || !verb || !resource || more.length > 0)
    throw new CommandError('usage', 'why can: expected USER VERB RESOURCE [NAME], for instance: why can jane get pods')
  return async ({ ask, namespace }) => {
    const asked = { user, verb, resource, name, namespace, groups }
    return answer(await explainAccess(ask, asked), (found) => describeAccess(printableData(asked), found))
  }
}

async function textOf(file: string): Promise<string> {
  return readFile(file === '-' ? '/dev/stdin' : file, 'utf8').catch((error: unknown) => {
    throw new CommandError('usage', `cannot read ${file}: ${messageOf(error)}`)
  })
}
