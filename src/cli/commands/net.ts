/** `skiff net policy`: which NetworkPolicies select a pod, what they allow, and whether a connection passes them (L4). */
import { type ConnectionVerdict, type PolicyCheck, type PolicyDirection, type PolicyExplanation, policyDirections } from '#api/debug/networkPolicy'
import { type CliCommand, type CommandContext, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { type PolicyFlags, policyQuestion } from '../net/policyQuestion.ts'
import { printFound } from '../output.ts'
import { table } from './status.ts'

interface Flags extends Partial<PolicyFlags> {
  readonly cluster?: string
  readonly output?: string
}

export const net: CliCommand = {
  name: 'net',
  register: (program, context) => {
    const command = program.command('net').description('how the network of a cluster decides')
    command
      .command('policy <pod>')
      .description('show the network policies that select a pod (NAME or NAMESPACE/NAME), what they allow, and whether a connection passes them')
      .option('-n, --namespace <namespace>', 'of the pods (default: default)')
      .option('--from <peer>', 'whether a connection from this pod or address passes')
      .option('--to <peer>', 'whether a connection to this pod or address passes')
      .option('--port <port>', 'of the destination: 80, 53/UDP, or a name (default: each port that the destination declares)')
      .option('--cluster <name>', 'the cluster, where there are several')
      .option('-o, --output <format>', 'json')
      .action((pod: string, flags: Flags) => showPolicies(context, pod, flags))
  },
}

async function showPolicies(context: CommandContext, pod: string, { cluster: named, output, namespace = 'default', ...flags }: Flags): Promise<void> {
  if (output !== undefined && output !== 'json') throw new CommandError('usage', `-o ${output}: expected json`)
  const cluster = await resolveCluster(context, named)
  const question = await policyQuestion((path, body) => context.clusters.ask(cluster, path, body), pod, { namespace, ...flags })
  printFound(context, output === 'json' ? 'json' : 'text', await context.explainPolicies(question), describePolicies)
}

export function describePolicies(found: PolicyExplanation): string {
  const facts = [
    ['pod:', found.pod],
    ['address:', found.addresses.join(', ') || 'none yet'],
    ['node:', found.node ?? 'none yet'],
  ]
  const selection = found.hostNetwork
    ? 'The pod is on the network of its node: no policy isolates it.\n'
    : policyDirections.map((direction) => selectionText(direction, found.selectedBy[direction])).join('')
  return [table(facts), selection, ...found.verdicts.map(verdictText)].join('\n')
}

function selectionText(direction: PolicyDirection, policies: PolicyExplanation['selectedBy'][PolicyDirection]): string {
  if (policies.length === 0) return `${direction}: no policy isolates the pod, everything is allowed\n`
  const lines = policies.flatMap(({ policy, rules, obstacle }) => [
    `  ${policy}${obstacle !== undefined ? ` allows nothing: ${obstacle}` : rules.length === 0 ? ' allows nothing' : ''}`,
    ...rules.map((rule, index) => `    ${index + 1}. ${rule}`),
  ])
  return `${direction}: only what one of these policies allows\n${lines.map((line) => `${line}\n`).join('')}`
}

function verdictText({ source, destination, protocol, port, allowed, checks }: ConnectionVerdict): string {
  return `${allowed ? 'allowed' : 'denied'}: ${source} -> ${destination} ${protocol} ${port}\n${checks.map((check) => `  ${check.direction} of ${check.of}: ${reasonOf(check)}\n`).join('')}`
}

const reasons: Readonly<Record<Exclude<PolicyCheck['because'], 'policies'>, string>> = {
  notIsolated: 'no policy isolates it',
  noPod: 'no address of a pod, so no policy isolates it',
  itself: 'a pod reaches itself',
  ownNode: 'a node and its own pods reach each other',
}

function reasonOf({ because, policies }: PolicyCheck): string {
  if (because !== 'policies') return reasons[because]
  const allowing = policies.filter(({ rules }) => rules.length > 0)
  if (allowing.length > 0) return `allowed by ${allowing.map(({ policy, rules }) => `${policy}, rule ${rules.join(', ')}`).join('; ')}`
  return `denied, no rule of these allows it: ${policies.map(({ policy }) => policy).join(', ')}`
}
