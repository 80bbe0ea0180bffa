/** `skiff diff FROM [TO] [KIND...]`: which objects were created, changed and deleted between two points in the past (L4). */

import { describeChanges } from '#api/debug/fieldChanges'
import { printable, printableData } from '#base/printable'
import type { CliCommand, CommandContext } from '../command.ts'
import { type ConnectionFlags, type PastConnection, pointOf, withConnection, withConnectionFlags } from '../past/connection.ts'
import { type Difference, differences } from '../past/differences.ts'
import { isUnreadable, type Kind, kindNamed, listableKinds, nameOf } from '../past/objects.ts'
import { parseWhen, wordsOf } from '../past/when.ts'

interface Flags extends ConnectionFlags {
  readonly namespace?: string
  readonly showSecrets?: boolean
}

/** Components write them all the time; users do not. */
const leftOut: ReadonlySet<string> = new Set(['events', 'events.events.k8s.io', 'leases.coordination.k8s.io'])

export const diff: CliCommand = {
  name: 'diff',
  register: (program, context) => {
    withConnectionFlags(
      program
        .command('diff <from> [rest...]')
        .description('show what changed between two points in the past, or since one: skiff diff -1h [-10m] [deployments configmaps...]'),
    )
      .option('-n, --namespace <namespace>', 'only objects of this namespace')
      .option('--show-secrets', 'print the values of Secrets')
      .allowUnknownOption()
      .action((_from: string, _rest: string[], flags: Flags, { args }: { readonly args: readonly string[] }) => {
        const words = wordsOf(args)
        return withConnection(context, flags, (connection) => compare(context, connection, words, flags))
      })
  },
}

async function compare(context: CommandContext, connection: PastConnection, [first = '', ...rest]: readonly string[], flags: Flags): Promise<void> {
  const nowMs = context.clock.now()
  const [second, names] = isPoint(rest[0], nowMs) ? [rest[0] ?? 'now', rest.slice(1)] : ['now', rest]
  const [from, to] = [await pointOf(connection, first, nowMs), await pointOf(connection, second, nowMs)]
  const { transport } = connection
  const all = await listableKinds(transport)
  const kinds = names.length > 0 ? names.map((name) => kindNamed(all, name)) : all.filter((kind) => !leftOut.has(nameOf(kind)))
  const options = { from: from.revision, to: to.revision, namespace: flags.namespace, showSecrets: flags.showSecrets ?? false }
  context.stdout.write(`From revision ${from.revision} (${printable(from.text)}) to ${to.revision} (${printable(to.text)})\n`)
  const skipped: string[] = []
  for (const kind of kinds) {
    if (flags.namespace !== undefined && !kind.namespaced) continue
    try {
      for await (const difference of differences(transport, kind, options)) context.stdout.write(lines(kind, printableData(difference)))
    } catch (error) {
      if (names.length > 0 || !isUnreadable(error)) throw error
      skipped.push(nameOf(kind))
    }
  }
  if (names.length === 0) context.stderr.write(`Not compared: ${[...leftOut, ...skipped].join(', ')}\n`)
}

function isPoint(text: string | undefined, nowMs: number): boolean {
  try {
    return text !== undefined && parseWhen(text, nowMs) !== undefined
  } catch {
    return false
  }
}

const signs: Readonly<Record<Difference['type'], string>> = { created: '+', changed: '~', deleted: '-' }

function lines(kind: Kind, { type, key, changes }: Difference): string {
  return [`${signs[type]} ${nameOf(kind)} ${key}`, ...describeChanges(changes).map((line) => `    ${line}`)].map((line) => `${line}\n`).join('')
}
