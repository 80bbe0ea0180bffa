/** `skiff debug profile`: where a component spends its CPU time, or what it allocates, as a file for pprof and a list of functions (L4). */
import { messageOf } from '#base/messageOf'
import { completePart } from '#host/partFile'
import type { CliCommand, CommandContext } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { withNamedCluster } from '../explain/flags.ts'
import { printFound } from '../output.ts'
import { openOutput } from '../outputFile.ts'
import { type ConnectionFlags, withConnection } from '../past/connection.ts'
import { readProfile } from '../profile/readProfile.ts'
import { type ProfileRequest, type ProfileType, profilePath, profileTypes, takeProfile } from '../profile/takeProfile.ts'
import { describeSummary, topFunctions } from '../profile/topFunctions.ts'
import { asCommandError } from '../systemErrors.ts'
import { wholeNumber } from '../wholeNumber.ts'

interface Flags extends ConnectionFlags {
  readonly seconds: string
  readonly type: string
  readonly output?: string
}

const mostSeconds = 600
const shownFunctions = 10

export const debug: CliCommand = {
  name: 'debug',
  register: (program, context) => {
    const parent = program.command('debug').description('look into the processes of a cluster')
    withNamedCluster(
      parent
        .command('profile [component]')
        .description(
          'profile apiserver (the default), controller-manager, scheduler or node/NAME: write a file for pprof, and print the functions that used most themselves',
        ),
    )
      .option('--seconds <n>', `how long, from 1 to ${mostSeconds}`, '10')
      .option('--type <type>', 'cpu: where time is spent; heap: what is allocated in that time and still in use', 'cpu')
      .option('-o, --output <file>', 'the file (default: COMPONENT-TYPE.pb.gz in this directory)')
      .action((component: string | undefined, flags: Flags) => profile(context, component ?? 'apiserver', flags))
  },
}

async function profile(context: CommandContext, component: string, flags: Flags): Promise<void> {
  const seconds = wholeNumber('--seconds', flags.seconds, 1, mostSeconds)
  const type = typeOf(flags.type)
  const output = flags.output ?? `${component.replaceAll('/', '-')}-${type}.pb.gz`
  const file = await openOutput(output)
  context.ifInterrupted(`${output} is as it was; ${file.part} can be removed`)
  const summary = await completePart(file, async (handle) => {
    const bytes = await withConnection(context, flags, async ({ transport, cluster }) => {
      const request = { component, type, seconds, isLocal: cluster !== undefined }
      const path = profilePath(request)
      context.stderr.write(`Profiling ${processOf(request)} for ${seconds} s\n`)
      return takeProfile(transport, context.clock, path, request)
    })
    const found = topFunctions(await readProfile(bytes).catch(unreadable(component)), shownFunctions)
    await handle.writeFile(bytes)
    return found
  }).catch((error: unknown) => {
    throw asCommandError(error, 'name another file')
  })
  printFound(context, 'text', summary, describeSummary)
  context.stderr.write(`Written to ${output}; open it with: go tool pprof -http=: ${output}\n`)
}

function processOf({ component, isLocal }: ProfileRequest): string {
  return isLocal && !component.includes('/') ? 'the process of API server, controllers and scheduler' : component
}

/** @throws CommandError usage */
function typeOf(text: string): ProfileType {
  const found = profileTypes.find((type) => type === text)
  if (!found) throw new CommandError('usage', `--type ${text}: expected ${profileTypes.join(' or ')}`)
  return found
}

function unreadable(component: string): (error: unknown) => never {
  return (error) => {
    throw new CommandError('internal', `the answer of ${component} is no profile: ${messageOf(error)}`, { cause: error })
  }
}
